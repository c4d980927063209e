//! The share of the machine that this process may use: memory, and the CPU quota that a container or a systemd
//! unit puts on it. Linux keeps both in control groups.

use std::fs;
use std::path::{Path, PathBuf};

use crossover_system::address_space_left;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// Bytes of memory that this process may use: the machine's, or less by a control group or `ulimit`.
pub fn memory() -> u64 {
    let system = System::new_with_specifics(
        RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram()),
    );
    let of_groups = || memory_of(&read(Path::new("/proc/self/cgroup"))?, read);
    [of_groups(), address_space_left()]
        .into_iter()
        .flatten()
        .fold(system.total_memory(), u64::min)
}

/// The quota of this process in cores, the smallest of its groups; `None` without one.
pub(super) fn quota() -> Option<f64> {
    quota_of(&read(Path::new("/proc/self/cgroup"))?, read)
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn memory_of(cgroup: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let limits = groups(cgroup, "memory").filter_map(|group| {
        let file = |name| read(&group.join(name));
        let text = file("memory.max").or_else(|| file("memory.limit_in_bytes"))?;
        // Without a limit it is `max`; some sandboxes say 0.
        let bytes = text.trim().parse().ok();
        bytes.filter(|&bytes: &u64| bytes > 0)
    });
    limits.min()
}

fn quota_of(cgroup: &str, read: impl Fn(&Path) -> Option<String>) -> Option<f64> {
    let quotas = groups(cgroup, "cpu").filter_map(|group| {
        let file = |name| read(&group.join(name));
        let of_version_1 = || Some(file("cpu.cfs_quota_us")? + " " + &file("cpu.cfs_period_us")?);
        cores(&file("cpu.max").or_else(of_version_1)?)
    });
    quotas.reduce(f64::min)
}

/// The folders of the groups of this process, up to the root. `cgroup` is the text of `/proc/self/cgroup`: a
/// line per hierarchy, `id:controllers:path`. That of version 2 names no controllers; of version 1 the one
/// with this controller counts.
fn groups(cgroup: &str, controller: &str) -> impl Iterator<Item = PathBuf> {
    let groups = cgroup.lines().filter_map(move |line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let mut mount = PathBuf::from("/sys/fs/cgroup");
        if controllers.split(',').any(|it| it == controller) {
            mount.push(controller);
        } else if !controllers.is_empty() {
            return None;
        }
        // A container may see its own group as the root of the mount, and then has no folder of that path.
        let group = mount.join(path.trim_start_matches('/'));
        let on_the_way = group.ancestors().take_while(|it| it.starts_with(&mount));
        Some(on_the_way.map(Path::to_owned).collect::<Vec<_>>())
    });
    groups.flatten()
}

/// The cores of a quota and its period, both in microseconds; `None` for the quota `max`.
fn cores(text: &str) -> Option<f64> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<f64>);
    let (quota, period) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let cores = quota / period;
    (quota > 0.0 && period > 0.0 && cores > 0.0 && cores.is_finite()).then_some(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planted<'a>(files: &'a [(&str, &str)]) -> impl Fn(&Path) -> Option<String> + 'a {
        |path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path);
            file.map(|(_, text)| (*text).to_owned())
        }
    }

    fn quota(cgroup: &str, files: &[(&str, &str)]) -> Option<f64> {
        quota_of(cgroup, planted(files))
    }

    #[test]
    fn the_smallest_limit_of_memory_on_the_way_to_the_root_counts() {
        let unit = "/sys/fs/cgroup/system.slice/job.service/memory.max";
        let files = [
            (unit, "268435456\n"),
            ("/sys/fs/cgroup/system.slice/memory.max", "max\n"),
            ("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4096\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "0\n"),
        ];
        let memory = |cgroup| memory_of(cgroup, planted(&files));
        assert_eq!(memory("0::/system.slice/job.service\n"), Some(268_435_456));
        assert_eq!(memory("0::/system.slice\n"), None);
        assert_eq!(memory("5:memory:/job/step\n4:cpu:/job\n"), Some(4_096));
    }

    #[test]
    fn the_smallest_quota_on_the_way_to_the_root_counts() {
        let files = [
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "250000 100000\n"),
            ("/sys/fs/cgroup/cpu.max", "800000 100000\n"),
            ("/cpu.max", "1 100000\n"),
        ];
        assert_eq!(quota("0::/a/b\n", &files), Some(2.5));
        assert_eq!(quota("0::/a/b\n", &files[..1]), None);
        let half = [("/sys/fs/cgroup/cpu.max", "50000 100000\n")];
        assert_eq!(quota("0::/docker/abc\n", &half), Some(0.5));
        let of_version_1 = [
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ];
        let groups = "5:cpuset:/\n4:cpu,cpuacct:/docker/abc\n";
        assert_eq!(quota(groups, &of_version_1), Some(0.5));
        for text in ["", "max", "0 100000", "-1 100000", "1 0", "NaN 1", "1 x"] {
            assert_eq!(cores(text), None, "{text}");
        }
    }
}
