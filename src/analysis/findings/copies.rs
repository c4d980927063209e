//! Copies between host and device: what pinning saves, what a copy costs however small it is,
//! and what many small ones cost.

use crate::analysis::findings::finding::{Context, Finding, common, gpu, pair};
use crate::analysis::findings::technique::Technique;
use crate::model::role::{Data, Does, Role, Way};
use crate::presentation::units;
use crate::results::curves::{Benchmark, Group, Series};
use crate::timing::Clock::Wall;

/// Pinning pays where it saves at least this share.
const PAYS: f64 = 1.1;
/// Above this the link's rate, not the fixed cost, makes the time.
const SMALL: u64 = 1 << 16;

pub(super) fn pinned(context: &Context) -> Vec<Finding> {
    let ways = [
        (Way::ToDevice, "h2d", "to the device", "h2d_pinned"),
        (Way::ToHost, "d2h", "to the host", "d2h_pinned"),
    ];
    let groups = context.machine.groups.iter();
    groups
        .flat_map(|group| ways.map(|way| pinned_one(context, group, way)))
        .flatten()
        .collect()
}

/// A plain copy: in one piece, by no particular method.
fn plain(role: &Role, way: Way) -> bool {
    role.does == Does::Copies(way) && role.pieces == 1 && role.method.is_none()
}

fn pinned_one(
    context: &Context,
    group: &Group,
    (way, id, words, ceiling): (Way, &str, &str, &str),
) -> Option<Finding> {
    let (pageable, pinned) = pair(
        group,
        &[Wall],
        |role| plain(role, way) && role.data == Data::Ordinary,
        |role| role.data == Data::Pinned,
        |role| role.data = Data::Ordinary,
    )?;
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
    let link = context.machine.ceiling_of(fast, ceiling);
    let share = link.map(|link| rate(fast) / link);
    let of_link = share.map_or(String::new(), |share| {
        format!(", {} of the measured PCIe rate", units::percent(share))
    });
    let compared = match ratio(largest) {
        r if r >= 1.0 => format!("{} as fast as", units::factor(r)),
        r => format!("{} slower than", units::factor(1.0 / r)),
    };
    let pays = match from {
        Some(size) => format!("pinning pays from {} on", units::binary(size)),
        None => "pinning pays at none of the measured sizes".into(),
    };
    let text = format!(
        "Copies {words} with pinned host memory are {compared} with pageable memory at {} ({}{of_link}, \
         against {}); {pays}.",
        units::binary(fast.size),
        units::rate(rate(fast), "B/s"),
        units::rate(rate(slow), "B/s"),
    );
    Some(
        Finding::new(&group.name, format!("copies.pinned.{id}"), text)
            .figure("size", fast.size as f64)
            .figure("ratio", ratio(largest))
            .figure("pays_from_size", from.map_or(f64::NAN, |size| size as f64))
            .figure("rate", rate(fast))
            .figure("link_share", share.unwrap_or(f64::NAN))
            .gained(Technique::Pin, ratio(largest), group.topic.at(fast.size))
            .rests_on(pairs.iter().flat_map(|(a, b)| [*a, *b])),
    )
}

/// The time at the smallest size: there the bytes themselves take next to none.
pub(super) fn fixed(context: &Context) -> Vec<Finding> {
    context.each_group(|group| fixed_one(context, group))
}

fn fixed_one(context: &Context, group: &Group) -> Option<Finding> {
    let find = |way, data| -> Option<&Series> {
        gpu(group, Wall).find(|s| plain(&s.role, way) && s.role.data == data)
    };
    let up = find(Way::ToDevice, Data::Pinned)?.points.first()?;
    let size = Some(up.size).filter(|size| *size <= SMALL)?;
    let mut others = Vec::new();
    let mut rests = vec![up];
    for (way, data, words) in [
        (Way::ToHost, Data::Pinned, "back to the host"),
        (Way::ToDevice, Data::Ordinary, "from pageable memory"),
        (Way::InPlace, Data::Pinned, "read by a kernel in place"),
    ] {
        if let Some(b) = find(way, data).and_then(|s| s.at(size)) {
            others.push(format!("{} {words}", units::time(b.median_ns)));
            rests.push(b);
        }
    }
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("; {}", others.join(", ")),
    };
    let link = context.machine.ceiling_of(up, "h2d_pinned");
    let worth = link.map(|link| link * up.median_ns * 1e-9);
    let of_link = worth.map_or(String::new(), |bytes| {
        format!(
            ", the time in which the link carries {}",
            units::bytes(bytes)
        )
    });
    let text = format!(
        "However small it is, a copy costs {}{of_link} ({} from pinned memory to the device{others}).",
        units::time(up.median_ns),
        units::binary(size),
    );
    Some(
        Finding::new(&group.name, "copies.fixed", text)
            .figure("size", size as f64)
            .figure("fixed_ns", up.median_ns)
            .figure("worth_bytes", worth.unwrap_or(f64::NAN))
            .rests_on(rests),
    )
}

pub(super) fn many(context: &Context) -> Vec<Finding> {
    context.each_group(many_one)
}

fn many_one(group: &Group) -> Option<Finding> {
    let (one, many) = pair(
        group,
        &[Wall],
        |role| plain(role, Way::ToDevice) && role.data == Data::Pinned,
        |role| role.pieces > 1,
        |role| role.pieces = 1,
    )?;
    let pieces = many.role.pieces;
    let pairs = common(one, many);
    let (one, many) = *pairs.first()?;
    let ratio = many.median_ns / one.median_ns;
    let each = (many.median_ns - one.median_ns) / f64::from(pieces - 1);
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
        "Copying {} to the device in {pieces} pieces {compared} ({} against {}{of_each}){large}.",
        units::binary(one.size),
        units::time(many.median_ns),
        units::time(one.median_ns),
    );
    Some(
        Finding::new(&group.name, "copies.many", text)
            .figure("size", one.size as f64)
            .figure("ratio", ratio)
            .figure("each_ns", each)
            .rests_on(pairs.iter().flat_map(|(a, b)| [*a, *b])),
    )
}
