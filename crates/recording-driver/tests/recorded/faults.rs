//! Calls of the driver or of a library that fail. No row ignores the error of a call. A whole run ends with
//! the documented code and a sentence, what was measured before is unharmed, and nothing hangs.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::OnceLock;

use crossover_results::store::baseline::Baseline;
use crossover_results::store::source::BaselineSource;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rayon::str::ParallelString;

use crate::golden::{PART, of_rows};
use crate::stand_in::{StandIn, expect, mark, plan, said};
use crate::{part, rows, text};

/// Out of memory, a device that is unavailable, not ready, unknown, and a launch that failed, after which
/// the context is lost.
const ERRORS: [i32; 5] = [2, 46, 600, 999, 719];

// ---- rows ----

/// Calls without which a row can do, by phase and function: NVRTC's version, that of NCCL (asked once in a process),
/// the log of a source that compiled, an algorithm's name, and what is given back when nothing follows, for
/// which each device's context is made current.
const DISPENSABLE: [[&str; 2]; 13] = [
    ["set-up", "nvrtcVersion"],
    ["set-up", "ncclGetVersion"],
    ["set-up", "nvrtcGetProgramLog"],
    ["set-up", "nvrtcDestroyProgram"],
    ["set-up", "cublasLtMatmulAlgoConfigGetAttribute"],
    ["set-up", "cublasLtMatmulDescDestroy"],
    ["set-up", "cublasLtMatrixLayoutDestroy"],
    ["set-up", "cublasLtMatmulPreferenceDestroy"],
    ["drop", "cublasLt"],
    ["drop", "cufftDestroy"],
    ["drop", "cuCtxGetCurrent"],
    ["drop", "cuCtxSetCurrent"],
    ["drop", "cuStreamSynchronize"],
];

/// What counts the launches of a library's call; where it fails, there are as many as can be.
const COUNTING: [&str; 4] = [
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuGraphGetNodes",
    "cuGraphNodeGetType",
];

/// The task of the process that was started again: lets the first call of each function fail in each phase of
/// each row, and prints where nobody notices.
pub(crate) fn ignored() -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let (group, rows) = rows::named();
    let (mut count, mut seen) = (0, BTreeSet::new());
    for (row, choices) in rows {
        let (function, size) = row.rsplit_once('/').expect("a size");
        let size = size.parse().expect("a number");
        let run = |faults: &str| {
            plan("");
            let gpu = rows::open();
            plan(faults);
            let run = || {
                group.in_phases(function, size, &gpu, choices.clone(), &mut |phase| {
                    mark(phase)
                })
            };
            let ended = catch_unwind(AssertUnwindSafe(run));
            (ended.map(|made| made.map(drop)), plan(""))
        };
        let (ended, calls) = run("");
        assert!(matches!(ended, Ok(Ok(()))), "{row}: {ended:?}");
        let counts = ["\tcublas", "\tcufft"]
            .iter()
            .any(|library| calls.contains(library));
        for line in calls.lines() {
            let [phase, called, calls] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("not phase, function and number: {line}");
            };
            // Rows with as many calls share code. A check takes as long as its reference, which is the same
            // for all rows.
            let is_late = ["verification", "drop"].contains(&phase);
            let calls = if is_late { "" } else { calls };
            if !seen.insert([phase, called, calls].map(str::to_owned)) {
                continue;
            }
            count += 1;
            let error = ERRORS[count % (ERRORS.len() - 1)];
            let (ended, _) = run(&format!("{called}:1:{error}:{phase}"));
            let mut dispensable = DISPENSABLE.iter();
            let may_fail = dispensable.any(|[of, name]| phase == *of && called.starts_with(name))
                || phase == "set-up" && counts && COUNTING.contains(&called);
            let is_noticed = matches!(ended, Ok(Err(_)));
            if !is_noticed && (!may_fail || ended.is_err()) {
                println!("{row}: {called} fails in {phase}: {ended:?}");
            }
        }
    }
    println!("{count} faults");
    ExitCode::SUCCESS
}

/// No row ignores an error.
pub(crate) fn of_group(name: &str) {
    let sections = text::sections(&part::read(name, PART));
    let stand_in = StandIn::new();
    let mut command = of_rows(stand_in.command("ignored", "h200,h200"), name, &sections);
    let said = expect(&mut command, 0);
    assert!(!said.contains(" fails in "), "{said}");
    println!("{said}");
}

// ---- whole runs ----

/// Rows that together call most of the driver and of its libraries.
const ROWS: &str = "^(nested_sine/(cpu/std|gpu/(fused-gated|graph|transfer-pinned))/1024|matmul_skinny/gpu/cublas-cold/64|\
                    precision/gpu/fp8/256|memory/gpu/(malloc|reuse)/4096|transfer/gpu/h2d-(pinned|pageable)/1024)$";

/// The driver, and the results of a run without a fault.
struct Bench {
    stand_in: StandIn,
    /// The ids of its results.
    ids: BTreeSet<String>,
    /// Functions with the number of their calls.
    calls: BTreeMap<String, u64>,
}

struct Ended {
    code: Option<i32>,
    said: String,
    /// An earlier result that is gone, or whose samples are not those that its sidecar is of.
    torn: Option<String>,
}

