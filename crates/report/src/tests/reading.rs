//! Results that must not be shown, those of other machines, records, and reports that cannot be made.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::report::{Options, of_results, read};
use crate::tests::committed::{
    RECORD, alone, benchmark, commit, machines, measured, newest, without_gpu,
};
use crate::tests::{folder, holds, report, written};
use crate::write::write;
use crossover_results::export::BESIDE_THE_PAGE;
use crossover_results::model::record::{Failure, RunRecord, Skip};
use crossover_results::store::machine_record::MACHINES;
use crossover_results::store::machine_results::MachineResults;
use crossover_results::store::stored_results::StoredResults;

/// Adds a run that follows, which has measured one benchmark.
fn with_later_run(change: impl FnOnce(&mut RunRecord)) -> StoredResults {
    let mut results = measured(&["matmul"]);
    let mut run = newest(&mut results).clone();
    run.run = "20270102T030405Z-1".into();
    run.started = "2027-01-02T03:04:05Z".into();
    run.confirmations.clear();
    change(&mut run);
    let mut own = benchmark(&mut results, "matmul/cpu/best/64").clone();
    own.run = Some(run.run.clone());
    results.with_run(&run, &[(own.id.clone(), own)].into())
}

#[test]
fn wrong_and_failed_results_are_not_shown() {
    let dir = folder();
    let mut results = measured(&["matmul"]);
    let wrong = benchmark(&mut results, "matmul/gpu/cublas/64");
    wrong.verified.as_mut().unwrap().error = 0.5;
    newest(&mut results).failed.push(Failure {
        id: "matmul/gpu/tiled/64".into(),
        error: "CUDA_ERROR_ILLEGAL_ADDRESS".into(),
    });
    let read = MachineResults::read_other(&commit(results, dir.path())).unwrap();
    for (id, reason) in [
        ("matmul/gpu/cublas/64", "wrong result"),
        ("matmul/gpu/tiled/64", "ILLEGAL_ADDRESS"),
    ] {
        assert!(read.benchmarks().all(|b| b.id != id), "{id}");
        let problem = read.problems.iter().find(|problem| problem.what == id);
        assert!(problem.unwrap().reason.contains(reason), "{problem:?}");
    }
}

#[test]
fn results_of_another_machine_are_left_out_and_named() {
    let dir = folder();
    let board = |run: &mut RunRecord| {
        run.environment.gpu.as_mut().unwrap().uuid = Some("GPU-33333333-4444".into());
    };
    let cpu = |run: &mut RunRecord| run.environment.cpu.model = "Another CPU".into();
    for other in [with_later_run(board), with_later_run(cpu)] {
        let report = report(other, dir.path());
        let ids: Vec<&str> = report.machine.benchmarks().map(|b| &*b.id).collect();
        assert_eq!(ids, ["matmul/cpu/best/64"]);
        let [problem] = &report.machine.problems[..] else {
            panic!("{:?}", report.machine.problems)
        };
        holds(&problem.what, &["NVIDIA H200 (board-"]);
        holds(&problem.reason, &["another machine measured here"]);
        // Its GPU is not taken for this one's.
        assert!(report.found.is_empty(), "{:?}", report.found);
    }
    // A later run of the same machine adds to its results, and replaces those that it has measured.
    let same = with_later_run(|_| {});
    let count = measured(&["matmul"]).benchmarks.len();
    let runs = report(same.clone(), dir.path()).machine.runs;
    let results: Vec<usize> = runs.iter().map(|(_, results)| *results).collect();
    assert_eq!(results[..2], [1, count - 1]);
    holds(
        &written(same, dir.path()).pages(),
        &["results of several runs", "of the run of 2026-"],
    );
}

/// Both a machine's own results and the record of the machine whose GPU stands in.
#[test]
fn rows_of_a_removed_group_are_left_out_in_one_line() {
    for has_gpu in [true, false] {
        let dir = folder();
        let groups = ["matmul", "nested_sine_f64"];
        let results = match has_gpu {
            true => measured(&groups),
            false => {
                let folder = dir.path().join(MACHINES).join("one");
                fs::create_dir_all(&folder).unwrap();
                fs::copy(machines().join(RECORD), folder.join("record.json.gz")).unwrap();
                without_gpu(&groups[..1])
            }
        };
        let written = written(results, dir.path());
        let reason = "this group no longer exists; it had 30 results here";
        let line = format!("left out: {}: {reason}\n", groups[1]);
        holds(&written.summary, &[&line]);
        let pages = written.pages();
        let row = format!("<code>{}</code></dt><dd>{reason}</dd>", groups[1]);
        holds(&pages, &[&row]);
        assert_eq!(pages.matches(groups[1]).count(), 1, "{has_gpu}");
    }
}

#[test]
fn a_report_that_cannot_be_made_says_what_to_do() {
    let dir = folder();
    let (none, out) = (dir.path().join("none"), dir.path().join("out"));
    let error = read(&none, &out, &Options::default()).unwrap_err();
    assert!(error.to_string().starts_with("no results under"));
    holds(&error.to_string(), &["cargo bench"]);
    assert!(!out.exists(), "nothing is written");
    let error = read(&none, &out, &alone(dir.path().join("nowhere"))).unwrap_err();
    holds(&error.to_string(), &["nowhere"]);
    // A file where the folder should be stops every user, root included.
    fs::write(&out, "in the way").unwrap();
    let report = report(measured(&["matmul"]), &out);
    let error = write(&report, &none, &out).unwrap_err();
    holds(&error.to_string(), &["out", "--out"]);
}

