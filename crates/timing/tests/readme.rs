//! The README is what a user begins with: its program is an example, which is compiled and, without
//! a GPU, run here.
#![cfg(feature = "criterion")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crossover_timing::probe;

const README: &str = include_str!("../README.md");

/// The README's blocks of a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    (README.split(&opening).skip(1))
        .map(|rest| rest.split("```").next().expect("a split has a first part"))
        .collect()
}

/// The source of an example without its heading.
fn program(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.rs"));
    let source = std::fs::read_to_string(&path).unwrap();
    let lines = source.lines().skip_while(|line| line.starts_with("//!"));
    let program: Vec<&str> = lines.skip_while(|line| line.is_empty()).collect();
    program.join("\n") + "\n"
}

/// The executable of an example, which `cargo test` builds.
fn executable(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let path = profile.join("examples").join(name);
    let built = "`cargo test --test readme` alone does not build the examples; `cargo build --examples` does";
    assert!(path.is_file(), "{} is missing: {built}", path.display());
    path
}

/// Runs an example as `cargo test` runs a benchmark: each routine once. No device is visible to it.
fn run(name: &str) -> Output {
    let root = tempfile::tempdir().unwrap();
    Command::new(executable(name))
        .env("CUDA_VISIBLE_DEVICES", "")
        .env("CRITERION_HOME", root.path())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn its_program_is_the_example() {
    let programs = blocks("rust,no_run");
    assert_eq!(programs, [program("kernels")], "examples/kernels.rs");
    assert!(blocks("rust").is_empty(), "a program that is no example");
}

#[test]
fn without_a_gpu_the_cpu_is_timed_and_the_reason_given() {
    let output = run("kernels");
    assert!(output.status.success(), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.starts_with("CPU alone: "), "{said}");
    assert!(
        text(&output.stdout).contains("Testing saxpy/cpu\nSuccess"),
        "{output:?}"
    );
    if probe(0).is_err_and(|absence| absence == crossover_timing::Absence::NoDriver) {
        // What Criterion says of its plots follows.
        assert_eq!(said.lines().next(), blocks("text")[0].lines().next());
    }
}
