//! Telemetry: reads the state of a device while a benchmark runs on it.

pub(crate) mod reading;
mod recorder;
pub(crate) mod watch;

pub use reading::{Reading, Source};
pub use watch::Watch;
