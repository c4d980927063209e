//! The command on results of real machines: a few files of an H200, and the
//! committed record of an H100.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use regex::{Captures, Regex};
use serde_json::Value;
use tempfile::TempDir;
use walkdir::WalkDir;

use crate::command::crossover;
use crate::h200;
#[cfg(unix)]
use crate::printed::expect;
use crate::printed::{ended, printed, text};

/// The record of an H100, which has every group. A package of this crate has none.
fn h100() -> Option<PathBuf> {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target-reports/machines");
    let records = files(&machines);
    let found = (records.into_iter()).find(|path| path.to_string_lossy().contains("h100"));
    if found.is_none() {
        println!("skipped: the committed records belong to a checkout, and a package has none");
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = WalkDir::new(folder).sort_by_file_name().into_iter();
    let paths = entries.flatten().map(walkdir::DirEntry::into_path);
    paths.filter(|path| path.is_file()).collect()
}

fn json(text: impl AsRef<[u8]>) -> Value {
    serde_json::from_slice(text.as_ref()).expect("JSON")
}

/// A report in a folder of its own.
struct Report {
    folder: TempDir,
    /// The table on standard output.
    table: String,
}

impl Report {
    /// Of the results in this folder, with further arguments.
    fn of(results: &Path, further: &[&OsStr]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = crossover("report --no-reference --out");
        command.arg(folder.path()).args(further);
        let output = command.env("CRITERION_HOME", results).output().unwrap();
        let output_text = ended(&output, 0, "");
        assert!(output.stderr.is_empty(), "{output_text}");
        let table = text(&output.stdout);
        Self { folder, table }
    }

    fn of_record(record: &Path) -> Self {
        Self::of(Path::new("/none"), &["--with".as_ref(), record.as_ref()])
    }

    fn thresholds(&self) -> Value {
        json(self.read("thresholds.json"))
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).expect(name)
    }
}

/// Fails where a number differs from what is expected by more than a part in 2,000.
fn near(value: &Value, expected: f64) {
    let is_near = |value: f64| (value / expected - 1.0).abs() < 5e-4;
    assert!(value.as_f64().is_some_and(is_near), "{value} ≠ {expected}");
}

#[cfg(unix)]
pub(crate) fn files_are_written_where_nothing_can_be_printed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    h200::unpack(&path("criterion"));
    let markers = "<!-- crossover:begin -->\n<!-- crossover:end -->\n";
    let times = crate::thresholds::times(1, 2);
    for (name, text) in [("README.md", markers), ("times.csv", &times)] {
        fs::write(path(name), text).expect(name);
    }
    for line in [
        "report --no-reference --readme",
        "export machines --thresholds=exported.json",
        "thresholds times.csv --output of_times.json",
    ] {
        let full = fs::File::options().write(true).open("/dev/full");
        let mut command = crossover(line);
        command
            .current_dir(&folder)
            .env("CRITERION_HOME", "criterion");
        let command = command.stdout(full.expect("a full device"));
        expect(command, 2, "failed printing to stdout");
    }
    let readme = fs::read_to_string(path("README.md")).expect("a README");
    assert_ne!(readme, markers);
    assert!(path("exported.json").exists() && path("of_times.json").exists());
}

pub(crate) fn a_report_answers_from_stored_results() {
    let results = tempfile::tempdir().expect("a temporary folder");
    h200::unpack(results.path());
    let report = Report::of(results.path(), &[]);
    assert!(report.table.contains("6 benchmarks, 0 failed"));
    let thresholds = report.thresholds();
    assert_eq!(thresholds["machine"]["gpu"], "NVIDIA H200");
    let places = &thresholds["operations"][0]["places"];
    for (place, [cpu, gpu], [cpu_ns, gpu_ns]) in [
        (0, ["over-batch", "cublas-eager"], [39_430.0, 7738.0]),
        (1, ["over-batch", "transfer-pinned"], [39_430.0, 83_960.0]),
    ] {
        let place = &places[place];
        assert_eq!([&place["cpu"], &place["gpu"]], [cpu, gpu]);
        near(&place["points"][0]["cpu_ns"], cpu_ns);
        near(&place["points"][0]["gpu_ns"], gpu_ns);
    }
    // So does the record that it wrote.
    let record = report.folder.path().join("record.json.gz");
    let of_record = Report::of_record(&record).thresholds();
    assert_eq!(of_record["operations"], thresholds["operations"]);
    the_program_in_the_documentation_reads_a_curve(&record);
}

