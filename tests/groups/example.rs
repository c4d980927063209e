//! `examples/your_operation.rs` as a user's own crate would test and report it: what the group
//! declares is all that this suite knows of it. The CPU is measured; on a machine without a GPU the
//! times of the GPU are planted, as another one would leave them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use crossover::device::Gpu;
use crossover::device::kernel::CompileError;
use crossover::model::{GpuInfo, Residency, RunRecord, Sidecar};
use crossover::suite::{AnyGroup, Planned, Profile};
use crossover_report::report::{self, Options};
use crossover_report::write;
use crossover_results::analysis::answer::crossover_answer::headlines;
use crossover_results::store::{self, profiles};
use libtest_mimic::{Failed, Trial};
use serde_json::json;

#[allow(dead_code, reason = "its main function is the example's")]
#[path = "../../examples/your_operation.rs"]
mod operation;

/// Says that this process is a run of the group and not the test.
pub(crate) const RUN: &str = "CROSSOVER_TEST_EXAMPLE";

pub(crate) fn group() -> AnyGroup {
    operation::group().into()
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    trials.push(Trial::test("the_page_has_all_that_it_declares", || {
        the_page_has_all_that_it_declares();
        Ok(())
    }));
    trials.push(Trial::test("the_kernels_that_it_declares_compile", || {
        the_kernels_that_it_declares_compile();
        Ok(())
    }));
    for function in group().functions() {
        let on_gpu = function.starts_with("gpu/");
        let trial = Trial::test(format!("your_operation/{function}"), move || {
            verify(&function, on_gpu)
        });
        trials.push(match on_gpu {
            true => trial.with_ignored_flag(true).with_kind("CUDA device"),
            false => trial,
        });
    }
    trials
}

/// For the oldest architecture that they are for, and for a new one. Without NVRTC nothing is
/// compiled.
fn the_kernels_that_it_declares_compile() {
    let group = group();
    assert!(!group.kernels().is_empty(), "the example has a kernel");
    for source in group.kernels() {
        for arch in [source.oldest, (9, 0)] {
            match source.compile(arch) {
                Ok(_) | Err(CompileError::Absent(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn verify(function: &str, on_gpu: bool) -> Result<(), Failed> {
    let gpu = match on_gpu {
        true => Some(Rc::new(Gpu::open(0)?)),
        false => None,
    };
    let absent = group().verify(function, gpu.as_ref())?;
    match absent.first() {
        None => Ok(()),
        Some(reason) => Err(reason.into()),
    }
}

fn the_page_has_all_that_it_declares() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--bench", "--quick"])
        .env(RUN, "1")
        .env("CRITERION_HOME", &root)
        .env("CROSSOVER_PROFILE", "quick")
        .env("CROSSOVER_DEVICE", "none")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let run = add_a_gpu(&root);
    let planned = group().planned(Profile::Quick);
    for gpu in planned.iter().filter(|p| p.device_bytes.is_some()) {
        plant(&root, gpu, &run);
    }

    let on_gpu = planned.iter().find(|p| p.device_bytes.is_some()).unwrap();
    let profile = profiles::planted::eager(&on_gpu.id);
    profiles::planted::plant(&root, &profile);

    let out = dir.path().join("out");
    write::refresh(&root, &out, &Options::default()).unwrap();
    let group = group();
    let topic = group.topic();
    let page = out.join(format!("groups/{}.html", topic.group));
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains(&format!("<h1>{}", topic.title)),
        "the heading"
    );
    assert!(page.contains(&topic.question), "the question");
    assert!(page.contains(&topic.axis), "the axis");
    assert!(page.contains("Where the time goes"), "the profile");
    assert!(page.contains(&profile.summary.sentence), "its timeline");

    let report = report::read(&root, &out, &Options::default()).unwrap();
    let ids: Vec<&str> = report.findings.iter().map(|finding| &*finding.id).collect();
    assert_eq!(
        ids,
        [
            "winner.sigmoid.queued",
            "winner.sigmoid.awaited",
            "winner.sigmoid.pinned",
            "winner.sigmoid.ordinary",
            "transfers.sigmoid.transfer",
            "transfers.sigmoid.transfer-pinned",
        ]
    );
    let gpu: Vec<&str> = headlines(&report.found)
        .map(|answer| &*answer.gpu)
        .collect();
    assert_eq!(
        gpu,
        ["kernel", "kernel-awaited", "transfer-pinned", "transfer"]
    );
}

/// Gives the machine of the run a GPU.
fn add_a_gpu(root: &Path) -> String {
    let path = fs::read_dir(root.join("runs")).unwrap().next().unwrap();
    let path = path.unwrap().path();
    let mut run: RunRecord = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(run.groups, [group().topic().clone()]);
    run.environment.gpu = Some(GpuInfo {
        name: "Example GPU".to_owned(),
        ..GpuInfo::default()
    });
    fs::write(&path, json!(run).to_string()).unwrap();
    run.run
}

/// A result as Criterion and the suite leave it: shorter than any CPU takes, the longer the
/// farther from the device the data are.
fn plant(root: &Path, planned: &Planned, run: &str) {
    let ns = planned.size as f64
        * match planned.role.data {
            Residency::Queued | Residency::Awaited => 0.001,
            Residency::Pinned => 0.002,
            Residency::Ordinary => 0.004,
        };
    let sidecar = Sidecar {
        cost: planned.cost,
        role: planned.role.clone(),
        run: run.to_owned(),
        ..store::planted::sidecar(&planned.id, planned.clock)
    };
    let dir = root.join(&planned.directory).join("new");
    store::planted::plant(&dir, &planned.id, &[1.0], &[ns], Some(sidecar));
}
