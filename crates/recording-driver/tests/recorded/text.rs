//! The form of the recorded texts: what a row asks at one size, and a digest of every line.
//!
//! | line | says |
//! | --- | --- |
//! | `## gpu/tiled/64 #1f2e3d4c` | a row at a size; the digest of all its lines, in order |
//! | `## gpu/tiled-gated/64 as gpu/tiled/64` | a row with the same lines as another one |
//! | `chosen <choice> = <candidate>` | handed over in place of a calibration, here and further down |
//! | `set-up: compile, 3 allocate d 98304 B` | the calls of a phase, counted, with the bytes of all of them |
//! | `iteration:` | the calls of an iteration, in order, one per line |
//! | `nodes:` | the nodes of the graph that an iteration launches, in order; one that does not follow the node before it has its number |
//! | `nodes: as iteration of gpu/eager/64` | the lines are those of another row |
//! | `(iteration)` | the calls of an iteration, in another phase |
//!
//! A row that was there before, at another size or with other choices, has only counts. Calls that
//! repeat are folded ([`crate::fold`]). d1, pinned1 and the like are allocations, s1 is the timed
//! stream; `on s1` and `shared 0` are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::fold::folded;
use crate::golden::{Phase, Section};

/// The phase that is timed.
const ITERATION: &str = "iteration";
const NODES: &str = "nodes";
const CHOSEN: &str = "chosen ";
const DIGEST: &str = " #";
const AS: &str = " as ";

/// The text of a group.
pub(crate) fn text(sections: &[Section]) -> String {
    let mut text = String::new();
    let (mut rows, mut handed_over) = (BTreeSet::new(), BTreeMap::new());
    let (mut digests, mut known) = (BTreeMap::new(), BTreeMap::new());
    for section in sections {
        let (name, digest) = (&section.name, digest(section));
        let same = digests.get(&digest).map(|other| format!("{AS}{other}"));
        let of = same
            .clone()
            .unwrap_or_else(|| format!("{DIGEST}{digest:08x}"));
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}## {name}{of}");
        for (choice, candidate) in &section.chosen {
            if handed_over.insert(choice, candidate) != Some(candidate) {
                let _ = writeln!(text, "{CHOSEN}{choice} = {candidate}");
            }
        }
        if same.is_some() {
            continue;
        }
        digests.insert(digest, name);
        let function = section.row.rsplit_once('/').map(|(function, _)| function);
        let is_first = rows.insert(function);
        for phase in with_nodes(&section.phases) {
            let Phase { name: of, lines } = &phase;
            if lines.is_empty() {
                continue;
            }
            let is_in_order = of == ITERATION || of == NODES;
            if !is_in_order && is_first {
                let _ = writeln!(text, "{of}: {}", counted(lines));
            } else if is_in_order && (!is_first || lines.len() == 1) {
                let all = if is_first {
                    short(&lines[0])
                } else {
                    counted(lines)
                };
                let _ = writeln!(text, "{of}: {all}");
            } else if let Some(other) = known.get(lines).filter(|_| is_in_order) {
                let _ = writeln!(text, "{of}: as {other}");
            } else if is_in_order {
                let _ = writeln!(text, "{of}:");
                for line in folded(lines) {
                    let _ = writeln!(text, "  {}", short(&line));
                }
                known.insert(lines.clone(), format!("{of} of {name}"));
            }
        }
    }
    text
}

/// A line without what most lines have.
fn short(line: &str) -> String {
    let line = format!("{line} ").replace(" on s1 ", " ");
    line.trim_end().replace(" shared 0", "")
}

/// The phases, with the nodes of graphs as a phase behind that in which they are captured, and the
/// iteration's calls as one in other phases.
fn with_nodes(phases: &[Phase]) -> Vec<Phase> {
    let iteration = phases.iter().find(|phase| phase.name == ITERATION);
    let iteration = iteration.map_or(&[][..], |phase| &phase.lines);
    let is_graph = iteration
        .iter()
        .any(|line| line.starts_with("launch graph"));
    let mut all = Vec::new();
    for Phase { name, lines } in phases {
        let nodes = lines
            .iter()
            .filter(|_| is_graph)
            .filter_map(|line| node(line));
        let nodes: Vec<String> = nodes.collect();
        let mut phase = Phase {
            name: name.clone(),
            lines: lines.clone(),
        };
        if name != ITERATION && iteration.len() > 1 {
            phase.lines = with_iterations(lines, iteration);
        }
        all.push(phase);
        if !nodes.is_empty() {
            all.push(Phase {
                name: NODES.to_owned(),
                lines: nodes,
            });
        }
    }
    all
}

