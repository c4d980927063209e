//! Opening a GPU or saying why not, compiling and loading kernels, and the fingerprint of
//! the machine.

mod absence;
#[cfg(feature = "suite")]
pub mod environment;
mod error;
#[cfg(feature = "suite")]
mod gpu;
pub mod graph;
pub mod kernel;
pub mod present;
mod probe;

pub use absence::{Absence, OLDEST_CUDA, OLDEST_DEVICE};
pub use error::CudaError;
#[cfg(feature = "suite")]
pub use gpu::Gpu;
pub use probe::{DeviceProperties, probe};
