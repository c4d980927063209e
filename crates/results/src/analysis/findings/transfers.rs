//! The fixed cost of a copy between host and device, the share of transfers in end-to-end time, and
//! what an exchange of data between GPUs costs.

use crate::analysis::findings::finding::{
    Context, Finding, Technique, fastest, gpu, resident, sentence,
};
use crate::analysis::findings::lessons::plain;
use crate::model::record::DEVICES;
use crate::model::role::{CopyDirection, Exchange, Measures, Residency};
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::Clock::Wall;
use crossover_words::units;

/// Above this size the link's rate, not the fixed cost, determines the time.
const SMALL: u64 = 1 << 16;

/// The time at the smallest size: there the bytes themselves take next to none.
pub(super) fn fixed(context: &Context, group: &Group) -> Option<Finding> {
    let find = |way, data| -> Option<&Series> {
        gpu(group, Wall).find(|s| plain(&s.role, way) && s.role.data == data)
    };
    let up = find(CopyDirection::ToDevice, Residency::Pinned)?
        .points
        .first()?;
    let size = Some(up.size).filter(|size| *size <= SMALL)?;
    let mut times = Vec::new();
    let mut rests = vec![up];
    for (way, data, words) in [
        (CopyDirection::ToHost, Residency::Pinned, "back to the host"),
        (
            CopyDirection::ToDevice,
            Residency::Ordinary,
            "from pageable memory",
        ),
        (
            CopyDirection::InPlace,
            Residency::Pinned,
            "read by a kernel in place",
        ),
    ] {
        if let Some(b) = find(way, data).and_then(|s| s.at(size)) {
            times.push(format!("{} {words}", units::time(b.median_ns)));
            rests.push(b);
        }
    }
    let times = if times.is_empty() {
        String::new()
    } else {
        format!("; {}", times.join(", "))
    };
    let link = context.machine.limit_of(up, "h2d_pinned");
    let worth = link.map(|link| link * up.median_ns * 1e-9);
    let of_link = worth.map_or(String::new(), |bytes| {
        format!(
            ", the time in which the link carries {}",
            units::bytes(bytes)
        )
    });
    let text = format!(
        "However small it is, a copy costs {}{of_link} ({} from pinned memory to the device{times}).",
        units::time(up.median_ns),
        units::binary(size),
    );
    Some(Finding::new(&group.name, "copies.fixed", text).rests_on(rests))
}

/// The work alone is the fastest measured on data already on the device, in the same format.
pub(super) fn share(context: &Context) -> Vec<Finding> {
    let groups = context.machine.groups.iter();
    groups
        .flat_map(|group| group.moving().filter_map(|series| finding(group, series)))
        .collect()
}

fn finding(group: &Group, series: &Series) -> Option<Finding> {
    let alone = |size| {
        let alike = resident(group).filter(|s| s.role.format == series.role.format);
        fastest(alike, size)
    };
    let points = series.points.iter();
    let pairs: Vec<_> = points
        .filter_map(|total| Some((total, alone(total.size)?)))
        .filter(|(total, alone)| alone.median_ns < total.median_ns)
        .collect();
    let &(total, alone) = pairs.last()?;
    let share = |(t, a): &(&Benchmark, &Benchmark)| 1.0 - a.median_ns / t.median_ns;
    let least = pairs.iter().map(share).fold(f64::INFINITY, f64::min);
    let at = group.topic.at(total.size);
    let id = format!("transfers.{{}}.{}", series.implementation);
    let caption = format!(
        "{} from host memory and back: the share of the time that moving the data takes.",
        sentence(&group.topic.work)
    );
    let head = "moved by | at | time | share of moving | least at any size";
    let row = vec![
        format!("gpu/{}", series.implementation),
        at.clone(),
        units::time(total.median_ns),
        units::percent(share(&(total, alone))),
        units::percent(least),
    ];
    // Against the best way of moving them, not against any.
    let is_best = fastest(group.moving(), total.size)?.median_ns >= total.median_ns;
    let technique = is_best.then_some(Technique::KeepOnDevice);
    let finding = Finding::table(&group.name, &id, caption, head, vec![row])
        .gained(technique, total.median_ns / alone.median_ns, at)
        .rests_on(pairs.iter().flat_map(|(t, a)| [*t, *a]));
    Some(finding)
}

/// The time of the smallest exchange, and the rate of the largest.
pub(super) fn exchanges(_: &Context, group: &Group) -> Option<Finding> {
    let kind = |series: &Series| match series.role.measures {
        Measures::Exchanges(exchange) => Some(exchange),
        _ => None,
    };
    let mut words = Vec::new();
    let mut rests: Vec<&Benchmark> = Vec::new();
    for series in group.series.iter().filter(|s| s.measures_work()) {
        let (Some(exchange), [first, .., last]) = (kind(series), &series.points[..]) else {
            continue;
        };
        // As nccl-tests define it, the algorithm bandwidth is the bytes of a device over the time.
        let algorithm = last.rate(last.size as f64);
        let written = units::rate(algorithm, "B/s");
        let rate = match exchange {
            Exchange::AllReduce => {
                let bus = algorithm * bus_factor(last.extra.get(DEVICES).copied()?);
                format!("{written} (bus bandwidth {})", units::rate(bus, "B/s"))
            }
            Exchange::OneWay => written,
            Exchange::BothWays => format!("{written} each way"),
        };
        words.push(format!(
            "{} {} at {} and {rate} at {}",
            series.name(),
            units::time(first.median_ns),
            units::binary(first.size),
            units::binary(last.size)
        ));
        rests.extend([first, last]);
    }
    if words.is_empty() {
        return None;
    }
    let text = format!("{}: {}.", group.topic.title, words.join("; "));
    Some(Finding::new(&group.name, "exchanges", text).rests_on(rests))
}

/// Bus bandwidth over algorithm bandwidth of an all-reduce: what a device sends at least, over its values.
/// <https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md>
fn bus_factor(devices: f64) -> f64 {
    2.0 * (devices - 1.0) / devices
}

#[cfg(test)]
mod tests {
    use super::bus_factor;

    #[test]
    fn the_bus_carries_what_nccl_tests_say() {
        assert_eq!([2.0, 4.0, 8.0].map(bus_factor), [1.0, 1.5, 1.75]);
    }
}
