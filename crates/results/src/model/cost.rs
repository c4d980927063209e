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
    /// Those of `bytes` that are written; the others are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<f64>,
    /// Bytes that must cross the link between host and device.
    pub link_bytes: Option<LinkBytes>,
    /// Kernels, counting each of a graph. Each is taken to move an equal part of `bytes`.
    pub launches: Option<u32>,
}

/// Bytes over the link between host and device. It carries both ways at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkBytes {
    /// From the host to the device.
    pub to_device: f64,
    /// From the device to the host.
    pub to_host: f64,
}

impl LinkBytes {
    /// So many bytes each way.
    pub fn new(to_device: f64, to_host: f64) -> Self {
        Self { to_device, to_host }
    }

    /// Both ways together.
    pub fn sum(self) -> f64 {
        self.to_device + self.to_host
    }
}
