//! Copies between host and device: what pinning saves, what a copy costs however small it is,
//! and what many small ones cost.

use crate::analysis::findings::finding::{Context, Finding, common, wall};
use crate::presentation::units;
use crate::results::curves::Benchmark;

const GROUP: &str = "transfer";
/// Pieces of `h2d-many`, fixed with its id.
const PIECES: f64 = 64.0;
/// Pinning pays where it saves at least this share.
const PAYS: f64 = 1.1;
/// Above this the link's rate, not the fixed cost, makes the time.
const SMALL: u64 = 1 << 16;

pub(super) fn pinned(context: &Context) -> Vec<Finding> {
    let ways = [
        ("h2d", "to the device", "h2d_pinned"),
        ("d2h", "to the host", "d2h_pinned"),
    ];
    ways.into_iter()
        .filter_map(|way| pinned_one(context, way))
        .collect()
}

fn pinned_one(context: &Context, (way, words, ceiling): (&str, &str, &str)) -> Option<Finding> {
    let group = context.machine.group(GROUP)?;
    let pageable = wall(group, &format!("{way}-pageable"))?;
    let pinned = wall(group, &format!("{way}-pinned"))?;
    let pairs = common(pageable, pinned);
    let ratio = |(a, b): &(&Benchmark, &Benchmark)| a.median_ns / b.median_ns;
    let largest = pairs.last()?;
    let (slow, fast) = *largest;
    let from = pairs
        .iter()
        .rev()
        .take_while(|pair| ratio(pair) >= PAYS)
        .last()
        .map(|(_, pinned)| pinned.size);
    let rate = |b: &Benchmark| b.rate(b.size as f64);
    let link = context.machine.ceiling(ceiling);
    let share = link.map(|link| rate(fast) / link);
    let of_link = share.map_or(String::new(), |share| {
        format!(", {} of the measured PCIe rate", units::percent(share))
    });
    let compared = match ratio(largest) {
        r if r >= 1.0 => format!("{} as fast as", units::factor(r)),
        r => format!("{} slower than", units::factor(1.0 / r)),
    };
    let pays = match from {
        Some(size) => format!("it pays from {} on", units::binary(size)),
        None => "at no measured size does it pay".into(),
    };
    let text = format!(
        "Copies {words} with pinned host memory are {compared} with pageable memory at {} ({}{of_link}, \
         against {}); {pays}.",
        units::binary(fast.size),
        units::rate(rate(fast), "B/s"),
        units::rate(rate(slow), "B/s"),
    );
    Some(
        Finding::new(format!("copies.pinned.{way}"), text)
            .figure("size", fast.size as f64)
            .figure("ratio", ratio(largest))
            .figure("pays_from_size", from.map_or(f64::NAN, |size| size as f64))
            .figure("rate", rate(fast))
            .figure("link_share", share.unwrap_or(f64::NAN))
            .rests_on(pairs.iter().flat_map(|(a, b)| [*a, *b])),
    )
}

/// The time at the smallest size: there the bytes themselves take next to none.
pub(super) fn fixed(context: &Context) -> Vec<Finding> {
    fixed_one(context).into_iter().collect()
}

fn fixed_one(context: &Context) -> Option<Finding> {
    let group = context.machine.group(GROUP)?;
    let up = wall(group, "h2d-pinned")?.points.first()?;
    let size = Some(up.size).filter(|size| *size <= SMALL)?;
    let mut others = Vec::new();
    let mut rests = vec![up];
    for (name, words) in [
        ("d2h-pinned", "back to the host"),
        ("h2d-pageable", "from pageable memory"),
        ("zero-copy", "read by a kernel in place"),
    ] {
        if let Some(b) = wall(group, name).and_then(|s| s.at(size)) {
            others.push(format!("{} {words}", units::time(b.median_ns)));
            rests.push(b);
        }
    }
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("; {}", others.join(", ")),
    };
    let link = context.machine.ceiling("h2d_pinned");
    let worth = link.map(|link| link * up.median_ns * 1e-9);
    let of_link = worth.map_or(String::new(), |bytes| {
        format!(", in which the link carries {}", units::bytes(bytes))
    });
    let text = format!(
        "A copy costs {} however small it is{of_link} ({} from pinned memory to the device{others}).",
        units::time(up.median_ns),
        units::binary(size),
    );
    Some(
        Finding::new("copies.fixed", text)
            .figure("size", size as f64)
            .figure("fixed_ns", up.median_ns)
            .figure("worth_bytes", worth.unwrap_or(f64::NAN))
            .rests_on(rests),
    )
}

pub(super) fn many(context: &Context) -> Vec<Finding> {
    many_one(context).into_iter().collect()
}

fn many_one(context: &Context) -> Option<Finding> {
    let group = context.machine.group(GROUP)?;
    let pairs = common(wall(group, "h2d-pinned")?, wall(group, "h2d-many")?);
    let (one, many) = *pairs.first()?;
    let ratio = many.median_ns / one.median_ns;
    let each = (many.median_ns - one.median_ns) / (PIECES - 1.0);
    let compared = match ratio {
        r if r >= 1.0 => format!("takes {} as long", units::factor(r)),
        r => format!("is {} faster", units::factor(1.0 / r)),
    };
    let of_each = match each {
        e if e > 0.0 => format!(", {} for each further copy", units::time(e)),
        _ => String::new(),
    };
    let large = match pairs.last().filter(|_| pairs.len() > 1) {
        Some((one, many)) => format!(
            "; at {} the factor is {}",
            units::binary(one.size),
            units::factor_fine(many.median_ns / one.median_ns)
        ),
        None => String::new(),
    };
    let text = format!(
        "Copying {} to the device in {PIECES} pieces {compared} ({} against {}{of_each}){large}.",
        units::binary(one.size),
        units::time(many.median_ns),
        units::time(one.median_ns),
    );
    Some(
        Finding::new("copies.many", text)
            .figure("size", one.size as f64)
            .figure("ratio", ratio)
            .figure("each_ns", each)
            .rests_on(pairs.iter().flat_map(|(a, b)| [*a, *b])),
    )
}
