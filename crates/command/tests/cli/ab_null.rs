//! `crossover ab --null`: what it tells of a machine and of benchmarks.

use std::fs::{self, File};
use std::process::Command;

use crate::ab::kept;
use crate::printed::{ended, holds, text};
use crate::repositories::{BOTH, Bundles, crossover};

/// Compares `old` with itself.
fn null(bundles: &Bundles, options: &str) -> Command {
    let mut command = crossover(bundles.dir());
    command.args(["old", "--null", "2"]);
    command.args(options.split_whitespace());
    command
}

pub(crate) fn a_revision_compared_with_itself_shows_what_to_trust() {
    let bundles = Bundles::new(&BOTH, &BOTH, "");
    let output = null(&bundles, "--budget 1").output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    holds(
        &said,
        "2 comparisons: 0 of 4 verdicts false (0 slower, 0 faster); 4 same, 0 unsure.\n",
    );
    holds(
        &said,
        "benchmarks under 20 µs (2 benchmarks): resolution 0.",
    );
    holds(&said, " for a change of 2 %, ");
    let log = bundles.read("log");
    assert_eq!(log.matches("old sum").count(), 2 * 2 * 8);
    // A verdict of such a comparison is false, whatever it is.
    bundles.replace(
        "old",
        "process = 1 ",
        "process = (ENVIRON[\"CRITERION_HOME\"] ~ /\\/b[0-9]/) ? 1.1 : 1; process += 0 * 1 ",
    );
    let output = null(&bundles, "--pairs 4 --budget 0").output().unwrap();
    holds(
        &text(&output.stdout),
        "2 comparisons: 4 of 4 verdicts false (4 slower, 0 faster)",
    );
    for name in ["json", "html page.html"] {
        ended(
            &null(&bundles, &format!("--{name}")).output().unwrap(),
            2,
            "cannot be used with",
        );
    }
    // It is kept where it cannot be printed.
    let bundles = Bundles::new(&BOTH, &BOTH, "");
    let mut command = null(&bundles, "--pairs 4 --budget 0");
    let full = File::options().write(true).open("/dev/full").unwrap();
    ended(&command.stdout(full).output().unwrap(), 2, "summary.txt: /");
    let summary = fs::read_to_string(kept(bundles.dir()).join("summary.txt")).unwrap();
    holds(&summary, "2 comparisons: 0 of 4 verdicts false");
}
