//! What each GPU row asks of the driver, as texts: `tests/golden/<group>.txt`.
//!
//! A section is a row at a size, with the choices that are handed over to it in place of a
//! calibration, and then its phases. Other sizes and choices are recorded where their headings are
//! added to a file; a row without a section gets one at its smallest size.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crossover::suite::{AnyGroup, Profile};

use crate::fold::folded;
use crate::stand_in::{StandIn, library, said};
use crate::suite;

const HEAD: &str = "\
What each GPU row asks of the driver, a line per call, from set-up to drop. d1, pinned1 and the like
are allocations, s1 is the stream that is timed, host is ordinary memory. Written by
CROSSOVER_GOLDEN=write cargo test -p crossover-recording-driver --test recorded golden
";

/// What opening a device and giving it back asks; the texts leave it out.
const BEFORE: &[&str] = &["create s1"];
const AFTER: &[&str] = &["destroy s1"];

/// A phase that has as many lines as one before it names that one instead.
const WORTH_NAMING: usize = 3;

/// A row at a size, and what it asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// Its heading: the row, and a number where the row was there before with other choices.
    pub(crate) name: String,
    /// Such as `gpu/cublas/64`.
    row: String,
    /// The candidate of each choice.
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
    let mut command = stand_in.logged("rows", "h200");
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
        let before = lines
            .iter()
            .rev()
            .nth(1)
            .map_or("the first line", String::as_str);
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
                recorded.push(Section {
                    name: match before {
                        0 => row.to_owned(),
                        before => format!("{row} ({})", before + 1),
                    },
                    row: row.to_owned(),
                    ..Section::default()
                });
            }
            ("after", _) if lines == AFTER => {}
            (phase, Some(section)) => match phase.strip_prefix("chosen ") {
                Some(chosen) => section.choose(chosen),
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
    fn choose(&mut self, chosen: &str) {
        let (choice, candidate) = chosen.split_once(" = ").expect("a choice");
        self.chosen.insert(choice.to_owned(), candidate.to_owned());
    }

    fn phase(&self, name: &str) -> &[String] {
        let phase = self.phases.iter().find(|phase| phase.name == name);
        phase.map_or(&[], |phase| &phase.lines)
    }
}

/// With each block of lines that repeats told once.
fn all_folded(mut sections: Vec<Section>) -> Vec<Section> {
    for phase in sections.iter_mut().flat_map(|section| &mut section.phases) {
        phase.lines = folded(&phase.lines);
    }
    sections
}

/// The text of a group.
pub(crate) fn text(group: &str, sections: &[Section]) -> String {
    let mut text = format!("{HEAD}\n# {group}\n");
    for (at, section) in sections.iter().enumerate() {
        let before = &sections[..at];
        let _ = writeln!(text, "\n## {}", section.name);
        for (choice, candidate) in &section.chosen {
            let _ = writeln!(text, "chosen {choice} = {candidate}");
        }
        if let Some(same) = before.iter().find(|other| other.phases == section.phases) {
            let _ = writeln!(text, "as {}", same.name);
            continue;
        }
        for phase in &section.phases {
            let has_it = |other: &&Section| other.phases.contains(phase);
            let same = before.iter().find(has_it);
            match same.filter(|_| phase.lines.len() >= WORTH_NAMING) {
                Some(same) => {
                    let _ = writeln!(text, "{}: as {}", phase.name, same.name);
                }
                None => {
                    let _ = writeln!(text, "{}:", phase.name);
                    for line in &phase.lines {
                        let _ = writeln!(text, "  {line}");
                    }
                }
            }
        }
    }
    text
}

/// The sections of a text, and the number of the line that each heading is in.
fn sections(text: &str) -> Vec<(usize, Section)> {
    let mut sections: Vec<(usize, Section)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix("## ") {
            let row = name.split(' ').next().unwrap_or(name).to_owned();
            let section = Section {
                name: name.to_owned(),
                row,
                ..Section::default()
            };
            sections.push((at + 1, section));
            continue;
        }
        let Some(((_, section), before)) = sections.split_last_mut() else {
            continue;
        };
        let named = |name: &str| before.iter().find(|(_, section)| section.name == name);
        if let Some(line) = line.strip_prefix("  ") {
            let phase = section.phases.last_mut().expect("a phase before its lines");
            phase.lines.push(line.to_owned());
        } else if let Some(chosen) = line.strip_prefix("chosen ") {
            section.choose(chosen);
        } else if let Some(same) = line.strip_prefix("as ") {
            section.phases = named(same).map_or_else(Vec::new, |(_, same)| same.phases.clone());
        } else if let Some((name, same)) = line.split_once(':') {
            let same = same.strip_prefix(" as ").and_then(named);
            section.phases.push(Phase {
                name: name.to_owned(),
                lines: same.map_or_else(Vec::new, |(_, same)| same.phase(name).to_vec()),
            });
        }
    }
    sections
}

