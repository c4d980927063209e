//! Telemetry: reads the state of a device while a benchmark runs on it.

pub mod reading;
pub mod recorder;
pub mod watch;

pub use reading::{Reading, Source};
pub use recorder::Recorder;
pub use watch::Watch;
