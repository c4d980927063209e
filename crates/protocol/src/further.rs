//! The GPUs beside the first, and their links with it. Peer access that the driver reports is tried in a
//! child process, because a copy over a link that does not work may never end.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::child::{self, Request, not_interrupted};
use crate::settings::{FurtherDevices, Settings};
use crossover_machine::absence::Absence;
use crossover_machine::peers::{self, TriedLink};
use crossover_results::model::environment::{FurtherGpu, GpuLink};
use crossover_timing::probe;
use crossover_words::text::with_causes;

/// Set in a process that a run has started, which need not try the links again.
const OF_A_RUN: &str = "CROSSOVER_CONFIRMS";
/// The GPUs that the settings name beside the first one.
///
/// # Errors
/// The absence of one of them, or that a link could not be tried.
pub fn further_gpus(settings: &Settings) -> Result<Vec<FurtherGpu>, Absence> {
    let Some(first) = settings.device else {
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
    if env::var_os(OF_A_RUN).is_some() {
        reported.clear();
    }
    let broken = broken(&reported)?;
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
        let (mut working, mut is_tried) = (0, false);
        let asked = child::ask(&Links(links.to_vec()), &[], |has_arrived| {
            working += usize::from(has_arrived);
            is_tried = !has_arrived;
        });
        // A copy that was begun arrives wrong, ends the process or never ends.
        let is_known = is_tried && not_interrupted().is_ok();
        // Once all links have moved data, how the process ends does not matter.
        if let Err(cause) = asked
            && let Some(&(first, other)) = links.get(working)
            && !is_known
        {
            return Err(Absence::Untried {
                first,
                other,
                cause: with_causes(&*cause),
            });
        }
        // The devices of a link that does not work may be lost in that process.
        broken.extend(links.get(working));
        links = links.get(working + 1..).unwrap_or_default();
    }
    Ok(broken)
}

/// Has a child try links. For each it replies `false` once the devices are open, and `true` once data have arrived.
#[derive(Serialize, Deserialize)]
struct Links(Vec<DevicePair>);

impl Request for Links {
    const VARIABLE: &'static str = "CROSSOVER_PEERS";
    /// Two megabytes are moved in a moment.
    const SILENCE: Duration = Duration::from_secs(30);
    type Reply = bool;
}

/// In a process that is to try links, does so and returns the exit code; `None` in any other. Called
/// first in `main`.
pub fn answer() -> Option<ExitCode> {
    child::answer(|Links(links), say| {
        // Contexts live on for the next link.
        let mut tried = Vec::new();
        for (first, other) in links {
            probe(first)?;
            probe(other)?;
            let link = TriedLink::open(first, other).map_err(Absence::from)?;
            say(false)?;
            if !link.moves_data()? {
                return Err("other data arrive".into());
            }
            say(true)?;
            tried.push(link);
        }
        Ok(())
    })
}
