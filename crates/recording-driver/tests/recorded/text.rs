//! The form of the recorded texts: a section is written in full, or as the lines in which it differs
//! from one before it.
//!
//! | line | says |
//! | --- | --- |
//! | `## gpu/tiled/64` | the section of a row at a size; its lines follow |
//! | `## gpu/tiled/300: as gpu/tiled/64` | its lines are those of another section but for the following |
//! | `4 = wait for s1` | in place of line 4 of the other section stands this one |
//! | `4 + wait for s1` | this line follows line 4 |
//! | `4-6 -` | these lines are gone |
//! | `chosen <choice> = <candidate>` | handed over in place of a calibration, here and further down |
//! | `(an iteration)` | the lines of the iteration |

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::fold::folded;
use crate::golden::Section;

const HEAD: &str = "\
What each GPU row asks of the driver, a line per call, from set-up to drop. d1, pinned1 and the like
are allocations, s1 is the stream that is timed, host is ordinary memory. Written by
CROSSOVER_GOLDEN=write cargo test -p crossover-recording-driver --test recorded golden
tests/recorded/text.rs describes the form.
";

/// The phase that is timed, and what stands for its lines in others.
const ITERATION: &str = "iteration";
const AN_ITERATION: &str = "(an iteration)";
const AS: &str = ": as ";
const CHOSEN: &str = "chosen ";

/// The text of a group.
pub(crate) fn text(group: &str, sections: &[Section]) -> String {
    let mut text = format!("{HEAD}\n# {group}\n");
    let lines: Vec<Vec<String>> = sections.iter().map(lines).collect();
    let mut handed_over = BTreeMap::new();
    for (at, section) in sections.iter().enumerate() {
        let (base, told) = told(&lines[at], &lines[..at]);
        let base = base.map(|base| format!("{AS}{}", sections[base].name));
        let _ = writeln!(text, "\n## {}{}", section.name, base.unwrap_or_default());
        for (choice, candidate) in &section.chosen {
            if handed_over.insert(choice, candidate) != Some(candidate) {
                let _ = writeln!(text, "{CHOSEN}{choice} = {candidate}");
            }
        }
        for line in told {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// As few lines as may be, and the section that they are edits of.
fn told(lines: &[String], before: &[Vec<String>]) -> (Option<usize>, Vec<String>) {
    let in_full = (None, lines.to_vec());
    let before = before.iter().enumerate();
    let as_edits = before.map(|(base, before)| (Some(base), edits(before, lines)));
    let all = [in_full].into_iter().chain(as_edits);
    all.min_by_key(|(_, lines)| lines.len())
        .expect("at least in full")
}

/// What makes the lines `new` of the lines `old`.
fn edits(old: &[String], new: &[String]) -> Vec<String> {
    // The most lines that the ends of both, from these lines on, have in common.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for (at, line) in old.iter().enumerate().rev() {
        for (to, other) in new.iter().enumerate().rev() {
            common[at][to] = match line == other {
                true => common[at + 1][to + 1] + 1,
                false => common[at + 1][to].max(common[at][to + 1]),
            };
        }
    }
    let mut edits = Vec::new();
    let (mut at, mut to) = (0, 0);
    while at < old.len() || to < new.len() {
        let (first, first_new) = (at, to);
        while at < old.len() || to < new.len() {
            if at < old.len() && to < new.len() && old[at] == new[to] {
                break;
            }
            match to == new.len() || at < old.len() && common[at + 1][to] >= common[at][to + 1] {
                true => at += 1,
                false => to += 1,
            }
        }
        for (nth, line) in new[first_new..to].iter().enumerate() {
            edits.push(match first + nth < at {
                true => format!("{} = {line}", first + nth + 1),
                false => format!("{at} + {line}"),
            });
        }
        match (first + (to - first_new) + 1, at) {
            (gone, last) if gone < last => edits.push(format!("{gone}-{last} -")),
            (gone, last) if gone == last => edits.push(format!("{gone} -")),
            _ => {}
        }
        (at, to) = (at + 1, to + 1);
    }
    edits
}

/// The lines of a section: each phase's name, then what it asks, folded.
fn lines(section: &Section) -> Vec<String> {
    let iteration = section.phases.iter().find(|phase| phase.name == ITERATION);
    let iteration = iteration.map_or(&[][..], |phase| &phase.lines);
    let mut lines = Vec::new();
    for phase in &section.phases {
        lines.push(format!("{}:", phase.name));
        let asked = match phase.name == ITERATION {
            true => folded(&phase.lines),
            false => folded(&with_iterations(&phase.lines, iteration)),
        };
        lines.extend(asked.into_iter().map(|line| format!("  {line}")));
    }
    lines
}

/// Lines with a name in place of each iteration among them.
fn with_iterations(lines: &[String], iteration: &[String]) -> Vec<String> {
    let mut told = Vec::new();
    let mut rest = lines;
    while let Some((first, after)) = rest.split_first() {
        match rest.strip_prefix(iteration).filter(|_| iteration.len() > 1) {
            Some(after) => {
                told.push(AN_ITERATION.to_owned());
                rest = after;
            }
            None => {
                told.push(first.clone());
                rest = after;
            }
        }
    }
    told
}

/// The sections of a text: their rows and choices.
pub(crate) fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut chosen = BTreeMap::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let name = heading.split(AS).next().unwrap_or(heading);
            sections.push(Section::new(name.to_owned(), chosen.clone()));
        }
        let choice = line.strip_prefix(CHOSEN);
        if let Some((choice, candidate)) = choice.and_then(|line| line.split_once(" = ")) {
            chosen.insert(choice.to_owned(), candidate.to_owned());
            let section = sections.last_mut().expect("a choice is in a section");
            section.chosen.clone_from(&chosen);
        }
    }
    sections
}
