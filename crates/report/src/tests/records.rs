//! Records of machines: which of them is shown, what is wrong with one, and what none tells.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::report::{Options, read};
use crate::tests::fixture::Fixture;
use crate::tests::holds;
use crate::tests::machines::{commit, full, laptop};
use crossover_results::store::machine::MachineResults;
use crossover_results::store::machine_record::MACHINES;
use crossover_words::Clock;

const GOOD: &str = "matmul/gpu/cublas/64";

/// Of a machine with several records one stands for it on other pages.
#[test]
fn the_newest_record_of_the_profile_default_stands_for_a_machine() {
    let dir = crate::tests::folder();
    let machines = dir.path().join(MACHINES);
    let run = |seconds: u32, profile: &str| {
        commit(dir.path(), |root| {
            let mut f = Fixture::new(root, Some("Example GPU"));
            f.next_run(seconds);
            f.profile(profile);
            f.row(GOOD, Clock::Wall, f64::from(seconds));
            f
        });
    };
    let shown = || {
        let (read, problems) = MachineResults::read_machines(&machines);
        assert_eq!(problems, []);
        let [machine] = &read[..] else {
            panic!("{}", read.len())
        };
        machine.benchmarks().next().unwrap().median_ns
    };
    run(5, "full");
    assert_eq!(shown(), 5.0);
    run(10, "default");
    run(20, "default");
    run(30, "full");
    assert_eq!(shown(), 20.0);
}

#[test]
fn a_record_that_cannot_be_read_is_told_in_a_sentence() {
    let dir = crate::tests::folder();
    commit(dir.path(), |root| full(root, "Example GPU"));
    let folder = dir.path().join(MACHINES).read_dir().unwrap().next();
    let path = folder.unwrap().unwrap().path();
    let path = path.read_dir().unwrap().next().unwrap().unwrap().path();
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
        let options = Options {
            with: vec![path.clone()],
            no_reference: true,
        };
        let none = dir.path().join("none");
        let error = read(&none, dir.path(), &options).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(reason), "{error}");
        assert!(error.starts_with(path.to_str().unwrap()), "{error}");
        // Among the committed machines it is left out and named.
        let root = dir.path().join("criterion");
        laptop(&root);
        let report = read(&root, dir.path(), &Options::default()).unwrap();
        assert!(report.reference.is_none());
        let [problem] = &report.machine.problems[..] else {
            panic!("{:?}", report.machine.problems)
        };
        assert!(problem.reason.contains(reason), "{problem:?}");
    }
    fs::write(&path, sound).unwrap();
    let (machines, problems) = MachineResults::read_machines(&dir.path().join(MACHINES));
    assert_eq!((machines.len(), problems.len()), (1, 0));
}

/// Nothing that names a user, a folder or a board is in a record, wherever it stood.
#[test]
fn a_record_tells_nothing_of_whoever_measured() {
    let dir = crate::tests::folder();
    let board = "GPU-01234567-89ab-cdef-0123-456789abcdef";
    commit(dir.path(), |root| {
        let mut f = full(root, "Example GPU");
        f.gpu(|gpu| gpu.uuid = Some(board.to_owned()));
        f.fail(
            "matmul/gpu/lost/64",
            "/home/someone/kernels/a.cu: no such file",
        );
        f.skip("matmul/gpu/none", &format!("{board} at ~someone has none"));
        f
    });
    let (machines, _) = MachineResults::read_machines(&dir.path().join(MACHINES));
    let all = format!("{machines:?}");
    holds(&all, &["no such file", "board-"]);
    for told in ["someone", "/home", "01234567-", board] {
        assert!(!all.contains(told), "{told}");
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}
