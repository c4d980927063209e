//! The driver's objects that were made and not destroyed, and the work in streams. The operations on
//! each are in the file of its name.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::clock::Time;
use crate::effects::Effect;
use crate::kernels::Kernel;
use crate::memory::Region;

pub(crate) struct Module {
    pub(crate) device: usize,
    pub(crate) kernels: Vec<Kernel>,
}

pub(crate) struct Function {
    pub(crate) module: u64,
    pub(crate) device: usize,
    pub(crate) kernel: Kernel,
    /// Bytes of dynamic shared memory that a block may have.
    pub(crate) dynamic_shared: i32,
}

#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) device: usize,
    /// Other devices that may use its memory.
    pub(crate) peers: BTreeSet<usize>,
    /// Bytes in use, without those of graphs.
    pub(crate) used: u64,
    /// The most bytes in use since this was reset.
    pub(crate) used_high: u64,
}

#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) name: String,
    pub(crate) device: usize,
    /// Each piece of work with the time at which it was enqueued.
    pub(crate) queue: VecDeque<(Time, Work)>,
    /// When the last finished work ended.
    pub(crate) time: Time,
    /// During a capture, the nodes that its next node depends on.
    pub(crate) capture: Option<Vec<usize>>,
}

/// The time of a record that was not reached yet.
pub(crate) const PENDING: Time = Time::MAX;

#[derive(Default)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) device: usize,
    pub(crate) times: bool,
    pub(crate) last: Option<Record>,
    /// The nodes that it depends on, if it was recorded last in the active capture.
    pub(crate) captured: Option<Vec<usize>>,
}

/// One record of an event in a stream.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) stream: u64,
    pub(crate) time: Arc<AtomicU64>,
}

impl Record {
    pub(crate) fn is_done(&self) -> bool {
        self.time().is_some()
    }

    pub(crate) fn time(&self) -> Option<Time> {
        Some(self.time.load(Ordering::Relaxed)).filter(|time| *time != PENDING)
    }

    pub(crate) fn reach(&self, time: Time) {
        self.time.store(time, Ordering::Relaxed);
    }
}

/// An active capture.
pub(crate) struct Capture {
    pub(crate) origin: u64,
    pub(crate) nodes: Vec<Node>,
    /// Whether it was invalidated.
    pub(crate) spoiled: bool,
}

/// The result of a capture.
#[derive(Clone)]
pub(crate) struct Graph {
    pub(crate) name: String,
    pub(crate) nodes: Vec<Node>,
    /// Whether it was launched, and keeps what it allocates.
    pub(crate) has_kept: Arc<AtomicBool>,
}

impl Graph {
    /// The addresses that it allocates and does not free.
    pub(crate) fn kept(&self) -> BTreeSet<u64> {
        let mut kept = BTreeSet::new();
        for node in &self.nodes {
            match node.work {
                Work::Allocation(address) => _ = kept.insert(address),
                Work::FreeAllocation(address) => _ = kept.remove(&address),
                _ => {}
            }
        }
        kept
    }
}

#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) work: Work,
    /// Indices of the nodes that it depends on.
    pub(crate) after: Vec<usize>,
}

/// Memory that a kernel reads or writes.
#[derive(Clone, Debug)]
pub(crate) struct Used {
    /// The kernel, or the memory's role for that of a library, such as `workspace`.
    pub(crate) name: &'static str,
    /// Where it begins.
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

/// A piece of work.
#[derive(Clone)]
pub(crate) enum Work {
    Kernel {
        effect: Effect,
        used: Vec<Used>,
        /// The number of the launch in the records.
        correlation: u32,
    },
    Copy(Copy),
    Set(Set),
    Record(Record),
    Wait(Record),
    Free(u64),
    Graph(Arc<Graph>),
    /// In a graph alone, as the next.
    Allocation(u64),
    FreeAllocation(u64),
}

/// A copy of rows: one row, unless its sides have a pitch.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub(crate) from: Region,
    pub(crate) to: Region,
    pub(crate) width: u64,
    pub(crate) rows: u64,
    pub(crate) from_pitch: u64,
    pub(crate) to_pitch: u64,
}

/// Repeats a value.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    pub(crate) to: Region,
    pub(crate) value: u32,
    /// Bytes of the value.
    pub(crate) unit: u64,
    pub(crate) count: u64,
}

/// The result of running a stream's first piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Something,
    Nothing,
    /// A closed gate.
    Blocked,
}

impl Work {
    /// The driver's number of the kind of node that this is in a graph (`CUgraphNodeType`).
    pub(crate) fn node_type(&self) -> u32 {
        match self {
            Work::Kernel { .. } => 0,
            Work::Copy(_) => 1,
            Work::Set(_) => 2,
            Work::Graph(_) => 4,
            Work::Allocation(_) => 10,
            Work::FreeAllocation(_) => 11,
            // Nodes that launch nothing.
            _ => 5,
        }
    }
}
