//! The cost of one iteration.

use serde::{Deserialize, Serialize};

/// The cost of one iteration of a benchmark. `None` means unknown or not meaningful, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Floating-point operations (a fused multiply-add counts as two).
    pub flop: Option<f64>,
    /// Lower bound on the bytes that move through the memory that the implementation works from.
    pub bytes: Option<f64>,
    /// The part of `bytes` that is written; the rest is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<f64>,
    /// Bytes that must cross the link between host and device.
    pub link_bytes: Option<LinkBytes>,
    /// Kernels, counting each of a graph. Each is taken to move an equal part of `bytes`.
    pub launches: Option<u32>,
}

impl Cost {
    /// Sets the floating-point operations.
    pub fn flop(mut self, flop: f64) -> Self {
        self.flop = Some(flop);
        self
    }

    /// Sets the bytes through memory.
    pub fn bytes(mut self, bytes: f64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Sets how many of the bytes through memory are written.
    pub fn written(mut self, written: f64) -> Self {
        self.written = Some(written);
        self
    }

    /// Sets the bytes over the link, each way.
    pub fn over_link(mut self, to_device: f64, to_host: f64) -> Self {
        self.link_bytes = Some(LinkBytes::new(to_device, to_host));
        self
    }

    /// Sets the number of kernels.
    pub fn launches(mut self, launches: u32) -> Self {
        self.launches = Some(launches);
        self
    }
}

/// Bytes over the link between host and device. It carries both ways at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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
