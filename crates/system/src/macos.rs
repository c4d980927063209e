//! macOS, which cannot keep a thread on a core.

use std::fs::File;
use std::io;

pub(crate) use crate::unix::catch_signals;
pub use crate::unix::{channel, files, output, process};

/// The cores that this thread may use: not known.
pub fn usable_cores() -> Vec<usize> {
    Vec::new()
}

/// Would keep a thread on some cores.
pub struct OnCores(());

impl OnCores {
    /// `None`: the system does not let a program choose.
    pub fn new(_cores: &[usize]) -> Option<Self> {
        None
    }
}

/// Bytes that a limit of the address space leaves: macOS has no such limit.
pub fn address_space_left() -> Option<u64> {
    None
}

/// Would take a file out of the page cache, which macOS offers to no program.
///
/// # Errors
/// None.
pub fn forget_cached(_file: &File) -> io::Result<()> {
    Ok(())
}
