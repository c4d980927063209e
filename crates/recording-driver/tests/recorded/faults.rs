//! Calls of the driver or of a library that fail. No row ignores the error of a call. A whole run ends with
//! the documented code and a sentence, what was measured before is unharmed, and nothing hangs.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use crossover_results::store::baseline::Baseline;
use crossover_suite::suite::AnyGroup;
use crossover_suite::workload::RoutineError;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::calls::{RowCalls, open, rows};
use crate::stand_in::{FAULTS, SMALL_H200, StandIn, expect, mark, plan, said};
use crate::suite;

/// Out of memory, a device that is unavailable, not ready, unknown, and a launch that failed, after which
/// the context is lost.
const ERRORS: [i32; 5] = [2, 46, 600, 999, 719];

// ---- rows ----

/// Calls without which a row can do, by phase and function: NVRTC's version, that of NCCL (asked once in a process),
/// the log of a source that compiled, an algorithm's name, and what is given back when nothing follows, for
/// which each device's context is made current.
const DISPENSABLE: [(&str, &str); 2] = [
    (
        "set-up",
        "nvrtcVersion ncclGetVersion nvrtcGetProgramLog nvrtcGetProgramLogSize nvrtcDestroyProgram \
         cublasLtMatmulAlgoConfigGetAttribute cublasLtMatmulDescDestroy cublasLtMatrixLayoutDestroy \
         cublasLtMatmulPreferenceDestroy",
    ),
    (
        "drop",
        "cublasLtMatmulDescDestroy cublasLtMatrixLayoutDestroy cublasLtMatmulPreferenceDestroy cufftDestroy \
         cuCtxGetCurrent cuCtxSetCurrent cuCtxSynchronize cuStreamSynchronize",
    ),
];

/// The calls that count the launches of a library's call. Where one fails, the largest count is assumed.
const COUNTING: &str =
    "cuStreamBeginCapture_v2 cuStreamEndCapture cuGraphGetNodes cuGraphNodeGetType";

type Ended = std::thread::Result<Result<BTreeMap<String, String>, RoutineError>>;

/// How a row ends with faults, where an error is a panic, and its calls.
fn run(group: &AnyGroup, row: &RowCalls, faults: &str) -> (Ended, String) {
    plan("");
    let gpu = open();
    plan(faults);
    let run = || {
        let chosen = row.chosen.clone();
        group.in_phases(&row.function, row.size, &gpu, chosen, &mut |phase| {
            mark(phase)
        })
    };
    std::panic::set_hook(Box::new(|_| {}));
    let ended = catch_unwind(AssertUnwindSafe(run));
    drop(std::panic::take_hook());
    (ended, plan(""))
}

/// The rows of a group with the choices that they make, so that nothing is calibrated again, and their calls.
fn with_choices(group: &AnyGroup) -> impl Iterator<Item = (RowCalls, String)> {
    rows(group).into_iter().map(|mut row| {
        let (ended, calls) = run(group, &row, "");
        let Ok(Ok(made)) = ended else {
            panic!("{}/{}: {ended:?}", row.function, row.size);
        };
        if made == row.chosen {
            return (row, calls);
        }
        row.chosen = made;
        let (_, calls) = run(group, &row, "");
        (row, calls)
    })
}

/// Phase, function and number.
fn of_line(line: &str) -> [&str; 3] {
    let parts: Vec<&str> = line.split('\t').collect();
    parts.try_into().expect(line)
}

/// Each change to the context of a device fails in each row on several: no device waits for another for ever, and no
/// memory is freed that a copy still uses.
pub(crate) fn on_several() {
    const FUNCTION: &str = "cuCtxSetCurrent";
    const GROUPS: [&str; 3] = ["all_reduce", "matmul_devices", "peer_copy"];
    let mut count = 0;
    let groups = suite::groups();
    for group in groups.iter().filter(|group| GROUPS.contains(&group.name())) {
        for (row, calls) in with_choices(group) {
            for line in calls.lines() {
                let [phase, called, calls] = of_line(line);
                // Between NCCL's calls that connect, which stand there, there is no way back.
                if called != FUNCTION || phase == "set-up" && group.name() == "all_reduce" {
                    continue;
                }
                for nth in 1..=calls.parse::<u32>().unwrap() {
                    let fault = format!("{FUNCTION}:{nth}:999:{phase}");
                    let (ended, _) = run(group, &row, &fault);
                    assert!(ended.is_ok(), "{}: {fault}", row.function);
                    count += 1;
                }
            }
        }
    }
    println!("{count} faults");
    assert!(count > 0);
}

