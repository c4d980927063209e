//! What the report knows of each group by name: one row a group. A group without a row is
//! shown with its own name and the defaults.

use crate::presentation::units::Unit;
use crate::results::curves::{Group, Series};

/// Words for one group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Topic {
    /// The group's name in ids.
    pub group: &'static str,
    /// Heading.
    pub title: &'static str,
    /// One sentence on what is computed or asked.
    pub about: &'static str,
    /// Symbol of the size.
    pub symbol: &'static str,
    /// What the size counts, for the axis.
    pub axis: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Whether all implementations do the same work, so that one of them wins.
    pub compares: bool,
    /// Whether a rate says something, FLOP/s or B/s.
    pub rated: bool,
}

impl Topic {
    /// `N = 64`, `size = 256 MiB`.
    pub(crate) fn at(&self, size: u64) -> String {
        format!("{} = {}", self.symbol, self.unit.write(size))
    }
}

/// In the order in which the page shows them.
const TOPICS: &[Topic] = &[
    Topic {
        group: "matmul",
        title: "Matrix product",
        about: "Square f32 matrices, C = A · B.",
        symbol: "N",
        axis: "N, rows and columns of each matrix",
        unit: Unit::Count,
        compares: true,
        rated: true,
    },
    Topic {
        group: "matmul_batched",
        title: "Batched matrix product",
        about: "64 small f32 products at once: where does a GPU win that no single one of them would fill?",
        symbol: "N",
        axis: "N, rows and columns of each matrix",
        unit: Unit::Count,
        compares: true,
        rated: true,
    },
    Topic {
        group: "matmul_skinny",
        title: "Skinny matrix product",
        about: "M rows times a 4096 × 4096 matrix: the product that reads more than it computes.",
        symbol: "M",
        axis: "M, rows of the left matrix",
        unit: Unit::Count,
        compares: true,
        rated: true,
    },
    Topic {
        group: "precision",
        title: "Precision",
        about: "The same matrix product in ever fewer bits, and in f32 put together from fewer: what does each halving buy?",
        symbol: "N",
        axis: "N, rows and columns of each matrix",
        unit: Unit::Count,
        compares: true,
        rated: true,
    },
    Topic {
        group: "nested_sine",
        title: "Nested sine",
        about: "y = sin(sin(sin(sin x))) on each f32 element.",
        symbol: "n",
        axis: "n, elements",
        unit: Unit::Count,
        compares: true,
        rated: true,
    },
    Topic {
        group: "graph_replay",
        title: "Graph replay",
        about: "A chain of small elementwise kernels: launched one by one, synchronised after each, and replayed as one CUDA graph.",
        symbol: "n",
        axis: "n, elements",
        unit: Unit::Count,
        compares: true,
        rated: true,
    },
    Topic {
        group: "cold_start",
        title: "Cold start",
        about: "What does the first call of a fresh process pay, phase by phase, and what does a warm one?",
        symbol: "n",
        axis: "n",
        unit: Unit::Count,
        compares: false,
        rated: false,
    },
    Topic {
        group: "timing_methods",
        title: "Timing a known kernel",
        about: "A kernel that spins for a known time, timed in six ways: by how much is each wrong, and where?",
        symbol: "t",
        axis: "t, true time on the device",
        unit: Unit::Time,
        compares: false,
        rated: false,
    },
    Topic {
        group: "timing_methods_matmul",
        title: "Timing a matrix product",
        about: "One cuBLAS product, timed in the same six ways: what does each add to the device's time, or leave out?",
        symbol: "N",
        axis: "N, rows and columns of each matrix",
        unit: Unit::Count,
        compares: false,
        rated: false,
    },
    Topic {
        group: "transfer",
        title: "Transfers",
        about: "Copies between host and device, by kind of host memory: what does pinning save, and what does a copy cost however small it is?",
        symbol: "size",
        axis: "size of the copy",
        unit: Unit::Bytes,
        compares: false,
        rated: true,
    },
    Topic {
        group: "streams",
        title: "Streams and overlap",
        about: "Nested sine from and to pinned host memory, in pieces: what does overlapping copies and kernels save, and how many pieces are best?",
        symbol: "n",
        axis: "n, elements",
        unit: Unit::Count,
        compares: true,
        rated: true,
    },
    Topic {
        group: "loader",
        title: "Data loader",
        about: "An epoch of 32 batches from host memory to a consumer on the device: what do pinning, prefetching and more threads bring?",
        symbol: "batch",
        axis: "size of a batch",
        unit: Unit::Bytes,
        compares: true,
        rated: true,
    },
    Topic {
        group: "host_sync",
        title: "Host synchronisation",
        about: "A pipeline of 64 small steps: what does the host's waiting between them cost?",
        symbol: "n",
        axis: "n, elements",
        unit: Unit::Count,
        compares: true,
        rated: false,
    },
    Topic {
        group: "memory",
        title: "Device memory",
        about: "Allocate, write a word, release, synchronise: what does an allocation in the loop cost?",
        symbol: "size",
        axis: "size of the allocation",
        unit: Unit::Bytes,
        compares: true,
        rated: false,
    },
];

