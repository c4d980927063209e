//! Every kind of file that is read, damaged at random: nothing panics, is written elsewhere, or acts on the
//! terminal or page that shows it. `FUZZ_CASES=10000 FUZZ_FIRST=96 cargo test --lib damaged` tries 10,000
//! more cases, from case 96 on.

#[path = "../../tests/cli/h200.rs"]
mod h200;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value, json};
use tempfile::TempDir;
use walkdir::WalkDir;

use crossover_advice::{Advice, Question, Residency, Size};
use crossover_compare::comparison::{FailOn, compare};
use crossover_compare::verdict::Options as Judging;
use crossover_report::report::{self, Options};
use crossover_report::{profile, write};
use crossover_results::analysis::answer::crossover_answer;
use crossover_results::export::{BESIDE_THE_PAGE, ExportError, export};
use crossover_results::store::baseline::Baseline;
use crossover_results::store::layout::NEW;
use crossover_results::store::machine_results::MachineResults;
use crossover_results::store::planted::{plant_profile, recorded};
use crossover_words::text::is_plain;

/// Without `FUZZ_CASES`. Every fourth case makes a page, a comparison and a record.
const CASES: u64 = 96;

/// Digits in a row that no number written for people needs; a size of 2⁶⁴ has 20.
const DIGITS: usize = 40;

/// JSON that a reader may not expect, one value per line.
const UNEXPECTED: &str = include_str!("unexpected.jsonl");

/// Makes one to three changes of the values, keys and bytes of a JSON file.
fn damaged(sound: &[u8], random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let json: Value = serde_json::from_slice(sound).unwrap();
    let mut bytes = json.to_string().into_bytes();
    for _ in 0..random.random_range(1..4) {
        let values = values(&bytes);
        if values.is_empty() {
            break;
        }
        let value = values[random.random_range(0..values.len())].clone();
        // A key stays a string, or the file would be no JSON.
        let fits = |other: &&str| other.starts_with('"') || bytes.get(value.end) != Some(&b':');
        let unexpected: Vec<&str> = UNEXPECTED.lines().filter(fits).collect();
        let number = serde_json::from_slice::<f64>(&bytes[value.clone()]);
        match (random.random_range(0..8), number) {
            (0..4, _) => {
                let other = unexpected[random.random_range(0..unexpected.len())];
                drop(bytes.splice(value, other.bytes()));
            }
            (4..6, Ok(number)) => {
                let scaled = number * 10f64.powi(random.random_range(-330..330));
                drop(bytes.splice(value, json!(scaled).to_string().bytes()));
            }
            (6, _) => bytes[value.start] = random.random(),
            (7, _) => bytes.truncate(value.start),
            _ => {}
        }
    }
    bytes
}

/// Where each value and each key of a JSON text is; of arrays only the first element.
fn values(json: &[u8]) -> Vec<Range<usize>> {
    let may_begin = |at: &usize| match json[at - 1] {
        b':' | b'[' | b'{' => true,
        b',' => json[*at] == b'"',
        _ => false,
    };
    let value = |at: usize| {
        let mut values = Deserializer::from_slice(&json[at..]).into_iter::<IgnoredAny>();
        let value = values.next()?.ok();
        value.map(|_| at..at + values.byte_offset())
    };
    (1..json.len())
        .filter(may_begin)
        .filter_map(value)
        .collect()
}

/// The lines printed before a failure name the case and the file.
#[test]
fn damaged_files_harm_nothing() {
    let results = Results::new();
    // A profile or a record of a run as often as samples, of which there are many.
    let mut kinds = BTreeMap::<_, Vec<&PathBuf>>::new();
    let is_json = |file: &&PathBuf| file.extension() == Some("json".as_ref());
    for file in results.files.iter().filter(is_json) {
        kinds.entry(file.file_name()).or_default().push(file);
    }
    let kinds: Vec<Vec<&PathBuf>> = kinds.into_values().collect();
    let set = |name, default| std::env::var(name).map_or(default, |it| it.parse().unwrap());
    let first: u64 = set("FUZZ_FIRST", 0);
    for case in first..first + set("FUZZ_CASES", CASES) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(case);
        let files = &kinds[random.random_range(0..kinds.len())];
        let file = files[random.random_range(0..files.len())];
        println!("case {case}, {}", file.display());
        let sound = fs::read(file).unwrap();
        fs::write(file, damaged(&sound, &mut random)).unwrap();
        results.are_read(file, case % 4 == 0);
        fs::write(file, &sound).unwrap();
    }
}

/// Results of a real run in a folder of their own.
struct Results {
    dir: TempDir,
    files: BTreeSet<PathBuf>,
    benchmarks: usize,
}

