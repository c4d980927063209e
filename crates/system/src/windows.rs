//! Windows.

use std::sync::atomic::{AtomicBool, Ordering};

use windows_sys::Win32::System::Console::SetConsoleCtrlHandler;
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentThread, GetProcessAffinityMask, SetThreadAffinityMask,
};

/// Records each Ctrl-C or Ctrl-Break, or only `once`: a second one then ends the process.
pub(crate) fn catch_signals(once: bool) {
    const SIGINT: i32 = 2;
    static ONCE: AtomicBool = AtomicBool::new(false);
    static IS_NOTED: AtomicBool = AtomicBool::new(false);
    ONCE.store(once, Ordering::SeqCst);
    unsafe extern "system" fn handle(_event: u32) -> i32 {
        if IS_NOTED.swap(true, Ordering::SeqCst) && ONCE.load(Ordering::SeqCst) {
            // Not handled: the system's own handler ends the process.
            return 0;
        }
        crate::interrupt::note(SIGINT);
        1
    }
    // SAFETY: the handler is there for as long as the process, and only stores to atomics.
    unsafe { SetConsoleCtrlHandler(Some(handle), 1) };
}

/// The cores that this process may use, of the first 64.
pub fn usable_cores() -> Vec<usize> {
    let (mut allowed, mut all) = (0, 0);
    // SAFETY: both pointers are valid for the call.
    unsafe { GetProcessAffinityMask(GetCurrentProcess(), &mut allowed, &mut all) };
    let bits = usize::BITS as usize;
    (0..bits).filter(|core| allowed >> core & 1 == 1).collect()
}

/// Keeps a thread on some cores. When this is dropped, the thread may use those that it had before.
pub struct OnCores(usize);

impl OnCores {
    /// Keeps this thread on those of these cores that it may use; `None` if it may use none of them.
    pub fn new(cores: &[usize]) -> Option<Self> {
        let usable = usable_cores();
        let kept = (cores.iter()).filter(|core| usable.contains(core));
        let mask = kept.fold(0, |mask, core| mask | 1 << core);
        // SAFETY: the thread is this one. A mask without cores is refused.
        let before = unsafe { SetThreadAffinityMask(GetCurrentThread(), mask) };
        (before != 0).then_some(Self(before))
    }
}

impl Drop for OnCores {
    fn drop(&mut self) {
        // SAFETY: the thread is this one, and `new` got the mask from the system.
        unsafe { SetThreadAffinityMask(GetCurrentThread(), self.0) };
    }
}

/// Bytes that a limit of the address space leaves: Windows has no such limit.
pub fn address_space_left() -> Option<u64> {
    None
}

/// Processes with their children.
pub mod process {
    use std::io;
    use std::os::windows::io::{AsHandle, AsRawHandle, OwnedHandle};
    use std::os::windows::process::CommandExt;
    use std::process::{Child, Command, ExitStatus, Stdio};

    use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, GenerateConsoleCtrlEvent};
    use windows_sys::Win32::System::Threading::{
        CREATE_NEW_PROCESS_GROUP, INFINITE, WaitForSingleObject,
    };

    /// Seconds of a core that the ended children of this process took; unknown here.
    pub fn seconds_of_children() -> f64 {
        0.0
    }

    /// Gives the child a group of its own: an interrupt of this process does not reach it.
    pub fn in_own_group(command: &mut Command) -> &mut Command {
        command.creation_flags(CREATE_NEW_PROCESS_GROUP)
    }

    /// Asks a child in a group of its own to end, with its children.
    pub fn interrupt(child: &Child) {
        // SAFETY: a call without pointers.
        unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, child.id()) };
    }

    /// Ends a child at once, with its children, and returns its status.
    ///
    /// # Errors
    /// The system's error.
    pub fn kill(child: &mut Child) -> io::Result<ExitStatus> {
        let tree = Command::new("taskkill")
            .args(["/F", "/T", "/PID", &child.id().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !tree.is_ok_and(|status| status.success()) {
            let _ = child.kill();
        }
        child.wait()
    }

    /// Waits for the end of a child in another thread, and leaves its status to [`Child::wait`].
    pub fn until_end(child: &Child) -> impl FnOnce() + Send + 'static {
        let handle: io::Result<OwnedHandle> = child.as_handle().try_clone_to_owned();
        move || {
            if let Ok(handle) = handle {
                // SAFETY: the handle is open until the end of this call.
                unsafe { WaitForSingleObject(handle.as_raw_handle(), INFINITE) };
            }
        }
    }

    /// Ends this process.
    pub fn end_at_once(code: i32) -> ! {
        std::process::exit(code)
    }

    /// Runs another process instead of this one, and ends with its exit code; returns only if it cannot
    /// be started.
    pub fn become_command(command: &mut Command) -> io::Error {
        match command.status() {
            Ok(status) => std::process::exit(status.code().unwrap_or(1)),
            Err(error) => error,
        }
    }
}