/// The work of the line of a node, with its number unless it follows the node before it.
fn node(line: &str) -> Option<String> {
    let (place, work) = line.strip_prefix("node ")?.split_once(": ")?;
    let (number, after) = place.split_once(" after ").unwrap_or((place, "0"));
    let follows = number.parse() == after.parse().map(|before: usize| before + 1);
    Some(match follows {
        true => work.to_owned(),
        false => line.to_owned(),
    })
}

/// Lines with a name in place of each iteration among them.
fn with_iterations(lines: &[String], iteration: &[String]) -> Vec<String> {
    let mut told = Vec::new();
    let mut rest = lines;
    while let Some((first, after)) = rest.split_first() {
        let without = rest.strip_prefix(iteration);
        told.push(without.map_or(first.clone(), |_| "(iteration)".to_owned()));
        rest = without.unwrap_or(after);
    }
    told
}

/// The calls of each kind, in the order of their first.
fn counted(lines: &[String]) -> String {
    let mut kinds: Vec<(String, u64, u64)> = Vec::new();
    for line in lines {
        let (kind, bytes) = (kind(line), bytes(line));
        match kinds.iter_mut().find(|(known, ..)| *known == kind) {
            Some((_, count, sum)) => (*count, *sum) = (*count + 1, *sum + bytes),
            None => kinds.push((kind, 1, bytes)),
        }
    }
    let text = |(kind, count, bytes): &(String, u64, u64)| match (count, bytes) {
        (1, 0) => kind.clone(),
        (1, bytes) => format!("{kind} {bytes} B"),
        (count, 0) => format!("{count} {kind}"),
        (count, bytes) => format!("{count} {kind} {bytes} B"),
    };
    let all: Vec<String> = kinds.iter().map(text).collect();
    all.join(", ")
}

/// The first words of a line without the numbers of names: `allocate d`, `launch step`, `copy H2D`.
fn kind(line: &str) -> String {
    let mut words = line.split(' ');
    let (first, second) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let plain = |word: &str| {
        word.trim_end_matches(|c: char| c.is_ascii_digit() || c == ',')
            .to_owned()
    };
    match first {
        "launch" if second.starts_with("graph") => "launch graph".to_owned(),
        "launch" | "copy" => format!("{first} {second}"),
        "allocate" | "free" | "create" | "destroy" => format!("{first} {}", plain(second)),
        // The name of a stream or a handle comes first.
        _ if plain(first) != first && !first.contains('_') => second.to_owned(),
        _ => first.to_owned(),
    }
}

/// The bytes that are allocated, copied or set.
fn bytes(line: &str) -> u64 {
    if !["allocate ", "copy ", "set "]
        .iter()
        .any(|call| line.starts_with(call))
    {
        return 0;
    }
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let unit = words.iter().position(|word| ["B", "B,"].contains(word));
    let of_row = unit.and_then(|at| number(at.wrapping_sub(1))).unwrap_or(0);
    let rows = words.iter().position(|word| *word == "rows");
    of_row * rows.and_then(|at| number(at.wrapping_sub(1))).unwrap_or(1)
}

/// The bytes that an iteration or its graph copies to the device and back.
pub(crate) fn copied(phases: &[Phase]) -> [u64; 2] {
    let all = with_nodes(phases);
    let asked = all
        .iter()
        .filter(|phase| phase.name == ITERATION || phase.name == NODES);
    let lines: Vec<&String> = asked.flat_map(|phase| &phase.lines).collect();
    ["copy H2D", "copy D2H"].map(|direction| {
        let copies = lines
            .iter()
            .filter_map(|line| line.find(direction).map(|at| bytes(&line[at..])));
        copies.sum()
    })
}

/// FNV-1a of every line of every phase.
fn digest(section: &Section) -> u32 {
    let lines = section
        .phases
        .iter()
        .flat_map(|phase| [&phase.name].into_iter().chain(&phase.lines));
    let bytes = lines.flat_map(|line| line.bytes().chain([b'\n']));
    bytes.fold(0x811c_9dc5, |hash: u32, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// The sections of a text: their rows and choices.
pub(crate) fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut chosen = BTreeMap::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let name = heading.split(DIGEST).flat_map(|part| part.split(AS)).next();
            let name = name.unwrap_or(heading);
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
