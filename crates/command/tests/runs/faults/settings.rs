//! Options, settings, devices and memory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::faults::run::{FOLDER, SOUND, Suite, limited};
use crate::printed::{expect, lacks, table};

/// Each has one sentence, and the results of before stay as they are.
pub(crate) fn bad_options_end_the_run_before_it_starts() {
    let suite = Suite::measured();
    let before = suite.files();
    for [line, code, words] in table(
        r#"
        --bench --save-baseline ../../x        | 2 | choose a name
        CROSSOVER_PROCESSES=many --bench sound | 2 | CROSSOVER_PROCESSES="many" is not valid; good values are
        CROSSOVER_SIZE=full --bench --list     | 0 | CROSSOVER_SIZE is not a setting … is CROSSOVER_SIZES meant?
        CROSSOVER_TURNS=/nowhere --bench sound | 2 | CROSSOVER_TURNS=/nowhere is no channel: `crossover ab` sets it
        --bench sonud                          | 2 | no benchmark was selected: no id matches sonud; is sound meant?
        "#,
    ) {
        suite.run(line, code.parse().unwrap(), words);
    }
    let odd = OsStr::from_bytes(b"a\xff");
    let words = r#"the argument "a\xFF" is not UTF-8"#;
    expect(suite.bench("--bench").arg(odd), 2, words);
    let mut compare = suite.crossover("CROSSOVER_NUMA=1 compare nosuch nosuch");
    let words = "CROSSOVER_NUMA is not a setting and is ignored";
    expect(&mut compare, 2, words);
    assert_eq!(suite.files(), before);
    assert_eq!(suite.shown(), SOUND);
}

pub(crate) fn a_device_that_was_asked_for() {
    let suite = Suite::new();
    let words = "the selected GPU could not be used";
    suite.run("CROSSOVER_DEVICE=99 --bench --quick sound", 1, words);
    // Nobody asks for it where no GPU benchmark was selected.
    suite.run("CROSSOVER_DEVICE=99 --bench --quick sound/cpu", 0, "");
    if crossover_suite::timing::probe(0).is_err() {
        let mut run = suite.bench("--bench --quick sound");
        let words = "skipped sound/gpu/none";
        expect(run.env_remove("CROSSOVER_DEVICE"), 0, words);
    }
}

/// A package in no repository has no commit, though the suite has one: other commits have
/// a unit test in the suite.
pub(crate) fn the_commit_of_another_package() {
    let suite = Suite::new();
    let mut run = suite.bench("--bench --quick sound/cpu/fill/4$");
    expect(run.env(FOLDER, suite.dir.path()), 0, "");
    let environment = &suite.records()[0].environment;
    assert_eq!(environment.commit, None);
    let package = format!("crossover {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(environment.package, Some(package));
}

pub(crate) fn a_small_container() {
    let suite = Suite::new();
    // The stacks of many threads alone would be more, and `quick` would measure the caches alone.
    let settings = "RAYON_NUM_THREADS=2 CROSSOVER_SIZES=default";
    let run = suite.bench(&format!("{settings} --bench --quick sound"));
    expect(&mut limited(&run, "-v 600000"), 0, "");
    let ids = ["16", "4", "8"].map(|size| format!("sound/cpu/fill/{size}"));
    assert_eq!(suite.shown(), ids);
    let record = suite.records().remove(0);
    let largest = record.curves["cpu_read"].points.last();
    let largest = largest.expect("some memory there is").bytes;
    assert!(largest <= 128 << 20, "{largest}");
}

pub(crate) fn a_loaded_baseline_is_not_measured() {
    let suite = Suite::measured();
    suite.run("--bench --quick --save-baseline main sound", 0, "");
    let measured = || {
        let mut files = suite.files();
        let runs = suite.root.join("runs");
        files.retain(|path, _| path.ends_with("sample.json") || path.starts_with(&runs));
        files
    };
    let before = measured();
    let load = "--bench --load-baseline main --baseline base";
    let words = "baseline main has no result of it";
    let printed = suite.run(load, 0, words);
    assert!(printed.contains("sound/cpu/fill/32"), "{printed}");
    lacks(&printed, &["FAILED"]);
    suite.run(&format!("{load} sound/cpu"), 0, "change:");
    assert_eq!(measured(), before);
}

/// The second size would take over a second by the first; of the third alone nothing is known.
pub(crate) fn a_benchmark_that_would_take_too_long_is_left_out() {
    let suite = Suite::new();
    let words = "skipped long/cpu/sleeps/16: one iteration would take about";
    let printed = suite.run("CROSSOVER_SIZES=full --test long", 0, words);
    lacks(&printed, &["Testing long/cpu/sleeps/64"]);
    let alone = "CROSSOVER_SIZES=full --test long/cpu/sleeps/64";
    suite.run(alone, 0, "Testing long/cpu/sleeps/64");
}
