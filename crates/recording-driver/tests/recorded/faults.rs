//! Runs in which a call of the driver or of a library fails: each ends with the documented code and a
//! sentence, what was measured before is unharmed, and nothing hangs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;
use std::sync::OnceLock;

use crossover::device::Gpu;
use crossover::model::{Allocator, CopyDirection, Cost, Format, Residency, Verified};
use crossover::suite::{AnyGroup, Group, Implementation, Sizes};
use crossover::timing::Clock;
use crossover::workload::matmul::precision::{self, Precision};
use crossover::workload::matmul::{self, Shaped};
use crossover::workload::{HostMemory, Routine, RoutineError, Workload};
use crossover::workload::{memory, nested_sine, transfer};
use crossover_results::store::baseline::Baseline;
use crossover_results::store::source::BaselineSource;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rayon::str::ParallelString;
use tempfile::TempDir;

use crate::stand_in::{StandIn, expect, mark, said};

/// Out of memory, a launch that failed (which stays), a device that is unavailable, not ready, unknown.
const ERRORS: [i32; 5] = [2, 719, 46, 600, 999];

// ---- the run ----

type Made = Result<Box<dyn Routine>, RoutineError>;

/// A routine that says which phase of a benchmark it is in.
struct Marked {
    routine: Box<dyn Routine>,
    verified: bool,
    _end: End,
}

impl Routine for Marked {
    fn poison(&mut self) -> Result<(), RoutineError> {
        mark("verification");
        self.verified = false;
        self.routine.poison()
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        if std::mem::take(&mut self.verified) {
            mark("sampling");
        }
        self.routine.run()
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        self.verified = true;
        self.routine.check()
    }

    fn launches(&self) -> u32 {
        self.routine.launches()
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        mark("drop");
    }
}

/// Is dropped after the routine.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        mark("between benchmarks");
    }
}

fn row<W: 'static>(
    name: &'static str,
    clock: Clock,
    make: fn(&Rc<Gpu>, &Rc<W>) -> Made,
) -> Implementation<W> {
    Implementation::gpu(name, clock, move |gpu, problem| {
        mark("set-up");
        Ok(Box::new(Marked {
            routine: make(gpu, problem)?,
            verified: false,
            _end: End,
        }) as Box<dyn Routine>)
    })
}

fn group<W: Workload>(name: &'static str, size: u64) -> Group<W> {
    let sizes = Sizes::new([size], [size], [size]);
    Group::new(name, sizes, None, |_| Cost::default())
}

/// Rows that together call most of the driver and of its libraries.
fn groups() -> Vec<AnyGroup> {
    let pinned = row("pinned", Clock::Wall, |gpu, problem| {
        nested_sine::gpu::from_host(gpu, problem, HostMemory::Pinned)
    });
    let sine = group("sine", 64)
        .with(Implementation::cpu("std", nested_sine::cpu::std))
        .with(row("fused", Clock::EventsGated, nested_sine::gpu::fused))
        .with(row("graph", Clock::Events, nested_sine::gpu::graph))
        .with(pinned.data(Residency::Pinned));
    let product = group::<Shaped<Precision>>("product", 64)
        .with(row("cublas", Clock::EventsCold, |gpu, problem| {
            matmul::gpu::cublas(gpu, problem.matmul())
        }))
        .with(row("fp8", Clock::Submit, |gpu, problem| {
            precision::product(gpu, problem.matmul(), Format::Fp8)
        }));
    let memory = group("allocation", 4096)
        .with(row("pool", Clock::Wall, |gpu, problem| {
            memory::allocation(gpu, problem, Allocator::MallocAsyncKept)
        }))
        .with(row("malloc", Clock::Wall, |gpu, problem| {
            memory::allocation(gpu, problem, Allocator::Malloc)
        }));
    let pinned = row("pinned", Clock::Wall, |gpu, problem| {
        transfer::copy(gpu, problem, CopyDirection::ToDevice, HostMemory::Pinned, 1)
    });
    let ordinary = row("ordinary", Clock::Wall, |gpu, problem| {
        transfer::copy(
            gpu,
            problem,
            CopyDirection::ToDevice,
            HostMemory::Pageable,
            1,
        )
    });
    let copies = group("copies", 1024)
        .with(pinned.data(HostMemory::Pinned))
        .with(ordinary.data(HostMemory::Pageable));
    [sine.into(), product.into(), memory.into(), copies.into()]
        .map(AnyGroup::verified_by_tests)
        .into()
}

/// What the process that was started again does.
pub(crate) fn run() -> ExitCode {
    mark("opening");
    crossover::suite::bench(crossover::package!(), groups)
}

// ---- a run with a fault ----

/// The driver, a device whose memory is soon measured, and the results of a run without a fault.
struct Bench {
    stand_in: StandIn,
    device: PathBuf,
    /// The ids of its results.
    ids: BTreeSet<String>,
    /// Calls by phase and function.
    calls: BTreeMap<(String, String), u64>,
}

