//! Opening a GPU or saying why not, compiling and loading kernels, and the fingerprint of
//! the machine.

mod absence;
#[cfg(feature = "suite")]
mod cgroup;
#[cfg(feature = "suite")]
mod cpu;
#[cfg(feature = "suite")]
mod disturbances;
#[cfg(feature = "suite")]
pub mod environment;
mod error;
#[cfg(feature = "suite")]
mod gpu;
pub mod graph;
pub mod kernel;
#[cfg(feature = "suite")]
pub mod nvml;
pub mod present;
mod probe;
mod resources;

pub use absence::{Absence, OLDEST_CUDA, OLDEST_DEVICE};
pub use error::CudaError;
#[cfg(feature = "suite")]
pub use gpu::{Gpu, NO_CUBLAS};
pub use probe::{DeviceProperties, probe};
