//! What each GPU row asks of the driver, as a text: a part of `tests/golden/<group>.txt`.
//!
//! A section is a row at a size, with the choices that are handed over to it in place of a
//! calibration, and then its phases. Other sizes and choices are recorded where their headings are
//! added to a file; a row without a section gets one at its smallest size.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crossover::suite::{AnyGroup, Profile};

use crate::stand_in::{StandIn, said};
use crate::text::{copied, sections, text};
use crate::{part, suite};

/// What opening a device and giving it back asks; the texts leave it out.
const BEFORE: &[&str] = &[
    "create s1",
    "create s2",
    "create s3",
    "create s4",
    "create s5",
    "create s6",
];
const AFTER: &[&str] = &[
    "destroy s1",
    "destroy s2",
    "destroy s3",
    "destroy s4",
    "destroy s5",
    "destroy s6",
];

/// A row at a size, and what it asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// Its heading: the row, and a number where the row was there before with other choices.
    pub(crate) name: String,
    /// Such as `gpu/cublas/64`.
    pub(crate) row: String,
    /// The candidate of each choice. One that was read has those of the sections before it too.
    pub(crate) chosen: BTreeMap<String, String>,
    pub(crate) phases: Vec<Phase>,
    /// `fails with ...`, where it does.
    pub(crate) failure: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Phase {
    pub(crate) name: String,
    pub(crate) lines: Vec<String>,
}

/// Runs the rows of a group's sections in a process of their own.
pub(crate) fn recorded(stand_in: &StandIn, group: &str, sections: &[Section]) -> Vec<Section> {
    let mut command = stand_in.logged("rows", "h200,h200");
    // One thread copies through pinned buffers, wherever this runs.
    command.env("RAYON_NUM_THREADS", "2");
    for section in sections {
        command.arg(format!("{group}/{}", section.row));
        let chosen = section.chosen.iter();
        command.args(chosen.map(|(choice, candidate)| format!("{choice} = {candidate}")));
    }
    let output = command.output().expect("this executable runs");
    if !output.status.success() {
        // A call that would corrupt memory has ended it.
        let (mark, lines) = stand_in.phases().pop().expect("it has one");
        let before = lines.iter().rev().nth(1);
        let before = before.map_or("the first line", String::as_str);
        panic!("{mark}, after `{before}`: {}", said(&output));
    }
    let mut recorded: Vec<Section> = Vec::new();
    for (mark, lines) in stand_in.phases() {
        let Some(mark) = mark.strip_prefix(&format!("{group}/")) else {
            continue;
        };
        let (row, phase) = mark.split_once(": ").expect("a mark of a row");
        match (phase, recorded.last_mut()) {
            ("before", _) => {
                assert_eq!(lines, BEFORE);
                let before = recorded.iter().filter(|other| other.row == row).count();
                let name = match before {
                    0 => row.to_owned(),
                    before => format!("{row} ({})", before + 1),
                };
                recorded.push(Section::new(name, BTreeMap::new()));
            }
            ("after", _) if lines == AFTER => {}
            (phase, Some(section)) => match phase.strip_prefix("chosen ") {
                Some(chosen) => {
                    let (choice, candidate) = chosen.split_once(" = ").expect("a choice");
                    let chosen = (choice.to_owned(), candidate.to_owned());
                    section.chosen.extend([chosen]);
                }
                None if phase.starts_with("fails with ") => section.failure = phase.to_owned(),
                None => section.phases.push(Phase {
                    name: phase.to_owned(),
                    lines,
                }),
            },
            (_, None) => panic!("a phase before the first row"),
        }
    }
    recorded
}

impl Section {
    pub(crate) fn new(name: String, chosen: BTreeMap<String, String>) -> Self {
        Self {
            row: name.split(' ').next().unwrap_or(&name).to_owned(),
            name,
            chosen,
            ..Self::default()
        }
    }
}

