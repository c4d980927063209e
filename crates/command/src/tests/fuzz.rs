//! Every kind of file that is read, damaged at random: nothing panics, hangs, writes elsewhere,
//! or lets what acts on a terminal through, from the reader to the last page.
//!
//! A damaged file goes through the readers in every case, and through all that is made of
//! results (report, comparison, export) in one case of four where the readers left nothing out,
//! and in one of sixteen where they did. A few cases run with every `cargo test`; with
//! `PROPTEST_CASES=100000 cargo test --lib fuzz` there are as many of each kind of file.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{TestCaseError, TestRunner};
use serde_json::Value;
use tempfile::TempDir;
use walkdir::WalkDir;

use crossover_advice::{self as advice, Advice, Estimate, Here, Question, Size, Work};

use crate::tests::damage::{Edit, damaged, edit, edit_of_bytes};
use crossover_compare::comparison::{FailOn, Options as Judging, compare};
use crossover_report::readme::{self, ReadmeError};
use crossover_report::report::{Options, ReportError};
use crossover_report::{profile, write};
use crossover_results::analysis::answer::crossover_answer;
use crossover_results::export::{BESIDE_THE_PAGE, ExportError, export};
use crossover_results::model::record::{Confirmation, Failure, PairedTimes, Sidecar, Skip};
use crossover_results::model::role::Residency;
use crossover_results::store::baseline::Baseline;
use crossover_results::store::layout::{BENCHMARK, NEW, PROFILE_FILE, RUNS, SAMPLE, SIDECAR};
use crossover_results::store::machine::MachineResults;
use crossover_results::store::profiles::planted::{eager, pieces, plant};
use crossover_results::store::source::Source;
use crossover_results::store::{runs, sidecar};
use crossover_words::Clock;
use crossover_words::text::is_plain;

/// What a process of its own measured.
fn duel(size: u64) -> PairedTimes {
    PairedTimes {
        size,
        cpu: "over-batch".into(),
        cpu_ns: (size * size) as f64,
        gpu_ns: 7000.0,
    }
}

/// Of each kind, without `PROPTEST_CASES`.
const CASES: u32 = 16;

/// No case takes a thousandth of it; a loop without an end takes more.
const HANG: Duration = Duration::from_secs(120);

/// Digits in a row that no number written for people needs; a size of 2⁶⁴ has 20.
const DIGITS: usize = 40;

const BASE: &str = "main";

#[test]
fn benchmark_json() {
    fuzz(|results| results.named(BENCHMARK), Results::check);
}

#[test]
fn sample_json() {
    fuzz(|results| results.named(SAMPLE), Results::check);
}

#[test]
fn sidecar_json() {
    fuzz(|results| results.named(SIDECAR), Results::check);
}

#[test]
fn profile_json() {
    fuzz(|results| results.named(PROFILE_FILE), Results::check);
}

#[test]
fn run_record() {
    fuzz(|results| results.below(RUNS), Results::check);
}

/// What is inside of the record of a machine; its checksum is sound.
#[test]
fn machine_record() {
    fuzz(
        |results| vec![results.record()],
        |results, case| {
            let text = fs::read(results.record()).unwrap();
            fs::write(results.packed(), gzip(&text)).unwrap();
            results.check_record(case)
        },
    );
}

/// A record whose bytes are not those that were written is refused, or has all its numbers.
#[test]
fn torn_machine_record() {
    fuzz_by(
        edit_of_bytes(),
        |results| vec![results.packed()],
        Results::check_torn,
    );
}

#[test]
fn readme_text() {
    fuzz(
        |results| vec![results.readme()],
        |results, _| results.in_readme(&results.root(), results.dir.path()),
    );
}

#[test]
fn thresholds_json() {
    fuzz(
        |results| vec![results.thresholds()],
        Results::check_thresholds,
    );
}

