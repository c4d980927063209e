//! The operating system, chosen at compile time for Linux, macOS and Windows: the cores of a thread,
//! the signals that end a run, process groups, standard output, the memory that a limit leaves, and a
//! channel between two processes. Where a system lacks a feature, the value is absent: `None`, or an
//! empty list.

use std::io::{self, Write};
use std::path::PathBuf;

pub mod interrupt;

#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(target_os = "macos", path = "macos.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod platform;
#[cfg(unix)]
mod unix;

/// From now on, ends the process with this code if standard output or standard error cannot be written,
/// as on a full disk: `print!` would panic.
pub fn end_where_output_fails(code: i32) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>();
        match text.filter(|text| text.starts_with("failed printing to ")) {
            Some(text) => {
                let _ = writeln!(io::stderr(), "error: {text}; free space or print elsewhere");
                std::process::exit(code);
            }
            None => usual(panic),
        }
    }));
}

/// A path of this process's executable. On Linux it still leads to that executable after a build has
/// replaced the file, as long as the process runs.
///
/// # Errors
/// The system does not tell it.
pub fn own_executable() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        Ok(format!("/proc/{}/exe", std::process::id()).into())
    } else {
        std::env::current_exe()
    }
}

pub use platform::{OnCores, address_space_left, channel, files, output, process, usable_cores};

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};

    use super::channel::{bind, connect};

    #[test]
    fn two_ends_exchange_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("channel");
        assert!(connect(&path).is_err());
        let listener = bind(&path).unwrap();
        let other = std::thread::spawn(move || {
            let mut stream = connect(&path).unwrap();
            writeln!(stream, "ready").unwrap();
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer).unwrap();
            answer
        });
        let mut link = BufReader::new(listener.accept().unwrap().0);
        let mut said = String::new();
        link.read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n");
        writeln!(link.get_mut(), "go").unwrap();
        assert_eq!(other.join().unwrap(), "go\n");
    }
}
