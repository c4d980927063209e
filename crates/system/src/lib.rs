//! The operating system under a run, chosen once for Linux, macOS and Windows: the cores of a thread, the
//! signals that end a run, process groups, standard output, the memory that a limit leaves, and a channel
//! between two processes. What a system cannot do is absent: `None`, or an empty list.

pub mod channel;
pub mod interrupt;

#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(target_os = "macos", path = "macos.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod platform;
#[cfg(unix)]
mod unix;

pub use platform::{OnCores, address_space_left, files, output, process, usable_cores};
