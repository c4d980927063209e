//! Stamps the executables with the commit they were built from, so that a result can say
//! which code it measured, and links a BLAS where the feature asks for one.

use std::path::Path;
use std::process::Command;

#[path = "src/command/ab/local_variables.rs"]
mod local_variables;

fn git(args: &[&str]) -> Option<String> {
    // A hook of another repository may run this build. And without locks `git status` does not
    // write the index, on whose changes this is run again.
    let out = local_variables::remove(&mut Command::new("git"))
        .args(args)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
        .ok()?;
    out.status
        .success()
        .then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

fn main() {
    for path in [
        "build.rs",
        "src",
        // Not there in a published crate.
        "timing",
        "benches",
        "kernels",
        "Cargo.toml",
        "Cargo.lock",
    ] {
        // A path that is missing would run this again at every build.
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
    if git(&["rev-parse", "--show-prefix"]).is_some_and(|below_top| below_top.is_empty()) {
        stamp_commit();
    }
}

fn stamp_commit() {
    // A commit rewrites the index, a checkout HEAD.
    if let Some(dir) = git(&["rev-parse", "--git-dir"]) {
        for file in ["HEAD", "index", "logs/HEAD"] {
            let path = Path::new(&dir).join(file);
            if path.exists() {
                println!("cargo::rerun-if-changed={}", path.display());
            }
        }
    }
    if let Some(commit) = git(&["rev-parse", "HEAD"]) {
        println!("cargo::rustc-env=CROSSOVER_COMMIT={commit}");
        let dirty = git(&["status", "--porcelain", "--untracked-files=no"])
            .is_none_or(|changes| !changes.is_empty());
        println!("cargo::rustc-env=CROSSOVER_DIRTY={dirty}");
    }
}
