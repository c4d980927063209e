//! Findings: sentences, and the benchmarks they rest on.
//!
//! [`TABLE`] lists them all. A finding whose benchmarks are missing is absent. Findings select by
//! roles, never by names, so they hold for every group with such rows. A comparison of two rows that
//! differ in one thing is a row of the table in `lessons.rs`; each other kind has its own file.

mod allocation;
mod capped;
mod cold_start;
mod copies;
mod crossover_sentence;
mod device_memory;
mod lessons;
mod loading;
mod precision;
mod several_gpus;
mod submit;
mod timing;
mod transfers;
mod warming_up;

pub mod finding;
pub mod technique;

use Finder::{All, Each};
use rayon::prelude::*;

use crate::analysis::findings::finding::{Context, Finding};
use crate::store::curves::Group;

/// How findings of one kind are made.
pub enum Finder {
    /// At most one for each group, in the order of the groups.
    Each(fn(&Context, &Group) -> Option<Finding>),
    /// Of all groups.
    All(fn(&Context) -> Vec<Finding>),
}

/// All kinds, in the order in which they are shown.
pub const TABLE: &[Finder] = &[
    All(crossover_sentence::find),
    All(several_gpus::answers),
    All(transfers::share),
    Each(precision::formats),
    All(submit::find),
    All(lessons::find),
    Each(copies::fixed),
    Each(several_gpus::exchanges),
    Each(loading::find),
    Each(allocation::held),
    Each(device_memory::find),
    Each(timing::find),
    All(cold_start::find),
    Each(warming_up::calls),
    Each(warming_up::prepared),
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
    let mut all: Vec<Finding> = TABLE.par_iter().flat_map_iter(make).collect();
    capped::add(context, &mut all);
    all
}
