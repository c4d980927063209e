//! The `crossover` command as a user meets it.

use std::process::Command;

use crossover_suite::model::Environment;

use crate::printed::expect;
#[cfg(unix)]
use crate::printed::holds;

/// The command without the caller's own settings.
pub(crate) fn crossover(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crossover"));
    without_settings(command.args(arguments));
    command
}

/// Removes the caller's settings of the suite and of cargo's builds.
pub(crate) fn without_settings(command: &mut Command) -> &mut Command {
    for variable in [
        "CROSSOVER_DEVICE",
        "CROSSOVER_SIZES",
        "CROSSOVER_GATE",
        "CROSSOVER_MONITOR",
        "CROSSOVER_THRESHOLDS",
        "CRITERION_HOME",
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUST_BACKTRACE",
    ] {
        command.env_remove(variable);
    }
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("CARGO_TARGET_") || name.starts_with("CARGO_BUILD_") {
            command.env_remove(&variable);
        }
    }
    command
}

pub(crate) fn env_lists_the_machine_with_or_without_a_gpu() {
    let mut env = crossover(&["env"]);
    let out = expect(env.env("CRITERION_HOME", "elsewhere/results"), 0, "");
    for name in ["crossover", "CPU", "GPU", "NVRTC", "cuBLAS", "disturbances"] {
        assert!(
            out.lines().any(|line| line.starts_with(name)),
            "no {name} in\n{out}"
        );
    }
    let slashes = out.replace('\\', "/");
    assert!(slashes.contains("elsewhere/results"), "{out}");
    let bad = expect(env.env("CROSSOVER_DEVICE", "first"), 2, "none");
    assert!(bad.starts_with("crossover: CROSSOVER_DEVICE"), "{bad}");
}

/// As shells unset a variable for one command.
pub(crate) fn an_empty_variable_counts_as_unset() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, says) in [
        (&["compare", "a", "b"][..], "target-reports/criterion"),
        (&["report"], "target-reports/criterion"),
        (&["advise"], "target-reports/criterion"),
    ] {
        let mut command = crossover(arguments);
        command.current_dir(dir.path());
        command
            .env("CRITERION_HOME", "")
            .env("CROSSOVER_THRESHOLDS", "");
        expect(&mut command, 2, says);
    }
}

/// With the GPU switched off, all else is collected.
pub(crate) fn env_as_json_is_what_results_store() {
    let mut env = crossover(&["env", "--json"]);
    let told = |env: &mut Command| -> Environment {
        let output = env.output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let here = told(&mut env);
    assert!(here.gpu.is_some() != here.gpu_absent.is_some());
    let environment = told(env.env("CROSSOVER_DEVICE", "none"));
    assert_eq!(environment.crossover, env!("CARGO_PKG_VERSION"));
    assert_eq!(environment.gpu, None);
    let reason = environment.gpu_absent.expect("a reason");
    assert!(reason.contains("CROSSOVER_DEVICE=none"), "{reason}");
    let cpu = environment.cpu;
    assert!(!cpu.model.is_empty() && environment.os.is_some());
    assert!((1..=cpu.logical_cores).contains(&cpu.usable_cores));
    assert!(cpu.memory_bytes.is_none_or(|bytes| bytes > 1 << 20));
}

/// `crossover profile` with an executable in place of cargo that tells how it was called.
#[cfg(unix)]
pub(crate) mod profile {
    use super::*;

    use crate::repositories::executable;

    const TELLS: &str = "printf '<%s>' \"$(basename \"$0\")\" \"$@\"\nexit 3";

    pub(crate) fn in_a_checkout_cargo_runs_it_and_the_exit_code_is_the_runs() {
        let dir = tempfile::tempdir().unwrap();
        let cargo = dir.path().join("cargo");
        executable(&cargo, TELLS);
        let called = |arguments: &[&str]| {
            let mut command = crossover(&[&["profile"], arguments].concat());
            expect(command.env("CARGO", &cargo), 3, "")
        };
        assert_eq!(
            called(&["a/gpu/.*/64"]),
            "<cargo><bench><--><--profile-time><2><a/gpu/.*/64>"
        );
        assert_eq!(
            called(&["a(", "--time", "1.5", "--bench", "own", "--", "--exact"]),
            "<cargo><bench><--bench><own><--><--profile-time><1.5><--exact><a(>"
        );
    }

    pub(crate) fn in_a_bundle_its_launcher_runs_it() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        executable(&bin.join("bench"), TELLS);
        // As `executable` writes.
        let copy = |from: &str, to: &str| {
            let copied = Command::new("cp")
                .arg(from)
                .arg(dir.path().join(to))
                .status();
            assert!(copied.unwrap().success());
        };
        copy(env!("CARGO_BIN_EXE_crossover"), "bin/crossover");
        // Without the launcher it is no bundle.
        let mut alone = Command::new(bin.join("crossover"));
        alone.args(["profile", "a"]).current_dir(dir.path());
        expect(&mut alone, 2, "there is no Cargo.toml");
        let launcher = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/launcher");
        copy(launcher, "run");
        let mut command = Command::new(dir.path().join("run"));
        command
            .args(["profile", "a/gpu"])
            .env_remove("CRITERION_HOME");
        let out = expect(&mut command, 3, "");
        assert_eq!(out, "<bench><--bench><--profile-time><2><a/gpu>");
    }

    pub(crate) fn impossible_options_are_refused_before_building() {
        for (arguments, why) in [
            (
                &["profile", "a("][..],
                "the filter `a(`: it is not a regular expression: unclosed",
            ),
            (
                &["profile", "a", "--time", "0.5"],
                "give seconds, 1 or more",
            ),
            (&["profile"], "<FILTER>"),
        ] {
            let mut command = crossover(arguments);
            expect(command.env("CARGO", "/no such cargo"), 2, why);
        }
        let mut command = crossover(&["profile", "a"]);
        let why = "/no such cargo could not be started; run it in a checkout";
        let said = expect(command.env("CARGO", "/no such cargo"), 2, why);
        holds(&said, "./run profile");
    }
}

