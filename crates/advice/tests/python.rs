//! The README's program in Python gives the crate's answers.

mod planted;

use std::fs;
use std::path::Path;
use std::process::Command;

use crossover_advice::{Advice, Choice, Question};

#[test]
fn the_program_in_the_readme_says_what_the_crate_says() {
    let readme = include_str!("../README.md");
    let program = readme
        .split("```python\n")
        .nth(1)
        .expect("the README has a program");
    let program = program.split("```").next().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join("thresholds.json");
    let thresholds = planted::thresholds();
    fs::write(&file, serde_json::to_vec(&thresholds).unwrap()).unwrap();
    let sizes: Vec<u64> = (1..=60).chain([300, 2048, 5000]).collect();
    let mut python = Command::new("python3");
    python.arg("-c").arg(program).arg(&file).arg("product");
    let Ok(output) = python.args(sizes.iter().map(u64::to_string)).output() else {
        println!("skipped: there is no python3 here");
        return;
    };
    let said = String::from_utf8(output.stdout).unwrap();
    let advice = Advice::new(thresholds).unwrap();
    let expected =
        sizes.iter().map(
            |&size| match advice.decide(&Question::new("product", size)).choice {
                Choice::Gpu => "gpu",
                Choice::Cpu => "cpu",
                Choice::Unsure => "unsure",
            },
        );
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said.split_whitespace().collect::<Vec<_>>(),
        expected.collect::<Vec<_>>(),
        "{errors}"
    );
}
