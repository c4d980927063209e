//! The command on results of real machines: a few files of an H200, and the
//! committed record of an H100.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
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
    fn of_record(record: &Path) -> Self {
        let record = record.to_str().expect("a path in UTF-8");
        Self::of(Path::new("/none"), &["--with", record])
    }

    fn of(results: &Path, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let out = folder.path().to_str().expect("a path in UTF-8");
        let report = ["report", "--no-reference", "--out", out];
        let mut command = crossover(&[&report, arguments].concat());
        let output = command.env("CRITERION_HOME", results).output().unwrap();
        let said = ended(&output, 0, "");
        assert!(output.stderr.is_empty(), "{said}");
        let table = text(&output.stdout).replace(out, "");
        Self { folder, table }
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
    let sample = |side: &str| format!("product,1,ordinary,{side},1,9\n").repeat(2);
    let times = "operation,size,place,side,process,ns\n".to_owned() + &sample("a") + &sample("b");
    for (name, text) in [("README.md", markers), ("times.csv", &times)] {
        fs::write(path(name), text).expect(name);
    }
    for arguments in [
        "report --no-reference --readme",
        "export machines --thresholds=exported.json",
        "thresholds times.csv --output of_times.json",
    ] {
        let full = fs::File::options().write(true).open("/dev/full");
        let output = Command::new(env!("CARGO_BIN_EXE_crossover"))
            .args(arguments.split(' '))
            .current_dir(folder.path())
            .env("CRITERION_HOME", "criterion")
            .stdout(full.expect("a full device"))
            .output();
        let output = output.expect("the command");
        crate::printed::ended(&output, 2, "failed printing to stdout");
    }
    assert_ne!(
        fs::read_to_string(path("README.md")).expect("a README"),
        markers
    );
    assert!(path("exported.json").exists() && path("of_times.json").exists());
}

pub(crate) fn a_report_answers_from_stored_results() {
    let results = tempfile::tempdir().expect("a temporary folder");
    h200::unpack(results.path());
    let report = Report::of(results.path(), &[]);
    assert!(report.table.contains("6 benchmarks, 0 failed"));
    let thresholds = report.thresholds();
    assert_eq!(thresholds["machine"]["gpu"], "NVIDIA H200");
    let operation = &thresholds["operations"][0];
    assert_eq!(operation["name"], "matmul_batched");
    for (at, data, gpu, kind, limit, times) in [
        (
            0,
            "queued",
            "cublas-eager",
            "always",
            "launch",
            [7738.0, 49_730.0],
        ),
        (
            1,
            "pinned",
            "transfer-pinned",
            "undecided",
            "link",
            [83_960.0, 980_600.0],
        ),
    ] {
        let place = &operation["places"][at];
        assert_eq!(place["data"], data);
        assert_eq!(
            (&place["cpu"], &place["gpu"]),
            (&"over-batch".into(), &gpu.into())
        );
        assert_eq!(place["crossing"]["kind"], kind, "{data}");
        assert_eq!(place["limits"][0]["gpu"], limit, "{data}");
        for (point, (cpu, gpu)) in [39_430.0, 1_309_000.0].into_iter().zip(times).enumerate() {
            let point = &place["points"][point];
            near(&point["cpu_ns"], cpu);
            near(&point["gpu_ns"], gpu);
        }
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
    let (program, _) = program
        .and_then(|rest| rest.split_once("```"))
        .expect("it is there");
    let mut python = Command::new("python3");
    python
        .arg("-c")
        .arg(program)
        .arg(record)
        .arg("matmul_batched/gpu/cublas-eager");
    let Ok(output) = python.output() else {
        println!("skipped: there is no python3 here");
        return;
    };
    let said = printed(&output);
    let points = Vec::from_iter(said.lines().filter_map(|line| line.split_once(' ')));
    let [(small, fast), (large, slow)] = points[..] else {
        panic!("{said}")
    };
    assert_eq!([small, large], ["64", "256"]);
    near(&json(fast), 7738.0);
    near(&json(slow), 49_730.0);
}

/// Names without a meaning, in another order than the old ones.
#[derive(Default)]
struct Renamed(BTreeMap<String, String>);

impl Renamed {
    fn name(&mut self, old: &str) -> String {
        // A removed group is known by its name alone.
        if old == "nested_sine_f64" {
            return old.to_owned();
        }
        let number = self.0.len() * 101 % 997;
        let new = || format!("zz{number:03}name");
        self.0.entry(old.to_owned()).or_insert_with(new).clone()
    }

    /// Groups and implementations of other names in the text of a record.
    fn rename(&mut self, record: &str) -> String {
        let id = Regex::new(r#""id":"([^/"]+)/([^/"]+)/([^/"]+)"#).expect("a pattern");
        let renamed = id.replace_all(record, |old: &Captures| {
            let [group, implementation] = [&old[1], &old[3]].map(|name| self.name(name));
            format!("\"id\":\"{group}/{}/{implementation}", &old[2])
        });
        let field = r#""(group|implementation|cpu|gpu)":"([^"]+)""#;
        let field = Regex::new(field).expect("a pattern");
        let new = |old: &Captures| format!("\"{}\":\"{}\"", &old[1], self.name(&old[2]));
        field.replace_all(&renamed, new).into_owned()
    }

    /// The old names in place of the new ones.
    fn undo(&self, text: &str) -> String {
        let names = self.0.iter();
        names.fold(text.to_owned(), |text, (old, new)| text.replace(new, old))
    }
}

/// Lists in an order that does not depend on names.
fn sorted(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(sorted);
            items.sort_by_key(Value::to_string);
        }
        Value::Object(fields) => fields.values_mut().for_each(sorted),
        _ => {}
    }
}

