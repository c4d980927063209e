#![cfg_attr(feature = "criterion", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "criterion"),
    doc = "Clocks for CUDA kernels; the feature `criterion` is off."
)]
#![warn(missing_debug_implementations)]
#![warn(clippy::multiple_unsafe_ops_per_block)]

mod absence;
mod capture;
mod compile;
mod cuda_error;
mod cuda_time;
mod device;
mod error;
mod events;
mod gate;
mod graph;
mod guard;
mod launch_state;
mod measure;
#[cfg(feature = "criterion")]
mod on_criterion;
mod other_streams;
mod panic;
mod prepared_launch;
mod probe;
#[cfg(feature = "profiler")]
pub mod profiler;
mod range;
mod rotating;
mod sequence;

pub use absence::Absence;
#[doc(hidden)]
pub use capture::{Captured, Enqueued, Graph};
pub use compile::compile;
#[doc(hidden)]
pub use compile::machine_code;
/// The version of Criterion that the measurement implements.
#[cfg(feature = "criterion")]
pub use criterion;
/// The types of a recorded profile.
#[cfg(feature = "profiler")]
pub use crossover_profile as profile;
pub use crossover_words::Clock;
#[doc(hidden)]
pub use cuda_error::Called;
pub use cuda_error::CudaError;
#[doc(hidden)]
pub use cuda_time::Announce;
pub use cuda_time::CudaTime;
/// The version of cudarc whose streams are timed.
pub use cudarc;
pub use error::{BoxError, TimingError};
#[doc(hidden)]
pub use events::EventPair;
pub use gate::GateMode;
pub use guard::{Claim, DeviceMemory, Doubt, Guarded};
pub use launch_state::LaunchState;
pub use prepared_launch::LAUNCHES_PER_GATE;
pub use prepared_launch::Launch;
// Hidden items are for the suite of this repository: no promise.
#[cfg(feature = "criterion")]
pub use on_criterion::{CudaBencherExt, Rate, RateSet, Started};
#[doc(hidden)]
pub use panic::catch_panic;
#[doc(hidden)]
pub use prepared_launch::{bind, synchronize};
pub use probe::{DeviceProperties, open, probe};
pub use range::{Range, range};
pub use rotating::Rotating;
