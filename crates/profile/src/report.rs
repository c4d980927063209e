//! The content of a profile, in the form of `profile.json`.

use serde::{Deserialize, Serialize};

/// Version of the form of a [`Profile`]. A reader should refuse a newer one.
pub const SCHEMA: u32 = 1;

/// Where the time of one benchmark goes. Printed, it is a table for a terminal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The [`SCHEMA`] that it was written in.
    pub schema: u32,
    /// Id of the benchmark, as Criterion has it.
    pub benchmark: String,
    /// Name of the clock that the benchmark is timed on when it is not profiled.
    pub clock: String,
    /// Name of the device.
    pub gpu: String,
    /// Version of the CUPTI library that recorded it, such as `13.0`.
    pub cupti: String,
    /// When it was recorded, RFC 3339 in UTC.
    pub recorded: String,
    /// Iterations that were recorded back to back. Numbers per iteration are their mean.
    pub iterations: u64,
    /// Kernels, copies and memory sets that were recorded in them.
    pub records: u64,
    /// Notes for the reader, in sentences: that the gate was off, that a limit was reached.
    pub notes: Vec<String>,
    /// Work on the device, by the time that it takes, longest first.
    pub device: Vec<DeviceRow>,
    /// Driver calls, by the host time that they take, longest first.
    pub calls: Vec<CallRow>,
    /// Ranges that the code names, in the order in which they began.
    pub ranges: Vec<RangeRow>,
    /// Totals per iteration, and what bounds the benchmark.
    pub summary: Summary,
    /// One iteration from an idle device until it is idle again.
    pub timeline: Timeline,
}

/// All executions of one kernel, copy or memory set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRow {
    /// The kernel, copy or memory set. Kernels of one name and copies of one direction have several rows
    /// if grid, block or number of bytes differ.
    pub work: Work,
    /// Executions per iteration.
    pub per_iteration: f64,
    /// Time on the device per iteration.
    pub ns_per_iteration: f64,
    /// Share of the time of all rows, from 0 to 1. Rows that run at the same time each count
    /// in full.
    pub share: f64,
    /// Median time of one execution.
    pub median_ns: f64,
    /// Time of the shortest execution.
    pub shortest_ns: f64,
    /// Time of the longest execution.
    pub longest_ns: f64,
}

/// A piece of work on the device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Work {
    /// Runs a kernel.
    Kernel {
        /// Name as in the source, demangled.
        name: String,
        /// Blocks in x, y and z.
        grid: [u32; 3],
        /// Threads of a block in x, y and z.
        block: [u32; 3],
        /// Registers per thread.
        registers: u32,
        /// Shared memory of a block in bytes, static and dynamic.
        shared_bytes: u32,
    },
    /// Copies memory.
    Copy {
        /// The memory it reads.
        from: Place,
        /// The memory it writes.
        to: Place,
        /// Bytes copied.
        bytes: u64,
    },
    /// Sets memory to a value.
    Set {
        /// Bytes set.
        bytes: u64,
    },
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Memory of the device.
    Device,
    /// Pinned (page-locked) host memory.
    Pinned,
    /// Ordinary host memory.
    Pageable,
    /// Managed memory, which the driver moves between host and device.
    Managed,
    /// Memory of another device.
    Peer,
    /// CUPTI's record does not say.
    Unknown,
}

/// All calls of one driver function. Where a library launches work without a driver call, the
/// function of the CUDA runtime that it called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRow {
    /// Name, such as `cuLaunchKernel`.
    pub name: String,
    /// Calls per iteration.
    pub per_iteration: f64,
    /// Host time per iteration, of all threads together.
    pub ns_per_iteration: f64,
}

/// All passes through one range of the code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeRow {
    /// Name; a range within another has both names, outer first, with ` / ` between.
    pub name: String,
    /// Passes per iteration.
    pub per_iteration: f64,
    /// Host time per iteration.
    pub host_ns_per_iteration: f64,
    /// Device time of work launched in this range and nested ranges, per iteration.
    pub device_ns_per_iteration: f64,
    /// Share of the time of all work on the device, from 0 to 1.
    pub share: f64,
}

/// Totals of the rows, per iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Time of an iteration while it was recorded.
    pub iteration_ns: f64,
    /// Time of an iteration just before, without recording.
    pub unrecorded_ns: f64,
    /// Time in which at least one kernel, copy or memory set ran.
    pub busy_ns: f64,
    /// Time in which at least one kernel ran.
    pub kernels_ns: f64,
    /// Time in which at least one copy ran.
    pub copies_ns: f64,
    /// Time in which a copy and a kernel ran at once: the part of the copies that costs nothing.
    pub hidden_ns: f64,
    /// From the start of an iteration on an idle device until its first kernel starts, the median
    /// over single iterations; `None` where none has a kernel.
    pub first_kernel_ns: Option<f64>,
    /// A sentence that names the bound.
    pub sentence: String,
}

impl Summary {
    /// The time of an iteration, in nanoseconds: that measured just before the recording, since
    /// recording makes driver calls and the gaps between them longer. It is never less than the time
    /// in which the device was busy, which recording does not change.
    pub fn length_ns(&self) -> f64 {
        let length = if self.unrecorded_ns > 0.0 {
            self.unrecorded_ns
        } else {
            self.iteration_ns
        };
        length.max(self.busy_ns)
    }
}

/// One iteration, from its start on an idle device until the device is idle again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// How long it took. The starts and ends of spans count from its beginning.
    pub length_ns: f64,
    /// From top to bottom, in the order in which data pass through them: ranges, threads of the
    /// host, copies to the device, streams, other copies, memory sets.
    pub lanes: Vec<Lane>,
    /// Spans left out because there are too many to draw.
    pub left_out: u64,
}

/// The activity of one thread, stream or link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// The kind of its spans.
    pub kind: LaneKind,
    /// Name, such as `stream 13` or `host to device`.
    pub name: String,
    /// Spans in the order of their starts. Ranges may nest; other spans of a lane do not overlap.
    pub spans: Vec<Span>,
}

/// The kind of the spans of a [`Lane`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaneKind {
    /// Ranges that the code names.
    Ranges,
    /// Driver calls of one thread.
    Calls,
    /// Kernels of one stream.
    Kernels,
    /// Copies of one direction.
    Copies,
    /// Memory sets.
    Sets,
}

/// Something that ran, from when to when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Start, from the start of the iteration.
    pub start_ns: f64,
    /// End.
    pub end_ns: f64,
    /// The name of the kernel, copy, call or range.
    pub name: String,
}
