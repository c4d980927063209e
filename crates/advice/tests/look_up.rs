//! The programs of THRESHOLDS.md decide as the crate does, and decide nothing on another machine.

mod planted;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crossover_advice::{Advice, Choice, Here, Question};

const PAGE: &str = include_str!("../THRESHOLDS.md");
const MAIN: &str = r#"
int main(int argc, char **argv) {
    static char json[1 << 20];
    FILE *file = fopen(argv[1], "r");
    fread(json, 1, sizeof json - 1, file);
    for (int i = 3; i < argc; i++)
        puts(measured_here(json) ? ask(json, argv[2], "ordinary", strtod(argv[i], NULL)) : "unsure");
}
"#;

fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    let blocks = PAGE.split(&opening).skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

/// The page's program in C, compiled.
fn c_program(folder: &Path) -> PathBuf {
    let headers =
        ["stdio", "stdlib", "string", "unistd"].map(|name| format!("#include <{name}.h>\n"));
    let source = headers.concat() + &blocks("c").concat() + MAIN;
    let (from, to) = (folder.join("look_up.c"), folder.join("look_up"));
    fs::write(&from, source).unwrap();
    let built = Command::new("cc")
        .args(["-w", "-o"])
        .arg(&to)
        .arg(&from)
        .status();
    assert!(built.expect("Rust links with cc").success());
    to
}

/// The example that the page shows.
fn rust_program() -> PathBuf {
    let source = include_str!("../examples/look_up.rs");
    assert!(source.ends_with(blocks("rust")[0]), "examples/look_up.rs");
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/look_up");
    assert!(
        path.is_file(),
        "`cargo build --examples` builds {}",
        path.display()
    );
    path
}

#[test]
fn the_programs_of_the_page_decide_as_the_crate_does() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let here = Here::detect();
    let mut thresholds = planted::thresholds();
    let Some(cpu) = here.cpu.clone() else {
        return println!("skipped: the programs read the CPU from /proc/cpuinfo");
    };
    thresholds.machine.cpu = cpu;
    thresholds.machine.threads = here.threads.unwrap();
    thresholds.machine.gpu = String::new();
    let sizes: Vec<u64> = (1..=60).chain([300, 2048, 5000]).collect();
    let programs: [(&str, Command); 3] = [
        ("Python", {
            let mut python = Command::new("python3");
            python
                .arg("-c")
                .arg(blocks("python")[0])
                .arg("thresholds.json");
            python
        }),
        ("C", {
            let mut c = Command::new(c_program(folder));
            c.arg("thresholds.json");
            c
        }),
        ("Rust", Command::new(rust_program())),
    ];
    let mut programs = programs.map(|(name, mut program)| {
        program
            .arg("product")
            .args(sizes.iter().map(u64::to_string));
        program
            .current_dir(folder)
            .env("CROSSOVER_THRESHOLDS", "thresholds.json");
        (name, program)
    });
    for other in [false, true] {
        if other {
            thresholds.machine.cpu.insert(0, '?');
        }
        let text = serde_json::to_vec(&thresholds).unwrap();
        fs::write(folder.join("thresholds.json"), text).unwrap();
        let advice = Advice::new(thresholds.clone()).unwrap().check(&here);
        let decide = |&size: &u64| match advice.decide(&Question::new("product", size)).choice {
            Choice::Gpu => "gpu",
            Choice::Cpu => "cpu",
            Choice::Unsure => "unsure",
        };
        let expected: Vec<&str> = sizes.iter().map(decide).collect();
        assert_eq!(expected.iter().all(|choice| *choice == "unsure"), other);
        for (name, program) in &mut programs {
            let Ok(output) = program.output() else {
                println!("skipped: {name} is not here");
                continue;
            };
            let said = String::from_utf8(output.stdout).unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                said.split_whitespace().collect::<Vec<_>>(),
                expected,
                "{name}: {errors}"
            );
        }
    }
}
