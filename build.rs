//! Stamps the library with the commit it is built from, so that results name the code they measured, and
//! links a BLAS where the feature asks for one.

use std::path::Path;
use std::process::Command;

/// The files that a measurement depends on. A change in them compiles the library again and renews the
/// stamp; a commit alone does not.
const SOURCES: [&str; 7] = [
    "build.rs",
    "src",
    "crates",
    "benches",
    "kernels",
    "Cargo.toml",
    "Cargo.lock",
];

/// Standard output of git.
fn git(args: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    // A hook of another repository may run this build, and git names that repository in its variables.
    // `GIT_CONFIG_*` are settings and name no repository.
    for (name, _) in std::env::vars_os() {
        let bytes = name.as_encoded_bytes();
        if bytes.starts_with(b"GIT_") && !bytes.starts_with(b"GIT_CONFIG_") {
            git.env_remove(name);
        }
    }
    let out = git
        .args(args)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
        .ok()?;
    out.status
        .success()
        .then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

fn main() {
    for path in SOURCES {
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
    // would be that repository's. Without a commit a result carries none.
    if git(&["rev-parse", "--show-prefix"]).is_some_and(|below_top| below_top.is_empty()) {
        stamp_commit();
    }
}

fn stamp_commit() {
    if let Some(commit) = git(&["rev-parse", "HEAD"]) {
        println!("cargo::rustc-env=CROSSOVER_COMMIT={commit}");
        let status = [&["status", "--porcelain", "--"], &SOURCES[..]].concat();
        let dirty = git(&status).is_none_or(|changes| !changes.is_empty());
        println!("cargo::rustc-env=CROSSOVER_DIRTY={dirty}");
    }
}
