//! One finding, what it is made from, and the words and lookups that several topics share.

use std::collections::BTreeMap;

use crate::analysis::crossover::pairs::Found;
use crate::analysis::reuse::Reuse;
use crate::model::id::Device;
use crate::presentation::units;
use crate::results::curves::{Benchmark, Group, Question, Series};
use crate::results::machine::Machine;
use crate::timing::Clock;

/// One sentence and what it rests on.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub(crate) struct Finding {
    /// Stable name, `transfers.matmul`.
    pub id: String,
    /// The sentence.
    pub text: String,
    /// Figures by name; the unit ends the name (`_ns`), ratios and sizes have none.
    pub figures: BTreeMap<String, f64>,
    /// Ids of the benchmarks.
    pub benchmarks: Vec<String>,
}

/// What a finding is made from.
pub(crate) struct Context<'a> {
    /// The machine that the report is about.
    pub machine: &'a Machine,
    /// Its answers.
    pub found: &'a [Found],
    /// Its break-even tables.
    pub reuse: &'a [Reuse],
}

impl Finding {
    pub(super) fn new(id: impl Into<String>, text: String) -> Self {
        Self {
            id: id.into(),
            text,
            figures: BTreeMap::new(),
            benchmarks: Vec::new(),
        }
    }

    /// Adds a figure; what is not finite is left out.
    pub(super) fn figure(mut self, name: &str, value: f64) -> Self {
        if value.is_finite() {
            self.figures.insert(name.into(), value);
        }
        self
    }

    pub(super) fn rests_on<'b>(
        mut self,
        benchmarks: impl IntoIterator<Item = &'b Benchmark>,
    ) -> Self {
        self.benchmarks
            .extend(benchmarks.into_iter().map(|b| b.id.clone()));
        self.benchmarks.sort();
        self.benchmarks.dedup();
        self
    }
}

/// Benchmarks of two curves at the same size, ascending.
pub(super) fn common<'a>(a: &'a Series, b: &'a Series) -> Vec<(&'a Benchmark, &'a Benchmark)> {
    a.points
        .iter()
        .filter_map(|p| Some((p, b.at(p.size)?)))
        .collect()
}

/// The curve of a GPU implementation on the wall clock.
pub(super) fn wall<'a>(group: &'a Group, implementation: &str) -> Option<&'a Series> {
    gpu(group, implementation, &[Clock::Wall])
}

/// `2.5× faster`, or `1.2× slower` where the ratio of the other time to this one is below one.
pub(super) fn speed(ratio: f64) -> String {
    match ratio {
        r if r >= 1.0 => format!("{} faster", units::factor(r)),
        r => format!("{} slower", units::factor(1.0 / r)),
    }
}

/// `2.5× faster than`.
pub(super) fn faster(ratio: f64) -> String {
    format!("{} than", speed(ratio))
}

/// `a, b and c`.
pub(super) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The curve of a GPU implementation on one of these clocks.
pub(super) fn gpu<'a>(
    group: &'a Group,
    implementation: &str,
    clocks: &[Clock],
) -> Option<&'a Series> {
    group.on(Device::Gpu).find(|s| {
        s.implementation == implementation && s.clock.is_some_and(|c| clocks.contains(&c))
    })
}

/// The fastest GPU result at `size` on data on the device.
pub(super) fn fastest_resident(group: &Group, size: u64) -> Option<&Benchmark> {
    group
        .on(Device::Gpu)
        .filter(|s| s.measures_work() && s.question() == Question::Device)
        .filter_map(|s| s.at(size))
        .min_by(|a, b| a.median_ns.total_cmp(&b.median_ns))
}