/// No row ignores an error: the first call of each function fails in each phase of each row.
pub(crate) fn of_group(at: usize) {
    let group = &suite::groups()[at];
    let (mut count, mut seen, mut ignored) = (0, BTreeSet::new(), Vec::new());
    for (row, calls) in with_choices(group) {
        let counts = calls.contains("\tcublas") || calls.contains("\tcufft");
        for line in calls.lines() {
            let [phase, called, calls] = of_line(line);
            // Rows with as many calls share code. A check takes as long as its reference, which is the same
            // for all rows.
            let is_late = ["verification", "drop"].contains(&phase);
            let calls = if is_late { "" } else { calls };
            if !seen.insert([phase, called, calls].map(str::to_owned)) {
                continue;
            }
            count += 1;
            let error = ERRORS[count % (ERRORS.len() - 1)];
            let (ended, _) = run(group, &row, &format!("{called}:1:{error}:{phase}"));
            let is_one = |calls: &str| calls.split(' ').any(|call| call == called);
            let mut dispensable = DISPENSABLE.iter();
            let may_fail = dispensable.any(|(of, calls)| phase == *of && is_one(calls))
                || phase == "set-up" && counts && is_one(COUNTING);
            let is_noticed = matches!(ended, Ok(Err(_)));
            if !is_noticed && (!may_fail || ended.is_err()) {
                let RowCalls { function, size, .. } = &row;
                ignored.push(format!(
                    "{function}/{size}: {called} fails in {phase}: {ended:?}\n"
                ));
            }
        }
    }
    println!("{count} faults");
    assert!(ignored.is_empty(), "{}", ignored.concat());
}

// ---- whole runs ----

/// Rows that together call most of the driver and of its libraries.
const ROWS: &str = "^(nested_sine/(cpu/std|gpu/(fused-gated|graph|transfer-pinned))/1024|matmul_skinny/gpu/cublas-cold/64|\
                    precision/gpu/fp8/256|memory/gpu/(malloc|reuse)/4096|transfer/gpu/h2d-(pinned|pageable)/1024)$";

/// The driver, and the results of a run without a fault.
#[derive(Default)]
struct Bench {
    stand_in: StandIn,
    /// The ids of its results.
    ids: BTreeSet<String>,
    /// Functions with the number of their calls.
    calls: BTreeMap<String, u64>,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self::default();
        let said = expect(&mut bench.command("counted", bench.stand_in.folder()), 0);
        let calls = said
            .lines()
            .filter_map(|line| line.strip_prefix('\t')?.split_once('\t'));
        let calls = calls.map(|(function, count)| (function.to_owned(), count.parse().unwrap()));
        bench.calls = calls.collect();
        bench.ids = sound(bench.stand_in.folder());
        assert_eq!(bench.ids.len(), 10, "{:?}", bench.ids);
        bench
    }

    /// A run with its results in a folder.
    fn command(&self, task: &str, folder: &Path) -> Command {
        let mut command = self.stand_in.command(task, SMALL_H200);
        command.args(["--bench", "--quick", "--noplot", ROWS]);
        command.args(["--warm-up-time", "0.01", "--measurement-time", "0.01"]);
        command.env("CRITERION_HOME", folder.join("criterion"));
        command
    }

    /// How a run over the results of the sound one ends, and what it says. No earlier result is gone, and
    /// each has the samples that its sidecar is of.
    fn with(&self, fault: &str) -> (Option<i32>, String) {
        let folder = tempfile::tempdir().expect("a folder of its own");
        let results = self.stand_in.folder().join("criterion");
        let mut copy = Command::new("cp");
        let copied = copy.arg("-r").args([&results, folder.path()]).status();
        assert!(copied.is_ok_and(|status| status.success()));
        let mut command = self.command("bench", folder.path());
        let output = command.env(FAULTS, fault).output().expect("it runs");
        let said = said(&output);
        assert!(!said.contains("panicked"), "{fault}: {said}");
        let now = sound(folder.path());
        let torn: Vec<_> = self.ids.difference(&now).collect();
        assert!(torn.is_empty(), "{fault} harms {torn:?}: {said}");
        (output.status.code(), said)
    }
}

/// The ids of the results that have a sidecar of the same samples.
fn sound(folder: &Path) -> BTreeSet<String> {
    let results = Baseline::read(&folder.join("criterion"), "new");
    let results = results.results.into_iter();
    let sound = results.filter(|(_, sampled)| sampled.sidecar.is_some());
    sound.map(|(id, _)| id).collect()
}

static BENCH: LazyLock<Bench> = LazyLock::new(Bench::new);

