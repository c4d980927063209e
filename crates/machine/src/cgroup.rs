//! The CPU quota that a container or a systemd unit puts on this process. Linux keeps it in
//! control groups, of version 2 or 1.

use std::fs;
use std::path::Path;

/// The quota of this process in cores, the smallest of its groups; `None` without one.
pub(super) fn quota() -> Option<f64> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    quota_of(&read(Path::new("/proc/self/cgroup"))?, read)
}

/// `cgroup` is the text of `/proc/self/cgroup`: a line per hierarchy, `id:controllers:path`. Version 2
/// names no controllers.
fn quota_of(cgroup: &str, read: impl Fn(&Path) -> Option<String>) -> Option<f64> {
    let of_hierarchy = |line: &str| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let mount = match controllers.split(',').any(|name| name == "cpu") {
            true => Path::new("/sys/fs/cgroup/cpu"),
            false if controllers.is_empty() => Path::new("/sys/fs/cgroup"),
            false => return None,
        };
        let quota = |group: &Path| {
            let file = |name| read(&group.join(name));
            let v1 = || Some(file("cpu.cfs_quota_us")? + &file("cpu.cfs_period_us")?);
            cores(&file("cpu.max").or_else(v1)?)
        };
        // A container may see its own group as the root of the mount, and then has no folder of that path.
        let group = mount.join(path.trim_start_matches('/'));
        let groups = group.ancestors().take_while(|it| it.starts_with(mount));
        groups.filter_map(quota).reduce(f64::min)
    };
    cgroup.lines().filter_map(of_hierarchy).reduce(f64::min)
}

/// Of a quota and its period in microseconds. A quota of `max` or -1 is none.
fn cores(text: &str) -> Option<f64> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<f64>);
    let (quota, period) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let cores = quota / period;
    (quota > 0.0 && period > 0.0 && cores > 0.0 && cores.is_finite()).then_some(cores)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quota(cgroup: &str, files: &[(&str, &str)]) -> Option<f64> {
        quota_of(cgroup, |path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path);
            file.map(|(_, text)| (*text).to_owned())
        })
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
    }

    #[test]
    fn version_1_has_two_files_for_the_cpu() {
        let files = [
            ("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "400000\n"),
            ("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ];
        let cgroup = "3:cpuset:/set\n2:cpu,cpuacct:/job\n";
        assert_eq!(quota(cgroup, &files), Some(4.0));
        assert_eq!(quota("3:cpuset:/job\n", &files), None);
    }

    proptest! {
        /// Lines of the kernel's form with anything in them, and a file of any content
        /// wherever they lead.
        #[test]
        fn any_text_is_read_without_a_panic(
            cgroup in "([0-9]{0,2}:(cpu|cpuset,cpu||[a-z=]{0,4}):(/|/a/b|\\.\\./x|\\PC{0,8})?\n){0,3}\\PC{0,9}",
            file in "(max|-?[0-9]{0,40}(e[0-9]{1,3})?|inf|NaN|\\PC{0,6})[ \n](max|[0-9]{0,40}|\\PC{0,6})",
        ) {
            let quota = quota_of(&cgroup, |_| Some(file.clone()));
            prop_assert!(quota.is_none_or(|cores| cores > 0.0 && cores.is_finite()));
        }
    }
}
