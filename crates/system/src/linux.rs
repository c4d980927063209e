//! Linux.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::unistd::Pid;

pub(crate) use crate::unix::catch_signals;
pub use crate::unix::{channel, files, output, process};

const THIS_THREAD: Pid = Pid::from_raw(0);

/// The cores that this thread may use.
pub fn usable_cores() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(THIS_THREAD) else {
        return Vec::new();
    };
    let usable = |core: &usize| set.is_set(*core).unwrap_or(false);
    (0..CpuSet::count()).filter(usable).collect()
}

/// Keeps a thread on some cores. When this is dropped, the thread may use those that it had before.
pub struct OnCores(CpuSet);

impl OnCores {
    /// Keeps this thread on those of these cores that it may use; `None` if it may use none of them.
    pub fn new(cores: &[usize]) -> Option<Self> {
        let before = sched_getaffinity(THIS_THREAD).ok()?;
        let mut kept = CpuSet::new();
        for &core in cores {
            if before.is_set(core).unwrap_or(false) {
                kept.set(core).ok()?;
            }
        }
        sched_setaffinity(THIS_THREAD, &kept).ok()?;
        Some(Self(before))
    }
}

impl Drop for OnCores {
    fn drop(&mut self) {
        let _ = sched_setaffinity(THIS_THREAD, &self.0);
    }
}

/// Bytes that `ulimit -v` leaves. Its limit counts all mapped memory, used or not.
pub fn address_space_left() -> Option<u64> {
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

/// Takes a file out of the page cache.
///
/// # Errors
/// The system's error.
pub fn forget_cached(file: &File) -> io::Result<()> {
    // Only pages that are on the disk can be dropped.
    file.sync_all()?;
    // SAFETY: a call without pointers; the descriptor is open.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_thread_is_kept_on_a_core_for_a_while() {
        let before = usable_cores();
        let kept = OnCores::new(&before[..1]).unwrap();
        assert_eq!(usable_cores(), before[..1]);
        assert!(OnCores::new(&[60_000]).is_none(), "no such core");
        drop(kept);
        assert_eq!(usable_cores(), before);
    }

    #[test]
    fn a_file_leaves_the_page_cache() {
        // Not in a temporary folder, which may lie in memory.
        let executable = std::env::current_exe().unwrap();
        let mut file = tempfile::NamedTempFile::new_in(executable.parent().unwrap()).unwrap();
        file.write_all(&[1; 1 << 16]).unwrap();
        let said = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            let output = command.args(arguments).arg(file.path()).output().ok()?;
            Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
        };
        let cached = || said("fincore", &["--bytes", "--noheadings", "--output", "RES"]);
        let kind = said("stat", &["--file-system", "--format=%T"]);
        let (Some(before), false) = (cached(), kind.as_deref() == Some("tmpfs")) else {
            return println!(
                "skipped: the target folder is in memory, or `fincore` is not installed"
            );
        };
        assert_eq!(before, "65536");
        forget_cached(file.as_file()).unwrap();
        assert_eq!(cached().unwrap(), "0");
    }

    /// Starts this test again with a limit of 8 GB.
    #[test]
    fn what_is_mapped_counts_against_the_limit_of_addresses() {
        const LIMITED: &str = "CROSSOVER_TEST_LIMITED";
        const LIMIT: u64 = 8_000_000 << 10;
        if std::env::var_os(LIMITED).is_some() {
            println!("left: {} B", address_space_left().unwrap());
            return;
        }
        let again = "ulimit -v 8000000 && exec \"$0\" --nocapture what_is_mapped";
        let output = Command::new("sh")
            .args(["-c", again])
            .arg(std::env::current_exe().unwrap())
            .env(LIMITED, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let left = said
            .split("left: ")
            .nth(1)
            .and_then(|s| s.split(' ').next());
        let left: u64 = left.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
        // The executable, its libraries and the stack of the test's thread, which has 2 MiB.
        assert!(left < LIMIT - (2 << 20), "{left}");
    }
}