/// The sections that a group should have: those of its file, less rows that are gone, and a section
/// of each other row.
fn wanted(group: &AnyGroup, known: &[(usize, Section)]) -> Vec<Section> {
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
        wanted.extend(
            known
                .iter()
                .map(|(_, section)| section)
                .filter(of_row)
                .cloned(),
        );
        if wanted.len() == before {
            let id = format!("{}/{row}", group.name());
            let sizes = planned.iter().filter(|p| p.id.starts_with(&id));
            let smallest = sizes.map(|p| p.size).min().expect("a row has a size");
            wanted.push(Section {
                row: format!("{row}{smallest}"),
                ..Section::default()
            });
        }
    }
    wanted
}

fn file(group: &str) -> PathBuf {
    // Where the sources are not, such as on a machine with a GPU, a variable says where the texts are.
    let folder = std::env::var("RECORDED_GOLDEN").map_or_else(
        |_| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"),
        PathBuf::from,
    );
    folder.join(format!("{group}.txt"))
}

/// The sections of a group's file.
pub(crate) fn known(group: &str) -> Vec<Section> {
    let golden = fs::read_to_string(file(group)).unwrap_or_default();
    sections(&golden)
        .into_iter()
        .map(|(_, section)| section)
        .collect()
}

/// Compares the text of a group with what its rows ask now, or writes it.
pub(crate) fn group(at: usize) {
    let group = &suite::groups()[at];
    let name = group.name();
    let golden = fs::read_to_string(file(name)).unwrap_or_default();
    let wanted = wanted(group, &sections(&golden));
    let mut now = recorded(&StandIn::new(), name, &wanted);
    if std::env::var("CROSSOVER_GOLDEN").as_deref() == Ok("write") {
        // What was calibrated is handed over, so that the text has no calibration in it.
        now = recorded(&StandIn::new(), name, &now);
        for section in &now {
            assert_eq!(section.failure, "", "{}", section.name);
        }
        fs::write(file(name), text(name, &all_folded(now))).expect("the folder is there");
        return;
    }
    compare(name, &golden, all_folded(now));
}

/// A copy of the recording driver in place of the real one: what is passed through is written down as
/// what is recorded.
pub(crate) fn passed_through() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let real = folder.path().join("real.so");
    fs::copy(library(), &real).expect("there is room");
    for group in [
        "cold_start",
        "graph_replay",
        "precision",
        "streams",
        "transfer",
    ] {
        let stand_in = StandIn::passing_to(real.to_str().expect("a path"));
        let now = recorded(&stand_in, group, &known(group));
        let golden = fs::read_to_string(file(group)).expect("its rows have a text");
        compare(group, &golden, all_folded(now));
    }
}

fn compare(name: &str, golden: &str, now: Vec<Section>) {
    let known = sections(golden);
    let mut differences: Vec<String> = Vec::new();
    for (at, now) in now.iter().enumerate() {
        let difference = match known.get(at) {
            Some((line, golden)) if golden.row == now.row => {
                let failure = Some(now.failure.clone()).filter(|failure| !failure.is_empty());
                let what: Vec<_> = difference(golden, now).into_iter().chain(failure).collect();
                let (name, what) = (&now.name, what.join("\n  "));
                (!what.is_empty()).then(|| format!("{name}, line {line}: {what}"))
            }
            _ => Some(format!("{}: it has no text here", now.name)),
        };
        differences.extend(difference);
    }
    if known.len() > now.len() {
        differences.push("there are texts of rows that are gone".to_owned());
    }
    assert!(
        differences.is_empty() && text(name, &now) == golden,
        "{} is not what the rows ask; if that is meant, write it anew with CROSSOVER_GOLDEN=write \
         and read the difference\n{}",
        file(name).display(),
        differences.join("\n")
    );
}

/// The first line that is not as it was, in words.
fn difference(golden: &Section, now: &Section) -> Option<String> {
    if golden.chosen != now.chosen {
        let other = now
            .chosen
            .iter()
            .find(|(choice, candidate)| golden.chosen.get(*choice) != Some(candidate));
        return Some(match other {
            Some((choice, candidate)) => format!("calibrated {choice} = {candidate}"),
            None => "a choice is no longer asked for".to_owned(),
        });
    }
    for name in golden
        .phases
        .iter()
        .chain(&now.phases)
        .map(|phase| &phase.name)
    {
        let (golden, now) = (golden.phase(name), now.phase(name));
        let count = golden.len().max(now.len());
        if let Some(at) = (0..count).find(|&at| golden.get(at) != now.get(at)) {
            let told = |line: Option<&String>| {
                line.map_or("nothing".to_owned(), |line| format!("`{}`", line.trim()))
            };
            let (golden, now) = (told(golden.get(at)), told(now.get(at)));
            let number = at + 1;
            return Some(format!(
                "line {number} of its {name} was\n    {golden}\n  and is\n    {now}"
            ));
        }
    }
    None
}