fn the_program_in_the_documentation_reads_a_curve(record: &Path) {
    let documentation = include_str!("../../../../docs/records.md");
    let program = documentation.split("```python\n").nth(1);
    let program = program.and_then(|rest| rest.split("```").next());
    let mut python = Command::new("python3");
    python.arg("-c").arg(program.expect("it is there"));
    python.arg(record).arg("matmul_batched/gpu/cublas-eager");
    let Ok(output) = python.output() else {
        println!("skipped: there is no python3 here");
        return;
    };
    let figures = printed(&output);
    let points = Vec::from_iter(figures.lines().filter_map(|line| line.split_once(' ')));
    let [(small, fast), (large, slow)] = points[..] else {
        panic!("{figures}")
    };
    assert_eq!([small, large], ["64", "256"]);
    near(&json(fast), 7738.0);
    near(&json(slow), 49_730.0);
}

/// Stands behind each letter of a renamed group or implementation: no code knows the name, and the order of
/// names stays.
const MARK: &str = "zq";

fn marked(name: &str) -> String {
    // A removed group is known by its name alone.
    let is_marked = |letter: char| letter.is_alphabetic() && name != "nested_sine_f64";
    let letters = name.chars().map(|letter| match is_marked(letter) {
        true => format!("{letter}{MARK}"),
        false => letter.to_string(),
    });
    letters.collect()
}

/// Groups and implementations of other names in the text of a record.
fn renamed(record: &str) -> String {
    let id = Regex::new(r#""id":"([^/"]+)/([^/"]+)/([^/"]+)"#).expect("a pattern");
    let ids = id.replace_all(record, |id: &Captures| {
        format!("\"id\":\"{}/{}/{}", marked(&id[1]), &id[2], marked(&id[3]))
    });
    let field = r#""(group|implementation|cpu|gpu)":"([^"]+)""#;
    let field = Regex::new(field).expect("a pattern");
    let field = field.replace_all(&ids, |field: &Captures| {
        format!("\"{}\":\"{}\"", &field[1], marked(&field[2]))
    });
    field.into_owned()
}

/// A page without the elements of this name.
fn without(page: &str, element: &str) -> String {
    let (begin, end) = (format!("<{element}"), format!("</{element}>"));
    let parts = page.split(&begin);
    let parts = parts.map(|part| part.split_once(&end).map_or(part, |(_, rest)| rest));
    parts.collect()
}

/// Answers, findings and limits depend on the roles of rows and never on names.
pub(crate) fn another_name_changes_no_answer() {
    let Some(record) = h100() else { return };
    let packed = fs::File::open(&record).expect("it is there");
    let content = std::io::read_to_string(GzDecoder::new(packed)).expect("a record");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let other = folder.path().join("renamed.json.gz");
    let file = fs::File::create(&other).expect("a new file");
    let mut packer = GzEncoder::new(file, Compression::fast());
    let written = packer.write_all(renamed(&content).as_bytes());
    written
        .and_then(|()| packer.finish())
        .expect("there is room");

    let (before, now) = (Report::of_record(&record), Report::of_record(&other));
    let mut pages = 0;
    let [old, new] = [&before, &now].map(|report| files(report.folder.path()).len());
    assert_eq!(old, new);
    for path in files(before.folder.path()) {
        let name = path.strip_prefix(&before.folder).expect("it is inside");
        let name = &name.to_str().expect("a name in UTF-8").replace('\\', "/");
        let group = name.strip_prefix("groups/");
        let group = group.and_then(|it| it.strip_suffix(".html"));
        let page = group.map(|group| format!("groups/{}.html", marked(group)));
        // A page about the start of a process has its own name.
        let page = page.filter(|it| now.folder.path().join(it).exists());
        let thresholds = (name == "thresholds.json").then(|| name.to_owned());
        let Some(other) = page.or(thresholds) else {
            continue;
        };
        pages += 1;
        let [old, new] = [before.read(name), now.read(&other)];
        assert!(new.contains(MARK), "nothing was renamed in {name}");
        let new = new.replace(MARK, "");
        let [old, new] = [old, new].map(|it| without(&without(&it, "svg"), "script"));
        let mut parts = old.split('<').zip(new.split('<'));
        let different = parts.find(|(old, new)| old != new);
        assert!(old == new, "{name}: {different:?}");
    }
    assert!(pages > 10, "{pages}");
}
