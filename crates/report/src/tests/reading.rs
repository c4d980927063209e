//! Results that must not be shown, those of other machines, and reports that cannot be made.

use std::fs;
use std::path::Path;

use crate::report::{Options, ReportError, read};
use crate::tests::fixture::Fixture;
use crate::tests::holds;
use crate::tests::machines::laptop;
use crate::tests::refreshed;
use crate::write;
use crossover_results::model::GpuInfo;
use crossover_results::store::layout::SIDECAR;
use crossover_results::store::machine::MachineResults;
use crossover_words::Clock;

const GOOD: &str = "matmul/gpu/cublas/64";
const BAD: &str = "matmul/gpu/tiled/64";

fn two(root: &Path) -> Fixture {
    let f = Fixture::new(root, Some("Example GPU"));
    f.row(GOOD, Clock::EventsGated, 1000.0);
    f.row(BAD, Clock::EventsGated, 2000.0);
    f
}

fn ids(machine: &MachineResults) -> Vec<&str> {
    machine.benchmarks().map(|b| b.id.as_str()).collect()
}

#[test]
fn wrong_failed_and_foreign_machine_results_are_not_shown() {
    let dir = crate::tests::folder();
    let mut f = two(dir.path());
    let path = f.dir(BAD).join(SIDECAR);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("1.5e-7", "0.5")).unwrap();
    let machine = MachineResults::read(dir.path(), "here", false);
    assert_eq!(ids(&machine), [GOOD]);
    assert!(machine.problems[0].reason.contains("wrong"));

    fs::write(&path, text).unwrap();
    f.fail(BAD, "CUDA_ERROR_ILLEGAL_ADDRESS");
    let machine = MachineResults::read(dir.path(), "here", false);
    assert_eq!(ids(&machine), [GOOD]);
    assert!(machine.problems[0].reason.contains("ILLEGAL_ADDRESS"));

    // A later run on another machine, in the same folder.
    let run = dir.path().join("runs/20260102T030405Z-1.json");
    let later = fs::read_to_string(&run)
        .unwrap()
        .replace("2026-01-02", "2026-02-02")
        .replace("20260102T", "20260202T")
        .replace("Example CPU 9000", "Another CPU");
    fs::write(dir.path().join("runs/20260202T030405Z-1.json"), later).unwrap();
    let machine = MachineResults::read(dir.path(), "here", false);
    assert!(ids(&machine).is_empty());
    let mut problems = machine.problems.iter();
    assert!(problems.any(|problem| problem.reason.contains("another machine measured here")));
}

#[test]
fn results_of_a_second_board_are_another_machines() {
    let (dir, root) = crate::tests::folders();
    let mut f = Fixture::new(&root, Some("Example GPU"));
    let uuid = |uuid: &'static str| move |gpu: &mut GpuInfo| gpu.uuid = Some(uuid.into());
    f.gpu(uuid("GPU-11111111-2222"));
    for n in [64, 128] {
        f.row(&format!("matmul/cpu/best/{n}"), Clock::Wall, 1e5);
        f.row(&format!("matmul/gpu/cublas-eager/{n}"), Clock::Events, 1e4);
    }
    f.next_run(30);
    f.gpu(uuid("GPU-33333333-4444"));
    // The CPU of the second one is fifty times as fast.
    for n in [64, 128] {
        f.row(&format!("matmul/cpu/best/{n}"), Clock::Wall, 2e3);
    }
    let report = read(&root, dir.path(), &Options::default()).unwrap();
    assert_eq!(
        ids(&report.machine),
        ["matmul/cpu/best/64", "matmul/cpu/best/128"]
    );
    let [other] = &report.machine.problems[..] else {
        panic!("{:?}", report.machine.problems)
    };
    assert_eq!(other.what, "Example GPU (GPU-11111111)");
    // Its GPU is not taken for this one's.
    assert!(report.found.is_empty(), "{:?}", report.found);

    // The first board again: one machine with two runs.
    f.next_run(45);
    f.gpu(uuid("GPU-11111111-2222"));
    f.row("matmul/cpu/best/64", Clock::Wall, 1e5);
    let report = read(&root, dir.path(), &Options::default()).unwrap();
    assert_eq!(
        ids(&report.machine),
        [
            "matmul/cpu/best/64",
            "matmul/gpu/cublas-eager/64",
            "matmul/gpu/cublas-eager/128"
        ]
    );
    let results: Vec<usize> = report.machine.runs.iter().map(|(_, n)| *n).collect();
    assert_eq!(results, [1, 2]);
    let (page, ..) = refreshed(&root, dir.path());
    assert!(page.contains("Results of several runs"));
    assert!(page.contains("of the run of 2026-01-02 03:04:05 UTC"));
}

#[test]
fn no_result_says_what_to_run() {
    let dir = crate::tests::folder();
    let out = dir.path().join("out");
    let error = write::refresh(&dir.path().join("none"), &out, &Options::default()).unwrap_err();
    assert!(matches!(error, ReportError::NoResults { .. }));
    assert!(error.to_string().contains("cargo bench"));
    assert!(!out.exists(), "nothing is written");
    let with = Options {
        with: vec![dir.path().join("nowhere")],
        no_reference: false,
    };
    let error = write::refresh(&dir.path().join("none"), &out, &with).unwrap_err();
    assert!(error.to_string().contains("nowhere"));
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_with_its_path() {
    let (dir, root) = crate::tests::folders();
    two(&root);
    // A file where the folder should be stops every user, root included.
    let out = dir.path().join("out");
    fs::write(&out, "in the way").unwrap();
    let error = write::refresh(&root, &out, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("out"), "{error}");
    assert!(error.to_string().contains("--out"), "{error}");
}

#[test]
fn benchmarks_that_an_unfinished_run_missed_are_listed() {
    let (dir, root) = crate::tests::folders();
    let mut f = laptop(&root);
    f.skip("matmul/cpu/rayon/3", "does not fit");
    f.fail("matmul/cpu/rayon/5", "wrong result");
    let page = || refreshed(&root, dir.path()).0;
    assert!(!page().contains("Not reached"));
    f.unfinished(&[
        "matmul/cpu/best/64",
        "matmul/cpu/rayon/3",
        "matmul/cpu/rayon/5",
        "matmul/cpu/rayon/7",
    ]);
    let html = page();
    holds(&html, &["Not reached: 1"]);
    assert!(html.contains("<code>matmul/cpu/rayon/7</code></dt><dd>the run ended before it"));
}
