//! Calibrations with closures whose times differ by known factors, and what may happen to their files.

use std::cell::Cell;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crossover_advice::Advice;
use crossover_advice::calibration::{Calibrated, Calibration, Faster, pair};

const SIZES: [usize; 6] = [10, 20, 40, 1_000, 2_000, 4_000];

/// Enough on a machine that does ten other things.
const LONG: Duration = Duration::from_secs(60);

/// Lets the other threads wait for so many microseconds.
fn spin(us: usize) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(us as u64) {
        std::hint::spin_loop();
    }
}

fn calibration(folder: &Path) -> Calibration {
    Calibration::new("planted")
        .sizes(SIZES)
        .budget(LONG)
        .folder(folder)
        // Needs no idle core, so other tests do not disturb it.
        .threads(0)
}

/// The first takes as many microseconds as its size, the second 200: they cross at 200.
fn planted(calibration: Calibration) -> Calibrated {
    calibration.between(|us| spin(*us), |_| spin(200))
}

/// Reads what was kept: measuring would panic.
fn kept(calibration: Calibration) -> Calibrated {
    calibration.between(|_| panic!("measures again"), |_| panic!("measures again"))
}

#[track_caller]
fn is_found(choice: &Calibrated) {
    assert_eq!(choice.problem(), None);
    let at = |size| choice.at(size);
    assert_eq!([10, 30, 40].map(at), [Faster::First; 3]);
    assert_eq!([1_000, 3_000, 4_000].map(at), [Faster::Second; 3]);
    // The curve goes on.
    assert_eq!([1, 1_000_000].map(at), [Faster::First, Faster::Second]);
    // Between the sizes on either side of the crossing.
    assert_eq!(at(200), Faster::Unsure);
}

#[test]
fn a_crossing_is_found_and_read_by_later_processes() {
    let folder = tempfile::tempdir().unwrap();
    is_found(&planted(calibration(folder.path())));
    is_found(&kept(calibration(folder.path())));
    let others = [
        calibration(folder.path()).threads(1_000),
        calibration(folder.path()).names(["one", "other"]),
        calibration(folder.path()).version("2"),
        Calibration::new("another")
            .sizes(SIZES)
            .folder(folder.path()),
        calibration(folder.path()).sizes([10, 1_000]),
    ];
    for other in others {
        let measured = Cell::new(false);
        let calls = |_: &usize| {
            measured.set(true);
            spin(1);
        };
        other.budget(LONG).between(calls, |_| spin(100));
        assert!(measured.get(), "another key has another file");
    }
}

#[test]
fn the_fastest_of_three_is_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let spins = |us: usize| {
        spin(us);
        Ok(())
    };
    let choice = calibration(folder.path()).among([
        &mut |us: &usize| spins(*us),
        &mut |_| spins(200),
        &mut |us| spins(20 * us),
    ]);
    let at = |size| choice.fastest(size);
    assert_eq!(
        [10, 40, 1_000, 4_000].map(at),
        [Some(0), Some(0), Some(1), Some(1)]
    );
    assert_eq!(at(200), None);
}

#[test]
fn inputs_are_prepared_outside_of_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let prepared = calibration(folder.path()).prepare(|us| {
        spin(1_000);
        us.to_string()
    });
    is_found(&prepared.between(|us| spin(us.parse().unwrap()), |_| spin(200)));
}

