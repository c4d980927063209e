//! Telemetry: reads the state of a device while a benchmark runs on it.

mod reading;
mod recorder;
mod watch;

pub use reading::{Reading, Source};
pub use watch::Watch;
