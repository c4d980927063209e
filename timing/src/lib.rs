#![doc = include_str!("../README.md")]
#![warn(missing_debug_implementations)]

mod absence;
mod bencher;
mod benchmark;
mod capture;
mod clock;
mod clock_file;
mod cuda_error;
mod cuda_time;
mod device;
mod do_bench;
mod error;
mod format;
mod gate;
mod graph;
mod launch;
mod measurement;
mod panic;
mod parts;
mod probe;
#[cfg(feature = "profile")]
pub mod profile;
#[cfg(feature = "profiler")]
pub mod profiler;
mod range;
mod rotating;
mod sequence;
mod write;

pub use absence::{Absence, OLDEST_CUDA, OLDEST_DEVICE};
pub use bencher::CudaBencherExt;
pub use clock::{Clock, UnknownClock};
#[doc(hidden)]
pub use clock_file::stored_clock;
/// The version of Criterion that the measurement implements.
pub use criterion;
pub use cuda_error::CudaError;
pub use cuda_time::CudaTime;
/// The version of cudarc whose streams are timed.
pub use cudarc;
pub use do_bench::DoBench;
pub use error::{BoxError, TimingError};
pub use format::Rate;
pub use gate::{GateMode, LAUNCHES_PER_GATE};
pub use launch::{Launch, bind};
pub use measurement::Started;
pub use panic::catch_panic;
pub use parts::Parts;
pub use probe::{DeviceProperties, open, probe};
pub use range::{Range, range};
pub use rotating::Rotating;
