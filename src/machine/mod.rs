//! The abilities of this machine: its measured limits, its peak arithmetic, and the device as NVML
//! shows it.

pub(crate) mod ceilings;
pub(crate) mod commit;

pub use ceilings::kernels::{CEILINGS, fma_rate};
pub use commit::Package;
pub use crossover_machine::{Monitor, monitor};
pub use crossover_results::analysis::peak::flop_per_clock;