struct Ended {
    code: Option<i32>,
    said: String,
    /// The folder with its results.
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let stand_in = StandIn::new();
        let mut bench = Self {
            device: stand_in.small_h200(),
            stand_in,
            ids: BTreeSet::new(),
            calls: BTreeMap::new(),
        };
        let calls = bench.stand_in.folder().join("calls");
        let mut command = bench.command(bench.stand_in.folder());
        expect(command.env("RECORDING_DRIVER_CALLS", &calls), 0);
        let text = fs::read_to_string(calls).expect("the driver has written it");
        for line in text.lines() {
            let (called, count) = line.rsplit_once('\t').expect("a count");
            let (phase, function) = called.split_once('\t').expect("a function");
            let called = (phase.to_owned(), function.to_owned());
            bench.calls.insert(called, count.parse().expect("a number"));
        }
        bench.ids = sound(bench.stand_in.folder());
        assert_eq!(bench.ids.len(), 10, "{:?}", bench.ids);
        bench
    }

    /// A run with its results in a folder.
    fn command(&self, folder: &Path) -> Command {
        let device = self.device.to_str().expect("a path");
        let mut command = self.stand_in.command("faults", device);
        // With Criterion's own lines a benchmark has its line before it begins: what fails is at that line.
        command.args(["--bench", "--quick", "--noplot", "--verbose"]);
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
        let mut command = self.command(folder.path());
        let output = command.env("RECORDING_DRIVER_FAULTS", fault).output();
        let output = output.expect("this executable runs");
        Ended {
            code: output.status.code(),
            said: said(&output),
            folder,
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

impl Ended {
    /// What is not as it should be.
    fn wrong(&self, fault: &str) -> Option<String> {
        let said = &self.said;
        let mut parts = fault.splitn(4, ':');
        let mut next = || parts.next().unwrap_or_default();
        let (function, call, _, phase) = (next(), next(), next(), next());
        let before = said.split(REACHED).next().unwrap_or_default();
        let at = before.lines().rev().find(|line| line.starts_with('['));
        let at = at.unwrap_or_default();
        let explained = said.lines().any(|line| {
            let fails = line.starts_with("FAILED ") || line.starts_with("skipped ");
            fails && (line.contains(" failed: CU") || line.contains("NVRTC"))
        });
        let wrong = match self.code {
            None | Some(137) => Some("it hangs".to_owned()),
            Some(_) if said.contains("panicked") => Some("it panics".to_owned()),
            Some(0) if explained || may_go_unsaid(function, call, phase, at) => None,
            Some(0) => Some("nothing is said".to_owned()),
            Some(1) if explained => None,
            Some(1) => Some("it does not say why it fails".to_owned()),
            Some(code) => Some(format!("it ends with {code}")),
        };
        wrong.or_else(|| self.torn())
    }

    /// A result of before that is gone, or whose samples are not those that its sidecar is of.
    fn torn(&self) -> Option<String> {
        let now = sound(self.folder.path());
        let torn = bench().ids.difference(&now).next()?;
        Some(format!("{torn} is not whole any more"))
    }
}

/// What counts the launches of a library's call; where it fails, there are as many as can be.
const COUNTING: [&str; 5] = [
    "cublasSgemm_v2",
    "cublasLtMatmul",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuGraphGetNodes",
];

/// What a run can do without, when it fails at the benchmark of this line: NVML, the version of a library,
/// whether there is a context already, limits whose kernels do not compile, a way that fails in a trial
/// and is not chosen, the number of a library's launches, the log of a source that compiled, and what is
/// given back when nothing follows.
fn may_go_unsaid(function: &str, call: &str, phase: &str, at: &str) -> bool {
    let is_product = function.starts_with("cublas");
    match phase {
        _ if function.starts_with("nvml") => true,
        "opening" => {
            ["cublasGetProperty", "cuDevicePrimaryCtxGetState"].contains(&function)
                || function.starts_with("nvrtc")
        }
        "set-up" if at.contains("sine/gpu/pinned/") => true,
        // The first product is made before the one that is counted.
        "set-up" if COUNTING.contains(&function) => {
            at.contains("product/") && (call != "1" || !is_product)
        }
        "set-up" => {
            function.ends_with("Destroy")
                || function.starts_with("nvrtcDestroy")
                || function.starts_with("nvrtcGetProgramLog")
        }
        "drop" => function.starts_with("cublasLt") || function == "cuCtxGetCurrent",
        _ => phase == "between benchmarks",
    }
}

/// What the driver says, once, where it fails a call.
const REACHED: &str = "the recording driver fails ";

/// How the run does not end as it should with a fault.
fn failing(fault: &str) -> Option<String> {
    let ended = bench().with(fault);
    let call = fault.split(':').nth(1);
    let wrong = match ended.said.contains(REACHED) {
        true => ended.wrong(fault)?,
        // How many calls there are follows from times on the host; the first two are always made.
        false if !matches!(call, Some("1" | "2" | "*")) => {
            println!("{fault}: there was no such call this time");
            return None;
        }
        false => "there was no such call".to_owned(),
    };
    Some(format!("{fault}: {wrong}\n{}", ended.said))
}

/// A few faults: how a run ends with each, and what it says. The last four are a device that is lost,
/// before anything and later, one that was never there, and a call that nothing follows.
const SELECTED: &str = "\
cuInit:1:46:opening | 1 | cuInit failed: CUDA_ERROR_DEVICE_UNAVAILABLE | error: the selected GPU
cuMemAllocAsync:1:2:set-up | 1 | FAILED sine/gpu/fused/64: | cuMemAllocAsync failed: CUDA_ERROR_OUT_OF_MEMORY | GiB of device memory are free: end the process that holds the rest
cuLaunchKernel:4:719:sampling | 1 | FAILED sine/gpu/fused/64: cuLaunchKernel failed: CUDA_ERROR_LAUNCH_FAILED | LOST
cuStreamSynchronize:2:999:verification | 1 | FAILED sine/gpu/fused/64: | cuStreamSynchronize failed: CUDA_ERROR_UNKNOWN
cuEventSynchronize:1:600:sampling | 1 | FAILED sine/gpu/fused/64: cuEventSynchronize failed: CUDA_ERROR_NOT_READY
cuMemFreeAsync:3:999:drop | 1 | FAILED sine/gpu/fused/64: an earlier CUDA call failed: CUDA_ERROR_UNKNOWN
cublasSgemm_v2:1:719:verification | 1 | FAILED product/gpu/cublas/64: cuBLAS failed: CUBLAS_STATUS_EXECUTION_FAILED
nvrtcCompileProgram:1:6:set-up | 1 | FAILED sine/gpu/fused/64: | NVRTC
nvrtcVersion:*:999 | 0 | skipped sine/gpu/fused/64: NVRTC was not found
cublasCreate_v2:*:3 | 0 | skipped product/gpu/cublas/64: cublasCreate failed
*:1+:999 | 1 | cuInit failed: CUDA_ERROR_UNKNOWN | error: the selected GPU
*:5000+:46 | 1 | FAILED sine/gpu/ | LOST
*:1+:100 | 0 | skipped sine/gpu/fused: the NVIDIA driver sees no GPU
cublasDestroy_v2:1:719 | 0";

pub(crate) fn selected() {
    SELECTED.par_lines().for_each(|line| {
        let mut parts = line.split(" | ");
        let (fault, code) = (parts.next().unwrap(), parts.next().unwrap());
        let ended = bench().with(fault);
        let said = &ended.said;
        assert_eq!(ended.code, code.parse().ok(), "{fault}: {said}");
        for sentence in parts {
            let sentence = sentence.replace("LOST", "the CUDA context was lost in ");
            assert!(said.contains(&sentence), "{fault}: {sentence:?}\n{said}");
        }
        assert!(!said.contains("panicked"), "{fault}: {said}");
        assert_eq!(ended.torn(), None, "{fault}");
    });
}

/// Every function of the driver and of the libraries, in each phase: its first call by each error, and
/// later calls by one of them each. And a device that is lost from some call on. With `FAULTS_EVERY=8`
/// every eighth of these, which meets each kind of error, since their number is odd.
pub(crate) fn all() {
    // NVML is asked beside the benchmarks, as often as time passes.
    let is_nvml = |function: &str| function.starts_with("nvml");
    let calls = bench().calls.iter();
    let of_driver = calls.filter(|((_, function), _)| !is_nvml(function));
    let functions = bench().calls.keys().map(|(_, function)| function);
    let nvml: BTreeSet<&String> = functions.filter(|function| is_nvml(function)).collect();
    assert!(!nvml.is_empty(), "the stand-in for NVML is not found");
    let mut faults: Vec<String> = (nvml.into_iter())
        .map(|function| format!("{function}:*:999"))
        .collect();
    for (at, ((phase, function), &count)) in of_driver.enumerate() {
        let fault = |call, error| format!("{function}:{call}:{error}:{phase}");
        faults.extend(ERRORS.map(|error| fault(1, error)));
        // A run on a busy machine takes fewer samples.
        let later = match phase == "sampling" {
            true => [2, count / 8, 0],
            false => [2, count / 2, count],
        };
        let later = later.into_iter().filter(|call| (2..=count).contains(call));
        let one_of = |(more, call)| fault(call, ERRORS[(at + more) % ERRORS.len()]);
        faults.extend(later.enumerate().map(one_of));
    }
    for call in [1, 2, 11, 41, 101, 301, 1_001, 5_001, 30_001] {
        faults.extend([999, 46, 214, 719].map(|error| format!("*:{call}+:{error}")));
    }
    let every = std::env::var("FAULTS_EVERY").map_or(1, |every| every.parse().expect("a number"));
    let faults: Vec<String> = faults.into_iter().step_by(every).collect();
    println!("{} faults", faults.len());
    let wrong = faults.par_iter().filter_map(|fault| failing(fault));
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
