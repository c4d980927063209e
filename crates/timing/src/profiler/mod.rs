//! Records where the time of a benchmark goes, with NVIDIA's CUPTI, behind Criterion's
//! `--profile-time`.
//!
//! Hand a [`CudaProfiler`] to `Criterion::with_profiler`; `cargo bench -- --profile-time 3` then
//! prints a [`Profile`](crossover_profile::Profile) of each benchmark that
//! [`CudaBencherExt`](crate::CudaBencherExt) times, and writes it to `profile/profile.json` of the
//! benchmark's folder with a `trace.json` beside it that <https://ui.perfetto.dev> opens.
//! [`range`](crate::range) names parts of the code in both.

mod absence;
pub(crate) mod activity;
mod buffers;
mod cuda_profiler;
mod find;
mod library;
mod on_device;
pub(crate) mod ranges;
mod recorder;
mod records;
pub(crate) mod session;
mod version;

pub use cuda_profiler::CudaProfiler;
