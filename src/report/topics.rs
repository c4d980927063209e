//! What the report knows of each group by name: one row a group. A group without a row is
//! shown with its own name and the defaults.

use super::model::{Group, Series};

/// Words for one group.
#[derive(Clone, Copy, Debug)]
pub struct Topic {
    /// The group's name in ids.
    pub group: &'static str,
    /// Heading.
    pub title: &'static str,
    /// One sentence on what is computed.
    pub about: &'static str,
    /// Symbol of the size.
    pub symbol: &'static str,
    /// What the size counts, for the axis.
    pub axis: &'static str,
}

const TOPICS: &[Topic] = &[
    Topic {
        group: "matmul",
        title: "Matrix product",
        about: "Square f32 matrices, C = A · B.",
        symbol: "N",
        axis: "N, rows and columns of each matrix",
    },
    Topic {
        group: "nested_sine",
        title: "Nested sine",
        about: "y = sin(sin(sin(sin x))) on each f32 element.",
        symbol: "n",
        axis: "n, elements",
    },
    Topic {
        group: "graph_replay",
        title: "Graph replay",
        about: "A chain of small elementwise kernels: launched one by one, synchronised after each, and replayed as one CUDA graph.",
        symbol: "n",
        axis: "n, elements",
    },
    Topic {
        group: "cold_start",
        title: "Cold start",
        about: "What the first call in a fresh process pays.",
        symbol: "n",
        axis: "n",
    },
    Topic {
        group: "timing_methods",
        title: "Timing methods",
        about: "The same work timed in several ways.",
        symbol: "t",
        axis: "true device time, ns",
    },
    Topic {
        group: "transfer",
        title: "Transfers",
        about: "Copies between host and device memory.",
        symbol: "size",
        axis: "bytes",
    },
    Topic {
        group: "streams",
        title: "Streams and overlap",
        about: "Copies and kernels in sequence and overlapped.",
        symbol: "n",
        axis: "n, elements",
    },
    Topic {
        group: "loader",
        title: "Data loader",
        about: "Batches from host memory to a consumer kernel.",
        symbol: "n",
        axis: "n",
    },
    Topic {
        group: "host_sync",
        title: "Host synchronisation",
        about: "A pipeline of small steps, with and without waiting for the device.",
        symbol: "n",
        axis: "n, elements",
    },
    Topic {
        group: "memory",
        title: "Device memory",
        about: "Allocating and releasing device memory.",
        symbol: "size",
        axis: "bytes",
    },
];

/// The row of a group, or the defaults.
pub fn topic(group: &str) -> Topic {
    let known = TOPICS.iter().find(|t| t.group == group).copied();
    known.unwrap_or(Topic {
        group: "",
        title: "",
        about: "",
        symbol: "n",
        axis: "size",
    })
}

/// Heading of a group.
pub fn title(group: &str) -> &str {
    TOPICS
        .iter()
        .find(|t| t.group == group)
        .map_or(group, |t| t.title)
}

/// Which rate describes a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Arithmetic, FLOP/s.
    Flop,
    /// Moved bytes, B/s.
    Bytes,
}

impl Work {
    /// `FLOP/s` or `B/s`.
    pub fn unit(self) -> &'static str {
        match self {
            Work::Flop => "FLOP/s",
            Work::Bytes => "B/s",
        }
    }

    /// The amount of one iteration at a point of a curve.
    pub fn amount(self, series: &Series, index: usize) -> Option<f64> {
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

/// FLOP/s or B/s, by the arithmetic intensity at the largest size; `None` without costs.
pub fn work(groups: &[&Group]) -> Option<Work> {
    let costs = || {
        groups
            .iter()
            .flat_map(|g| g.benchmarks())
            .map(|b| (b.size, b.cost))
    };
    let intensity = costs()
        .filter_map(|(size, c)| Some((size, c.flop? / c.bytes?)))
        .filter(|(_, i)| i.is_finite())
        .max_by_key(|(size, _)| *size);
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
