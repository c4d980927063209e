//! Runs in which a call of the driver or of a library fails: each ends with the documented code and a
//! sentence, what was measured before is unharmed, and nothing hangs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;
use std::sync::OnceLock;

use crossover::device::Gpu;
use crossover::model::{Residency, Verified};
use crossover::suite::{AnyGroup, Group, Implementation, Sizes};
use crossover::timing::Clock;
use crossover::workload::matmul::precision::{self, Format, Precision};
use crossover::workload::matmul::{self, Shaped};
use crossover::workload::memory::{self, Memory};
use crossover::workload::nested_sine::{self, NestedSine};
use crossover::workload::transfer::{self, Transfer};
use crossover::workload::{HostMemory, Routine, RoutineError, Workload};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rayon::str::ParallelString;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use walkdir::WalkDir;

use crate::stand_in::{StandIn, mark, said};

/// Out of memory, a launch that failed (which stays), a device that is unavailable, not ready, unknown.
const ERRORS: [i32; 5] = [2, 719, 46, 600, 999];

/// A run that takes longer hangs.
const HANGS: &str = "120";

// ---- the run ----

type Made = Result<Box<dyn Routine>, RoutineError>;

/// A routine that says which phase of a benchmark it is in.
struct Marked {
    routine: Option<Box<dyn Routine>>,
    verified: bool,
}

impl Marked {
    fn routine(&mut self) -> &mut dyn Routine {
        &mut **self.routine.as_mut().expect("until it is dropped")
    }
}

impl Routine for Marked {
    fn poison(&mut self) -> Result<(), RoutineError> {
        mark("verification");
        self.verified = false;
        self.routine().poison()
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        if std::mem::take(&mut self.verified) {
            mark("sampling");
        }
        self.routine().run()
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        self.verified = true;
        self.routine().check()
    }

    fn launches(&self) -> u32 {
        self.routine
            .as_ref()
            .map_or(1, |routine| routine.launches())
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        mark("drop");
        self.routine = None;
        mark("between benchmarks");
    }
}

fn row<W: 'static>(
    name: &'static str,
    clock: Clock,
    make: impl Fn(&Rc<Gpu>, &Rc<W>) -> Made + 'static,
) -> Implementation<W> {
    Implementation::gpu(name, clock, move |gpu, problem| {
        mark("set-up");
        let routine = Some(make(gpu, problem)?);
        let verified = false;
        Ok(Box::new(Marked { routine, verified }) as Box<dyn Routine>)
    })
}

fn group<W: Workload>(name: &'static str, size: u64) -> Group<W> {
    let sizes = Sizes::new([size], [size], [size]);
    Group::new(name, sizes, None, |_| crossover::model::Cost::default())
}

/// Rows that together call most of the driver and of its libraries.
fn groups() -> Vec<AnyGroup> {
    let copied = |routine: Implementation<NestedSine>| routine.data(Residency::Pinned);
    let sine = group("sine", 64)
        .with(Implementation::cpu("std", nested_sine::cpu::std))
        .with(row("fused", Clock::EventsGated, nested_sine::gpu::fused))
        .with(row("graph", Clock::Events, nested_sine::gpu::graph))
        .with(copied(row("pinned", Clock::Wall, |gpu, problem| {
            nested_sine::gpu::from_host(gpu, problem, HostMemory::Pinned)
        })));
    let product = group::<Shaped<Precision>>("product", 64)
        .with(row(
            "cublas",
            Clock::EventsCold,
            |gpu, problem: &Rc<Shaped<Precision>>| matmul::gpu::cublas(gpu, problem.matmul()),
        ))
        .with(row(
            "fp8",
            Clock::Submit,
            |gpu, problem: &Rc<Shaped<Precision>>| {
                precision::product(gpu, problem.matmul(), Format::Fp8)
            },
        ));
    let memory = group::<Memory>("allocation", 4096)
        .with(row("pool", Clock::Wall, |gpu, problem| {
            memory::allocation(gpu, problem, crossover::model::Allocator::MallocAsyncKept)
        }))
        .with(row("malloc", Clock::Wall, |gpu, problem| {
            memory::allocation(gpu, problem, crossover::model::Allocator::Malloc)
        }));
    let copy = |name, memory: HostMemory| {
        row(name, Clock::Wall, move |gpu, problem| {
            transfer::copy(
                gpu,
                problem,
                crossover::model::CopyDirection::ToDevice,
                memory,
                1,
            )
        })
        .data(memory)
    };
    let copies = group::<Transfer>("copies", 1024)
        .with(copy("pinned", HostMemory::Pinned))
        .with(copy("ordinary", HostMemory::Pageable));
    vec![sine.into(), product.into(), memory.into(), copies.into()]
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
    /// Calls by phase and function.
    calls: BTreeMap<(String, String), u64>,
}

