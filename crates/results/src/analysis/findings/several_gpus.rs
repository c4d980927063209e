//! Several GPUs: from which size on they win against one, the communication that is not hidden, and what an
//! exchange of data between them costs.

use crate::analysis::answer::answer_in_words;
use crate::analysis::answer::crossover_answer::{CrossoverAnswer, of_several};
use crate::analysis::findings::finding::{Context, Finding};
use crate::model::record::DEVICES;
use crate::model::role::{Devices, Exchange, Measures};
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::units;

/// The answers, in sentences.
pub(super) fn answers(context: &Context) -> Vec<Finding> {
    of_several(context.found)
        .filter_map(|f| {
            let group = context.machine.group(&f.group)?;
            answer(f, group, f.gpu_series(group)?)
        })
        .collect()
}

fn answer(f: &CrossoverAnswer, group: &Group, series: &Series) -> Option<Finding> {
    let (title, devices) = (&f.topic.title, f.devices?);
    let place = match series.role.devices? {
        Devices::Gathered => "all data on the first",
        _ => "each with its part of the data",
    };
    let (wins, largest) = (answer_in_words::wins(f), answer_in_words::largest(f));
    let hidden = not_hidden(group, series);
    let communication = hidden.map_or(String::new(), |(low, share, high)| {
        let [low, share, high] = [low, share, high].map(units::percent);
        format!("; communication that is not hidden takes {share} there ({low} to {high})")
    });
    let text =
        format!("{title}, {devices} GPUs against one, {place}: {wins}; {largest}{communication}.");
    let mut finding = Finding::new(&f.group, &format!("gpus.{{}}.{}", f.gpu), text);
    finding.benchmarks = f.benchmarks.clone();
    Some(finding)
}

/// The part of the time at the largest size that work does not take whose data lie where it runs, with the
/// ends of its interval.
fn not_hidden(group: &Group, series: &Series) -> Option<(f64, f64, f64)> {
    (series.role.devices == Some(Devices::Gathered)).then_some(())?;
    let mut divided = group.series.iter();
    let divided =
        divided.find(|s| s.role.devices == Some(Devices::Divided) && s.clock == series.clock)?;
    let at = series.steady_points().last()?;
    let there = divided.steady_points().find(|b| b.size == at.size)?;
    let share = |part: f64, whole: f64| (1.0 - part / whole).clamp(0.0, 1.0);
    Some((
        share(there.high_ns(), at.low_ns()),
        share(there.median_ns, at.median_ns),
        share(there.low_ns(), at.high_ns()),
    ))
}

/// What the smallest exchange costs, and the rate of the largest.
pub(super) fn exchanges(_: &Context, group: &Group) -> Option<Finding> {
    let kind = |series: &Series| match series.role.does {
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
