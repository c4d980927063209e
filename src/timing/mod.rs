//! Clocks for CPU and GPU code: a Criterion measurement on CUDA events, and what it takes to
//! trust it.
//!
//! [`CudaTime`] implements Criterion's `Measurement`; [`CudaBencher`] adds a method a
//! [`Clock`] to Criterion's bencher. Nothing here knows any particular operation, and with
//! `default-features = false` this module (with [`device`](crate::device) under it) is all
//! there is, on criterion and cudarc alone.
//!
//! ```no_run
//! use criterion::Criterion;
//! use crossover::timing::{CudaBencher, CudaTime};
//! use cudarc::driver::{LaunchConfig, PushKernelArg};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let time = CudaTime::new(0)?;
//! let stream = time.stream().expect("made on a device").clone();
//! let ptx = cudarc::nvrtc::compile_ptx("extern \"C\" __global__ void nothing() {}")?;
//! let kernel = stream.context().load_module(ptx)?.load_function("nothing")?;
//!
//! let mut criterion = Criterion::default().with_measurement(time.clone());
//! criterion.bench_function("nothing", |b| {
//!     b.iter_gated(&time, 1, || {
//!         // SAFETY: the kernel takes no arguments.
//!         unsafe { stream.launch_builder(&kernel).launch(LaunchConfig::for_num_elems(1)) }
//!             .map(drop)
//!     })
//! });
//! # Ok(())
//! # }
//! ```

mod bencher;
mod clock;
mod cuda_time;
mod device;
mod error;
mod format;
mod gate;
mod sequence;

pub use bencher::CudaBencher;
pub use clock::Clock;
pub use cuda_time::{CudaTime, Started};
pub use error::TimingError;
pub use format::Rate;
pub use gate::{GateMode, LAUNCHES_PER_GATE};
