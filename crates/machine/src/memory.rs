//! The memory that this process may use.

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// Bytes of memory that this process may use: the machine's, or what a control group or `ulimit`
/// leaves of it.
pub fn usable() -> u64 {
    let system = System::new_with_specifics(
        RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram()),
    );
    let groups = system.cgroup_limits().map(|limits| limits.total_memory);
    [groups.filter(|&bytes| bytes > 0), address_space()]
        .into_iter()
        .flatten()
        .fold(system.total_memory(), u64::min)
}

/// What `ulimit -v` leaves: its limit counts what is mapped already, whether used or not.
fn address_space() -> Option<u64> {
    let (limit, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
    if limit == RLIM_INFINITY {
        return None;
    }
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mapped = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:"))?;
    let kib: u64 = mapped.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(limit.saturating_sub(kib << 10))
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_machine_has_memory() {
        assert!(super::usable() > 1 << 20);
    }
}
