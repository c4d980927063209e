//! Findings: sentences with their measured figures and the benchmarks they rest on.
//!
//! Each file holds one kind or a few; [`TABLE`] lists them all. A finding whose benchmarks are
//! missing is absent. It looks for roles, never for names, so it is made for every group that
//! has the rows for it. To add one, write `fn name(&Context) -> Vec<Finding>` in a file of its
//! own and add it to the table.

mod allocation;
mod capped;
mod cold_start;
mod copies;
mod device_memory;
mod fusing;
mod graphs;
mod loading;
mod overlap;
mod precision;
mod submit;
mod sustained;
mod timing;
mod transfers;
mod winners;

pub(crate) mod finding;
pub(crate) mod gains;
pub(crate) mod technique;

use crate::analysis::findings::finding::{Context, Finding};

/// Makes the findings of one kind.
pub(crate) type Make = fn(&Context) -> Vec<Finding>;

/// All kinds, in the order in which they are shown.
pub(crate) const TABLE: &[Make] = &[
    winners::find,
    transfers::share,
    transfers::break_even,
    precision::formats,
    precision::splits,
    precision::energy,
    sustained::find,
    submit::find,
    fusing::find,
    graphs::replay,
    graphs::synchronising,
    copies::pinned,
    copies::fixed,
    copies::many,
    overlap::pieces,
    overlap::synced,
    loading::find,
    graphs::hybrid,
    allocation::find,
    device_memory::find,
    timing::find,
    cold_start::find,
];

/// All findings.
pub(crate) fn find(context: &Context) -> Vec<Finding> {
    let mut all: Vec<Finding> = TABLE.iter().flat_map(|make| make(context)).collect();
    capped::add(context, &mut all);
    all
}
