//! The rows on a real device: the same library passes their calls through to the real driver and its
//! libraries, and what it writes down is compared with what the recording driver writes.
//!
//! | variable | what it names |
//! | --- | --- |
//! | `RECORDED_REAL` | the real libraries, with colons between |
//! | `RECORDED_OUT` | a folder for the texts and the differences |
//! | `RECORDED_GOLDEN` | where the golden texts lie, if not in the sources |

use std::fmt::Write;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::golden::{Section, known, recorded};
use crate::stand_in::StandIn;
use crate::suite;
use crate::text::text;

/// What the device and its libraries decide: algorithms with their workspaces, and how many blocks
/// are resident.
const DECIDED: [&str; 5] = ["tile ", "stages ", "pieces ", "workspace ", "grid ("];

/// What differs in a group, in words.
#[derive(Default)]
struct Differences {
    /// What the device decides.
    decided: String,
    others: String,
}

pub(crate) fn with_a_real_driver() {
    let variable = |name| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let (real, out) = (
        variable("RECORDED_REAL"),
        PathBuf::from(variable("RECORDED_OUT")),
    );
    let groups: Vec<&str> = suite::groups().iter().map(|group| group.name()).collect();
    let compared = |group: &str| {
        let both = catch_unwind(|| both(group, &real, &out));
        let Ok(Differences { decided, others }) = both else {
            return format!("{group} did not run to its end\n");
        };
        let told = format!("{others}\nThe device decides:\n{decided}");
        fs::write(out.join(format!("{group}.differences.txt")), told).expect("there is room");
        others
    };
    let others: String = groups.into_par_iter().map(compared).collect();
    assert!(others.is_empty(), "{others}");
}

/// Runs the rows of a group on both drivers.
fn both(group: &str, real: &str, out: &Path) -> Differences {
    let mut sections = known(group);
    if group == "cold_start" {
        // All rows are phases of the same processes.
        sections.truncate(1);
    }
    let passing = || StandIn::passing_to(real);
    let mut passed = recorded(&passing(), group, &sections);
    let calibrated = |(passed, known): (&Section, &Section)| known.lacks(passed).is_some();
    if passed.iter().zip(&sections).any(calibrated) {
        passed = recorded(&passing(), group, &passed);
    }
    fs::write(out.join(format!("{group}.txt")), text(group, &passed)).expect("there is room");
    let recorded = recorded(&StandIn::new(), group, &sections);
    differences(&recorded, &passed)
}

fn differences(recorded: &[Section], passed: &[Section]) -> Differences {
    let mut differences = Differences::default();
    for (recorded, passed) in recorded.iter().zip(passed) {
        for (choice, candidate) in &passed.chosen {
            if recorded.chosen.get(choice) != Some(candidate) {
                let _ = writeln!(
                    differences.decided,
                    "{}: {choice} = {candidate}",
                    passed.name
                );
            }
        }
        for (phase, other) in recorded.phases.iter().zip(&passed.phases) {
            let count = phase.lines.len().max(other.lines.len());
            for at in 0..count {
                let [here, there] = [phase, other].map(|of| of.lines.get(at).map(String::as_str));
                if here == there {
                    continue;
                }
                let same_but_decided = here.map(masked) == there.map(masked);
                let to = match same_but_decided {
                    true => &mut differences.decided,
                    false => &mut differences.others,
                };
                let (here, there) = (here.unwrap_or("nothing"), there.unwrap_or("nothing"));
                let (row, phase) = (&passed.name, &phase.name);
                let _ = writeln!(to, "{row}, {phase}, line {at}:\n  - {here}\n  + {there}");
                if !same_but_decided {
                    // What follows is shifted, or a consequence.
                    break;
                }
            }
        }
        if !passed.failure.is_empty() {
            let _ = writeln!(differences.others, "{}: {}", passed.name, passed.failure);
        }
        if recorded.phases.len() != passed.phases.len() {
            let _ = writeln!(differences.others, "{}: it has other phases", passed.name);
        }
    }
    differences
}

/// The line without what the device decides.
fn masked(line: &str) -> String {
    let mut line = line.to_owned();
    for word in DECIDED {
        if let Some((before, after)) = line.split_once(word) {
            let after = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',');
            line = format!("{before}{word}{after}");
        }
    }
    line
}
