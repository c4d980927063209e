//! `crossover ab --null`: what it tells of a machine and of benchmarks.

use std::fs::{self, File};

use crate::printed::{ended, holds};
use crate::repositories::{BOTH, Place};

pub(crate) fn a_revision_compared_with_itself_shows_what_to_trust() {
    let mut place = Place::bundles(&BOTH, &BOTH, "");
    place.sides = "old --null 2";
    let counts = "2 comparisons: 0 of 4 verdicts false (0 slower, 0 faster); 4 same, 0 unsure.\n";
    let summary_text = place.ends("--budget 1", 0, counts);
    let class = "benchmarks under 20 µs (2 benchmarks): resolution 0. …  for a change of 2 %, ";
    holds(&summary_text, class);
    assert_eq!(place.read("log").matches("old sum").count(), 2 * 2 * 8);
    // It is kept where it cannot be printed.
    fs::remove_dir_all(place.path("target-reports")).unwrap();
    let mut command = place.ab("--pairs 4 --budget 0");
    let full = File::options().write(true).open("/dev/full").unwrap();
    ended(&command.stdout(full).output().unwrap(), 2, "summary.txt: /");
    let summary = fs::read_to_string(place.kept().join("summary.txt")).unwrap();
    holds(&summary, "2 comparisons: 0 of 4 verdicts false");
    // A verdict of such a comparison is false, whatever it is.
    let slower =
        "process = (ENVIRON[\"CRITERION_HOME\"] ~ /\\/b[0-9]/) ? 1.1 : 1; process += 0 * 1 ";
    place.replace("old", "process = 1 ", slower);
    let slower = "2 comparisons: 4 of 4 verdicts false (4 slower, 0 faster)";
    place.ends("--pairs 4 --budget 0", 0, slower);
    for option in ["--json", "--html page.html"] {
        place.ends(option, 2, "cannot be used with");
    }
}
