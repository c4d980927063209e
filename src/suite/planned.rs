//! The benchmarks that a group plans, and the memory that they need.

use std::path::PathBuf;

use crate::model::cost::Cost;
use crate::model::role::Role;
use crate::timing::Clock;

/// One benchmark of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// `<group>/<cpu|gpu>/<implementation>/<size>`.
    pub id: String,
    /// Problem size, the last part of the id.
    pub size: u64,
    /// The clock that it is timed on where the gate works.
    pub clock: Clock,
    /// The work of its implementation, and the way that it is done.
    pub role: Role,
    /// Cost of one iteration.
    pub cost: Cost,
    /// The work of one iteration and its unit, where the group has a throughput.
    pub throughput: Option<(f64, &'static str)>,
    /// Host memory that the inputs and one implementation take, in bytes.
    pub host_bytes: u64,
    /// Device memory that the inputs and one implementation take, in bytes; `None` on the CPU.
    pub device_bytes: Option<u64>,
    /// Criterion's folder for it, relative to the results.
    pub directory: PathBuf,
}

impl Planned {
    /// Why it does not fit in this memory, in a sentence; `None` where it does.
    pub fn lacks(&self, memory: MachineMemory) -> Option<String> {
        memory.lacks(self.host_bytes, self.device_bytes)
    }
}

/// Share of a memory that a benchmark may take: the driver, the libraries' workspaces and other
/// processes need the rest.
const USABLE_SHARE: f64 = 0.85;

/// The memory of a machine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineMemory {
    /// The host's, as far as this process may use it.
    pub host: u64,
    /// The device's, 0 without one.
    pub device: u64,
}

impl MachineMemory {
    pub(super) fn lacks(self, host: u64, device: Option<u64>) -> Option<String> {
        does_not_fit("host", host, self.host)
            .or_else(|| does_not_fit("device", device?, self.device))
    }
}

fn does_not_fit(which: &str, needed: u64, there: u64) -> Option<String> {
    let gib = |bytes: f64| bytes / f64::from(1u32 << 30);
    let usable = there as f64 * USABLE_SHARE;
    (needed as f64 > usable).then(|| {
        format!(
            "needs {:.1} GiB of {which} memory and {:.1} GiB of {:.1} GiB may be used; run it on a machine with more",
            gib(needed as f64),
            gib(usable),
            gib(there as f64)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_does_not_fit_is_named() {
        assert_eq!(does_not_fit("host", 80, 100), None);
        assert!(
            does_not_fit("host", 90, 100).is_some(),
            "of 100 B 85 are usable"
        );
        let text = does_not_fit("device", 3 << 30, 2 << 30).unwrap();
        assert!(text.contains("3.0 GiB of device memory"), "{text}");
        let memory = MachineMemory {
            host: 100,
            device: 0,
        };
        assert_eq!(memory.lacks(80, None), None);
        assert!(memory.lacks(80, Some(1)).is_some());
    }
}
