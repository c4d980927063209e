//! Conclusions from results: pure functions that open no file and no device.

pub mod answer;
pub mod findings;
pub mod limits;
pub mod peak;
pub mod rate;
pub mod reuse;
pub mod telemetry;
pub mod trust;

#[cfg(test)]
pub(crate) mod tests;
