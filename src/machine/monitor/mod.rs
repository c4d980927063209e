//! Telemetry: reads the state of a device while a benchmark runs on it.

pub(crate) mod reading;
pub(crate) mod recorder;
pub(crate) mod watch;

pub use reading::{Reading, Source};
pub(crate) use recorder::Recorder;
pub use watch::Watch;
