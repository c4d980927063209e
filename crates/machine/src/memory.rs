//! The memory that this process may use.

use crossover_system::address_space_left;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// Bytes of memory that this process may use: the machine's, or less by a control group or `ulimit`.
pub fn usable() -> u64 {
    let system = System::new_with_specifics(
        RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram()),
    );
    let groups = system.cgroup_limits().map(|limits| limits.total_memory);
    [groups.filter(|&bytes| bytes > 0), address_space_left()]
        .into_iter()
        .flatten()
        .fold(system.total_memory(), u64::min)
}
