//! The programs of THRESHOLDS.md decide as the crate does, and decide nothing on another machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crossover_advice::{Advice, HostInfo, Question};

use crate::planted;

const PAGE: &str = include_str!("../../THRESHOLDS.md");
fn block(language: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("```{language}\n")).unwrap();
    rest.split("```").next().unwrap()
}

/// The example that the page shows.
fn rust_program() -> PathBuf {
    let source = include_str!("../../examples/look_up.rs");
    assert!(source.ends_with(block("rust")), "examples/look_up.rs");
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
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path();
    let here = HostInfo::detect();
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if !processors.contains("model name") {
        return println!("skipped: the programs read the CPU from /proc/cpuinfo");
    }
    let (cpu, threads) = (here.cpu.clone().unwrap(), here.threads.unwrap());
    let has_avx2 = here.vector_extensions.contains(&"avx2".to_owned());
    assert_eq!(has_avx2, processors.contains(" avx2 "));
    // Days of this century.
    assert!((20_000..40_000).contains(&here.today.unwrap()));
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let usable = status.split("Cpus_allowed_list:").nth(1).unwrap().trim();
    let first = usable.split(|c: char| !c.is_ascii_digit()).next().unwrap();
    let mut thresholds = planted::thresholds();
    let sizes: Vec<u64> = (1..=60).chain([300, 2048, 5000, 1_000_000_000]).collect();
    let rust = rust_program().display().to_string();
    let file = "thresholds.json";
    let programs = [vec!["python3", "-c", block("python"), file], vec![&rust]];
    let caches = here.caches.clone();
    let size = Path::new("/sys/devices/system/cpu/cpu0/cache/index0/size");
    assert_eq!(caches.is_some(), size.exists());
    let others = caches.as_ref().map(|caches| format!("{caches} 1K?"));
    // In a container with a quota of one processor.
    fs::create_dir_all(folder.join("cgroup")).unwrap();
    fs::write(folder.join("cgroup/cpu.max"), "150000 100000\n").unwrap();
    let python = block("python").replace("/sys/fs/cgroup", "cgroup");
    let python = python.replace("/proc/self/cgroup", "group");
    fs::write(folder.join("group"), "0::/\n").unwrap();
    // On this machine, on others, and on one processor of this one.
    for (cpu, caches, threads, wrapper) in [
        (cpu.clone(), caches.clone(), threads, vec![]),
        (cpu.clone(), None, threads, vec![]),
        (cpu.clone(), others, threads, vec![]),
        (format!("{cpu}?"), caches.clone(), threads, vec![]),
        (cpu.clone(), caches, 1, vec!["taskset", "-c", first]),
    ] {
        let mut here = here.clone();
        here.threads = Some(threads);
        let is_other = [Some(&cpu), caches.as_ref()]
            .iter()
            .flatten()
            .any(|text| text.ends_with('?'));
        thresholds.machine.caches = caches;
        (thresholds.machine.cpu, thresholds.machine.threads) = (cpu, threads);
        fs::write(folder.join(file), serde_json::to_vec(&thresholds).unwrap()).unwrap();
        let advice = Advice::new(thresholds.clone()).unwrap().check(&here);
        let decide = |&size: &u64| advice.decide(&Question::new("product", size)).choice;
        let decide = |size| format!("{:?}", decide(size)).to_lowercase();
        let expected: Vec<String> = sizes.iter().map(decide).collect();
        assert_eq!(expected.iter().all(|choice| choice == "unsure"), is_other);
        let quota = ["python3", "-c", &python, file];
        let with_quota = (threads == 1).then_some((quota.to_vec(), vec![]));
        let programs = programs
            .iter()
            .map(|program| (program.clone(), wrapper.clone()));
        for (program, wrapper) in programs.chain(with_quota) {
            let words = [&wrapper[..], &program[..]].concat();
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).arg("product");
            command.args(sizes.iter().map(u64::to_string));
            command.env("CROSSOVER_THRESHOLDS", file);
            command.current_dir(folder);
            // `taskset` ends so if there is no such program.
            let output = command.output().ok();
            let Some(output) = output.filter(|output| output.status.code() != Some(127)) else {
                println!("skipped: {words:?} is not here");
                continue;
            };
            let said = String::from_utf8(output.stdout).unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            let said: Vec<&str> = said.split_whitespace().collect();
            assert_eq!(said, expected, "{words:?}: {errors}");
        }
    }
}
