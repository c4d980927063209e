//! Every kind of file that is read, damaged at random: nothing panics, is written elsewhere, or acts on the
//! terminal or page that shows it. `FUZZ_CASES=10000 FUZZ_FIRST=96 cargo test --lib damaged` tries 10,000
//! others, from case 96 on.

#[path = "../../tests/cli/h200.rs"]
mod h200;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;
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

#[derive(Clone, Debug)]
enum Edit {
    /// Another JSON value in place of one.
    Put(Index, Index),
    /// A number times a power of ten.
    Scale(Index, i32),
    /// A field or an element is gone.
    Remove(Index),
    /// A byte is another.
    Flip(Index, u8),
    /// The rest of the file is missing.
    Cut(Index),
}

/// A place in any list: a share of its length.
#[derive(Clone, Copy, Debug)]
struct Index(f64);

impl Index {
    fn of(self, length: usize) -> usize {
        (self.0 * length as f64) as usize
    }

    fn get<T>(self, list: &[T]) -> &T {
        &list[self.of(list.len())]
    }
}

fn edit(random: &mut Xoshiro256PlusPlus) -> Edit {
    let at = Index(random.random());
    match random.random_range(0..9) {
        0..4 => Edit::Put(at, Index(random.random())),
        4..6 => Edit::Scale(at, random.random_range(-330..330)),
        6 => Edit::Remove(at),
        7 => Edit::Flip(at, random.random()),
        _ => Edit::Cut(at),
    }
}

fn damaged(sound: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut json: Value = serde_json::from_slice(sound).unwrap();
    let unexpected: Vec<&str> = UNEXPECTED.lines().collect();
    let placeholder = |text: &Index| format!("@{}@", text.of(unexpected.len()));
    for edit in edits {
        let all = pointers(&json);
        let at = |index: &Index| index.get(&all).as_str();
        match edit {
            // Until all is text: no `Value` can hold some of them.
            Edit::Put(index, text) => {
                *json.pointer_mut(at(index)).unwrap() = placeholder(text).into()
            }
            Edit::Scale(index, by) => {
                let found = json.pointer_mut(at(index)).unwrap();
                if let Some(number) = found.as_f64() {
                    *found = (number * 10f64.powi(*by)).into();
                }
            }
            Edit::Remove(index) => {
                let Some((parent, name)) = at(index).rsplit_once('/') else {
                    continue;
                };
                match json.pointer_mut(parent).unwrap() {
                    Value::Object(fields) => drop(fields.remove(name)),
                    Value::Array(elements) => drop(elements.remove(name.parse().unwrap())),
                    _ => {}
                }
            }
            Edit::Flip(..) | Edit::Cut(_) => {}
        }
    }
    let mut text = json.to_string();
    for edit in edits {
        if let Edit::Put(_, value) = edit {
            let json = value.get(&unexpected);
            text = text.replace(&format!("\"{}\"", placeholder(value)), json);
        }
    }
    let mut bytes = text.into_bytes();
    for edit in edits {
        match edit {
            Edit::Flip(index, byte) if !bytes.is_empty() => {
                let at = index.of(bytes.len());
                bytes[at] = *byte;
            }
            Edit::Cut(index) => bytes.truncate(index.of(bytes.len() + 1)),
            _ => {}
        }
    }
    bytes
}

