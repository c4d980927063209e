//! Findings: sentences, and the benchmarks they rest on.
//!
//! [`TABLE`] lists them all. A finding whose benchmarks are missing is absent. Findings select by
//! roles, never by names, so they hold for every group with such rows. A comparison of two rows that
//! differ in one thing is a row of the table in `lessons.rs`; the others have a file for each subject.

mod answers;
mod first_calls;
mod lessons;
mod loading;
mod memory;
mod precision;
mod timing;
mod transfers;

pub mod finding;

use std::collections::BTreeMap;

use Finder::{All, Each};
use rayon::prelude::*;

use crate::analysis::findings::finding::{Context, Finding};
use crate::analysis::telemetry::{Capped, cap_words, capped};
use crate::store::curves::Group;
use crossover_words::units;

/// How findings of one kind are made.
pub enum Finder {
    /// At most one for each group, in the order of the groups.
    Each(fn(&Context, &Group) -> Option<Finding>),
    /// A finding about all groups.
    All(fn(&Context) -> Vec<Finding>),
}

/// All kinds, in the order in which they are shown.
pub const TABLE: &[Finder] = &[
    All(answers::of_groups),
    All(answers::of_several_gpus),
    All(transfers::share),
    Each(precision::formats),
    All(timing::without_waiting),
    All(lessons::find),
    Each(transfers::fixed),
    Each(transfers::exchanges),
    Each(loading::find),
    Each(memory::held),
    Each(memory::of_formats),
    Each(timing::ways),
    All(first_calls::costs),
    Each(first_calls::calls),
    Each(first_calls::prepared),
];

/// All findings.
pub fn find(context: &Context) -> Vec<Finding> {
    let groups = &context.machine.groups;
    let make = |kind: &Finder| -> Vec<Finding> {
        match kind {
            All(find) => find(context),
            Each(find) => (groups.iter())
                .filter_map(|group| find(context, group))
                .collect(),
        }
    };
    let mut findings: Vec<Finding> = TABLE.par_iter().flat_map_iter(make).collect();
    add_capped(context, &mut findings);
    findings
}

/// Adds to each finding how many of its results were measured under the power cap, and at which clocks: a rate
/// at 1,365 MHz is not the rate at 1,980.
fn add_capped(context: &Context, findings: &mut [Finding]) {
    let environment = context.machine.environment.as_ref();
    let benchmarks = context.machine.benchmarks();
    let known: BTreeMap<&str, Capped> = benchmarks
        .filter_map(|b| Some((&*b.id, capped(b, environment)?)))
        .collect();
    for finding in findings {
        let rests_on = finding.benchmarks.iter();
        let held: Vec<&Capped> = rests_on.filter_map(|id| known.get(&**id)).collect();
        let Some(first) = held.first() else {
            continue;
        };
        let clocks = || held.iter().filter_map(|capped| capped.sm_clock_mhz);
        let ends = [clocks().reduce(f64::min), clocks().reduce(f64::max)];
        let at = match ends.map(|end| end.map(units::megahertz)) {
            [Some(low), Some(high)] if low == high => format!(", at a median SM clock of {low}"),
            [Some(low), Some(high)] => format!(", at median SM clocks from {low} to {high}"),
            _ => String::new(),
        };
        let (count, cap) = (held.len(), cap_words(first.cap_w));
        let sentence = format!("Of these results, {count} ran under {cap}{at}.");
        finding.text += &format!(" {sentence}");
        if let Some(table) = &mut finding.table {
            table.notes.push(sentence);
        }
    }
}
