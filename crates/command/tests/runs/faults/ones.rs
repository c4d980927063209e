//! The operation of the groups: an array of ones.

use crossover::workload::Workload;

/// So many ones.
pub(crate) struct Ones(pub(crate) usize);

impl Workload for Ones {
    fn new(size: u64) -> Self {
        Self(size as usize)
    }
    fn host_bytes(size: u64) -> u64 {
        4 * size
    }
    fn device_bytes(size: u64) -> u64 {
        4 * size
    }
}