/// The row of a group, or the defaults.
pub(crate) fn topic(group: &str) -> Topic {
    let known = TOPICS.iter().find(|t| t.group == group).copied();
    known.unwrap_or(Topic {
        group: "",
        title: "",
        about: "",
        symbol: "n",
        axis: "size",
        unit: Unit::Count,
        compares: true,
        rated: true,
    })
}

/// Place of a group on the page; unknown ones come last.
pub(crate) fn place(group: &str) -> usize {
    let known = TOPICS.iter().position(|t| t.group == group);
    known.unwrap_or(TOPICS.len())
}

/// Heading of a group.
pub(crate) fn title(group: &str) -> &str {
    TOPICS
        .iter()
        .find(|t| t.group == group)
        .map_or(group, |t| t.title)
}

/// Which rate describes a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Arithmetic, FLOP/s.
    Flop,
    /// Moved bytes, B/s.
    Bytes,
}

impl Work {
    /// `FLOP/s` or `B/s`.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Work::Flop => "FLOP/s",
            Work::Bytes => "B/s",
        }
    }

    /// The amount of one iteration at a point of a curve.
    pub(crate) fn amount(self, series: &Series, index: usize) -> Option<f64> {
        let cost = &series.points.get(index)?.cost;
        let amount = match self {
            Work::Flop => cost.flop,
            // What crosses the link is what bounds end-to-end work.
            Work::Bytes => cost.link_bytes.or(cost.bytes),
        };
        amount.filter(|a| a.is_finite() && *a > 0.0)
    }
}

/// Above this many FLOP a byte, at the largest size, arithmetic is what a group is about:
/// processors of today balance between about 5 and 20.
const ARITHMETIC: f64 = 8.0;

/// FLOP/s or B/s, by the least arithmetic intensity at the largest size, so that every curve
/// with a cost has a rate; `None` without costs, and where a rate says nothing.
pub(crate) fn work(groups: &[&Group]) -> Option<Work> {
    if groups.iter().any(|g| !topic(&g.name).rated) {
        return None;
    }
    let costs = || {
        groups
            .iter()
            .flat_map(|g| g.benchmarks())
            .map(|b| (b.size, b.cost))
    };
    let intensity = costs()
        .filter_map(|(size, c)| Some((size, c.flop.unwrap_or(0.0) / c.bytes?)))
        .filter(|(_, i)| i.is_finite())
        .min_by(|a, b| b.0.cmp(&a.0).then(a.1.total_cmp(&b.1)));
    match intensity {
        Some((_, flop_a_byte)) if flop_a_byte > ARITHMETIC => Some(Work::Flop),
        Some(_) => Some(Work::Bytes),
        None if costs().any(|(_, c)| c.flop.is_some()) => Some(Work::Flop),
        None if costs().any(|(_, c)| c.bytes.is_some() || c.link_bytes.is_some()) => {
            Some(Work::Bytes)
        }
        None => None,
    }
}
