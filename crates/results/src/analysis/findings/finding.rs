//! One finding, its input, the techniques that make code faster, and the words and lookups that several kinds share.

use std::collections::{BTreeMap, BTreeSet};

use crossover_words::Clock;

use crate::analysis::answer::crossover_answer::CrossoverAnswer;
use crate::model::id::Device;
use crate::statistics::positive;
use crate::store::curves::{Benchmark, Group, Series};
use crate::store::machine_results::MachineResults;

/// One sentence and what it rests on.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Finding {
    /// Stable name of the statement, `transfers.matmul`. Name and group together are unique.
    pub id: String,
    /// The group that it is about.
    pub group: String,
    /// The sentence.
    pub text: String,
    /// Ids of the benchmarks.
    pub benchmarks: Vec<String>,
    /// The gain of a technique, if the finding is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gain>,
    /// The figures as a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<Rows>,
    /// Whether the answers and the break-even table of a page already have it.
    #[serde(skip)]
    pub in_a_table: bool,
}

/// The gain of one technique in one group.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Gain {
    /// The technique.
    pub technique: Technique,
    /// Time without it over time with it.
    pub factor: f64,
    /// Where: `N = 8,192`.
    pub at: String,
}

/// A small table in place of a list.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Rows {
    /// Caption, a sentence.
    pub caption: String,
    /// Columns: the first names the row, the others are figures.
    pub head: Vec<String>,
    /// Rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
    /// Sentences below it.
    pub notes: Vec<String>,
}

/// The input of findings.
pub struct Context<'a> {
    /// The machine that the report is about.
    pub machine: &'a MachineResults,
    /// The answers of the machine.
    pub found: &'a [CrossoverAnswer],
}

impl Finding {
    /// `{}` in the id is the group.
    pub(super) fn new(group: &str, id: &str, text: String) -> Self {
        Self {
            id: id.replace("{}", group),
            group: group.to_owned(),
            text,
            ..Self::default()
        }
    }

    /// Adds the gain of a technique, unless the factor is no number.
    pub(super) fn gained(
        mut self,
        technique: impl Into<Option<Technique>>,
        factor: f64,
        at: String,
    ) -> Self {
        let gained = technique.into().zip(positive(factor));
        self.gain = gained.map(|(technique, factor)| Gain {
            technique,
            factor,
            at,
        });
        self
    }

    /// A table of several figures, and the same as the text. ` | ` separates the columns' heads.
    pub(super) fn table(
        group: &str,
        id: &str,
        caption: String,
        head: &str,
        rows: Vec<Vec<String>>,
    ) -> Self {
        let head: Vec<&str> = head.split(" | ").collect();
        let of_row = |row: &Vec<String>| {
            let named = row.iter().zip(&head).skip(1);
            let known = named.filter(|(cell, _)| !cell.is_empty());
            let cells: Vec<String> = known.map(|(cell, head)| format!("{head} {cell}")).collect();
            format!("{}: {}", row[0], cells.join(", "))
        };
        let told: Vec<String> = rows.iter().map(of_row).collect();
        let text = format!("{caption} {}.", told.join("; "));
        let table = Some(Rows {
            caption,
            head: head.into_iter().map(str::to_owned).collect(),
            rows,
            notes: Vec::new(),
        });
        Self {
            table,
            ..Self::new(group, id, text)
        }
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

/// The gains of each technique, by group, the largest factor first. Techniques without a gain are
/// absent.
pub fn gains(findings: &[Finding]) -> BTreeMap<Technique, Vec<(&Finding, &Gain)>> {
    let mut gains: BTreeMap<Technique, Vec<(&Finding, &Gain)>> = BTreeMap::new();
    for (finding, gain) in findings.iter().filter_map(|f| Some((f, f.gain.as_ref()?))) {
        let of_technique = gains.entry(gain.technique).or_default();
        of_technique.push((finding, gain));
    }
    for of_technique in gains.values_mut() {
        of_technique.sort_by(|a, b| b.1.factor.total_cmp(&a.1.factor));
        // One per group: if a technique was tried in several ways, the best of them.
        let mut seen = BTreeSet::new();
        of_technique.retain(|(finding, _)| seen.insert(&finding.group));
    }
    gains
}

/// GPU curves of a group on a clock.
pub(super) fn gpu(group: &Group, clock: Clock) -> impl Iterator<Item = &Series> {
    let on = move |s: &&Series| s.clock == Some(clock);
    group.on(Device::Gpu).filter(on)
}

/// With a capital letter, for the beginning of a sentence.
pub(super) fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// GPU curves of the work alone, on data on the device.
pub(super) fn resident(group: &Group) -> impl Iterator<Item = &Series> {
    let curves = group.on(Device::Gpu);
    curves.filter(|s| s.measures_work() && s.computes() && s.role.data.on_device())
}

/// The fastest of some curves at a size.
pub(super) fn fastest<'a>(
    curves: impl Iterator<Item = &'a Series>,
    size: u64,
) -> Option<&'a Benchmark> {
    let here = curves.filter_map(|s| s.at(size));
    here.min_by(|a, b| a.median_ns.total_cmp(&b.median_ns))
}

