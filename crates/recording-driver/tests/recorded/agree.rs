//! The rows on a real device: the same library passes their calls through to the real driver and its
//! libraries, and what it writes down is compared with what the recording driver writes.
//!
//! | variable | what it names |
//! | --- | --- |
//! | `RECORDED_REAL` | the real libraries, with colons between |
//! | `RECORDED_OUT` | a folder for the texts |
//! | `RECORDED_GOLDEN` | where the golden texts lie, if not in the sources |

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

pub(crate) fn with_a_real_driver() {
    let variable = |name| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let (real, out) = (
        variable("RECORDED_REAL"),
        PathBuf::from(variable("RECORDED_OUT")),
    );
    let groups: Vec<&str> = suite::groups().iter().map(|group| group.name()).collect();
    let differences = |group: &str| {
        catch_unwind(|| both(group, &real, &out))
            .unwrap_or_else(|_| format!("{group} did not run to its end\n"))
    };
    let differences: String = groups.into_par_iter().map(differences).collect();
    assert!(differences.is_empty(), "{differences}");
}

/// Runs the rows of a group on both drivers, and says what differs.
fn both(group: &str, real: &str, out: &Path) -> String {
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
    let both = recorded.iter().zip(&passed);
    both.filter_map(|(recorded, passed)| difference(recorded, passed))
        .collect()
}

/// The first line that differs; what follows is shifted, or a consequence.
fn difference(recorded: &Section, passed: &Section) -> Option<String> {
    let name = &passed.name;
    if !passed.failure.is_empty() {
        return Some(format!("{name}: {}\n", passed.failure));
    }
    let [here, there] = [recorded, passed].map(|section| -> Vec<String> {
        let lines = section.phases.iter();
        let lines = lines.flat_map(|phase| [&phase.name].into_iter().chain(&phase.lines));
        lines.map(|line| masked(line)).collect()
    });
    let at = (0..here.len().max(there.len())).find(|&at| here.get(at) != there.get(at))?;
    let told = |line: Option<&String>| line.map_or("nothing", |line| line).to_owned();
    let (here, there) = (told(here.get(at)), told(there.get(at)));
    Some(format!("{name}:\n  - {here}\n  + {there}\n"))
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
