//! A group's file `tests/golden/<group>.txt`, in parts that begin with a line such as `[inputs]`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The folder of these files; `None` where the executable travels without the sources.
pub(crate) fn folder() -> Option<PathBuf> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut folders = packages.map(|package| package.join("tests/golden"));
    folders.find(|folder| folder.is_dir())
}

/// Whether the files are to be written anew.
pub(crate) fn writes() -> bool {
    std::env::var_os("CROSSOVER_GOLDEN").is_some_and(|value| value == "write")
}

pub(crate) fn path(group: &str) -> PathBuf {
    let folder = folder().expect("the sources have the folder");
    folder.join(format!("{group}.txt"))
}

fn parts(group: &str) -> BTreeMap<String, String> {
    let (mut parts, mut name) = (BTreeMap::new(), "");
    let text = fs::read_to_string(path(group)).unwrap_or_default();
    for line in text.lines() {
        let begins = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'));
        if let Some(begins) = begins {
            name = begins;
            parts.insert(name.to_owned(), String::new());
        } else if let Some(part) = parts.get_mut(name) {
            *part += line;
            *part += "\n";
        }
    }
    parts
}

/// The lines of a part; empty if the file does not have it.
pub(crate) fn read(group: &str, part: &str) -> String {
    let text = parts(group).remove(part).unwrap_or_default();
    format!("{}\n", text.trim_end())
}

fn write(group: &str, part: &str, text: &str) {
    static WRITING: Mutex<()> = Mutex::new(());
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut parts = parts(group);
    parts.insert(part.to_owned(), text.to_owned());
    let parts = parts
        .iter()
        .map(|(name, text)| format!("[{name}]\n{}\n", text.trim_end()));
    let parts: Vec<String> = parts.collect();
    fs::write(path(group), parts.join("\n")).expect("the folder is there");
}

/// Fails where this is not the text of a part of a group's file, or writes it there.
pub(crate) fn hold(group: &str, part: &str, now: &str, hint: &str) {
    if writes() {
        write(group, part, now);
    }
    let of = format!("[{part}] of {}{hint}", path(group).display());
    same(&of, &read(group, part), now.trim_end());
}

/// Fails at the first line that differs.
pub(crate) fn same(of: &str, golden: &str, now: &str) {
    let (golden, now): (Vec<&str>, Vec<&str>) = (golden.lines().collect(), now.lines().collect());
    for at in 0..golden.len().max(now.len()) {
        let line = at + 1;
        assert_eq!(
            now.get(at),
            golden.get(at),
            "line {line} of {of}. If that is meant, CROSSOVER_GOLDEN=write writes it; read the difference."
        );
    }
}
