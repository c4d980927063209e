//! What each GPU row asks of the driver, as a text: a part of `tests/golden/<group>.txt`.
//!
//! A section is a row at a size, with the choices that are handed over to it in place of a
//! calibration, and then its phases. Other sizes and choices are recorded where their headings are
//! added to a file; a row without a section gets one at its smallest size.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crossover::model::Devices::{Divided, Gathered};
use crossover::suite::{Planned, Profile};

use crate::stand_in::{StandIn, expect};
use crate::text::{asked, copied, kernels, sections, text};
use crate::{part, suite};

/// A row at a size, and what it asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// Its heading: the row, and a number where the row was there before with other choices.
    pub(crate) name: String,
    /// Such as `gpu/cublas/64`.
    pub(crate) row: String,
    /// The candidate of each choice. One that was read has those of the sections before it too.
    pub(crate) chosen: BTreeMap<String, String>,
    /// Their names and calls.
    pub(crate) phases: Vec<(String, Vec<String>)>,
}

impl Section {
    pub(crate) fn new(name: String, chosen: BTreeMap<String, String>) -> Self {
        Self {
            row: name.split(' ').next().unwrap_or(&name).to_owned(),
            name,
            chosen,
            phases: Vec::new(),
        }
    }
}

/// A process for the rows of a group's sections.
pub(crate) fn of_rows(mut command: Command, group: &str, sections: &[Section]) -> Command {
    // One thread copies through pinned buffers, wherever this runs.
    command.env("RAYON_NUM_THREADS", "2").arg(group);
    for section in sections {
        command.arg(&section.row);
        let chosen = section.chosen.iter();
        command.args(chosen.map(|(choice, candidate)| format!("{choice} = {candidate}")));
    }
    command
}

fn recorded(group: &str, sections: &[Section]) -> Vec<Section> {
    let stand_in = StandIn::new();
    let mut command = of_rows(stand_in.logged("rows", "h200,h200"), group, sections);
    expect(&mut command, 0);
    let mut recorded: Vec<Section> = Vec::new();
    for (mark, lines) in stand_in.phases() {
        let Some((row, phase)) = mark.split_once(": ") else {
            continue;
        };
        if phase == "before" {
            let name = match recorded.iter().filter(|other| other.row == row).count() {
                0 => row.to_owned(),
                before => format!("{row} ({})", before + 1),
            };
            recorded.push(Section::new(name, BTreeMap::new()));
        }
        let section = recorded.last_mut().expect("a row begins with this phase");
        let chosen = phase.strip_prefix("chosen ");
        match chosen.and_then(|chosen| chosen.split_once(" = ")) {
            Some((choice, candidate)) => {
                (section.chosen).insert(choice.to_owned(), candidate.to_owned());
            }
            None => section.phases.push((phase.to_owned(), lines)),
        }
    }
    recorded
}

/// The sections that a group should have: those of its file, less rows that are gone, and a section
/// of each other row.
fn wanted(functions: Vec<String>, planned: &[Planned], known: &[Section]) -> Vec<Section> {
    let mut wanted = Vec::new();
    for function in functions
        .iter()
        .filter(|function| function.starts_with("gpu/"))
    {
        let row = format!("{function}/");
        let is_size = |size: &str| size.parse::<u64>().is_ok();
        let of_row = |section: &&Section| section.row.strip_prefix(&row).is_some_and(is_size);
        let before = wanted.len();
        wanted.extend(known.iter().filter(of_row).cloned());
        if wanted.len() == before {
            let sizes = planned.iter().filter(|p| p.id.contains(&format!("/{row}")));
            // At size 1 a wrong index cannot show.
            let smallest = sizes.map(|p| p.size).min_by_key(|&size| (size == 1, size));
            let smallest = smallest.expect("a row has a size");
            wanted.push(Section::new(format!("{row}{smallest}"), BTreeMap::new()));
        }
    }
    wanted
}

pub(crate) const PART: &str = "recorded calls";

/// Compares the text of a group with what its rows ask now, or writes it. Every line goes to a file, which
/// a failed test names beside that of the last test that passed.
pub(crate) fn group(at: usize) {
    let group = &suite::groups()[at];
    let (name, planned) = (group.name(), group.planned(Profile::Full));
    let known = sections(&part::read(name, PART));
    let mut now = recorded(name, &wanted(group.functions(), &planned, &known));
    let wrong: Vec<String> =
        (now.iter().filter_map(|row| miscounted(name, &planned, row))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if part::writes() {
        // What was calibrated is handed over, so that the text has no calibration in it.
        now = recorded(name, &now);
    }
    let now_text = text(&now);
    let is_same = part::read(name, PART).trim_end() == now_text.trim_end();
    let phases = (now.iter()).flat_map(|row| row.phases.iter().map(|phase| (&row.name, phase)));
    let lines =
        phases.map(|(row, (name, lines))| format!("{row}, {name}:\n{}\n", lines.join("\n")));
    let file = format!("{name}{}.txt", if is_same { "" } else { ".now" });
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    fs::write(&file, lines.collect::<String>()).expect("cargo has made the folder");
    part::hold(
        name,
        PART,
        &now_text,
        &format!("; every line is in {}", file.display()),
    );
}

/// How what a row declares differs from what an iteration asks: bytes over the link, and kernels. Kernels
/// on the host's memory copy nothing, a choice may cut the work into more kernels, and each of several devices
/// launches as many.
fn miscounted(group: &str, planned: &[Planned], section: &Section) -> Option<String> {
    let mut phases = section.phases.iter();
    if let Some((failed, _)) = phases.find(|(name, _)| name.starts_with("fails with")) {
        return Some(format!("{}: {failed}", section.name));
    }
    let id = format!("{group}/{}", section.row);
    let planned = planned.iter().find(|planned| planned.id == id)?;
    let (cost, on_both) = (planned.cost, [Some(Divided), Some(Gathered)]);
    let devices = 1 + u32::from(on_both.contains(&planned.role.devices));
    let calls = asked(&section.phases);
    let (copied, made) = (copied(&calls), kernels(&calls) / devices);
    let is_copied = cost
        .link_bytes
        .is_none_or(|bytes| copied == [bytes.to_device, bytes.to_host]);
    let is_made = |n| n == made || n < made && !section.chosen.is_empty();
    let is_right = (is_copied || copied == [0.0; 2]) && cost.launches.is_none_or(is_made);
    (!is_right).then(|| {
        format!("{id} copies {copied:?} B, launches {made} kernels, and declares {cost:?}")
    })
}