struct Ended {
    code: Option<i32>,
    said: String,
    results: TempDir,
}

impl Bench {
    fn new() -> Self {
        let stand_in = StandIn::new();
        let device = stand_in.small_h200();
        let mut bench = Self {
            stand_in,
            device,
            calls: BTreeMap::new(),
        };
        let calls = bench.stand_in.folder().join("calls");
        let root = bench.stand_in.folder().join("criterion");
        let mut command = bench.command(&root);
        let output = command.env("RECORDING_DRIVER_CALLS", &calls).output();
        let output = output.expect("this executable runs");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let text = fs::read_to_string(calls).expect("the driver has written it");
        bench.calls = (text.lines())
            .map(|line| {
                let mut parts = line.split('\t').map(str::to_owned);
                let mut next = || parts.next().expect("phase, function and count");
                let (phase, function) = (next(), next());
                ((phase, function), next().parse().expect("a count"))
            })
            .collect();
        bench
    }

    fn command(&self, root: &Path) -> Command {
        let this = self
            .stand_in
            .command("faults", self.device.to_str().expect("a path"));
        let mut command = Command::new("timeout");
        command
            .args(["--signal=KILL", HANGS])
            .arg(this.get_program());
        // With Criterion's own lines a benchmark has its line before it begins: what fails is at that line.
        command.args(["--bench", "--quick", "--noplot", "--verbose"]);
        command.args(["--warm-up-time", "0.01", "--measurement-time", "0.01"]);
        for (name, value) in this.get_envs() {
            command.env(name, value.expect("all are set"));
        }
        command.env("CRITERION_HOME", root);
        command
    }

    /// A run over the results of the sound one.
    fn with(&self, fault: &str) -> Ended {
        let results = tempfile::tempdir().expect("a folder of its own");
        let root = results.path().join("criterion");
        copy(&self.stand_in.folder().join("criterion"), &root);
        let output = self
            .command(&root)
            .env("RECORDING_DRIVER_FAULTS", fault)
            .output();
        let output = output.expect("this executable runs");
        Ended {
            code: output.status.code(),
            said: said(&output),
            results,
        }
    }
}

fn bench() -> &'static Bench {
    static BENCH: OnceLock<Bench> = OnceLock::new();
    BENCH.get_or_init(Bench::new)
}

fn copy(from: &Path, to: &Path) {
    for entry in WalkDir::new(from)
        .into_iter()
        .map(|entry| entry.expect("it is there"))
    {
        let to = to.join(entry.path().strip_prefix(from).expect("it is in there"));
        match entry.file_type().is_dir() {
            true => fs::create_dir_all(to).expect("a new folder"),
            false => drop(fs::copy(entry.path(), to).expect("there is room")),
        }
    }
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
        let before = bench().stand_in.folder().join("criterion");
        let files = WalkDir::new(&before).into_iter().flatten();
        let samples = files.filter(|file| file.file_name() == "sample.json");
        let folders = samples.filter_map(|file| {
            let folder = file.path().parent()?;
            folder.strip_prefix(&before).ok().map(Path::to_owned)
        });
        let whole = |folder: &PathBuf| {
            let folder = self.results.path().join("criterion").join(folder);
            let sidecar = fs::read(folder.join("crossover.json")).ok()?;
            let sidecar: Value = serde_json::from_slice(&sidecar).ok()?;
            let digest = Sha256::digest(fs::read(folder.join("sample.json")).ok()?);
            let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            (sidecar["samples_sha256"] == digest).then_some(())
        };
        let torn = { folders }.find(|folder| whole(folder).is_none())?;
        Some(format!("{} is not whole any more", torn.display()))
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
cuMemAllocAsync:1:2:set-up | 1 | FAILED sine/gpu/fused/64: | cuMemAllocAsync failed: CUDA_ERROR_OUT_OF_MEMORY
cuLaunchKernel:40:719:sampling | 1 | FAILED sine/gpu/fused/64: cuLaunchKernel failed: CUDA_ERROR_LAUNCH_FAILED | LOST
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
    let wrong: Vec<String> = faults
        .par_iter()
        .filter_map(|fault| failing(fault))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