#[test]
fn a_record_beside_the_page_outlives_the_results() {
    let dir = folder();
    let (out, record) = (dir.path(), dir.path().join(BESIDE_THE_PAGE));
    written(measured(&["matmul"]), out);
    let before = fs::read(&record).unwrap();
    let with = alone(record.clone());
    let none = out.join("none");
    write(&read(&none, out, &with).unwrap(), &none, out).unwrap();
    assert_eq!(fs::read(&record).unwrap(), before);
    // With results its place is that of their record.
    let results = measured(&["fft"]);
    let error = of_results(results, &none, out, &with).unwrap_err();
    holds(&error.to_string(), &["record.json.gz would be replaced"]);
}

/// Of a machine with several records one stands for it on other pages. A machine with profiles is shown where there is
/// no GPU, though the other is newer.
#[test]
fn the_newest_record_of_the_size_set_default_with_profiles_stands_for_a_machine() {
    let dir = folder();
    let add = |gpu: &str, second: u32, size_set: &str, has_profiles: bool| {
        let mut results = measured(&["mlp_training"]);
        let mut run = newest(&mut results).clone();
        run.run = format!("20270102T0304{second:02}Z-1");
        run.started = format!("2027-01-02T03:04:{second:02}Z");
        run.size_set = size_set.into();
        run.environment.gpu.as_mut().unwrap().name = gpu.into();
        results.benchmarks.truncate(1);
        results.benchmarks[0].run = Some(run.run.clone());
        results.runs = vec![run];
        if !has_profiles {
            results.profiles.clear();
        }
        let record = commit(results, dir.path());
        let folder = dir.path().join(MACHINES).join(gpu);
        fs::create_dir_all(&folder).unwrap();
        fs::rename(&record, folder.join(record.file_name().unwrap())).unwrap();
    };
    let shown = || {
        let (read, problems) = MachineResults::read_machines(&dir.path().join(MACHINES));
        assert_eq!(problems, []);
        let started = read
            .iter()
            .map(|it| it.run.as_ref().unwrap().started[17..19].to_owned());
        started.collect::<Vec<_>>()
    };
    add("A", 5, "full", true);
    assert_eq!(shown(), ["05"]);
    add("A", 10, "default", true);
    add("A", 20, "default", true);
    add("A", 30, "full", true);
    add("A", 40, "default", false);
    add("B", 50, "default", false);
    assert_eq!(shown(), ["20", "50"]);
}

#[test]
fn a_record_that_cannot_be_read_is_told_in_a_sentence() {
    let dir = folder();
    let path = commit(measured(&["matmul"]), dir.path());
    let sound = fs::read(&path).unwrap();
    let inside = miniz_oxide::inflate::decompress_to_vec(&sound[10..]).unwrap();
    let inside = String::from_utf8(inside).unwrap();
    let newer = inside.replace("\"schema\":1}", "\"schema\":2}");
    assert_ne!(inside, newer);
    let mut flipped = sound.clone();
    flipped[sound.len() / 2] ^= 1;
    for (bytes, reason) in [
        (sound[..sound.len() / 2].to_vec(), "is damaged"),
        (flipped, "is damaged"),
        ([&sound[..], b"more"].concat(), "is damaged"),
        (inside.clone().into_bytes(), "is not packed by gzip"),
        (gzip("{}"), "is no record of a machine"),
        (gzip("[1, 2"), "is no record of a machine"),
        (gzip(&newer), "schema 2 is newer than 1"),
        (gzip(&" ".repeat(33 << 20)), "unpacks to more than 32 MiB"),
    ] {
        fs::write(&path, &bytes).unwrap();
        let error = read(dir.path(), dir.path(), &alone(path.clone())).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(reason), "{error}");
        assert!(error.starts_with(path.to_str().unwrap()), "{error}");
        // Among the committed machines it is left out and named.
        let report = report(without_gpu(&["matmul"]), dir.path());
        assert!(report.reference.is_none());
        let [problem] = &report.machine.problems[..] else {
            panic!("{:?}", report.machine.problems)
        };
        assert!(problem.reason.contains(reason), "{problem:?}");
    }
}

/// Nothing that names a user, a folder or a board is in a record, wherever it stood.
#[test]
fn a_record_tells_nothing_of_whoever_measured() {
    let dir = folder();
    let board = "GPU-01234567-89ab-cdef-0123-456789abcdef";
    let mut results = measured(&["matmul"]);
    let run = newest(&mut results);
    run.environment.gpu.as_mut().unwrap().uuid = Some(board.into());
    run.failed = vec![Failure {
        id: "matmul/gpu/lost/64".into(),
        error: "/home/someone/kernels/a.cu: no such file".into(),
    }];
    run.skipped = vec![Skip {
        id: "matmul/gpu/none".into(),
        reason: format!("{board} at ~someone has none"),
    }];
    let read = MachineResults::read_other(&commit(results, dir.path())).unwrap();
    let all = format!("{read:?}");
    holds(&all, &["no such file", "board-", "has none"]);
    for told in ["someone", "/home", "01234567-", board] {
        assert!(!all.contains(told), "{told}");
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}
