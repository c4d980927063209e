//! The answers in sentences: from which size on the GPU wins, with and without transfers, and several
//! GPUs against one.

use crate::analysis::answer::answer_in_words::{largest, wins};
use crate::analysis::answer::crossover_answer::{CrossoverAnswer, headlines, of_several};
use crate::analysis::findings::finding::{Context, Finding, Technique};
use crate::model::role::Devices;
use crate::store::curves::{Group, Series};
use crossover_words::units;

pub(super) fn of_groups(context: &Context) -> Vec<Finding> {
    headlines(context.found)
        .map(|f| {
            // As the data are where a function of the host finds them, if that was measured.
            let asked = headlines(context.found).filter(|g| g.group == f.group);
            let is_last = asked.map(|g| g.question).max() == Some(f.question);
            let is_decided = f.crossing.wins_at_the_largest().is_some();
            let gains = is_last && is_decided && f.gpu_machine.is_none();
            let technique = gains.then_some(Technique::MoveToGpu);
            let at = f.topic.at(f.crossing.largest as u64);
            one(f).gained(technique, f.crossing.speedup, at)
        })
        .collect()
}

fn one(f: &CrossoverAnswer) -> Finding {
    let (title, data, gpu) = (&f.topic.title, f.question.words(), f.gpu_label());
    let (wins, largest) = (wins(&f.topic, &f.crossing), largest(&f.topic, &f.crossing));
    let text = format!("{title}, data {data}, {gpu} against the best CPU code: {wins}; {largest}.");
    let id = format!("winner.{{}}.{}", f.question.name());
    let mut finding = Finding::new(&f.group, &id, text);
    finding.benchmarks = f.benchmarks.clone();
    finding.in_a_table = true;
    finding
}

pub(super) fn of_several_gpus(context: &Context) -> Vec<Finding> {
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
    let (wins, largest) = (wins(&f.topic, &f.crossing), largest(&f.topic, &f.crossing));
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
