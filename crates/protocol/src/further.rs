//! The GPUs beside the first, and their links with it. Peer access that the driver reports is tried in a
//! child process, because a copy over a link that does not work may never end.

use std::env;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use crate::child::{Child, Parent};
use crate::settings::{FurtherDevices, Settings};
use crossover_machine::absence::Absence;
use crossover_machine::peers;
use crossover_results::model::environment::{FurtherGpu, GpuLink};
use crossover_system::own_executable;
use crossover_timing::probe;

/// Tells a child of its task.
const VARIABLE: &str = "CROSSOVER_PEERS";
/// Set in a process that a run has started, which need not try the links again.
const OF_A_RUN: &str = "CROSSOVER_CONFIRMS";
/// A process that has not asked for its task after this long never will.
const START: Duration = Duration::from_secs(30);
/// Two contexts are created and four megabytes moved in a second or two.
const LIMIT: Duration = Duration::from_secs(30);

/// The GPUs that the settings name beside the first one.
///
/// # Errors
/// The absence of one of them.
pub fn further_gpus(settings: &Settings) -> Result<Vec<FurtherGpu>, Absence> {
    // An executable that does not begin with `answer`, such as a test's, would start itself again and again.
    let is_child = env::var_os(VARIABLE).is_some();
    let Some(first) = settings.device.filter(|_| !is_child) else {
        return Ok(Vec::new());
    };
    let others = match &settings.further {
        FurtherDevices::Listed(others) => others.clone(),
        FurtherDevices::All => {
            probe(first)?;
            (0..peers::count()?)
                .filter(|other| *other != first)
                .collect()
        }
    };
    let is_tried = env::var_os(OF_A_RUN).is_none();
    let further = |ordinal| {
        let name = probe(ordinal)?.name;
        let mut link = peers::reported(first, ordinal)?;
        if is_tried && link.has_access() && !is_working(first, ordinal) {
            link = GpuLink::Broken;
        }
        Ok(FurtherGpu {
            ordinal,
            name,
            link,
        })
    };
    others.into_iter().map(further).collect()
}

/// Whether a child process moves data between two devices within the time limit.
fn is_working(first: usize, other: usize) -> bool {
    let tried = || -> Result<bool, Box<dyn std::error::Error>> {
        let mut command = Command::new(own_executable()?);
        let mut child = Child::start_asked(command.stdout(Stdio::null()), VARIABLE)?;
        if child.receive::<()>(START)?.is_none() {
            return Ok(false);
        }
        child.reply(&(first, other))?;
        Ok(child.receive(LIMIT)? == Some(true))
    };
    tried().unwrap_or(false)
}

/// In a process that is to try a link, does so and returns the exit code; `None` in any other. Called
/// first in `main`.
pub fn answer() -> Option<ExitCode> {
    let channel = env::var_os(VARIABLE)?;
    let answered = || -> io::Result<()> {
        let mut parent = Parent::connect(Path::new(&channel))?;
        let (first, other) = parent.ask(&())?;
        let is_open = || {
            probe(first)?;
            probe(other)?;
            Ok::<_, Absence>(peers::moves_data(first, other)?)
        };
        parent.send(&is_open().unwrap_or(false))
    };
    Some(match answered() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}
