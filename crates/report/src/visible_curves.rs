//! Which curves of a group a plot has: a person looks for an answer, and more than six lines are told
//! apart by nobody.

use crossover_results::analysis::answer::crossover_answer::{CrossoverAnswer, headlines};
use crossover_results::analysis::findings::finding::Finding;
use crossover_results::model::id::Device;
use crossover_results::store::curves::{Group, Series};

/// Curves of a plot.
pub(super) const MOST: usize = 6;

/// The curves of the answers, then those that findings rest on, then the others: as many as there
/// is room for, in the order of the group's rows. `found` and `findings` are those of the group.
pub(super) fn visible_curves<'a>(
    group: &'a Group,
    found: &[CrossoverAnswer],
    findings: &[&Finding],
) -> Vec<&'a Series> {
    let mut ranked: Vec<(u8, &Series)> = group
        .series
        .iter()
        .map(|series| (rank(series, found, findings), series))
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.truncate(MOST);
    if ranked.first().is_some_and(|r| r.0 == 0) {
        // Where there are answers they are what is asked for, and what they rest on.
        ranked.retain(|(rank, _)| *rank <= 1);
    }
    let row = |series: &Series| group.series.iter().position(|s| std::ptr::eq(s, series));
    ranked.sort_by_key(|(_, series)| row(series));
    ranked.into_iter().map(|(_, series)| series).collect()
}

fn rank(series: &Series, found: &[CrossoverAnswer], findings: &[&Finding]) -> u8 {
    let is_answer = headlines(found).any(|f| match series.device {
        Device::Cpu => f.cpu == series.implementation,
        Device::Gpu => f.is_of(series),
    });
    let mut findings = findings.iter().filter(|f| !f.in_a_table);
    let is_of = |f: &&Finding| series.points.iter().any(|b| f.benchmarks.contains(&b.id));
    match is_answer {
        true => 0,
        false if series.measures_work() && findings.any(is_of) => 1,
        false => 2,
    }
}
