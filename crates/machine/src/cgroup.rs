//! The CPU quota that a container or a systemd unit puts on this process. Linux keeps it in
//! control groups, of version 2 or 1.

use std::fs;
use std::path::{Path, PathBuf};

/// The quota of this process in cores, the smallest of its groups; `None` without one.
pub(super) fn quota() -> Option<f64> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    quota_of(
        &read(Path::new("/proc/self/cgroup"))?,
        &read(Path::new("/proc/self/mountinfo"))?,
        read,
    )
}

/// `cgroup` and `mountinfo` are the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn quota_of(cgroup: &str, mountinfo: &str, read: impl Fn(&Path) -> Option<String>) -> Option<f64> {
    // One line per hierarchy, `id:controllers:path`; version 2 names no controllers.
    let mut smallest: Option<f64> = None;
    for line in cgroup.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let v2 = controllers.is_empty();
        if !v2 && !controllers.split(',').any(|c| c == "cpu") {
            continue;
        }
        let Some((root, mount)) = mount_of(mountinfo, v2) else {
            continue;
        };
        // A container may see its own group as the root of the mount. A path outside that
        // root cannot be walked: the mount's own quota is what there is.
        let below = Path::new(path).strip_prefix(&root).unwrap_or(Path::new(""));
        for group in mount.join(below).ancestors() {
            if !group.starts_with(&mount) {
                break;
            }
            let quota = if v2 {
                read(&group.join("cpu.max")).and_then(|text| parse_v2(&text))
            } else {
                read(&group.join("cpu.cfs_quota_us"))
                    .zip(read(&group.join("cpu.cfs_period_us")))
                    .and_then(|(quota, period)| parse_v1(&quota, &period))
            };
            smallest = [smallest, quota].into_iter().flatten().reduce(f64::min);
        }
    }
    smallest
}

/// Root within the hierarchy and mount point of the controller, from lines such as
/// `32 31 0:29 /root /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu`.
fn mount_of(mountinfo: &str, v2: bool) -> Option<(PathBuf, PathBuf)> {
    mountinfo.lines().find_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut filesystem = filesystem.split(' ');
        let kind = filesystem.next()?;
        let options = filesystem.nth(1)?;
        let wanted = if v2 {
            kind == "cgroup2"
        } else {
            kind == "cgroup" && options.split(',').any(|o| o == "cpu")
        };
        let mut fields = mount.split(' ').skip(3);
        wanted.then_some((fields.next()?.into(), fields.next()?.into()))
    })
}

/// `cpu.max`: `max 100000` without a quota, else `<quota> <period>` in microseconds.
fn parse_v2(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    parse_v1(quota, period)
}

/// `cpu.cfs_quota_us` and `cpu.cfs_period_us`; a quota of -1 is none.
fn parse_v1(quota: &str, period: &str) -> Option<f64> {
    let quota: f64 = quota.trim().parse().ok()?;
    let period: f64 = period.trim().parse().ok()?;
    let cores = quota / period;
    (quota > 0.0 && period > 0.0 && cores > 0.0 && cores.is_finite()).then_some(cores)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V2_MOUNTS: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw
35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
";

    fn files<'a>(table: &'a [(&'a str, &'a str)]) -> impl Fn(&Path) -> Option<String> + 'a {
        |path| {
            table
                .iter()
                .find(|(name, _)| Path::new(name) == path)
                .map(|(_, text)| (*text).to_owned())
        }
    }

    #[test]
    fn version_2_takes_the_smallest_quota_on_the_way_to_the_root() {
        let table = [
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "250000 100000\n"),
            ("/sys/fs/cgroup/cpu.max", "800000 100000\n"),
            ("/cpu.max", "1 100000\n"),
        ];
        assert_eq!(quota_of("0::/a/b\n", V2_MOUNTS, files(&table)), Some(2.5));
        let unlimited = [("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n")];
        assert_eq!(quota_of("0::/a/b\n", V2_MOUNTS, files(&unlimited)), None);
        assert_eq!(quota_of("0::/a/b\n", "", files(&table)), None);
    }

    #[test]
    fn a_group_outside_the_mount_falls_back_on_the_mount_itself() {
        let mounts =
            "35 24 0:30 /docker/abc /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        let table = [
            ("/sys/fs/cgroup/cpu.max", "150000 100000\n"),
            ("/sys/fs/cgroup/job/cpu.max", "50000 100000\n"),
        ];
        let quota = |group: &str| quota_of(&format!("0::{group}\n"), mounts, files(&table));
        assert_eq!(quota("/elsewhere"), Some(1.5));
        assert_eq!(quota("/docker/abc"), Some(1.5));
        assert_eq!(quota("/docker/abc/job"), Some(0.5));
    }

    #[test]
    fn version_1_reads_the_cpu_controller_only() {
        let mounts = "\
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
";
        let cgroup = "3:cpuset:/set\n2:cpu,cpuacct:/job\n";
        let table = [
            (
                "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us",
                "400000\n",
            ),
            (
                "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us",
                "100000\n",
            ),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(quota_of(cgroup, mounts, files(&table)), Some(4.0));
        assert_eq!(quota_of("3:cpuset:/set\n", mounts, files(&table)), None);
    }

    proptest! {
        /// Lines of the kernel's form with anything in them, and a file of any content
        /// wherever they lead.
        #[test]
        fn any_text_is_read_without_a_panic(
            cgroup in "([0-9]{0,2}:(cpu|cpuset,cpu||[a-z=]{0,4}):(/|/a/b|\\.\\./x|\\PC{0,8})?\n){0,3}\\PC{0,9}",
            mounts in "(\\PC{0,6} 1 0:1 (/|/a|\\.\\.) (/sys/fs/cgroup|[a-z/.]{0,5})? \\PC{0,4}- cgroup2? [a-z]{0,3} (rw|cpu|,){0,3}\n){0,3}",
            file in "(max|-?[0-9]{0,40}(e[0-9]{1,3})?|inf|NaN|\\PC{0,6})[ \n](max|[0-9]{0,40}|\\PC{0,6})",
        ) {
            let quota = quota_of(&cgroup, &mounts, |_| Some(file.clone()));
            prop_assert!(quota.is_none_or(|cores| cores > 0.0 && cores.is_finite()));
        }
    }

    #[test]
    fn nonsense_is_no_quota() {
        for text in [
            "",
            "max",
            "0 100000",
            "100000 0",
            "-1 100000",
            "a b",
            "inf 1",
            "1e308 1e-9",
        ] {
            assert_eq!(parse_v2(text), None, "{text:?}");
        }
    }
}
