//! What this machine is and can do: its fingerprint, what disturbs a measurement, the device as
//! NVML sees it, and its measured ceilings.

pub(crate) mod ceilings;
mod cgroup;
mod cpu;
mod disturbances;
pub(crate) mod fingerprint;
pub(crate) mod memory;
pub mod monitor;
pub(crate) mod nvml;

pub use nvml::Monitor;