/// A few faults: how a run ends with each, and what it says. The last four are a device that is lost,
/// before anything and later, one that was never there, and a call that nothing follows.
const SELECTED: &str = "\
cuInit:1:46 | 1 | cuInit failed: CUDA_ERROR_DEVICE_UNAVAILABLE | error: the selected GPU
cuMemAllocAsync:1:2 | 1 | FAILED matmul_skinny/gpu/cublas-cold/64: | cuMemAllocAsync failed: CUDA_ERROR_OUT_OF_MEMORY | GiB of device memory are free: end the process that holds the rest
cuLaunchKernel:1500:719 | 1 | FAILED matmul_skinny/gpu/cublas-cold/64: cuLaunchKernel failed: CUDA_ERROR_LAUNCH_FAILED | LOST
cuStreamSynchronize:20+:999 | 1 | cuStreamSynchronize failed: CUDA_ERROR_UNKNOWN
cuEventSynchronize:8:600 | 1 | cuEventSynchronize failed: CUDA_ERROR_NOT_READY
cuMemFreeAsync:41:999 | 1 | FAILED memory/gpu/reuse/4096: an earlier CUDA call failed: CUDA_ERROR_UNKNOWN
cublasSgemm_v2:1:719 | 1 | FAILED matmul_skinny/gpu/cublas-cold/64: cuBLAS failed: CUBLAS_STATUS_EXECUTION_FAILED
nvrtcCompileProgram:3:6 | 1 | FAILED nested_sine/gpu/fused-gated/1024: | NVRTC
nvrtcVersion:*:999 | 0 | skipped precision/gpu/fp8/256: NVRTC was not found
cublasCreate_v2:*:3 | 0 | skipped matmul_skinny/gpu/cublas-cold/64: cublasCreate failed
*:1+:999 | 1 | cuInit failed: CUDA_ERROR_UNKNOWN | error: the selected GPU
*:5000+:46 | 1 | FAILED | LOST
*:1+:100 | 0 | skipped matmul_skinny/gpu/cublas-cold: the NVIDIA driver sees no GPU
cublasDestroy_v2:1:719 | 0";

/// Checks each fault, and names all that are bad after their own sentences.
fn each_ends_well(faults: &[&str], check: impl Fn(&str) + Sync) {
    let is_bad = |fault: &&&str| catch_unwind(AssertUnwindSafe(|| check(fault))).is_err();
    let bad: Vec<_> = faults.par_iter().filter(is_bad).collect();
    println!("{} faults", faults.len());
    assert!(bad.is_empty(), "{bad:#?}");
}

pub(crate) fn selected() {
    each_ends_well(&SELECTED.lines().collect::<Vec<_>>(), |line| {
        let mut parts = line.split(" | ");
        let (fault, code) = (parts.next().unwrap(), parts.next().unwrap());
        let (ended, said) = BENCH.with(fault);
        assert_eq!(ended, code.parse().ok(), "{fault}: {said}");
        for sentence in parts {
            let sentence = sentence.replace("LOST", "the CUDA context was lost in ");
            assert!(said.contains(&sentence), "{fault}: {sentence:?}\n{said}");
        }
    });
}

/// Calls of every function of the driver and of the libraries in a run, and a device that is lost from some
/// call on. With `FAULTS_EVERY=48` every 48th of these.
pub(crate) fn all() {
    let of_function = |(at, (function, &count)): (usize, (&String, &u64))| {
        // NVML is asked beside the benchmarks, as often as time passes.
        if function.starts_with("nvml") {
            return vec![format!("{function}:*:999")];
        }
        let parts = [8, 4, 2, 1].map(|part| count / part);
        let calls = [1, 2, 3, 5, 8, 13, 34].into_iter().chain(parts);
        let calls: BTreeSet<u64> = calls.map(|call| call.clamp(1, count)).collect();
        let calls = calls.into_iter().zip(ERRORS.iter().cycle().skip(at));
        let faults = calls.map(|(call, error)| format!("{function}:{call}:{error}"));
        faults.collect()
    };
    let mut faults: Vec<String> = (BENCH.calls.iter().enumerate().flat_map(of_function)).collect();
    for call in [1, 2, 11, 41, 101, 301, 1_001, 5_001, 30_001] {
        faults.extend([999, 46, 214, 719].map(|error| format!("*:{call}+:{error}")));
    }
    let every = std::env::var("FAULTS_EVERY").map_or(1, |every| every.parse().expect("a number"));
    let faults: Vec<&str> = (faults.iter().map(String::as_str).step_by(every)).collect();
    each_ends_well(&faults, |fault| {
        let (code, said) = BENCH.with(fault);
        let explained = |line: &str| {
            let fails = line.starts_with("FAILED ") || line.starts_with("skipped ");
            fails && (line.contains(" failed: CU") || line.contains("NVRTC"))
        };
        let is_explained = code == Some(0) || code == Some(1) && said.lines().any(explained);
        assert!(is_explained, "{fault} ends with {code:?}: {said}");
    });
}
