//! The CPU quota that a container or a systemd unit puts on this process. Linux keeps it in control groups;
//! those of version 1 are not read.

use std::fs;
use std::path::Path;

/// The quota of this process in cores, the smallest of its groups; `None` without one.
pub(super) fn quota() -> Option<f64> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    quota_of(&read(Path::new("/proc/self/cgroup"))?, read)
}

/// `cgroup` is the text of `/proc/self/cgroup`: a line per hierarchy, `id:controllers:path`. Version 2
/// is the one with the id 0, which names no controllers.
fn quota_of(cgroup: &str, read: impl Fn(&Path) -> Option<String>) -> Option<f64> {
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = Path::new("/sys/fs/cgroup");
    // A container may see its own group as the root of the mount, and then has no folder of that path.
    let group = mount.join(path.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|it| it.starts_with(mount));
    let quotas = groups.filter_map(|group| cores(&read(&group.join("cpu.max"))?));
    quotas.reduce(f64::min)
}

/// Of a quota and its period in microseconds. A quota of `max` is none.
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
