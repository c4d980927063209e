//! Common code of Linux and macOS: signals, process groups, and standard output by file descriptors.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction, signal};

/// Records each of the signals, or only `once`: a second one then ends the process.
pub(crate) fn catch_signals(once: bool) {
    let mut flags = SaFlags::SA_RESTART;
    flags.set(SaFlags::SA_RESETHAND, once);
    let handler = SigHandler::Handler(crate::interrupt::note);
    let action = SigAction::new(handler, flags, SigSet::empty());
    for caught in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler stores to an atomic, which a handler may.
        let before = unsafe { sigaction(caught, &action) };
        let is_ignored = before.is_ok_and(|before| matches!(before.handler(), SigHandler::SigIgn));
        // By `nohup`. A shell ignores SIGINT for a command behind which is `&`, but child processes are
        // asked to end by it.
        if is_ignored && caught == Signal::SIGHUP {
            // SAFETY: ignoring a signal runs no handler.
            let _ = unsafe { signal(caught, SigHandler::SigIgn) };
        }
    }
}

/// Processes with their children.
pub mod process {
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, ExitStatus};

    use nix::libc;
    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;

    /// Seconds of a core that the ended children of this process took, with theirs.
    pub fn seconds_of_children() -> f64 {
        use nix::sys::resource::{UsageWho, getrusage};
        use nix::sys::time::TimeValLike;
        getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0.0, |usage| {
            let time = usage.user_time() + usage.system_time();
            time.num_microseconds() as f64 * 1e-6
        })
    }

    /// Gives the child a group of its own: an interrupt of this process does not reach it.
    pub fn in_own_group(command: &mut Command) -> &mut Command {
        command.process_group(0)
    }

    /// Asks a child in a group of its own to end, with its children.
    pub fn interrupt(child: &Child) {
        signal_group(child, Signal::SIGINT);
    }

    /// Ends a child in a group of its own at once, with its children, and returns its status.
    ///
    /// # Errors
    /// The system's error.
    pub fn kill(child: &mut Child) -> io::Result<ExitStatus> {
        signal_group(child, Signal::SIGKILL);
        child.wait()
    }

    fn signal_group(child: &Child, signal: Signal) {
        if let Ok(group) = i32::try_from(child.id()) {
            // If the group has ended meanwhile, nothing is left to do.
            let _ = killpg(Pid::from_raw(group), signal);
        }
    }

    /// Waits for the end of a child in another thread, and leaves its status to [`Child::wait`].
    pub fn until_end(child: &Child) -> impl FnOnce() + Send + 'static {
        let id = child.id();
        let flags = libc::WEXITED | libc::WNOWAIT;
        let wait = move || {
            let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
            // SAFETY: the pointer is valid for the call.
            unsafe { libc::waitid(libc::P_PID, id as _, info.as_mut_ptr(), flags) }
        };
        move || {
            while wait() != 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {}
        }
    }

    /// Ends this process, although other threads are in calls that never return.
    pub fn end_at_once(code: i32) -> ! {
        // SAFETY: the call does nothing but that.
        unsafe { libc::_exit(code) }
    }

    /// Makes this process become another one; returns only if it cannot.
    pub fn become_command(command: &mut Command) -> io::Error {
        command.exec()
    }
}

/// A local channel between two processes, found by a path: a socket in the file system.
pub mod channel {
    use std::io;
    pub use std::os::unix::net::{UnixListener as Listener, UnixStream as Stream};
    use std::path::Path;

    /// Waits for connections at this path.
    ///
    /// # Errors
    /// The system's error.
    pub fn bind(path: &Path) -> io::Result<Listener> {
        Listener::bind(path)
    }

    /// Connects to the process that waits at this path.
    ///
    /// # Errors
    /// The system's error.
    pub fn connect(path: &Path) -> io::Result<Stream> {
        Stream::connect(path)
    }
}

/// Names, permissions and links of files.
pub mod files {
    use std::ffi::{OsStr, OsString};
    use std::io;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    pub use crate::platform::forget_cached;

    /// Makes a symbolic link at `link`.
    ///
    /// # Errors
    /// The system's error.
    pub fn symlink(target: &Path, link: &Path) -> io::Result<()> {
        std::os::unix::fs::symlink(target, link)
    }

    /// The name that another program printed.
    pub fn os_string(bytes: &[u8]) -> OsString {
        OsStr::from_bytes(bytes).to_owned()
    }
}

/// Standard output of this process.
pub mod output {
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd, AsRawFd};

    use nix::libc;
    use nix::sys::signal::{SigHandler, Signal, signal};

    /// Ends this process without a message when the reader of its output ends (`| head -1`), as other
    /// commands do; Rust would panic. A limit of the size of files becomes an error of the write, as a
    /// full disk is, and ends no process.
    pub fn end_with_the_reader() {
        // SAFETY: the default action is no handler of ours.
        let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) };
        // SAFETY: ignoring a signal runs no handler.
        let _ = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    }

    /// Standard output as a file that keeps its present target.
    ///
    /// # Errors
    /// The system's error.
    pub fn stdout() -> io::Result<File> {
        Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
    }

    /// Redirects standard output to `to`.
    ///
    /// # Errors
    /// The system's error.
    pub fn print_to(to: &impl AsFd) -> io::Result<()> {
        let (to, stdout) = (to.as_fd().as_raw_fd(), io::stdout().as_raw_fd());
        // SAFETY: both are open; Rust's own handle of the stream knows nothing but its number.
        match unsafe { libc::dup2(to, stdout) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}
