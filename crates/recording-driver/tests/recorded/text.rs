//! The form of the recorded texts: what a row asks at one size, and a digest of every line.
//!
//! | line | says |
//! | --- | --- |
//! | `## gpu/tiled/64` | a row at a size |
//! | `## gpu/tiled-gated/64 as gpu/tiled/64` | a row with the same calls as another one |
//! | `chosen <choice> = <candidate>` | handed over in place of a calibration, here and further down |
//! | `set-up: 14 calls #1f2e3d4c, …` | the phases, with a digest of the calls of each, in order |
//! | `launch step …` | the calls of an iteration and the nodes of the graph that it launches, in order, one per line |
//! | `8 times:` | the indented lines stand there so often; `8 times alike:` with other numbers after the first time |
//!
//! A row that was there before, at another size or with other choices, has no lines. d1, pinned1 and the
//! like are allocations, s1 is the timed stream; `on s1` and `shared 0` are left out.

use std::collections::{BTreeMap, BTreeSet};

use crossover_words::sidecar::digest;

use crate::golden::Section;

/// The phase that is timed, and the nodes of the graphs that it launches.
const ITERATION: &str = "iteration";
const NODES: &str = "nodes";
const CHOSEN: &str = "chosen ";
const AS: &str = " as ";

/// The text of a group.
pub(crate) fn text(sections: &[Section]) -> String {
    let mut text = Vec::new();
    let (mut rows, mut handed_over) = (BTreeSet::new(), BTreeMap::new());
    let mut before: BTreeMap<Vec<String>, &str> = BTreeMap::new();
    for section in sections {
        let mut phases = section.phases.clone();
        phases.push((NODES.to_owned(), nodes(&phases)));
        phases.retain(|(_, lines)| !lines.is_empty());
        let calls = phases.iter().map(|(name, lines)| {
            let digest = digest(lines.join("\n").as_bytes());
            format!("{name}: {} calls #{}", lines.len(), &digest[..8])
        });
        let calls: Vec<String> = calls.collect();
        let same = before.get(&calls);
        let same = same.map_or(String::new(), |other| format!("{AS}{other}"));
        text.push(format!("## {}{same}", section.name));
        for (choice, candidate) in &section.chosen {
            if handed_over.insert(choice, candidate) != Some(candidate) {
                text.push(format!("{CHOSEN}{choice} = {candidate}"));
            }
        }
        if same.is_empty() {
            let is_first = rows.insert(section.function_and_size().0);
            text.push(calls.join(", "));
            let lines = [ITERATION, NODES].map(|name| folded(phase(&phases, name)));
            let shown = lines.iter().flatten().filter(|_| is_first);
            text.extend(shown.map(|line| format!("  {line}")));
            before.insert(calls, &section.name);
        }
        text.push(String::new());
    }
    let text = text
        .join("\n")
        .replace(" on s1 ", " ")
        .replace(" on s1\n", "\n");
    text.replace(" shared 0", "")
}

type Phases = [(String, Vec<String>)];

fn phase<'p>(phases: &'p Phases, name: &str) -> &'p [String] {
    let phase = phases.iter().find(|(of, _)| of == name);
    phase.map_or(&[], |(_, lines)| lines)
}

/// The nodes of the graphs that an iteration launches.
fn nodes(phases: &Phases) -> Vec<String> {
    let (mut nodes, mut captured) = (Vec::new(), Vec::new());
    for line in phases.iter().flat_map(|(_, lines)| lines) {
        if line.starts_with("capture s") {
            captured.clear();
        } else if line.starts_with("node ") {
            captured.push(line.clone());
        } else if let Some(graph) = line.strip_prefix("end of capture: ") {
            let launch = format!("launch {graph} ");
            let mut calls = phase(phases, ITERATION).iter();
            if calls.any(|line| line.starts_with(&launch)) {
                nodes.append(&mut captured);
            }
        }
    }
    nodes
}

/// The calls of an iteration and of its graph.
pub(crate) fn asked(phases: &Phases) -> Vec<String> {
    [phase(phases, ITERATION), &nodes(phases)].concat()
}

/// The bytes that calls copy in a direction: `4096 B d1 -> host`, or `8 rows of 512 B`.
pub(crate) fn copied(calls: &[String], direction: &str) -> f64 {
    let sizes = calls
        .iter()
        .filter_map(|line| line.split_once(direction)?.1.split_once(" B "));
    let number = |n: &str| n.parse::<f64>().expect("a number");
    let bytes = sizes.map(|(size, _)| size.split(" rows of ").map(number).product::<f64>());
    bytes.sum()
}

/// The kernels that calls launch, a library's call as one.
pub(crate) fn kernels(calls: &[String]) -> u32 {
    let is_kernel = |line: &&String| {
        let is_library = ["cublas", "cufft"].iter().any(|name| line.contains(name));
        is_library || line.contains("launch ") && !line.contains("launch graph")
    };
    calls.iter().filter(is_kernel).count() as u32
}

/// The most lines of a block that repeats.
const LONGEST: usize = 512;
/// Fewer blocks whose numbers differ are not folded.
const FEWEST: usize = 3;

/// The lines, where a block that repeats stands once, with a count.
fn folded(lines: &[String]) -> Vec<String> {
    let words: Vec<Vec<&str>> = lines.iter().map(|line| words(line)).collect();
    let (mut told, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let (length, times) = best(&lines[at..], &words[at..]);
        let (block, all) = (&lines[at..at + length], &lines[at..at + length * times]);
        at += all.len();
        if times == 1 {
            told.push(block[0].clone());
            continue;
        }
        let is_same = all.chunks(length).all(|other| other == block);
        let times = format!("{times} times{}:", if is_same { "" } else { " alike" });
        match &folded(block)[..] {
            [line] => told.push(format!("{times} {line}")),
            block => told.extend(
                [times]
                    .into_iter()
                    .chain(block.iter().map(|line| format!("  {line}"))),
            ),
        }
    }
    told
}

/// The length of the block at the beginning of some lines that saves most of them when it stands once,
/// and how often it repeats.
fn best(lines: &[String], words: &[Vec<&str>]) -> (usize, usize) {
    let (mut best, mut most) = ((1, 1), 0);
    for length in 1..=LONGEST.min(lines.len() / 2) {
        let is_alike = |block: &&[Vec<&str>]| **block == words[..length];
        let times = words.chunks_exact(length).take_while(is_alike).count();
        let is_same = lines[..length] == lines[length..2 * length];
        let saved = (times * length).saturating_sub(length + usize::from(length > 1));
        if times >= if is_same { 2 } else { FEWEST } && saved > most {
            (best, most) = ((length, times), saved);
        }
    }
    best
}

/// The words of a line without numbers, and without names that end with one, such as `d1`.
fn words(line: &str) -> Vec<&str> {
    let is_number = |word: &&str| {
        let number = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
        number.starts_with(|c: char| c.is_ascii_digit())
    };
    let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| !word.is_empty() && !is_number(word))
        .collect()
}

/// The sections of a text: their rows and choices.
pub(crate) fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut chosen = BTreeMap::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let name = heading.split(AS).next().unwrap_or(heading);
            sections.push(Section {
                name: name.to_owned(),
                row: name.split(' ').next().unwrap_or(name).to_owned(),
                chosen: chosen.clone(),
                ..Section::default()
            });
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
