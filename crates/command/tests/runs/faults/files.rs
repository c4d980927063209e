//! Folders and files that are not as they should be.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crossover::model::RunRecord;
use serde_json::{Value, json};

use crate::faults::run::{SOUND, bench, crossover, expect, files, measured, shown};

pub(crate) fn unwritable_folder() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "mine").unwrap();
    for root in [file.clone(), file.join("below")] {
        let words = "set CRITERION_HOME to a folder where they can";
        let said = expect(&mut bench(&root, &["--bench", "sound"]), 2, words);
        assert!(
            !said.contains("Benchmarking"),
            "nothing was measured: {said}"
        );
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

pub(crate) fn two_runs() {
    let (_dir, root) = measured();
    let before = files(&root);
    let lock = File::options()
        .write(true)
        .open(root.join("crossover.lock"))
        .unwrap();
    lock.lock().unwrap();
    let run = || bench(&root, &["--bench", "--quick", "sound"]);
    expect(&mut run(), 2, "another run is writing to");
    assert_eq!(files(&root), before);
    // Looking is no writing.
    expect(&mut bench(&root, &["--list"]), 0, "sound/cpu/fill/4");
    lock.unlock().unwrap();
    expect(&mut run(), 0, "");
}

pub(crate) fn later_failure() {
    let (_dir, root) = measured();
    let runs = root.join("runs");
    let first = fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    let mut later: RunRecord = serde_json::from_slice(&fs::read(first).unwrap()).unwrap();
    later.run = "29991231T235959Z-1".to_owned();
    later.started = "2999-12-31T23:59:59Z".to_owned();
    later.failed = vec![crossover::model::Failure {
        id: SOUND[0].to_owned(),
        error: "a full disk".to_owned(),
    }];
    let path = runs.join(format!("{}.json", later.run));
    fs::write(path, json!(later).to_string()).unwrap();
    assert_eq!(shown(&root), SOUND);
}

pub(crate) fn records() {
    let (dir, root) = measured();
    let destination = dir.path().join("shared");
    let to = destination.to_str().unwrap();
    let runs = root.join("runs");
    let record = fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read(&record).unwrap();
    fs::remove_file(&record).unwrap();
    expect(
        &mut crossover(&root, &["export", to]),
        2,
        "the record of its run",
    );
    assert!(!destination.exists(), "nothing half-way");
    fs::write(&record, kept).unwrap();
    // One sidecar names a record outside.
    let sidecar = root.join("sound/cpu_fill/4/new/crossover.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&sidecar).unwrap()).unwrap();
    value["run"] = "../../outside".into();
    fs::write(&sidecar, value.to_string()).unwrap();
    fs::write(dir.path().join("outside.json"), "{}").unwrap();
    let said = expect(
        &mut crossover(&root, &["export", to]),
        0,
        "3 benchmarks of 1 run",
    );
    assert!(said.contains("left out"), "{said}");
    let inside = |path: &PathBuf| path.starts_with(&destination);
    assert!(
        files(dir.path())
            .keys()
            .filter(|p| p.ends_with("outside.json"))
            .count()
            == 1
    );
    assert!(files(&destination).keys().all(inside));
}

pub(crate) fn page_elsewhere() {
    let (dir, root) = measured();
    let here = tempfile::tempdir().unwrap();
    let mine = here.path().join("target-reports/index.html");
    fs::create_dir_all(mine.parent().unwrap()).unwrap();
    fs::write(&mine, "mine").unwrap();
    let mut report = crossover(&root, &["report"]);
    expect(report.current_dir(here.path()), 0, "report:");
    assert_eq!(fs::read(&mine).unwrap(), b"mine");
    assert!(
        dir.path().join("index.html").is_file(),
        "beside the results"
    );
}

/// A group's folder may lie on another disk.
pub(crate) fn linked_group() {
    use std::os::unix::fs::symlink;
    let (dir, root) = measured();
    let elsewhere = dir.path().join("elsewhere");
    fs::rename(root.join("sound"), &elsewhere).unwrap();
    symlink(&elsewhere, root.join("sound")).unwrap();
    // A link that leads in a circle is no more than a link.
    symlink(&root, root.join("circle")).unwrap();
    assert_eq!(shown(&root), SOUND);
    expect(&mut bench(&root, &["--bench", "--quick", "sound"]), 0, "");
    assert!(
        fs::symlink_metadata(root.join("sound"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(shown(&root), SOUND);
}

pub(crate) fn special_files() {
    let (dir, root) = measured();
    // A comparison with itself is refused, so the page is that of a second run.
    let again = [
        "--bench",
        "--sample-size",
        "10",
        "--measurement-time",
        "0.01",
    ];
    let again = [
        &again[..],
        &["--warm-up-time", "0.01", "--save-baseline", "main", "sound"],
    ]
    .concat();
    expect(&mut bench(&root, &again), 0, "");
    let compare = |html: &str| {
        crossover(
            &root,
            &["compare", "main", root.to_str().unwrap(), "--html", html],
        )
    };
    let target = dir.path().join("target.html");
    let link = dir.path().join("link.html");
    fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let _ = compare(link.to_str().unwrap()).output().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("<html"));
    let output = compare("/dev/stdout")
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("<html"));

    // A pipe where a file should be has no writer: to open it would wait for ever.
    let sidecar = root.join("sound/cpu_fill/4/new/crossover.json");
    fs::remove_file(&sidecar).unwrap();
    let made = Command::new("mkfifo").arg(&sidecar).status().unwrap();
    assert!(made.success());
    let ids = shown(&root);
    assert!(ids.contains(&SOUND[1].to_owned()), "{ids:?}");
}