/// The sections that a group should have: those of its file, less rows that are gone, and a section
/// of each other row.
fn wanted(group: &AnyGroup, known: &[Section]) -> Vec<Section> {
    let planned = group.planned(Profile::Full);
    let mut wanted = Vec::new();
    for function in group.functions() {
        if !function.starts_with("gpu/") {
            continue;
        }
        let row = format!("{function}/");
        let is_size = |size: &str| size.parse::<u64>().is_ok();
        let of_row = |section: &&Section| section.row.strip_prefix(&row).is_some_and(is_size);
        let before = wanted.len();
        wanted.extend(known.iter().filter(of_row).cloned());
        if wanted.len() == before {
            let id = format!("{}/{row}", group.name());
            let sizes = planned.iter().filter(|p| p.id.starts_with(&id));
            // At size 1 a wrong index cannot show.
            let smallest = sizes.map(|p| p.size).min_by_key(|&size| (size == 1, size));
            let smallest = smallest.expect("a row has a size");
            wanted.push(Section::new(format!("{row}{smallest}"), BTreeMap::new()));
        }
    }
    wanted
}

const PART: &str = "recorded calls";

/// Compares the text of a group with what its rows ask now, or writes it.
pub(crate) fn group(at: usize) {
    let group = &suite::groups()[at];
    let name = group.name();
    let known = sections(&part::read(name, PART));
    let mut now = recorded(&StandIn::new(), name, &wanted(group, &known));
    let wrong: Vec<String> = now
        .iter()
        .filter_map(|row| miscounted(group, row))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if part::writes() {
        // What was calibrated is handed over, so that the text has no calibration in it.
        now = recorded(&StandIn::new(), name, &now);
        for section in &now {
            assert_eq!(section.failure, "", "{}", section.name);
        }
        part::write(name, PART, &text(&now));
        return;
    }
    compare(name, &now);
}

/// How the bytes over the link that a row declares differ from those that an iteration copies. Kernels
/// on the host's memory copy nothing.
fn miscounted(group: &AnyGroup, section: &Section) -> Option<String> {
    let id = format!("{}/{}", group.name(), section.row);
    let mut planned = group.planned(Profile::Full).into_iter();
    let declared = planned.find(|planned| planned.id == id)?.cost.link_bytes?;
    let copied = copied(&section.phases);
    let is_right =
        copied == [0, 0] || copied.map(|n| n as f64) == [declared.to_device, declared.to_host];
    (!is_right).then(|| format!("{id} declares {declared:?} over the link and copies {copied:?} B"))
}

fn compare(name: &str, now: &[Section]) {
    let golden = part::read(name, PART);
    let failed = now.iter().filter(|section| !section.failure.is_empty());
    let failed = failed.map(|section| format!("{}: {}", section.name, section.failure));
    let differences: Vec<String> = failed.chain(difference(&golden, &text(now))).collect();
    let lines = now.iter().flat_map(|section| {
        let phases = section.phases.iter();
        phases.map(|Phase { name, lines }| {
            format!("{}, {name}:\n{}\n", section.name, lines.join("\n"))
        })
    });
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let is_same = differences.is_empty();
    let every_line = folder.join(format!("{name}{}.txt", if is_same { "" } else { ".now" }));
    fs::write(&every_line, lines.collect::<String>()).expect("cargo has made the folder");
    assert!(
        is_same,
        "{} is not what the rows ask; if that is meant, write it anew with CROSSOVER_GOLDEN=write \
         and read the difference. Every line is in {}, beside those of the last test that passed.\n{}",
        part::path(name).display(),
        every_line.display(),
        differences.join("\n")
    );
}

/// The first section that is not as it was, with its first line that differs. Its heading differs
/// alone if the calls of a phase have another order, or other numbers than those that are shown.
fn difference(golden: &str, now: &str) -> Option<String> {
    let (mut golden, mut now) = (golden.split("\n## "), now.split("\n## "));
    loop {
        let (was, is) = (golden.next(), now.next());
        if was != is {
            let [was, is] =
                [was, is].map(|section| section.unwrap_or("nothing").lines().collect::<Vec<_>>());
            let mut below = 1..was.len().max(is.len());
            let at = below.find(|&at| was.get(at) != is.get(at)).unwrap_or(0);
            let [was_line, is_line] =
                [&was, &is].map(|lines| lines.get(at).unwrap_or(&"nothing").trim());
            let section = is[0];
            return Some(format!(
                "{section}: a line was\n    {was_line}\n  and is\n    {is_line}"
            ));
        }
        was?;
    }
}
