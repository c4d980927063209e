//! Two processes where there are no Unix sockets to drive them by.

use std::collections::BTreeMap;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use crate::command::ab::child;
use crate::suite::turns::Instructions;

/// What became of a side.
#[derive(Debug)]
pub(super) struct Ended {
    /// Always known here.
    pub(super) status: Option<ExitStatus>,
    /// Never here.
    pub(super) took_turns: bool,
    /// None is told here.
    pub(super) choices: BTreeMap<String, String>,
    /// Not known here.
    pub(super) seconds: BTreeMap<String, f64>,
}

/// Runs one after the other; `b_first` says who begins. Neither can be told how to run.
///
/// # Errors
/// An interrupt, or a side that cannot be started.
pub(super) fn take(
    mut a: Command,
    mut b: Command,
    b_first: bool,
    _told: [&Instructions; 2],
    _limit: Duration,
) -> anyhow::Result<[Ended; 2]> {
    let run = |command: &mut Command| -> anyhow::Result<Ended> {
        Ok(Ended {
            status: Some(child::run(command)?),
            took_turns: false,
            choices: BTreeMap::new(),
            seconds: BTreeMap::new(),
        })
    };
    if b_first {
        let b = run(&mut b)?;
        return Ok([run(&mut a)?, b]);
    }
    Ok([run(&mut a)?, run(&mut b)?])
}

/// None: nothing is shared.
pub(super) fn core(_pair: u32) -> Option<usize> {
    None
}
