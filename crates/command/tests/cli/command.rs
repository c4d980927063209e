//! The `crossover` command as a user meets it.

use std::process::Command;

use crossover_suite::model::Environment;

#[cfg(unix)]
use crate::printed::table;
use crate::printed::{expect, with_line};

/// The command without the caller's own settings, with the variables and arguments of a line.
pub(crate) fn crossover(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crossover"));
    with_line(without_settings(&mut command), line);
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

/// A unit test has the list. With the GPU switched off, all else is collected.
pub(crate) fn the_machine_is_listed_with_or_without_a_gpu() {
    let mut env = crossover("CRITERION_HOME=elsewhere/results env");
    let listed = expect(&mut env, 0, "CPU … GPU");
    let slashes = listed.replace('\\', "/");
    assert!(slashes.contains("elsewhere/results"), "{listed}");
    let bad = expect(&mut crossover("CROSSOVER_DEVICE=first env"), 2, "none");
    assert!(bad.starts_with("crossover: CROSSOVER_DEVICE"), "{bad}");
    // As JSON it is what results store.
    let told = |line: &str| -> Environment {
        let output = crossover(line).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let here = told("env --json");
    assert!(here.gpu.is_some() != here.gpu_absent.is_some());
    let environment = told("CROSSOVER_DEVICE=none env --json");
    assert_eq!(environment.crossover, env!("CARGO_PKG_VERSION"));
    assert_eq!(environment.gpu, None);
    let reason = environment.gpu_absent.expect("a reason");
    assert!(reason.contains("CROSSOVER_DEVICE=none"), "{reason}");
    let cpu = environment.cpu;
    assert!((1..=cpu.logical_cores).contains(&cpu.usable_cores));
}

/// `crossover profile` with an executable in place of cargo that tells how it was called.
#[cfg(unix)]
pub(crate) mod profile {
    use super::*;

    use crate::bundle::{bundle, launched};
    use crate::repositories::executable;

    const TELLS: &str = "printf '<%s>' \"$(basename \"$0\")\" \"$@\"\nexit 3";

    /// Its exit code is that of the run.
    pub(crate) fn in_a_checkout_cargo_runs_it() {
        let dir = tempfile::tempdir().unwrap();
        let cargo = dir.path().join("cargo");
        executable(&cargo, TELLS);
        for [line, called] in table(
            "
            a/gpu/.*/64 | <cargo><bench><--><--profile-time><2><a/gpu/.*/64>
            a( --time 1.5 --bench own -- --exact | <cargo><bench><--bench><own><--><--profile-time><1.5><--exact><a(>
            ",
        ) {
            let mut command = crossover(&format!("profile {line}"));
            assert_eq!(expect(command.env("CARGO", &cargo), 3, ""), called);
        }
    }

    pub(crate) fn in_a_bundle_its_launcher_runs_it() {
        let dir = bundle(&["bench"]);
        // As `executable` writes.
        let mut copy = Command::new("cp");
        let copy = copy.arg(env!("CARGO_BIN_EXE_crossover"));
        expect(copy.arg(dir.path().join("bin")), 0, "");
        let called = "bench in … : --bench --profile-time 2 a/gpu\n";
        launched(&dir, "STATUS=3 profile a/gpu", 3, called);
    }

    pub(crate) fn impossible_options_are_refused_before_building() {
        for [line, why] in table(
            "
            profile a(           | the filter `a(`: it is not a regular expression: unclosed
            profile a            | /nowhere/cargo could not be started; run it in a checkout … ./run profile
            ",
        ) {
            let line = format!("CARGO=/nowhere/cargo {line}");
            expect(&mut crossover(&line), 2, why);
        }
    }
}

/// A library in front of the machine's own, if it has one, hides it: the loader stops at the first file of
/// that name. It is none, or has none of the functions, as a broken installation leaves.
#[cfg(unix)]
pub(crate) fn absent_and_broken_libraries_are_named_with_the_remedy() {
    use crossover_machine::Absence;
    use crossover_machine::libraries::{NO_CUBLAS, NO_NVRTC};

    let no_driver = Absence::Device(crossover_suite::timing::Absence::NoDriver).to_string();
    let foreign = std::fs::read(crate::full_disk::library()).unwrap();
    for (content, driver) in [
        (&b""[..], &*no_driver),
        (&foreign, "the NVIDIA driver library cannot be used"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let libraries = ["cuda", "nvcuda", "nvrtc", "cublas"];
        for name in libraries
            .iter()
            .flat_map(|it| cudarc::get_lib_name_candidates(it))
        {
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        let mut env = crossover("env");
        let listed = expect(env.env("LD_LIBRARY_PATH", dir.path()), 0, driver);
        for absence in [NO_NVRTC, NO_CUBLAS] {
            crate::printed::holds(&listed, &absence.to_string());
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
    for [question, code, words] in table(
        "
        matmul 2048 --data pinned | 0 | matmul, N = 2,048, in pinned host memory: unsure; on that other machine the GPU is … \
            basis: the thresholds are of another machine … an NVIDIA H200 at 700 W, 2026-11-29 … note: the thresholds were measured
        matmul 1000000000 | 0 | at N = 2,048, the largest measured size: CPU … another machine; outside the measured sizes
        matmull 3          | 2 | no operation matmull, is matmul meant? There are: fft, matmul,
        matmul 3 4         | 2 | name a size of matmul
        matmul 0           | 2 | a size is a whole number above zero
        matmul 700x700     | 2 | M N K, with spaces between
        ",
    ) {
        let mut advise = crossover(&format!("advise {question}"));
        advise.env("CRITERION_HOME", dir.path().join("criterion"));
        expect(&mut advise, code.parse().unwrap(), words);
    }
}