/// Names, permissions and links of files.
pub mod files {
    use std::ffi::OsString;
    use std::fs::File;
    use std::io;
    use std::path::Path;

    /// Makes a symbolic link at `link`.
    ///
    /// # Errors
    /// The system's error.
    pub fn symlink(target: &Path, link: &Path) -> io::Result<()> {
        if target.is_dir() {
            std::os::windows::fs::symlink_dir(target, link)
        } else {
            std::os::windows::fs::symlink_file(target, link)
        }
    }

    /// The name that another program printed.
    pub fn os_string(bytes: &[u8]) -> OsString {
        String::from_utf8_lossy(bytes).into_owned().into()
    }

    /// Would take a file out of the page cache, which Windows offers to no program.
    ///
    /// # Errors
    /// None.
    pub fn forget_cached(_file: &File) -> io::Result<()> {
        Ok(())
    }
}

/// Standard output of this process.
pub mod output {
    use std::fs::File;
    use std::io;
    use std::os::windows::io::{AsHandle, AsRawHandle};

    use windows_sys::Win32::System::Console::{STD_OUTPUT_HANDLE, SetStdHandle};

    /// Nothing to do: there is no signal for it.
    pub fn end_with_the_reader() {}

    /// Standard output as a file that keeps its present target.
    ///
    /// # Errors
    /// The system's error.
    pub fn stdout() -> io::Result<File> {
        Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
    }

    /// Redirects standard output to `to`, which must stay open meanwhile.
    ///
    /// # Errors
    /// The system's error.
    pub fn print_to(to: &impl AsHandle) -> io::Result<()> {
        // Rust asks for the handle at each write.
        let handle = to.as_handle().try_clone_to_owned()?;
        // SAFETY: the handle is open, and stays so: standard output owns it from here on.
        let set = unsafe { SetStdHandle(STD_OUTPUT_HANDLE, handle.as_raw_handle()) };
        std::mem::forget(handle);
        match set {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// A local channel between two processes, found by a path: the loopback address with a token that only
/// readers of the file know.
pub mod channel {
    use std::collections::hash_map::RandomState;
    use std::fs;
    use std::hash::{BuildHasher, Hasher};
    use std::io::{self, Read, Write};
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
    use std::path::Path;

    /// One end.
    pub type Stream = TcpStream;

    /// Waits for connections that know its token.
    pub struct Listener {
        listener: TcpListener,
        token: String,
    }

    impl Listener {
        /// As [`TcpListener::set_nonblocking`].
        ///
        /// # Errors
        /// The system's error.
        pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
            self.listener.set_nonblocking(nonblocking)
        }

        /// The next connection that knows the token.
        ///
        /// # Errors
        /// The system's error.
        pub fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
            loop {
                let (mut stream, from) = self.listener.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                let mut told = vec![0; self.token.len()];
                if stream.read_exact(&mut told).is_ok() && told == self.token.as_bytes() {
                    return Ok((stream, from));
                }
            }
        }
    }

    /// Waits for connections, and writes its port and a token to a file at this path.
    ///
    /// # Errors
    /// The system's error.
    pub fn bind(path: &Path) -> io::Result<Listener> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        // Each state is random.
        let random = || RandomState::new().build_hasher().finish();
        let token = format!("{:016x}{:016x}", random(), random());
        let port = listener.local_addr()?.port();
        fs::write(path, format!("{port} {token}"))?;
        Ok(Listener { listener, token })
    }

    /// Connects to the process that waits at this path.
    ///
    /// # Errors
    /// The system's error.
    pub fn connect(path: &Path) -> io::Result<Stream> {
        let text = fs::read_to_string(path)?;
        let named = text.split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
        let port: u16 = named.0.parse().map_err(io::Error::other)?;
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.write_all(named.1.as_bytes())?;
        Ok(stream)
    }
}
