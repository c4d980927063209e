//! The share of transfers in end-to-end time, and how often data must be used to pay for it.

use crate::analysis::findings::finding::{Context, Finding, fastest, resident, sentence};
use crate::analysis::findings::technique::Technique;
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::units;

/// The work alone is the fastest measured on data already on the device, in the same format.
pub(super) fn share(context: &Context) -> Vec<Finding> {
    let groups = context.machine.groups.iter();
    groups
        .flat_map(|group| group.moving().filter_map(|series| of(group, series)))
        .collect()
}

fn of(group: &Group, series: &Series) -> Option<Finding> {
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
