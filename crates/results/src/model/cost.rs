//! What one iteration costs.

use serde::{Deserialize, Serialize};

/// What one iteration of a benchmark costs. `None` is unknown or not meaningful, and never means
/// zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Floating-point operations (a fused multiply-add counts as two).
    pub flop: Option<f64>,
    /// Fewest bytes that must move through the memory the implementation works from.
    pub bytes: Option<f64>,
    /// Bytes that must cross the link between host and device, both ways together.
    pub link_bytes: Option<f64>,
    /// Kernels, counting each of a graph. Each is taken to move an equal part of `bytes`.
    pub launches: Option<u32>,
}
