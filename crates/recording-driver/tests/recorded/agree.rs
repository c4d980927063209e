//! The rows on a real device: the same library passes their calls through to the real driver and its
//! libraries, and what it writes down is compared with what the recording driver writes.
//! `RECORDED_REAL` names the real libraries, with colons between.

use std::panic::catch_unwind;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::golden::{Section, difference, known, recorded};
use crate::stand_in::StandIn;
use crate::suite;
use crate::text::text;

/// What the device and its libraries decide: algorithms with their workspaces, and how many blocks
/// are resident.
const DECIDED: [&str; 5] = ["tile ", "stages ", "pieces ", "workspace ", "grid ("];

pub(crate) fn with_a_real_driver() {
    let real = std::env::var("RECORDED_REAL").expect("RECORDED_REAL names the real libraries");
    let groups: Vec<&str> = suite::groups().iter().map(|group| group.name()).collect();
    let differences = |group: &str| {
        catch_unwind(|| both(group, &real))
            .unwrap_or_else(|_| vec![format!("{group} did not run to its end")])
    };
    let differences: Vec<String> = groups.into_par_iter().flat_map(differences).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The device of the recording driver, as it ends the names of choices.
const RECORDED_ON: &str = " on NVIDIA H200";

/// Runs the rows of a group on both drivers, and returns the first line of each that differs.
fn both(group: &str, real: &str) -> Vec<String> {
    let mut sections = known(group);
    if group == "cold_start" {
        // All rows are phases of the same processes.
        sections.truncate(1);
    }
    let on_device = |sections: &[Section]| recorded(&StandIn::passing_to(real), group, sections);
    let mut passed = on_device(&sections);
    let mut choices = passed.iter().flat_map(|section| section.chosen.keys());
    let device = choices.find_map(|choice| Some(choice[choice.rfind(" on NVIDIA")?..].to_owned()));
    let device = device.unwrap_or_else(|| RECORDED_ON.to_owned());
    for (passed, section) in passed.iter_mut().zip(&sections) {
        for (choice, candidate) in &section.chosen {
            (passed.chosen).insert(choice.replace(RECORDED_ON, &device), candidate.clone());
        }
    }
    // The first of these runs calibrates what only this device decides; the second takes it over.
    for _ in 0..2 {
        passed = on_device(&passed);
    }
    for (section, passed) in sections.iter_mut().zip(&passed) {
        for (choice, candidate) in &passed.chosen {
            // The recording driver has other algorithms of the library.
            if !candidate.starts_with("cuBLASLt") {
                (section.chosen).insert(choice.replace(&device, RECORDED_ON), candidate.clone());
            }
        }
    }
    let recorded = recorded(&StandIn::new(), group, &sections);
    assert_eq!(recorded.len(), passed.len(), "{group}");
    let told = |section: &Section| text(group, &[masked(section)]);
    (recorded.iter().zip(&passed))
        .filter_map(|(recorded, passed)| match passed.failure.as_str() {
            "" => difference(&told(recorded), &told(passed)),
            failure => Some(format!("{}: {failure}", passed.name)),
        })
        .collect()
}

/// The section without what the device decides.
fn masked(section: &Section) -> Section {
    let mut section = section.clone();
    section.chosen.clear();
    for line in section.phases.iter_mut().flat_map(|phase| &mut phase.lines) {
        for word in DECIDED {
            if let Some((before, after)) = line.split_once(word) {
                let after = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',');
                *line = format!("{before}{word}{after}");
            }
        }
    }
    section
}