/// Damages one of the files that `of` names, again and again, and has each case checked by its
/// number.
fn fuzz(of: fn(&Results) -> Vec<PathBuf>, check: fn(&Results, u64) -> Result<(), String>) {
    fuzz_by(edit(), of, check);
}

fn fuzz_by(
    edit: impl Strategy<Value = Edit>,
    of: fn(&Results) -> Vec<PathBuf>,
    check: fn(&Results, u64) -> Result<(), String>,
) {
    let results = Results::new();
    let files = of(&results);
    assert!(!files.is_empty());
    let config = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(CASES),
    };
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..config
    });
    let watch = Watch::start();
    let case = Cell::new(0u64);
    let damage = (
        any::<Index>(),
        proptest::collection::vec(edit, 1..4),
        any::<bool>(),
    );
    let outcome = runner.run(&damage, |(file, edits, bind)| {
        watch.begin();
        case.set(case.get() + 1);
        let file = file.get(&files);
        let sound = fs::read(file).expect("a file of the fixture");
        let damaged = damaged(&sound, &edits);
        fs::write(file, &damaged).expect("the fixture can be written");
        // Other samples than the sidecar's are stale. With their digest in it they are used.
        let beside = file.with_file_name(SIDECAR);
        let bound = (bind && file.ends_with(SAMPLE)).then(|| fs::read(&beside));
        if bound.is_some() {
            let mut read: Sidecar = serde_json::from_slice(&fs::read(&beside).unwrap()).unwrap();
            sidecar::write(&mut read, file.parent().unwrap()).unwrap();
        }
        let checked = check(&results, case.get());
        fs::write(file, &sound).expect("the fixture can be written");
        if let Some(sound) = bound {
            fs::write(&beside, sound.unwrap()).unwrap();
        }
        checked.map_err(TestCaseError::fail)
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Results of a real run in a folder of their own, and all that is made of them.
struct Results {
    dir: TempDir,
    /// Size of each file but those that [`check`](Self::check) may write.
    files: BTreeMap<PathBuf, u64>,
    /// What the record holds of each benchmark.
    numbers: Vec<String>,
}

impl Results {
    fn new() -> Self {
        let dir = TempDir::new().expect("a temporary folder");
        let mut this = Self {
            dir,
            files: BTreeMap::new(),
            numbers: Vec::new(),
        };
        let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored/criterion");
        let group = stored.join("matmul_batched");
        for entry in WalkDir::new(&group).into_iter().flatten() {
            if !entry.file_type().is_file() {
                continue;
            }
            let file = entry.path().file_name().unwrap();
            let result = entry.path().ancestors().nth(2).unwrap();
            let to = this.root().join(result.strip_prefix(&stored).unwrap());
            for name in [NEW, BASE] {
                fs::create_dir_all(to.join(name)).unwrap();
                fs::copy(entry.path(), to.join(name).join(file)).unwrap();
            }
        }
        // With every field in use.
        for path in this.named(SIDECAR) {
            let mut read: Sidecar = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            read.extra = [("pool_peak_bytes".to_owned(), 1024.0)].into();
            read.notes = vec!["a note".to_owned()];
            sidecar::write(&mut read, path.parent().unwrap()).unwrap();
        }
        for profile in [
            eager("matmul_batched/gpu/cublas-eager/64"),
            pieces("matmul_batched/gpu/cublas/64", 3),
        ] {
            plant(&this.root(), &profile);
        }
        let mut run = runs::read(&stored, "20261121T141229Z-419").unwrap();
        run.skipped.push(Skip {
            id: "matmul_batched/gpu/absent".into(),
            reason: "there is none".into(),
        });
        run.failed.push(Failure {
            id: "matmul_batched/gpu/failed/64".into(),
            error: "an error".into(),
        });
        run.confirmations = vec![Confirmation {
            group: "matmul_batched".into(),
            question: Residency::Queued,
            gpu: "cublas-eager".into(),
            clock: Clock::Events,
            gpu_machine: None,
            gpu_run: None,
            range: (16, 256),
            processes: vec![[64, 80, 96, 256].map(duel).into(); 3],
        }];
        runs::write(&run, &this.root()).unwrap();
        fs::write(
            this.readme(),
            format!("# A\n{}\n{}\n", readme::BEGIN, readme::END),
        )
        .unwrap();
        write::refresh(&this.root(), &this.out(), &this.options(&this.root())).unwrap();
        fs::rename(this.out().join(BESIDE_THE_PAGE), this.packed()).unwrap();
        fs::write(this.record(), unzip(&fs::read(this.packed()).unwrap())).unwrap();
        fs::rename(this.out().join("thresholds.json"), this.thresholds()).unwrap();
        this.files = this.tree();
        this.numbers = numbers(&MachineResults::read_other(&this.packed()).unwrap()[0]);
        assert_eq!(
            MachineResults::read(&this.root(), "here", false).problems,
            []
        );
        this
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("criterion")
    }

    fn readme(&self) -> PathBuf {
        self.dir.path().join("README.md")
    }

    /// The record of the results, as JSON.
    fn record(&self) -> PathBuf {
        self.dir.path().join("record.json")
    }

    /// The record of the results.
    fn packed(&self) -> PathBuf {
        self.dir.path().join("record.json.gz")
    }

    /// What programs ask.
    fn thresholds(&self) -> PathBuf {
        self.dir.path().join("thresholds.json")
    }

    /// Where everything is written.
    fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    fn tree(&self) -> BTreeMap<PathBuf, u64> {
        let out = self.out();
        WalkDir::new(self.dir.path())
            .into_iter()
            .filter_entry(|entry| entry.path() != out)
            .map(|entry| entry.expect("readable"))
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| {
                let size = entry.metadata().expect("readable").len();
                (entry.into_path(), size)
            })
            .collect()
    }

    /// The files of that name, in the newest results where it is one of a benchmark.
    fn named(&self, name: &str) -> Vec<PathBuf> {
        let all = self.tree().into_keys();
        let old = |path: &PathBuf| path.parent().unwrap().ends_with(BASE) && !self.files.is_empty();
        all.filter(|path| path.ends_with(name) && !old(path))
            .collect()
    }

    fn below(&self, folder: &str) -> Vec<PathBuf> {
        let folder = self.root().join(folder);
        let all = self.tree().into_keys();
        all.filter(|path| path.starts_with(&folder)).collect()
    }

    /// Reads the results as they are now, and in some cases makes of them all that there is.
    fn check(&self, case: u64) -> Result<(), String> {
        let root = self.root();
        let here = MachineResults::read(&root, "here", false);
        let side = |name: &str| {
            Baseline::read(&Source {
                root: root.clone(),
                baseline: name.to_owned(),
                label: name.to_owned(),
            })
        };
        let new = side(NEW);
        for problem in &new.problems {
            plain("a problem", problem)?;
        }
        for b in here.benchmarks() {
            plain("an id", &b.id)?;
        }
        for p in &here.profiles {
            for line in profile::text(&p.profile, &p.dir).lines() {
                plain("a profile's table", line)?;
            }
        }
        crossover_answer::find(&here, &[]);
        let every = match here.problems.is_empty() {
            true => 4,
            false => 16,
        };
        if case.is_multiple_of(every) {
            self.reported(&root, self.dir.path())?;
            self.in_readme(&root, self.dir.path())?;
            self.compared(&side(BASE), &new)?;
            self.exported()?;
        }
        Ok(())
    }

    /// Reads the record as it is now, and in some cases makes a page and a README of it alone.
    fn check_record(&self, case: u64) -> Result<(), String> {
        let machines = match MachineResults::read_other(&self.packed()) {
            Ok(machines) => machines,
            Err(error) => return plain("an error", &error.to_string()),
        };
        for machine in &machines {
            for problem in &machine.problems {
                plain("a problem", &problem.what)?;
                plain("a problem's reason", &problem.reason)?;
            }
            for b in machine.benchmarks() {
                plain("an id", &b.id)?;
                let interval = b.interval_ns.unwrap_or((b.median_ns, b.median_ns));
                if !(interval.0 > 0.0 && interval.0 <= b.median_ns && b.median_ns <= interval.1) {
                    return Err(format!("{} takes {} ns", b.id, b.median_ns));
                }
            }
            crossover_answer::find(machine, &[]);
        }
        let every = match machines[0].problems.is_empty() {
            true => 4,
            false => 16,
        };
        if case.is_multiple_of(every) {
            let none = self.out().join("none");
            self.reported(&none, &self.packed())?;
            self.in_readme(&none, &self.packed())?;
        }
        Ok(())
    }

    fn check_torn(&self, _: u64) -> Result<(), String> {
        match MachineResults::read_other(&self.packed()) {
            Err(error) => plain("an error", &error.to_string()),
            Ok(torn) if numbers(&torn[0]) == self.numbers => Ok(()),
            Ok(_) => Err("other numbers than were written".into()),
        }
    }

    /// Asks everything that can be asked, in shapes and sizes near and far.
    fn check_thresholds(&self, _: u64) -> Result<(), String> {
        let advice = match Advice::open(self.thresholds()) {
            Ok(advice) => advice.check(&Here::detect()),
            Err(error) => return plain("an error", &error.to_string()),
        };
        let sizes = [1e-300, 0.5, 1.0, 300.0, 1e18, 1e300].map(Size::from);
        let shapes = [(1, 2, 3), (u64::MAX, 1, u64::MAX), (300, 300, 300)].map(Size::from);
        for operation in &advice.thresholds().operations {
            for size in sizes.into_iter().chain(shapes) {
                for data in advice::Residency::ALL {
                    let question = Question::new(&operation.name, size).data(data);
                    for question in [question, question.reuse(u32::MAX).cold()] {
                        let estimate = advice.decide(&question).estimate;
                        let in_order = |e: &Estimate| e.low <= e.high || e.speedup.is_nan();
                        if !estimate.as_ref().is_none_or(in_order) {
                            return Err(format!("{question:?} {estimate:?}"));
                        }
                    }
                }
            }
            for place in &operation.places {
                place.decide_all();
            }
        }
        let work = Work {
            flop: 1e9,
            bytes: 1e6,
            upload: 1e6,
            ..Work::default()
        };
        let _ = advice::Residency::ALL.map(|data| advice.moved(&work, data));
        Ok(())
    }

    /// The same results once more, as those of another machine.
    fn options(&self, with: &Path) -> Options {
        Options {
            with: vec![with.to_owned()],
            no_reference: true,
        }
    }

    fn reported(&self, root: &Path, with: &Path) -> Result<(), String> {
        let out = self.out();
        match write::refresh(root, &out, &self.options(with)) {
            Ok(written) => {
                for line in written.to_string().lines() {
                    plain("the terminal's table", line)?;
                }
                shown(&written.page)?;
                let record = out.join(BESIDE_THE_PAGE);
                if record.is_file() {
                    MachineResults::read_other(&record).map_err(|e| e.to_string())?;
                }
            }
            // Those of a broken run record are another machine's.
            Err(ReportError::NoResults { .. } | ReportError::NothingThere { .. }) => {}
            Err(error) => return Err(error.to_string()),
        }
        self.plots(&out.join("plots"))
    }

    fn in_readme(&self, root: &Path, with: &Path) -> Result<(), String> {
        let out = self.out();
        let readme = out.join("README.md");
        fs::create_dir_all(&out).unwrap();
        fs::copy(self.readme(), &readme).unwrap();
        match readme::refresh(&readme, root, &out, &self.options(with)) {
            Ok(()) => {
                // Around its markers stands what its author wrote.
                let text = fs::read_to_string(&readme).unwrap();
                let ours = text.split_once(readme::BEGIN).unwrap().1;
                lines("the README", ours.split_once(readme::END).unwrap().0)?;
            }
            Err(
                ReadmeError::Report(_) | ReadmeError::Markers { .. } | ReadmeError::Read { .. },
            ) => {}
            Err(error) => return Err(error.to_string()),
        }
        self.plots(&out.join("docs/plots"))
    }

    fn plots(&self, folder: &Path) -> Result<(), String> {
        for plot in fs::read_dir(folder).into_iter().flatten() {
            shown(&plot.unwrap().path())?;
        }
        self.nothing_beside()
    }

    fn compared(&self, base: &Baseline, new: &Baseline) -> Result<(), String> {
        let judging = Judging {
            filter: None,
            threshold: 0.01,
            ..Judging::default()
        };
        let compared = compare(
            std::slice::from_ref(base),
            std::slice::from_ref(new),
            &judging,
        );
        // It may be coloured; the Markdown has the same cells.
        compared.text(true);
        for text in [compared.markdown(), compared.page()] {
            lines("the comparison", &text)?;
        }
        serde_json::from_str::<Value>(&compared.json(FailOn::default()))
            .map_err(|e| format!("the comparison as JSON: {e}"))?;
        Ok(())
    }

    fn exported(&self) -> Result<(), String> {
        let to = self.out().join("exported");
        let outcome = match export(&self.out(), &to) {
            Ok(exported) => exported
                .left_out
                .iter()
                .try_for_each(|reason| plain("a line of the export", reason)),
            Err(ExportError::NoRecord(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        fs::remove_dir_all(&to).ok();
        outcome.and_then(|()| self.nothing_beside())
    }

    /// But the damaged file itself.
    fn nothing_beside(&self) -> Result<(), String> {
        let now = self.tree();
        if now.keys().eq(self.files.keys()) {
            return Ok(());
        }
        let new: Vec<_> = (now.keys())
            .filter(|path| !self.files.contains_key(*path))
            .collect();
        Err(format!("written elsewhere: {new:?}"))
    }
}

fn numbers(machine: &MachineResults) -> Vec<String> {
    let benchmarks = machine.benchmarks();
    benchmarks
        .map(|benchmark| format!("{benchmark:?}"))
        .collect()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

fn unzip(packed: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut text).unwrap();
    text
}

fn plain(what: &str, text: &str) -> Result<(), String> {
    match is_plain(text) {
        true => Ok(()),
        false => Err(format!("{what} acts on what shows it: {text:?}")),
    }
}

/// A file for people.
fn shown(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    lines(&path.display().to_string(), &text)
}

fn lines(what: &str, text: &str) -> Result<(), String> {
    if text.contains("<script>alert") {
        return Err(format!("{what} holds a foreign script"));
    }
    // What the page's script reads is no text for people.
    let (text, _) = text.split_once("<script").unwrap_or((text, ""));
    for line in text.lines() {
        plain(what, line)?;
        if let Some(number) = line
            .split(|c: char| !c.is_ascii_digit() && c != ',')
            .find(|run| run.len() > DIGITS)
        {
            return Err(format!("{what} has a number of many digits: {number}"));
        }
    }
    Ok(())
}

/// Ends the process where one case does not end: no panic could.
struct Watch(Arc<Mutex<Instant>>);

impl Watch {
    fn start() -> Self {
        let began = Arc::new(Mutex::new(Instant::now()));
        let seen: Weak<Mutex<Instant>> = Arc::downgrade(&began);
        std::thread::spawn(move || {
            while let Some(began) = seen.upgrade() {
                if began.lock().unwrap().elapsed() > HANG {
                    eprintln!("a case did not end in {HANG:?}");
                    std::process::abort();
                }
                drop(began);
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        Self(began)
    }

    fn begin(&self) {
        *self.0.lock().unwrap() = Instant::now();
    }
}
