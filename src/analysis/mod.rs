//! What follows from results, and nothing else: pure functions that open no file and no device.

pub(crate) mod bottleneck;
pub(crate) mod cold_start;
pub(crate) mod crossover;
pub(crate) mod findings;
pub(crate) mod limits;
pub(crate) mod rate;
pub(crate) mod reuse;
pub(crate) mod telemetry;
pub(crate) mod trust;
