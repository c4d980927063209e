//! What the first call pays and a warm one does not, each phase measured in child processes, with
//! the driver's JIT cache off.
//!
//! The clock is the host's; the device is synchronised at the end of each phase.

mod child;
mod phase;
mod problem;

pub(crate) use child::measure;
pub use phase::phase;
pub use problem::{COLD_START, ColdStart, cost};
