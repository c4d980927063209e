//! Stamps the library with the commit it is built from, so that a result can say which code it
//! measured, and links a BLAS where the feature asks for one.
//!
//! This runs where a source changed, when the library is compiled anyway, and not when git alone
//! writes: the commit is that of the moment, and `machine::commit` finds the one that came of
//! uncommitted changes later.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a measurement is made of.
const SOURCES: &str = include_str!("src/machine/sources.txt");

/// Standard output of git, with `input`.
fn git(args: &[&str], input: &str) -> Option<String> {
    let mut git = Command::new("git");
    // A hook of another repository may run this build, and git tells it of that one by its variables.
    // Those with settings name no repository.
    for (name, _) in std::env::vars_os() {
        let bytes = name.as_encoded_bytes();
        if bytes.starts_with(b"GIT_") && !bytes.starts_with(b"GIT_CONFIG_") {
            git.env_remove(name);
        }
    }
    let mut git = git
        .args(args)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    git.stdin.take()?.write_all(input.as_bytes()).ok()?;
    let out = git.wait_with_output().ok()?;
    out.status
        .success()
        .then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

fn main() {
    for path in SOURCES.lines() {
        // A path that is missing, as some are in a published crate, would run this again at every
        // build.
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    println!("cargo::rerun-if-env-changed=CROSSOVER_BLAS_LIB");
    if std::env::var_os("CARGO_FEATURE_BLAS").is_some() {
        let library = std::env::var("CROSSOVER_BLAS_LIB").unwrap_or_else(|_| "openblas".to_owned());
        println!("cargo::rustc-link-lib={library}");
    }
    // In a folder of another repository (a vendored crate, a home folder under git) the commit
    // would be that one's. Without a commit a result carries none.
    if git(&["rev-parse", "--show-prefix"], "").is_some_and(|below_top| below_top.is_empty()) {
        stamp_commit();
    }
}

fn stamp_commit() {
    if let Some(sources) = sources() {
        println!("cargo::rustc-env=CROSSOVER_SOURCES={sources}");
    }
    if let Some(commit) = git(&["rev-parse", "HEAD"], "") {
        println!("cargo::rustc-env=CROSSOVER_COMMIT={commit}");
        let dirty = git(&with_sources(&["status", "--porcelain"]), "")
            .is_none_or(|changes| !changes.is_empty());
        println!("cargo::rustc-env=CROSSOVER_DIRTY={dirty}");
    }
}

fn with_sources<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let arguments = arguments.iter().copied();
    arguments.chain(["--"]).chain(SOURCES.lines()).collect()
}

/// The id, as git makes it, of the list of all sources with their ids.
fn sources() -> Option<String> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let files = git(&with_sources(&list), "")?;
    let ids = git(&["hash-object", "--stdin-paths"], &files)?;
    let mut lines: Vec<String> = ids
        .lines()
        .zip(files.lines())
        .map(|(id, file)| format!("{id} {file}\n"))
        .collect();
    lines.sort();
    git(&["hash-object", "--stdin"], &lines.concat())
}
