//! Whose GPU it is, where this machine has none: said once, above everything that rests on it. And
//! which groups no GPU has measured.

use crate::assemble::Assembled;
use crossover_results::analysis::answer::crossover_answer::headlines;
use crossover_results::model::id::Device;
use crossover_results::model::record::Skip;
use crossover_results::store::machine::MachineResults;

/// `There is no GPU here. The GPU figures are of another machine: NVIDIA H200, measured 2026-11-21.`
/// `None` where every answer is this machine's own.
pub(super) fn banner(report: &Assembled) -> Option<String> {
    let mut names: Vec<&str> = headlines(&report.found)
        .filter_map(|f| f.gpu_machine.as_deref())
        .collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return None;
    }
    let named = |name: &&str| {
        let machine = (report.others.iter()).find(|(m, _)| m.hardware() == **name);
        let day = machine.and_then(|(m, _)| day(m));
        day.map_or((*name).to_owned(), |day| format!("{name}, measured {day}"))
    };
    let named: Vec<String> = names.iter().map(named).collect();
    let whose = match names.len() {
        1 => "another machine",
        _ => "other machines",
    };
    let of = format!("of {whose}: {}", named.join("; "));
    let environment = report.machine.environment.as_ref();
    Some(match environment.is_some_and(|e| e.gpu.is_none()) {
        true => format!("There is no GPU here. The GPU figures are {of}."),
        false => format!("Where nothing was measured on the GPU here, the GPU figures are {of}."),
    })
}

/// The groups that this machine's CPU has measured and no GPU of any machine here, though they have
/// code for it.
pub(super) fn unmeasured(report: &Assembled) -> Vec<&str> {
    let names = report.machine.groups.iter().map(|group| &*group.name);
    names.filter(|name| is_unmeasured(report, name)).collect()
}

/// Whether a group of this machine is one of them.
pub(super) fn is_unmeasured(report: &Assembled, name: &str) -> bool {
    let on = |device| {
        let mut groups = report.of_machines(name);
        groups.any(|group| group.on(device).count() > 0)
    };
    let row = format!("{name}/gpu/");
    let has_row = |skip: &Skip| skip.id.starts_with(&row);
    report.machine.skipped().iter().any(has_row) && on(Device::Cpu) && !on(Device::Gpu)
}

/// What is not known of these groups, in a sentence.
pub(super) fn unknown(groups: &[&str]) -> String {
    format!(
        "No GPU has measured {} in these results, so from which size on it would win is not known.",
        groups.join(", ")
    )
}

/// The day of the machine's newest run.
pub(super) fn day(machine: &MachineResults) -> Option<&str> {
    machine.run.as_ref()?.started.get(..10)
}