/// One thing to do, in the order in which one would try them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Technique {
    /// The GPU in place of the best CPU code.
    MoveToGpu,
    /// Data stay on the device between calls.
    KeepOnDevice,
    /// Several kernels in one.
    Fuse,
    /// A CUDA graph in place of launches.
    ReplayGraph,
    /// The host runs ahead of the device.
    DoNotWait,
    /// Page-locked host memory.
    Pin,
    /// Copies of ordinary memory through pinned buffers, by several threads.
    Stage,
    /// Copies and kernels at the same time.
    Overlap,
    /// Threads that load what comes next.
    Prefetch,
    /// Narrower number formats.
    FewerBits,
    /// A memory pool that keeps what it has.
    KeepPool,
}

impl Technique {
    /// The advice in words.
    pub fn words(self) -> &'static str {
        match self {
            Technique::MoveToGpu => "Move the work to the GPU",
            Technique::KeepOnDevice => "Keep the data on the device",
            Technique::Fuse => "Fuse kernels",
            Technique::ReplayGraph => "Replay a CUDA graph",
            Technique::Pin => "Pin host memory",
            Technique::Stage => "Stage copies through pinned buffers",
            Technique::Overlap => "Overlap copies and kernels",
            Technique::Prefetch => "Prefetch batches",
            Technique::FewerBits => "Use lower precision",
            Technique::KeepPool => "Keep a memory pool",
            Technique::DoNotWait => "Do not wait for each kernel",
        }
    }

    /// The alternative that it is compared with.
    pub fn against(self) -> &'static str {
        match self {
            Technique::MoveToGpu => {
                "against the best CPU code, with the data in host memory where that was measured"
            }
            Technique::KeepOnDevice => "against copying them there and back for each call",
            Technique::Fuse => "against one kernel for each part",
            Technique::ReplayGraph => "against launching the kernels one by one",
            Technique::Pin => "against pageable memory",
            Technique::Stage => "against one plain copy of pageable memory",
            Technique::Overlap => "against running them one after the other",
            Technique::Prefetch => "against loading each batch when it is its turn",
            Technique::FewerBits => "against f32",
            Technique::KeepPool => "against cuMemAlloc and cuMemFree for each use",
            Technique::DoNotWait => "against synchronising after each of them",
        }
    }
}

/// A ratio and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Time of the first over that of the second.
    pub value: f64,
    /// The interval of another run, with a probability of 95 %.
    pub interval: (f64, f64),
}

impl Ratio {
    /// Time of `over` divided by that of `under`. The two intervals are of independent measurements, so
    /// their halves add as squares.
    pub fn of(over: &Benchmark, under: &Benchmark) -> Self {
        Self::with(over.median_ns / under.median_ns, &[over, under])
    }

    /// A value computed from these times.
    pub fn with(value: f64, times: &[&Benchmark]) -> Self {
        let half_width = |by: fn(&Benchmark) -> f64| {
            let logarithms = times.iter().map(|b| by(b).ln());
            logarithms.fold(0.0, f64::hypot).exp()
        };
        let low = half_width(|b| b.median_ns / b.low_ns());
        let high = half_width(|b| b.high_ns() / b.median_ns);
        Self {
            value,
            interval: (value / low, value * high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_each_group_comes_first() {
        let finding = |(group, id, factor)| {
            Finding::new(group, id, String::new()).gained(Technique::Fuse, factor, "n = 1".into())
        };
        let factors = [
            ("a", "small", 2.0),
            ("b", "small", 5.0),
            ("a", "large", 3.0),
        ];
        let mut all: Vec<Finding> = factors.map(finding).into();
        all.push(finding(("c", "none", f64::NAN)));
        let gains = gains(&all);
        assert!(gains.keys().eq(&[Technique::Fuse]));
        let found = &gains[&Technique::Fuse];
        let ids: Vec<_> = found.iter().map(|(f, _)| (&*f.group, &*f.id)).collect();
        assert_eq!(ids, [("b", "small"), ("a", "large")]);
    }
}
