//! The code that all operations share to prepare routines: memory, steps that are enqueued or replayed,
//! the choice among several ways, threads and vectors. It names no operation.

#![warn(clippy::multiple_unsafe_ops_per_block)]

pub(crate) mod child_process;
pub(crate) mod choices;
pub(crate) mod choose;
pub(crate) mod end_to_end;
pub(crate) mod host_memory;
pub(crate) mod memory;
pub(crate) mod prepared;
pub(crate) mod seed;
pub(crate) mod source;
pub(crate) mod steps;
pub(crate) mod threads;

pub(crate) use child_process::{DeviceTask, PhaseTime, Processes, Report, Task};
pub(crate) use crossover_arithmetic::wide;
pub(crate) use end_to_end::{Buffers, EndToEnd, Stages};
pub use host_memory::HostMemory;
pub(crate) use host_memory::{Block, Buffer, Direction, fill};
pub(crate) use memory::Host;
pub use memory::{Device, Memory};
pub use prepared::Prepared;
pub(crate) use seed::{in_blocks, in_version, version};
pub use seed::{seed, uniform};
pub(crate) use source::{ELEMENTWISE_THREADS, ON_ALL_CORES, elementwise_blocks, kernels};
pub(crate) use steps::{PeerAddress, PeerStream, Stage, Steps, Stream, launches};
pub(crate) use threads::Threads;
