//! What Linux and macOS share: signals, process groups, and standard output by file descriptors.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Notes each of the signals once; a second one ends the process.
pub(crate) fn catch_signals() {
    let once = SigAction::new(
        SigHandler::Handler(crate::interrupt::note),
        SaFlags::SA_RESETHAND | SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler stores to an atomic, which a handler may.
        let _ = unsafe { sigaction(signal, &once) };
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
    /// What the system says.
    pub fn kill(child: &mut Child) -> io::Result<ExitStatus> {
        signal_group(child, Signal::SIGKILL);
        child.wait()
    }

    fn signal_group(child: &Child, signal: Signal) {
        if let Ok(group) = i32::try_from(child.id()) {
            // A group that has ended meanwhile is what is wanted.
            let _ = killpg(Pid::from_raw(group), signal);
        }
    }

    /// Waits for the end of a child in another thread, and leaves its status to [`Child::wait`].
    pub fn until_end(child: &Child) -> impl FnOnce() + Send + 'static {
        let id = child.id();
        move || while wait_for(id, 0).is_err_and(|e| e.kind() == io::ErrorKind::Interrupted) {}
    }

    /// Whether a child has ended. Leaves its status to [`Child::wait`].
    ///
    /// # Errors
    /// What the system says.
    pub fn has_ended(child: &Child) -> io::Result<bool> {
        wait_for(child.id(), libc::WNOHANG)
    }

    /// Whether a child has ended, once the system answers.
    fn wait_for(id: u32, flags: i32) -> io::Result<bool> {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let flags = libc::WEXITED | libc::WNOWAIT | flags;
        // SAFETY: the pointer is valid for the call.
        let waited = unsafe { libc::waitid(libc::P_PID, id as _, info.as_mut_ptr(), flags) };
        match waited {
            // SAFETY: the system wrote it, or left it zero, which the type allows.
            0 => Ok(unsafe { info.assume_init().si_pid() } != 0),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Makes this process become another one; returns only if it cannot.
    pub fn become_command(command: &mut Command) -> io::Error {
        command.exec()
    }
}

/// Sockets in the file system.
pub(crate) mod channel {
    use std::io;
    pub use std::os::unix::net::{UnixListener as Listener, UnixStream as Stream};
    use std::path::Path;

    /// Waits for connections at this path.
    ///
    /// # Errors
    /// What the system says.
    pub fn bind(path: &Path) -> io::Result<Listener> {
        Listener::bind(path)
    }

    /// Connects to whoever waits at this path.
    ///
    /// # Errors
    /// What the system says.
    pub fn connect(path: &Path) -> io::Result<Stream> {
        Stream::connect(path)
    }
}

/// Names, permissions and links of files.
pub mod files {
    use std::ffi::{OsStr, OsString};
    use std::fs::Permissions;
    use std::io;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    pub use crate::platform::forget_cached;

    /// The permissions of a file that every user may read.
    pub fn readable_by_all() -> Option<Permissions> {
        Some(Permissions::from_mode(0o644))
    }

    /// Makes a symbolic link at `link`.
    ///
    /// # Errors
    /// What the system says.
    pub fn symlink(target: &Path, link: &Path) -> io::Result<()> {
        std::os::unix::fs::symlink(target, link)
    }

    /// The name that another program printed.
    pub fn os_string(bytes: &[u8]) -> OsString {
        OsStr::from_bytes(bytes).to_owned()
    }
}

/// What becomes of this process when what it prints cannot be written.
pub mod output {
    use std::fs::File;
    use std::io::{self, IsTerminal, PipeReader, Read, Write};
    use std::os::fd::{AsFd, AsRawFd, RawFd};
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    use std::process::ExitCode;
    use std::sync::mpsc::{Receiver, channel};
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use nix::libc;
    use nix::sys::signal::{SigHandler, Signal, signal};

    /// Ends this process without a word when the reader of its output goes away (`| head -1`), as
    /// other commands end: Rust would have it panic. A limit of the size of files is an error of the
    /// write that meets it, as a full disk is, and ends no process.
    pub fn end_with_the_reader() {
        // SAFETY: the default action and none, set before any thread is started.
        let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) };
        // SAFETY: as above.
        let _ = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    }

    /// A stream of this process that goes to a file.
    struct Stream {
        name: &'static str,
        number: RawFd,
        file: File,
        /// Says at the stream's end what kept it from the file; `None` for a stream that goes to the
        /// file of another one.
        ended: Option<Receiver<Option<io::Error>>>,
    }

    static STREAMS: Mutex<Vec<Stream>> = Mutex::new(Vec::new());

    /// Runs what prints. Where that goes to a file, and the disk is full, `println!` would panic, in
    /// Criterion too and in the middle of a measurement; so a thread passes it on. What it could not
    /// write is said on the other stream and makes a success this failure.
    pub fn survive_a_full_disk(failure: u8, run: impl FnOnce() -> ExitCode) -> ExitCode {
        if let Err(error) = pass_on() {
            eprintln!(
                "note: if the disk gets full, this process ends at its next line of output: {error}"
            );
        }
        let code = run();
        let lost = finish();
        for line in &lost {
            let _ = writeln!(io::stderr(), "error: {line}");
            let _ = writeln!(io::stdout(), "error: {line}");
        }
        match lost.is_empty() || code != ExitCode::SUCCESS {
            true => code,
            false => ExitCode::from(failure),
        }
    }

    fn pass_on() -> io::Result<()> {
        extern "C" fn at_exit() {
            finish();
        }
        let mut streams: Vec<(Stream, (u64, u64))> = Vec::new();
        let (out, err) = (io::stdout(), io::stderr());
        for (name, fd) in [
            ("standard output", out.as_fd()),
            ("standard error", err.as_fd()),
        ] {
            let file = File::from(fd.try_clone_to_owned()?);
            let about = file.metadata()?;
            let kind = about.file_type();
            if file.is_terminal() || kind.is_fifo() || kind.is_socket() {
                continue;
            }
            let (number, id) = (fd.as_raw_fd(), (about.dev(), about.ino()));
            // What goes to one file keeps its order.
            let ended = match streams.iter().find(|(_, other)| *other == id) {
                Some((first, _)) => {
                    replace(number, first.number)?;
                    None
                }
                None => {
                    let (from, to) = io::pipe()?;
                    let (tell, ended) = channel();
                    let mut file = file.try_clone()?;
                    let pass = move || tell.send(copy(from, &mut file));
                    std::thread::Builder::new().spawn(pass)?;
                    replace(number, to.as_raw_fd())?;
                    Some(ended)
                }
            };
            let stream = Stream {
                name,
                number,
                file,
                ended,
            };
            streams.push((stream, id));
        }
        *STREAMS.lock().unwrap_or_else(PoisonError::into_inner) =
            streams.into_iter().map(|(stream, _)| stream).collect();
        // SAFETY: the function is there for as long as the process. It is also Criterion and clap that
        // end a process.
        unsafe { libc::atexit(at_exit) };
        Ok(())
    }

    /// Standard output as a file that stays where it goes now.
    ///
    /// # Errors
    /// What the system says.
    pub fn stdout() -> io::Result<File> {
        Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
    }

    /// Has standard output go where `to` goes.
    ///
    /// # Errors
    /// What the system says.
    pub fn print_to(to: &impl AsFd) -> io::Result<()> {
        replace(io::stdout().as_raw_fd(), to.as_fd().as_raw_fd())
    }

    /// Has the stream `number` go where `to` goes.
    fn replace(number: RawFd, to: RawFd) -> io::Result<()> {
        // SAFETY: both are open; Rust's own handles of the streams know nothing but their numbers.
        match unsafe { libc::dup2(to, number) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Copies to the end, also where nothing can be written any more: whoever prints must not wait.
    fn copy(mut from: PipeReader, to: &mut File) -> Option<io::Error> {
        let (mut bytes, mut failed) = ([0; 4096], None);
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if failed.is_none() {
                failed = to.write_all(&bytes[..read]).err();
            }
        }
        failed
    }

    /// Has the streams go to their files again, and says which of them lost something.
    pub fn finish() -> Vec<String> {
        /// A process that was started here may hold a pipe open for longer.
        const PATIENCE: Duration = Duration::from_secs(1);
        let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
        let streams = std::mem::take(&mut *streams);
        let _ = io::stdout().flush();
        for stream in &streams {
            let _ = replace(stream.number, stream.file.as_raw_fd());
        }
        let lost = streams.iter().filter_map(|stream| {
            let error = stream.ended.as_ref()?.recv_timeout(PATIENCE).ok()??;
            Some(format!("{} could not be written: {error}", stream.name))
        });
        lost.collect()
    }
}
