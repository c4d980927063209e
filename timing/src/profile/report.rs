//! What a profile says, as it is written to `profile.json` beside the benchmark's results.
//!
//! Times are nanoseconds, durations unless a field is called a start or an end.

use serde::{Deserialize, Serialize};

/// Version of the form below. A reader refuses a newer one.
pub const SCHEMA: u32 = 1;

/// Where the time of one benchmark goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`SCHEMA`].
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
    /// Iterations that were recorded back to back: the table below is of these.
    pub iterations: u64,
    /// Records of work on the device in them.
    pub records: u64,
    /// What a reader must know, in sentences: that the gate was off, that a cap was reached.
    pub notes: Vec<String>,
    /// Work on the device, by the time that it takes, longest first.
    pub device: Vec<DeviceRow>,
    /// Driver calls, by the host time that they take, longest first.
    pub calls: Vec<CallRow>,
    /// Ranges that the code names, in the order in which they began.
    pub ranges: Vec<RangeRow>,
    /// What all of it comes to.
    pub summary: Summary,
    /// One iteration from an idle device until it is idle again.
    pub timeline: Timeline,
}

/// A kernel, a copy or a memory set, as often as one iteration has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRow {
    /// What it is. Kernels of one name and copies of one direction are rows of their own where
    /// grid, block or number of bytes differ.
    pub work: Work,
    /// Executions per iteration.
    pub per_iteration: f64,
    /// Time on the device per iteration.
    pub ns_per_iteration: f64,
    /// Its share of the time of all rows. Rows that run at the same time each count in full.
    pub share: f64,
    /// Median time of one execution.
    pub median_ns: f64,
    /// Shortest.
    pub shortest_ns: f64,
    /// Longest.
    pub longest_ns: f64,
}

/// What the device does.
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
        /// From where.
        from: Place,
        /// To where.
        to: Place,
        /// How much.
        bytes: u64,
    },
    /// Sets memory to a value.
    Set {
        /// How much.
        bytes: u64,
    },
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The device's own.
    Device,
    /// Host memory that is locked in place.
    Pinned,
    /// Ordinary host memory.
    Pageable,
    /// Memory that the driver moves by itself.
    Managed,
    /// Another device's.
    Peer,
    /// The record does not say.
    Unknown,
}

/// A driver call; of a library that launches without one, the call of the runtime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRow {
    /// Name, such as `cuLaunchKernel`.
    pub name: String,
    /// Calls per iteration.
    pub per_iteration: f64,
    /// Host time per iteration, of all threads together.
    pub ns_per_iteration: f64,
}

/// A range that the code names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeRow {
    /// Its name; a range within another has both names, outer first, with ` / ` between.
    pub name: String,
    /// How often per iteration.
    pub per_iteration: f64,
    /// Host time per iteration.
    pub host_ns_per_iteration: f64,
    /// Time on the device of what was launched in it and in the ranges within it, per iteration.
    pub device_ns_per_iteration: f64,
    /// Its share of the time of all work on the device.
    pub share: f64,
}

/// What the table comes to, per iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Time of an iteration while it was recorded.
    pub iteration_ns: f64,
    /// The same just before, with nothing recorded.
    pub unrecorded_ns: f64,
    /// The device did something.
    pub busy_ns: f64,
    /// It did nothing while it was recorded: `iteration_ns` less `busy_ns`. In the gaps, and before the first
    /// piece of work.
    pub idle_ns: f64,
    /// How many gaps between one piece of work and the next.
    pub gaps: f64,
    /// Median length of a gap.
    pub median_gap_ns: f64,
    /// A kernel ran.
    pub kernels_ns: f64,
    /// A copy ran.
    pub copies_ns: f64,
    /// A kernel ran while a copy did: the part of the copies that costs nothing.
    pub hidden_ns: f64,
    /// From the start of an iteration on an idle device until its first kernel starts; `None`
    /// where it has none.
    pub first_kernel_ns: Option<f64>,
    /// What bounds it, in a sentence.
    pub sentence: String,
}

impl Summary {
    /// What an iteration takes: as measured just before the recording, which makes driver calls and
    /// the gaps between them longer, and not what the device does. Never less than that.
    pub fn length_ns(&self) -> f64 {
        let length = match self.unrecorded_ns > 0.0 {
            true => self.unrecorded_ns,
            false => self.iteration_ns,
        };
        length.max(self.busy_ns)
    }
}

/// One iteration, from its start on an idle device until the device is idle again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// How long it took. Starts and ends below count from its beginning.
    pub length_ns: f64,
    /// From top to bottom, as data take their way: ranges, threads of the host, copies to the
    /// device, streams, other copies, memory sets.
    pub lanes: Vec<Lane>,
    /// Spans left out because there are too many to draw.
    pub left_out: u64,
}

/// What happens in one place, in the order of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// What kind of place.
    pub kind: LaneKind,
    /// Its name, such as `stream 13` or `host to device`.
    pub name: String,
    /// Spans by their start. Those of a range may lie within each other, the others may not.
    pub spans: Vec<Span>,
}

/// The kinds of lanes.
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

/// From when to when something ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Start, from the start of the iteration.
    pub start_ns: f64,
    /// End.
    pub end_ns: f64,
    /// What ran.
    pub name: String,
}
