//! What this machine is and can do: its fingerprint, what disturbs a measurement, the device as
//! NVML sees it, its measured ceilings, and its peak arithmetic.

pub(crate) mod ceilings;
mod cgroup;
pub(crate) mod commit;
mod cpu;
mod disturbances;
pub(crate) mod fingerprint;
pub(crate) mod isa;
pub(crate) mod memory;
pub mod monitor;
pub(crate) mod nvml;
mod peak;

pub use ceilings::kernels::{CEILINGS, fma_rate};
pub use commit::Package;
pub use nvml::Monitor;
pub use peak::flop_per_clock;