impl Results {
    fn new() -> Self {
        let mut results = Self {
            dir: TempDir::new().unwrap(),
            files: BTreeSet::new(),
            benchmarks: 0,
        };
        h200::unpack(&results.root());
        plant_profile(
            &results.root(),
            &recorded("matmul_batched/gpu/cublas-eager/64"),
        );
        let out = results.file("out");
        let report = report::read(&results.root(), &out, &Options::default()).unwrap();
        write::write(&report, &results.root(), &out).unwrap();
        let packed = GzDecoder::new(fs::File::open(out.join(BESIDE_THE_PAGE)).unwrap());
        let record = std::io::read_to_string(packed).unwrap();
        fs::write(results.file("record.json"), record).unwrap();
        fs::rename(out.join("thresholds.json"), results.file("thresholds.json")).unwrap();
        fs::remove_dir_all(&out).unwrap();
        results.files = results.tree();
        let read = MachineResults::read(&results.root(), "here", false);
        assert_eq!(read.problems, []);
        results.benchmarks = read.benchmarks().count();
        results
    }

    /// A file or folder beside the results.
    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn root(&self) -> PathBuf {
        self.file("criterion")
    }

    fn tree(&self) -> BTreeSet<PathBuf> {
        let entries = (WalkDir::new(self.dir.path()).into_iter()).map(Result::unwrap);
        let files = entries.filter(|entry| entry.file_type().is_file());
        files.map(|entry| entry.into_path()).collect()
    }

    /// Reads every file; `makes_all` adds a page, a comparison and a record. A result that is not read is named, and
    /// the results of other files are there.
    fn are_read(&self, damaged: &Path, makes_all: bool) {
        let outside = tempfile::tempdir().unwrap();
        let here = MachineResults::read(&self.root(), "here", false);
        let (read, named) = (here.benchmarks().count(), here.problems.len());
        let is_named = read + named >= self.benchmarks && read + 1 >= self.benchmarks;
        // If the environment of a run was damaged, its results are another machine's.
        let is_of_a_run = damaged.parent().is_some_and(|it| it.ends_with("runs"));
        assert!(is_named || is_of_a_run, "{read} results, {named} named");
        here.benchmarks().for_each(|b| plain(&b.id));
        for p in &here.profiles {
            plain_lines(&profile::text(&p.profile, &p.dir));
        }
        crossover_answer::find(&here, &[]);
        let packed = outside.path().join("other.json.gz");
        let mut gzip = GzEncoder::new(fs::File::create(&packed).unwrap(), Compression::fast());
        gzip.write_all(&fs::read(self.file("record.json")).unwrap())
            .unwrap();
        gzip.finish().unwrap();
        match MachineResults::read_other(&packed) {
            Ok(machine) => drop(crossover_answer::find(&machine, &[])),
            Err(error) => plain(&error.to_string()),
        }
        match Advice::open(self.file("thresholds.json")) {
            Ok(advice) => is_asked(&advice),
            Err(error) => plain(&error.to_string()),
        }
        if makes_all {
            self.are_reported(outside.path(), packed);
            self.are_compared();
        }
        let is_as_before = self.tree() == self.files;
        assert!(is_as_before, "something was written beside the page");
    }

    fn are_reported(&self, out: &Path, other: PathBuf) {
        let options = Options {
            with: vec![other],
            no_reference: true,
        };
        let page = out.join("page");
        let report = report::read(&self.root(), &page, &options);
        match report.and_then(|report| write::write(&report, &self.root(), &page)) {
            Ok(written) => {
                plain_lines(&written.to_string());
                let pages = WalkDir::new(&page).into_iter().map(Result::unwrap);
                let pages = pages.filter(|it| it.path().extension().is_some_and(|it| it == "html"));
                pages.for_each(|it| text(&fs::read_to_string(it.path()).unwrap()));
                match export(&page, &out.join("exported")) {
                    Ok(_) | Err(ExportError::NoRecord(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            Err(error) if error.to_string().starts_with("no results") => {}
            // The error of the other machine's file.
            Err(error) => plain(&error.to_string()),
        }
    }

    fn are_compared(&self) {
        let side = [Baseline::read(&self.root(), NEW)];
        let compared = compare(&side, &side, &Judging::default());
        text(&compared.markdown());
        text(&compared.page());
        serde_json::from_str::<Value>(&compared.json(FailOn::default())).unwrap();
    }
}

fn is_asked(advice: &Advice) {
    for operation in &advice.thresholds().operations {
        for size in [1e-300, 1.0, 300.0, 1e300].map(Size::from) {
            for data in Residency::ALL {
                let question = Question::new(&operation.name, size).data(data);
                let estimate = advice.decide(&question).estimate;
                assert!(estimate.is_none_or(|it| it.low <= it.high), "{question:?}");
            }
        }
    }
}

fn plain(text: &str) {
    assert!(is_plain(text), "{text:?} acts on what shows it");
}

fn plain_lines(text: &str) {
    text.lines().for_each(plain);
}

/// Checks a text for people, without the data of the page's script.
fn text(text: &str) {
    assert!(!text.contains("<script>alert"), "a foreign script");
    let (text, _) = text.split_once("<script").unwrap_or((text, ""));
    let mut numbers = text.split(|c: char| !c.is_ascii_digit() && c != ',');
    let number = numbers.find(|digits| digits.len() > DIGITS);
    assert_eq!(number, None, "a number of many digits");
    plain_lines(text);
}