impl Bench {
    fn new() -> Self {
        let stand_in = StandIn::new();
        stand_in.small_h200();
        let mut bench = Self {
            stand_in,
            ids: BTreeSet::new(),
            calls: BTreeMap::new(),
        };
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
        let device = self.stand_in.folder().join("device.txt");
        let mut command = self
            .stand_in
            .command(task, device.to_str().expect("a path"));
        command.args(["--bench", "--quick", "--noplot", ROWS]);
        command.args(["--warm-up-time", "0.01", "--measurement-time", "0.01"]);
        command.env("CRITERION_HOME", folder.join("criterion"));
        command
    }

    /// A run over the results of the sound one.
    fn with(&self, fault: &str) -> Ended {
        let folder = tempfile::tempdir().expect("a folder of its own");
        let results = self.stand_in.folder().join("criterion");
        let mut copy = Command::new("cp");
        let copied = copy.arg("-r").args([&results, folder.path()]).status();
        assert!(copied.is_ok_and(|status| status.success()));
        let mut command = self.command("bench", folder.path());
        let output = command.env("RECORDING_DRIVER_FAULTS", fault).output();
        let output = output.expect("this executable runs");
        let now = sound(folder.path());
        Ended {
            code: output.status.code(),
            said: said(&output),
            torn: self.ids.difference(&now).next().cloned(),
        }
    }
}

/// The ids of the results that have a sidecar of the same samples.
fn sound(folder: &Path) -> BTreeSet<String> {
    let results = Baseline::read(&BaselineSource {
        root: folder.join("criterion"),
        baseline: "new".to_owned(),
        label: String::new(),
    });
    let results = results.results.into_iter();
    let sound = results.filter(|(_, sampled)| sampled.sidecar.is_some());
    sound.map(|(id, _)| id).collect()
}

fn bench() -> &'static Bench {
    static BENCH: OnceLock<Bench> = OnceLock::new();
    BENCH.get_or_init(Bench::new)
}

/// A few faults: how a run ends with each, and what it says. The last four are a device that is lost,
/// before anything and later, one that was never there, and a call that nothing follows.
const SELECTED: &str = "\
cuInit:1:46 | 1 | cuInit failed: CUDA_ERROR_DEVICE_UNAVAILABLE | error: the selected GPU
cuMemAllocAsync:1:2 | 1 | FAILED matmul_skinny/gpu/cublas-cold/64: | cuMemAllocAsync failed: CUDA_ERROR_OUT_OF_MEMORY | GiB of device memory are free: end the process that holds the rest
cuLaunchKernel:1500:719 | 1 | FAILED matmul_skinny/gpu/cublas-cold/64: cuLaunchKernel failed: CUDA_ERROR_LAUNCH_FAILED | LOST
cuStreamSynchronize:12:999 | 1 | cuStreamSynchronize failed: CUDA_ERROR_UNKNOWN
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

pub(crate) fn selected() {
    SELECTED.par_lines().for_each(|line| {
        let mut parts = line.split(" | ");
        let (fault, code) = (parts.next().unwrap(), parts.next().unwrap());
        let Ended {
            code: ended,
            said,
            torn,
        } = bench().with(fault);
        assert_eq!(ended, code.parse().ok(), "{fault}: {said}");
        for sentence in parts {
            let sentence = sentence.replace("LOST", "the CUDA context was lost in ");
            assert!(said.contains(&sentence), "{fault}: {sentence:?}\n{said}");
        }
        assert!(!said.contains("panicked"), "{fault}: {said}");
        assert_eq!(torn, None, "{fault}");
    });
}

/// How a run does not end as it should with a fault.
fn failing(fault: &str) -> Option<String> {
    let Ended { code, said, torn } = bench().with(fault);
    let explained = |line: &str| {
        let fails = line.starts_with("FAILED ") || line.starts_with("skipped ");
        fails && (line.contains(" failed: CU") || line.contains("NVRTC"))
    };
    let wrong = match code {
        None | Some(137) => "it hangs".to_owned(),
        Some(1) if !said.lines().any(explained) => "it does not say why it fails".to_owned(),
        Some(0 | 1) if !said.contains("panicked") => format!("{} is not whole any more", torn?),
        code => format!("it ends with {code:?}"),
    };
    Some(format!("{fault}: {wrong}\n{said}"))
}

/// Calls of every function of the driver and of the libraries in a run, and a device that is lost from some
/// call on. With `FAULTS_EVERY=48` every 48th of these.
pub(crate) fn all() {
    let mut faults = Vec::new();
    for (at, (function, count)) in bench().calls.iter().enumerate() {
        // NVML is asked beside the benchmarks, as often as time passes.
        if function.starts_with("nvml") {
            faults.push(format!("{function}:*:999"));
            continue;
        }
        let calls = [
            1,
            2,
            3,
            5,
            8,
            13,
            34,
            count / 8,
            count / 4,
            count / 2,
            *count,
        ];
        let calls = BTreeSet::from(calls)
            .into_iter()
            .filter(|call| (1..=*count).contains(call));
        let error = |more| ERRORS[(at + more) % ERRORS.len()];
        faults.extend(
            calls
                .enumerate()
                .map(|(more, call)| format!("{function}:{call}:{}", error(more))),
        );
    }
    for call in [1, 2, 11, 41, 101, 301, 1_001, 5_001, 30_001] {
        faults.extend([999, 46, 214, 719].map(|error| format!("*:{call}+:{error}")));
    }
    let every = std::env::var("FAULTS_EVERY").map_or(1, |every| every.parse().expect("a number"));
    let faults: Vec<String> = faults.into_iter().step_by(every).collect();
    println!("{} faults", faults.len());
    let wrong: Vec<String> = faults
        .par_iter()
        .filter_map(|fault| failing(fault))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