/// The words that a page shows, sorted. Ids of benchmarks are left out: which of several equal
/// results a sentence refers to may depend on their order.
fn words(page: &str) -> Vec<String> {
    let (mut words, mut unseen) = (Vec::new(), "");
    for piece in page.split('<') {
        let (tag, text) = piece.split_once('>').unwrap_or_default();
        let name = tag.split_whitespace().next().unwrap_or_default();
        if unseen.is_empty() && ["svg", "script", "style"].contains(&name) {
            unseen = name;
        } else if tag.strip_prefix('/') == Some(unseen) {
            unseen = "";
        }
        if unseen.is_empty() {
            words.extend(text.split_whitespace().map(str::to_owned));
        }
    }
    words.retain(|word| word.matches('/').count() < 3);
    words.sort();
    words
}

/// Answers, findings and limits depend on the roles of rows and never on names.
pub(crate) fn another_name_changes_no_answer() {
    let Some(record) = h100() else { return };
    let mut content = String::new();
    let packed = fs::File::open(&record).expect("it is there");
    GzDecoder::new(packed)
        .read_to_string(&mut content)
        .expect("a record");
    let mut names = Renamed::default();
    let content = names.rename(&content);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let renamed = folder.path().join("renamed.json.gz");
    let file = fs::File::create(&renamed).expect("a new file");
    let mut packer = GzEncoder::new(file, Compression::fast());
    packer.write_all(content.as_bytes()).expect("there is room");
    packer.finish().expect("there is room");

    let (before, now) = (Report::of_record(&record), Report::of_record(&renamed));
    let mut thresholds = [
        before.thresholds(),
        json(names.undo(&now.read("thresholds.json"))),
    ];
    thresholds.iter_mut().for_each(sorted);
    assert!(
        now.read("thresholds.json").contains("zz"),
        "nothing was renamed"
    );
    assert_eq!(thresholds[0], thresholds[1]);
    let mut pages = 0;
    for (old, new) in &names.0 {
        let [old, new] = [old, new].map(|name| format!("groups/{name}.html"));
        if before.folder.path().join(&old).exists() {
            pages += 1;
            let now = names.undo(&now.read(&new));
            let (before, now) = (words(&before.read(&old)), words(&now));
            let others = || Vec::from_iter(now.iter().filter(|word| !before.contains(word)));
            assert!(before == now, "{old} has these other words: {:?}", others());
        }
    }
    assert!(pages > 10, "{pages}");
}