#[test]
fn without_a_measurement_the_caller_keeps_its_default() {
    let folder = tempfile::tempdir().unwrap();
    let new = || calibration(folder.path()).names(["serial", "parallel"]);
    #[track_caller]
    fn is_unsure(choice: &Calibrated, sentence: &str) {
        assert_eq!(choice.at(10), Faster::Unsure);
        let problem = choice.problem().unwrap_or_default();
        assert!(problem.contains(sentence), "{problem}");
    }
    let panics = |us: &usize| assert!(*us < 40, "planted");
    is_unsure(
        &new().between(|_| (), panics),
        "parallel panicked at size 40",
    );
    let fails = new().among([&mut |_: &usize| Ok(()), &mut |_| Err("no device".into())]);
    is_unsure(
        &fails,
        "parallel failed at size 10, so nothing is decided: no device",
    );
    let nothing = new().sizes([200_000]).between(|us| spin(*us), |_| ());
    is_unsure(&nothing, "parallel takes less than a hundred-thousandth");
    let nothing = new().prepare(|_| -> usize { panic!("planted") });
    is_unsure(
        &nothing.between(|_| (), |_| ()),
        "`prepare` panicked at size 10",
    );
    for sizes in [vec![], vec![0, 10]] {
        let nothing = new().sizes(sizes).between(|_| (), |_| ());
        is_unsure(&nothing, "name sizes above zero");
    }
    let calls = Cell::new(0);
    let slow = new().budget(Duration::from_millis(20)).between(
        |_| (),
        |_| {
            calls.set(calls.get() + 1);
            thread::sleep(Duration::from_millis(50));
        },
    );
    is_unsure(&slow, "20 ms were over");
    assert!(calls.get() <= 1, "ends when the call returns");
    let kept = fs::read_dir(folder.path()).unwrap();
    assert_eq!(kept.count(), 0, "nothing is kept");
}

/// The file of a result, with a change.
fn changed(folder: &Path, change: impl Fn(&mut serde_json::Value)) {
    let mut files = fs::read_dir(folder).unwrap();
    let path = files.next().unwrap().unwrap().path();
    let mut file = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut file);
    fs::write(path, file.to_string()).unwrap();
}

#[test]
fn undecided_sizes_are_measured_again_by_a_few_processes() {
    let folder = tempfile::tempdir().unwrap();
    planted(calibration(folder.path()));
    // As beside another program: both sides alike at one size.
    let undecided = |file: &mut serde_json::Value| {
        let point = &mut file["operations"][0]["places"][0]["points"][0];
        point["cpu_ns"] = 1e4.into();
        point["gpu_ns"] = 1e4.into();
        point["low"] = 0.8.into();
        point["high"] = 1.25.into();
    };
    changed(folder.path(), undecided);
    let measured = Cell::new(0);
    let same = |size: &usize| {
        assert_eq!(*size, SIZES[0], "decided sizes stand");
        measured.set(measured.get() + 1);
        spin(300);
    };
    for attempt in 2..=4 {
        let before = measured.get();
        let choice = calibration(folder.path()).between(same, |_| spin(300));
        assert!(measured.get() > before, "attempt {attempt}");
        assert_eq!(choice.at(4_000), Faster::Second);
    }
    assert_eq!(kept(calibration(folder.path())).at(10), Faster::Unsure);
    changed(folder.path(), |file| file["attempts"] = 1.into());
    changed(folder.path(), undecided);
    assert_eq!(planted(calibration(folder.path())).at(10), Faster::First);
}

#[test]
fn a_disturbed_result_is_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    // The other way round, as another program may have had it.
    calibration(folder.path()).between(|_| spin(200), |us| spin(*us));
    changed(folder.path(), |file| file["disturbed_by"] = 1.0.into());
    is_found(&planted(calibration(folder.path())));
    is_found(&kept(calibration(folder.path())));
}

/// The first call of the second closure takes 200 ms.
#[test]
fn one_call_pays_for_the_first_call_of_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let is_first = Cell::new(true);
    let choice = calibration(folder.path()).between(
        |_| spin(40),
        |_| spin(if is_first.replace(false) { 200_000 } else { 10 }),
    );
    for choice in [choice, kept(calibration(folder.path()))] {
        assert_eq!(choice.at(10), Faster::Second);
        assert_eq!(choice.decide_for(10, 1), Faster::First);
        assert_eq!(choice.decide_for(10, 100_000), Faster::Second);
        assert!(choice.file().unwrap().starts_with(folder.path()));
    }
}