/// A library in front of the machine's own, if it has one, hides it: the loader stops at the first file of
/// that name. It is none, or has none of the functions, as a broken installation leaves.
#[cfg(unix)]
pub(crate) fn absent_and_broken_libraries_are_named_with_the_remedy() {
    use crossover_machine::Absence;
    use crossover_machine::libraries::{NO_CUBLAS, NO_NVRTC};

    let no_driver = Absence::Device(crossover_suite::timing::Absence::NoDriver).to_string();
    let of_others = std::fs::read(crate::full_disk::library()).unwrap();
    for (content, driver) in [
        (&b""[..], &*no_driver),
        (&of_others, "the NVIDIA driver library cannot be used"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let libraries = ["cuda", "nvcuda", "nvrtc", "cublas"];
        for name in libraries
            .iter()
            .flat_map(|library| cudarc::get_lib_name_candidates(library))
        {
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        let mut env = crossover(&["env"]);
        let out = expect(env.env("LD_LIBRARY_PATH", dir.path()), 0, driver);
        for absence in [NO_NVRTC, NO_CUBLAS] {
            holds(&out, &absence.to_string());
        }
    }
}

/// With the results of a committed machine, whose GPU this one need not have.
#[cfg(unix)]
pub(crate) fn advise_answers_with_the_record_of_another_machine_and_says_whose_it_is() {
    let machines = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target-reports/machines");
    if !std::path::Path::new(machines).is_dir() {
        println!("skipped: the committed records belong to a checkout, and a package has none");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let machine = "nvidia-h200--intel-xeon-processor";
    let to = dir.path().join("machines");
    std::fs::create_dir(&to).unwrap();
    std::os::unix::fs::symlink(format!("{machines}/{machine}"), to.join(machine)).unwrap();
    let results = dir.path().join("criterion");
    let advise = |arguments: &[&str], code: i32, words: &str| {
        let mut command = crossover(&[&["advise"], arguments].concat());
        expect(command.env("CRITERION_HOME", &results), code, words)
    };
    let out = advise(
        &["matmul", "2048", "--data", "pinned"],
        0,
        "basis: the thresholds are of another machine",
    );
    assert!(
        out.starts_with(
            "matmul, N = 2,048, in pinned host memory: unsure; on that other machine the GPU is "
        ),
        "{out}"
    );
    holds(&out, "an NVIDIA H200 at 700 W, 2026-11-27");
    holds(&out, "note: the thresholds were measured");
    let meant = "no operation matmull, is matmul meant? There are: fft, matmul, ";
    advise(&["matmull", "3"], 2, meant);
    let outside = "basis: the thresholds are of another machine; outside the measured sizes";
    let far = ["matmul", "1000000000"];
    let out = advise(&far, 0, outside);
    holds(&out, "\nat N = 2,048, the largest measured size: CPU ");
    for (wrong, reason) in [
        ("matmul", "name a size of matmul"),
        ("matmul 3 4", "name a size of matmul"),
        ("matmul 3 --reuse 0", "0 is not in 1.."),
        ("matmul 0", "a size is a whole number above zero"),
        ("matmul 700x700", "M N K, with spaces between"),
        (
            "--cold",
            "required arguments were not provided:\n  <OPERATION>",
        ),
    ] {
        advise(&Vec::from_iter(wrong.split(' ')), 2, reason);
    }
}
