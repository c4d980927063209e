//! A process that becomes another program.

use std::io;
use std::process::{Command, ExitCode};

/// Replaces this process by `command`. Where a system has no such call, it runs to its end, and this
/// gives its exit code.
///
/// # Errors
/// Those of starting it.
#[cfg(unix)]
pub(super) fn replaced_by(command: &mut Command) -> io::Result<ExitCode> {
    Err(std::os::unix::process::CommandExt::exec(command))
}

#[cfg(not(unix))]
pub(super) fn replaced_by(command: &mut Command) -> io::Result<ExitCode> {
    let code = command.status()?.code().unwrap_or(1);
    Ok(u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from))
}