#[test]
fn a_file_that_is_damaged_or_of_another_machine_is_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    planted(calibration(folder.path()));
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    let path = files[0].as_ref().unwrap().path();
    assert_eq!(files.len(), 1, "nothing but the result is left");
    let text = fs::read_to_string(&path).unwrap();
    let machine = Advice::open(&path).unwrap().thresholds().machine.clone();
    let threads = format!("\"threads\":{}", machine.threads);
    let other = text.replace(&threads, "\"threads\":12345");
    for damaged in [
        "",
        &text[..text.len() / 2],
        &other,
        &text.replace("number 2", "?"),
    ] {
        assert_ne!(damaged, text);
        fs::write(&path, damaged).unwrap();
        is_found(&planted(calibration(folder.path())));
        is_found(&kept(calibration(folder.path())));
    }
}

#[test]
fn a_folder_that_cannot_be_written_keeps_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // Also a superuser cannot write into a file as into a folder.
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let choice = planted(calibration(&file));
    let problem = choice.problem().unwrap();
    for part in ["for this process alone", "file"] {
        assert!(problem.contains(part), "{problem}");
    }
    // Measured times count here.
    assert_eq!(choice.at(10), Faster::First);
}

#[test]
#[ignore = "started by other tests, without a data folder"]
fn calibrates_without_a_data_folder() {
    let choice = Calibration::new("planted")
        .sizes([1])
        .between(|_| spin(1), |_| spin(10));
    let problem = choice.problem().unwrap();
    assert!(problem.contains("there is no data folder"), "{problem}");
    assert_eq!(choice.file(), None);
}

#[test]
fn without_a_data_folder_nothing_is_kept_and_that_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path(), "calibrates_without_a_data_folder");
    for variable in ["HOME", "XDG_DATA_HOME", "LOCALAPPDATA"] {
        command.env_remove(variable);
    }
    assert!(command.status().unwrap().success());
}

/// Starts this test in a process of its own that calibrates into a folder.
fn child(folder: &Path, test: &str) -> Child {
    command(folder, test).spawn().unwrap()
}

fn command(folder: &Path, test: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &format!("calibration::{test}")]);
    command.args(["--ignored", "--nocapture"]);
    command.env("CALIBRATION_FOLDER", folder);
    command
}

#[test]
#[ignore = "started by other tests"]
fn calibrates_once() {
    let folder = env::var_os("CALIBRATION_FOLDER").unwrap();
    is_found(&planted(calibration(Path::new(&folder))));
}

#[test]
#[ignore = "started by other tests, and killed"]
fn calibrates_for_ever() {
    let folder = env::var_os("CALIBRATION_FOLDER").unwrap();
    for i in 0.. {
        let calibration = Calibration::new(i.to_string()).sizes([1, 2]);
        calibration
            .folder(&folder)
            .between(|_| spin(1), |_| spin(10));
    }
}

#[test]
fn two_processes_calibrate_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let children = [(); 2].map(|()| child(folder.path(), "calibrates_once"));
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    is_found(&kept(calibration(folder.path())));
}

#[test]
fn a_process_that_is_killed_leaves_whole_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = child(folder.path(), "calibrates_for_ever");
    let results = || {
        let files = fs::read_dir(folder.path()).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|it| it == "json"))
            .collect::<Vec<_>>()
    };
    while results().len() < 20 {
        assert!(child.try_wait().unwrap().is_none());
        thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for path in results() {
        Advice::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

#[test]
fn a_pair_says_which_is_faster() {
    // A machine that does other things may interrupt a short call more than once.
    let mut pairs = (0..100).map(|_| pair(LONG, || spin(400), || spin(20)).unwrap());
    let found = pairs.find(|pair| 10.0 < pair.low).expect("so much faster");
    assert!(
        (found.low..=found.high).contains(&found.speedup),
        "{found:?}"
    );
    let words = found.to_string();
    assert!(words.starts_with("the second is "), "{words}");
    assert!(words.ends_with(" pairs"), "{words}");
    assert_eq!(pair(Duration::ZERO, || (), || ()), None);
}
