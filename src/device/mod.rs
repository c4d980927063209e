//! Opening a GPU or saying why not, compiling and loading kernels, and the fingerprint of
//! the machine.

mod absence;
mod cgroup;
mod cpu;
mod disturbances;
pub mod environment;
mod gpu;
pub mod graph;
pub mod kernel;
pub mod monitor;
pub mod nvml;
pub mod present;
mod resources;

pub use crate::timing::{CudaError, DeviceProperties, probe};
pub use absence::Absence;
pub use gpu::{Gpu, NO_CUBLAS, cublas_error};
