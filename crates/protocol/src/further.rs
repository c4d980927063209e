//! The GPUs beside the first, and their links with it. Peer access that the driver reports is tried in a
//! child process, because a copy over a link that does not work may never end.

use std::env;
use std::error::Error;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use crate::child::{Child, ChildError, Parent};
use crate::settings::{FurtherDevices, Settings};
use crossover_machine::absence::Absence;
use crossover_machine::peers::{self, TriedLink};
use crossover_results::model::environment::{FurtherGpu, GpuLink};
use crossover_system::own_executable;
use crossover_timing::probe;

/// Tells a child of its task.
const VARIABLE: &str = "CROSSOVER_PEERS";
/// Set in a process that a run has started, which need not try the links again.
const OF_A_RUN: &str = "CROSSOVER_CONFIRMS";
/// A process that has not asked for its task after this long never will.
const START: Duration = Duration::from_secs(30);
/// Two megabytes are moved in a moment.
const LIMIT: Duration = Duration::from_secs(30);

/// The GPUs that the settings name beside the first one.
///
/// # Errors
/// The absence of one of them, or that a link could not be tried.
pub fn further_gpus(settings: &Settings) -> Result<Vec<FurtherGpu>, Absence> {
    // An executable that does not begin with `answer`, such as a test's, would start itself again and again.
    let is_child = env::var_os(VARIABLE).is_some();
    let Some(first) = settings.device.filter(|_| !is_child) else {
        return Ok(Vec::new());
    };
    let mut devices = vec![first];
    match &settings.further {
        FurtherDevices::Listed(others) => devices.extend(others),
        FurtherDevices::All => {
            probe(first)?;
            devices.extend((0..peers::count()?).filter(|other| *other != first));
        }
    }
    let mut further: Vec<FurtherGpu> = Vec::new();
    let mut reported = Vec::new();
    for (at, &ordinal) in devices.iter().enumerate().skip(1) {
        further.push(FurtherGpu {
            ordinal,
            name: probe(ordinal)?.name,
            link: peers::reported(first, ordinal)?,
            broken_with: Vec::new(),
        });
        for &before in &devices[..at] {
            if peers::reported(before, ordinal)?.has_access() {
                reported.push((before, ordinal));
            }
        }
    }
    let is_tried = env::var_os(OF_A_RUN).is_none();
    let broken = if is_tried {
        broken(&reported)?
    } else {
        Vec::new()
    };
    for gpu in &mut further {
        for (before, _) in broken.iter().filter(|(_, of)| *of == gpu.ordinal) {
            if *before == first {
                gpu.link = GpuLink::Broken;
            } else {
                gpu.broken_with.push(*before);
            }
        }
    }
    Ok(further)
}

/// Two devices, the ends of a link.
type DevicePair = (usize, usize);

/// The links over which child processes move no data within the time limit.
///
/// # Errors
/// A process was not started, or could not open the devices.
fn broken(mut links: &[DevicePair]) -> Result<Vec<DevicePair>, Absence> {
    let mut broken = Vec::new();
    while !links.is_empty() {
        let mut working = 0;
        try_links(links, &mut working).map_err(|cause| Absence::Untried {
            first: links[working].0,
            other: links[working].1,
            cause: match cause.source() {
                Some(source) => format!("{cause}: {source}"),
                None => cause.to_string(),
            },
        })?;
        // The devices of a link that does not work may be lost in that process.
        broken.extend(links.get(working));
        links = links.get(working + 1..).unwrap_or_default();
    }
    Ok(broken)
}

/// Counts the links that work before the first that does not.
fn try_links(links: &[DevicePair], working: &mut usize) -> Result<(), Box<dyn Error>> {
    let ended = "the process that tries it ended early";
    let mut command = Command::new(own_executable()?);
    let mut child = Child::start_asked(command.stdout(Stdio::null()), VARIABLE)?;
    child.receive::<()>(START)?.ok_or(ended)?;
    child.reply(&links)?;
    while *working < links.len() {
        child.receive::<Result<(), String>>(START)?.ok_or(ended)??;
        match child.receive(LIMIT) {
            Ok(Some(true)) => *working += 1,
            // The copy arrives wrong, ends the process or never ends.
            Ok(_) | Err(ChildError::Silent(_)) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// In a process that is to try links, does so and returns the exit code; `None` in any other. Called
/// first in `main`.
pub fn answer() -> Option<ExitCode> {
    let channel = env::var_os(VARIABLE)?;
    let answered = || -> io::Result<()> {
        let mut parent = Parent::connect(Path::new(&channel))?;
        let links: Vec<DevicePair> = parent.ask(&())?;
        // Contexts live on for the next link.
        let mut tried = Vec::new();
        for (first, other) in links {
            let open = || {
                probe(first)?;
                probe(other)?;
                Ok::<_, Absence>(TriedLink::open(first, other)?)
            };
            let link = open().map_err(|absence| absence.to_string());
            parent.send(&link.as_ref().map(|_| ()))?;
            let moves = link.is_ok_and(|link| {
                let moves = link.moves_data().unwrap_or(false);
                tried.push(link);
                moves
            });
            parent.send(&moves)?;
        }
        Ok(())
    };
    Some(match answered() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}
