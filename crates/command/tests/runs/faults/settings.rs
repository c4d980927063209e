//! Options, names, devices, implementations.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use crate::faults::files::records_in;
use crate::faults::run::{FOLDER, SOUND, bench, crossover, files, limited, measured, shown};
use crate::printed::{expect, holds, printed};

pub(crate) fn bad_options() {
    let (_dir, root) = measured();
    let before = files(&root);
    let save = ["--bench", "--save-baseline", "../../x"];
    expect(&mut bench(&root, &save), 2, "choose a name");
    let mut unknown = bench(&root, &["--bench", "sound"]);
    let words =
        "CROSSOVER_PROCESSES=\"many\" is not valid; good values are whole numbers from 0 to 99";
    expect(unknown.env("CROSSOVER_PROCESSES", "many"), 2, words);
    let mut slip = bench(&root, &["--bench", "--list"]);
    expect(
        slip.env("CROSSOVER_SIZE", "full"),
        0,
        "CROSSOVER_SIZE is not a setting and is ignored; is CROSSOVER_SIZES meant?",
    );
    let mut undriven = bench(&root, &["--bench", "sound"]);
    let words =
        "CROSSOVER_TURNS=/nowhere is no channel: `crossover ab` sets it, unset it otherwise: ";
    expect(undriven.env("CROSSOVER_TURNS", "/nowhere"), 2, words);
    let odd = OsStr::from_bytes(b"a\xff");
    let words = r#"the argument "a\xFF" is not UTF-8"#;
    expect(bench(&root, &["--bench"]).arg(odd), 2, words);
    let mut gone = crossover(&root, &["compare", "nosuch", "nosuch"]);
    let words = "CROSSOVER_NUMA is not a setting and is ignored";
    expect(gone.env("CROSSOVER_NUMA", "1"), 2, words);
    assert_eq!(files(&root), before);
    assert_eq!(shown(&root), SOUND);
}

pub(crate) fn selects_nothing() {
    let (_dir, root) = measured();
    let words = "no benchmark was selected";
    let said = expect(&mut bench(&root, &["--bench", "sonud"]), 2, words);
    holds(&said, "no id matches sonud; is sound meant?");
    let said = expect(&mut bench(&root, &["--test", "sound/cpu/fil$x"]), 2, words);
    assert!(said.contains("is sound/cpu/fill meant?"), "{said}");
    assert_eq!(shown(&root), SOUND);
}

pub(crate) fn device_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let run = |filter: &str, device: Option<&str>| {
        let mut command = bench(dir.path(), &["--bench", "--quick", filter]);
        match device {
            Some(device) => command.env("CROSSOVER_DEVICE", device),
            None => command.env_remove("CROSSOVER_DEVICE"),
        };
        command
    };
    let words = "the selected GPU could not be used";
    expect(&mut run("sound", Some("99")), 1, words);
    // Nobody asks for it where no GPU benchmark was selected.
    expect(&mut run("sound/cpu", Some("99")), 0, "");
    if crossover_suite::timing::probe(0).is_err() {
        expect(&mut run("sound", None), 0, "skipped sound/gpu/none");
    }
}

/// A package in another repository than the suite's.
pub(crate) fn commit_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let checkout = dir.path().join("checkout");
    let git = |arguments: &str| {
        let mut git = Command::new("git");
        git.arg("-C").arg(&checkout).args(arguments.split(' '));
        for variable in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
            git.env_remove(variable);
        }
        git.env("GIT_CONFIG_GLOBAL", "/dev/null");
        git.env("GIT_CONFIG_NOSYSTEM", "1");
        printed(&git.output().unwrap()).trim().to_owned()
    };
    fs::create_dir(&checkout).unwrap();
    git("init --quiet");
    git("-c user.name=a -c user.email=a@b commit --quiet --allow-empty -m first");
    let root = dir.path().join("criterion");
    let mut run = bench(&root, &["--bench", "--quick", "sound/cpu/fill/4$"]);
    expect(run.env(FOLDER, &checkout), 0, "");
    let environment = &records_in(&root)[0].environment;
    assert_eq!(environment.commit, Some(git("rev-parse HEAD")));
    let package = format!("crossover {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(environment.package, Some(package));
}

pub(crate) fn little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = bench(dir.path(), &["--bench", "--quick", "sound"]);
    // The stacks of many threads alone would be more.
    run.env("RAYON_NUM_THREADS", "2")
        // `quick` would measure the caches alone.
        .env("CROSSOVER_SIZES", "default");
    expect(&mut limited(&run, "-v 600000"), 0, "");
    let all = ["16", "4", "8"].map(|size| format!("sound/cpu/fill/{size}"));
    assert_eq!(shown(dir.path()), all);
    let record = records_in(dir.path()).remove(0);
    let largest = record.curves["cpu_read"].points.last();
    let largest = largest.expect("some memory there is").bytes;
    assert!(largest <= 128 << 20, "{largest}");
}

pub(crate) fn one_cause_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let words = "FAILED faulty/cpu/set-up/16: as faulty/cpu/set-up/4";
    let said = expect(
        &mut bench(dir.path(), &["--bench", "--quick", "sound|faulty|choice"]),
        1,
        words,
    );
    holds(&said, "FAILED faulty/cpu/check/4: no check");
    assert!(shown(dir.path()).contains(&"faulty/cpu/last/4".to_owned()));
    let reason = "the GPU is switched off by CROSSOVER_DEVICE=none";
    assert_eq!(said.matches(reason).count(), 2, "{said}");
    assert_eq!(said.matches("no set-up").count(), 1, "{said}");
    holds(
        &said,
        "left out sound/gpu/none, sound/gpu/neither, choice/gpu/none: ",
    );
}

pub(crate) fn load_baseline() {
    let (_dir, root) = measured();
    let main = ["--bench", "--quick", "--save-baseline", "main", "sound"];
    expect(&mut bench(&root, &main), 0, "");
    let samples = || {
        let mut files = files(&root);
        files
            .retain(|path, _| path.ends_with("sample.json") || path.starts_with(root.join("runs")));
        files
    };
    let before = samples();
    let load = ["--bench", "--load-baseline", "main", "--baseline", "base"];
    let said = expect(
        &mut bench(&root, &load),
        0,
        "baseline main has no result of it",
    );
    assert!(said.contains("sound/cpu/fill/32"), "{said}");
    assert!(!said.contains("FAILED"), "nothing is run: {said}");
    expect(
        &mut bench(&root, &[&load[..], &["sound/cpu"]].concat()),
        0,
        "change:",
    );
    assert_eq!(samples(), before);
}

/// The second size would take over a second by the first; of the third alone nothing is known.
pub(crate) fn too_long() {
    let dir = tempfile::tempdir().unwrap();
    let tried = |filter: &str, words: &str| {
        let mut run = bench(dir.path(), &["--test", filter]);
        expect(run.env("CROSSOVER_SIZES", "full"), 0, words)
    };
    let words = "skipped long/cpu/sleeps/16: one iteration would take about";
    let said = tried("long", words);
    assert!(!said.contains("Testing long/cpu/sleeps/64"), "{said}");
    tried("long/cpu/sleeps/64", "Testing long/cpu/sleeps/64");
}
