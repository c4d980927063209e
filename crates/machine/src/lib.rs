//! This machine: its fingerprint, disturbances of measurements, its GPU as NVML shows it, CUDA's
//! libraries, and the reasons why a GPU or a library cannot be used.

mod disturbances;
pub mod fingerprint;
pub mod libraries;
pub mod limits;
pub mod load;
pub mod monitor;
pub mod nccl;
pub mod numa;
pub mod nvml;
pub mod peers;

pub use libraries::Absence;
pub use nvml::Monitor;
