//! What is said of results does not depend on names: where each group and each implementation has
//! a name without a meaning, the same results get the same answers, findings and limits.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use walkdir::WalkDir;

use crate::folder;
use crate::results::summary;

/// New names, in another order than the old ones.
struct Names {
    groups: BTreeMap<String, String>,
    /// By group and function, the implementation alone.
    rows: BTreeMap<(String, String), String>,
}

impl Names {
    fn of(summary: &Value) -> Self {
        let mut names = Self {
            groups: BTreeMap::new(),
            rows: BTreeMap::new(),
        };
        for benchmark in summary["benchmarks"].as_array().unwrap() {
            let (group, function, _) = parts(text(&benchmark["id"]));
            let n = names.groups.len() * 61 % 97;
            let group_name = || format!("zz{n:02}group");
            names.groups.entry(group.into()).or_insert_with(group_name);
            let n = names.rows.len() * 101 % 211;
            let key = (group.to_owned(), function.to_owned());
            let row_name = || format!("zz{n:03}row");
            names.rows.entry(key).or_insert_with(row_name);
        }
        names
    }

    fn id(&self, id: &str) -> String {
        let (group, function, size) = parts(id);
        let (device, _) = function.split_once('/').unwrap();
        let row = &self.rows[&(group.to_owned(), function.to_owned())];
        format!("{}/{device}/{row}/{size}", self.groups[group])
    }

    /// The old names in place of the new ones.
    fn undo(&self, text: &str) -> String {
        let rows = self.rows.iter().map(|((_, function), new)| {
            let (_, old) = function.split_once('/').unwrap();
            (new, old)
        });
        let groups = self.groups.iter().map(|(old, new)| (new, old.as_str()));
        rows.chain(groups)
            .fold(text.to_owned(), |text, (new, old)| text.replace(new, old))
    }
}

/// Group, function and size of an id.
fn parts(id: &str) -> (&str, &str, &str) {
    let (group, rest) = id.split_once('/').unwrap();
    let (function, size) = rest.rsplit_once('/').unwrap();
    (group, function, size)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn write(path: &Path, value: &Value) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, value.to_string()).unwrap();
}

/// Copies results under their new names.
fn rename(from: &Path, to: &Path, names: &Names) {
    for entry in WalkDir::new(from).into_iter().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().to_str().unwrap());
        let place = to.join(path.strip_prefix(from).unwrap());
        match name {
            "benchmark.json" => {
                let mut file = read(path);
                let id = names.id(text(&file["full_id"]));
                let (group, function, _) = parts(&id);
                file["group_id"] = group.into();
                file["function_id"] = function.into();
                file["full_id"] = id.into();
                write(&place, &file);
            }
            "crossover.json" => {
                let mut file = read(path);
                file["id"] = names.id(text(&file["id"])).into();
                write(&place, &file);
            }
            _ if path.parent().unwrap().ends_with("runs") => {
                let mut file = read(path);
                for group in file["groups"].as_array_mut().unwrap() {
                    group["group"] = names.groups[text(&group["group"])].clone().into();
                }
                write(&place, &file);
            }
            _ if entry.file_type().is_file() => {
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                fs::copy(path, place).unwrap();
            }
            _ => {}
        }
    }
}

/// Sorts lists by their content: some are in the order of the names.
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

#[test]
fn another_name_changes_no_answer() {
    let from = folder().join("results/criterion");
    let mut before = summary(&from);
    let names = Names::of(&before);
    let renamed = tempfile::tempdir().unwrap();
    rename(&from, renamed.path(), &names);

    let now = summary(renamed.path()).to_string();
    assert!(now.contains("zz"), "nothing was renamed");
    let mut now: Value = serde_json::from_str(&names.undo(&now)).unwrap();
    for part in "groups benchmarks crossovers break_even findings".split(' ') {
        let (before, now) = (&mut before[part], &mut now[part]);
        sorted(before);
        sorted(now);
        assert!(!before.as_array().unwrap().is_empty());
        for (before, now) in before.as_array().iter().zip(now.as_array()) {
            for (before, now) in before.iter().zip(now) {
                assert_eq!(before, now, "{part}");
            }
        }
        assert_eq!(before, now, "{part}");
    }
}