/// The place of each value; of arrays that of the first elements.
fn pointers(value: &Value) -> Vec<String> {
    fn walk(value: &Value, here: &str, all: &mut Vec<String>) {
        all.push(here.to_owned());
        match value {
            Value::Object(fields) => {
                (fields.iter()).for_each(|(key, inner)| walk(inner, &format!("{here}/{key}"), all))
            }
            Value::Array(elements) => (elements.iter().take(3).enumerate())
                .for_each(|(at, inner)| walk(inner, &format!("{here}/{at}"), all)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    walk(value, "", &mut all);
    all
}

#[test]
fn damaged_files_harm_nothing() {
    let results = Results::new();
    let files: Vec<PathBuf> = (results.files.iter())
        .filter(|file| file.extension().is_some_and(|it| it == "json"))
        .cloned()
        .collect();
    // Each kind of file, a profile or a record of a run as often as samples, of which there are many.
    let kinds: BTreeSet<_> = files.iter().map(|file| file.file_name().unwrap()).collect();
    let kinds: Vec<_> = kinds.into_iter().collect();
    let set = |name, default| std::env::var(name).map_or(default, |it| it.parse().unwrap());
    let first: u64 = set("FUZZ_FIRST", 0);
    for case in first..first + set("FUZZ_CASES", CASES) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(case);
        let kind = Index(random.random()).get(&kinds);
        let of_kind: Vec<_> = files.iter().filter(|file| file.ends_with(kind)).collect();
        let file = Index(random.random()).get(&of_kind);
        let count = random.random_range(1..4);
        let edits: Vec<Edit> = (0..count).map(|_| edit(&mut random)).collect();
        let sound = fs::read(file).unwrap();
        fs::write(file, damaged(&sound, &edits)).unwrap();
        let checked = results
            .loses_nothing_unsaid(file)
            .and_then(|()| results.check(case % 4 == 0));
        fs::write(file, &sound).unwrap();
        assert_eq!(
            checked,
            Ok(()),
            "case {case}, {}: {edits:?}",
            file.display()
        );
    }
}

/// Results of a real run in a folder of their own, and what is made of them.
struct Results {
    dir: TempDir,
    files: BTreeSet<PathBuf>,
    /// How many there are.
    benchmarks: usize,
}

impl Results {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let mut this = Self {
            dir,
            files: BTreeSet::new(),
            benchmarks: 0,
        };
        h200::unpack(&this.root());
        plant_profile(
            &this.root(),
            &recorded("matmul_batched/gpu/cublas-eager/64"),
        );
        let out = this.dir.path().join("out");
        let report = report::read(&this.root(), &out, &Options::default()).unwrap();
        write::write(&report, &this.root(), &out).unwrap();
        let mut record = Vec::new();
        let packed = fs::File::open(out.join(BESIDE_THE_PAGE)).unwrap();
        std::io::copy(&mut flate2::read::GzDecoder::new(packed), &mut record).unwrap();
        fs::write(this.record(), record).unwrap();
        fs::rename(out.join("thresholds.json"), this.thresholds()).unwrap();
        fs::remove_dir_all(&out).unwrap();
        this.files = this.tree();
        let read = MachineResults::read(&this.root(), "here", false);
        assert_eq!(read.problems, []);
        this.benchmarks = read.benchmarks().count();
        this
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("criterion")
    }

    /// The record of the results, unpacked.
    fn record(&self) -> PathBuf {
        self.dir.path().join("record.json")
    }

    fn thresholds(&self) -> PathBuf {
        self.dir.path().join("thresholds.json")
    }

    fn tree(&self) -> BTreeSet<PathBuf> {
        let entries = WalkDir::new(self.dir.path())
            .into_iter()
            .map(Result::unwrap);
        let files = entries.filter(|entry| entry.file_type().is_file());
        files.map(|entry| entry.into_path()).collect()
    }

    /// A result that is not read is named, and those of other files are there.
    fn loses_nothing_unsaid(&self, damaged: &Path) -> Result<(), String> {
        let here = MachineResults::read(&self.root(), "here", false);
        let is_of_a_run = damaged.parent().is_some_and(|it| it.ends_with("runs"));
        let (read, named) = (here.benchmarks().count(), here.problems.len());
        // Of a run whose environment was damaged, the results are another machine's.
        match is_of_a_run || read + named >= self.benchmarks && read + 1 >= self.benchmarks {
            true => Ok(()),
            false => Err(format!(
                "{read} of {} results, {named} named",
                self.benchmarks
            )),
        }
    }

    /// Reads everything, and makes of it all that there is.
    fn check(&self, makes_all: bool) -> Result<(), String> {
        let outside = tempfile::tempdir().unwrap();
        let out = outside.path();
        let here = MachineResults::read(&self.root(), "here", false);
        here.benchmarks().try_for_each(|b| plain("an id", &b.id))?;
        for p in &here.profiles {
            let table = profile::text(&p.profile, &p.dir);
            table
                .lines()
                .try_for_each(|line| plain("a profile", line))?;
        }
        crossover_answer::find(&here, &[]);
        let packed = out.join("other.json.gz");
        let mut gzip = GzEncoder::new(fs::File::create(&packed).unwrap(), Compression::fast());
        gzip.write_all(&fs::read(self.record()).unwrap()).unwrap();
        gzip.finish().unwrap();
        match MachineResults::read_other(&packed) {
            Ok(machine) => drop(crossover_answer::find(&machine, &[])),
            Err(error) => plain("an error", &error.to_string())?,
        }
        self.ask()?;
        if makes_all {
            self.report(out, &packed)?;
            self.compare()?;
        }
        match self.tree() == self.files {
            true => Ok(()),
            false => Err("something was written beside the page".to_owned()),
        }
    }

    fn ask(&self) -> Result<(), String> {
        let advice = match Advice::open(self.thresholds()) {
            Ok(advice) => advice,
            Err(error) => return plain("an error", &error.to_string()),
        };
        for operation in &advice.thresholds().operations {
            for size in [1e-300, 1.0, 300.0, 1e300].map(Size::from) {
                for data in Residency::ALL {
                    let question = Question::new(&operation.name, size).data(data);
                    let estimate = advice.decide(&question).estimate;
                    if estimate.is_some_and(|it| it.low > it.high) {
                        return Err(format!("{question:?}"));
                    }
                }
            }
        }
        Ok(())
    }

    fn report(&self, out: &Path, other: &Path) -> Result<(), String> {
        let options = Options {
            with: vec![other.to_owned()],
            no_reference: true,
        };
        let page = out.join("page");
        let report = report::read(&self.root(), &page, &options);
        match report.and_then(|report| write::write(&report, &self.root(), &page)) {
            Ok(written) => {
                let table = written.to_string();
                table
                    .lines()
                    .try_for_each(|line| plain("the table", line))?;
                let pages = WalkDir::new(&page).into_iter().map(Result::unwrap);
                let pages = pages.filter(|it| it.path().extension().is_some_and(|it| it == "html"));
                for page in pages {
                    text("a page", &fs::read_to_string(page.path()).unwrap())?;
                }
                match export(&page, &out.join("exported")) {
                    Ok(_) | Err(ExportError::NoRecord(_)) => Ok(()),
                    Err(error) => Err(error.to_string()),
                }
            }
            Err(error) if error.to_string().starts_with("no results") => Ok(()),
            // That of the other machine's file.
            Err(error) => plain("an error", &error.to_string()),
        }
    }

    fn compare(&self) -> Result<(), String> {
        let side = Baseline::read(&self.root(), NEW);
        let sides = std::slice::from_ref(&side);
        let compared = compare(sides, sides, &Judging::default());
        text("the comparison", &compared.markdown())?;
        text("the comparison", &compared.page())?;
        let json = compared.json(FailOn::default());
        serde_json::from_str::<Value>(&json).map_err(|error| error.to_string())?;
        Ok(())
    }
}

fn plain(what: &str, text: &str) -> Result<(), String> {
    match is_plain(text) {
        true => Ok(()),
        false => Err(format!("{what} acts on what shows it: {text:?}")),
    }
}

/// A text for people, without what the page's script reads.
fn text(what: &str, text: &str) -> Result<(), String> {
    if text.contains("<script>alert") {
        return Err(format!("{what} holds a foreign script"));
    }
    let (text, _) = text.split_once("<script").unwrap_or((text, ""));
    let mut numbers = text.split(|c: char| !c.is_ascii_digit() && c != ',');
    if let Some(number) = numbers.find(|digits| digits.len() > DIGITS) {
        return Err(format!("{what} has a number of many digits: {number}"));
    }
    text.lines().try_for_each(|line| plain(what, line))
}
