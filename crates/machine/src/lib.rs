//! What this machine is: its fingerprint, what disturbs a measurement on it, its GPU as NVML sees it
//! and watches it, the libraries of CUDA, and why a GPU or a library cannot be used.

pub mod absence;
mod cgroup;
mod cpu;
mod disturbances;
pub mod fingerprint;
pub mod libraries;
pub mod load;
pub mod memory;
pub mod monitor;
pub mod numa;
pub mod nvml;
pub mod recorded;

pub use absence::Absence;
pub use nvml::Monitor;
