//! What goes wrong with a GPU, on purpose: a kernel that traps, and memory that another process
//! holds. Each with its exit code and sentence, the earlier results unharmed. Needs a device; what
//! fails without one is in `crates/recording-driver/tests/recorded/faults.rs`.

#[path = "../../crates/command/tests/runs/faults/ones.rs"]
mod ones;
#[path = "../../crates/command/tests/runs/faults/run.rs"]
#[allow(dead_code)]
pub(crate) mod run;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::rc::Rc;

use crossover::device::Gpu;
use crossover::device::kernel::Source;
use crossover::model::Cost;
use crossover::suite::{AnyGroup, Group, Implementation, Sizes};
use crossover::timing::Clock;
use crossover::workload::simple::{compare, on_cpu, on_gpu};
use crossover::workload::{Routine, RoutineError};
use libtest_mimic::Trial;
use ones::Ones;
use run::{bench, expect, shown};

/// How much device memory a process that holds the rest leaves, in bytes.
pub(crate) const LEAVE: &str = "LEAVE_DEVICE_BYTES";

static KERNELS: Source = Source {
    name: "faults.cu",
    text: r#"
        extern "C" __global__ void fill(float *y, unsigned int n) {
            unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] = 1.0f;
        }
        __device__ unsigned int calls;
        extern "C" __global__ void traps(float *y, unsigned int n) {
            unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] = 1.0f;
            if (i == 0 && atomicAdd(&calls, 1) == 500) asm("trap;");
        }"#,
    options: &[],
    oldest: (7, 5),
};

type Made = Result<Box<dyn Routine>, RoutineError>;

fn kernel(gpu: &Rc<Gpu>, problem: &Rc<Ones>, name: &str) -> Made {
    let n = problem.0;
    let kernel = gpu.launch(&KERNELS, name, (n as u32).div_ceil(256), 256)?;
    let launch = |_: &[u64], output| Ok(kernel.arg(output).arg(n as u32));
    let check = move |y: &[f32]| compare(y, vec![1.0; n], 1.0, 0.0);
    // SAFETY: the arguments are those the kernel declares, and it stays below n.
    unsafe { on_gpu(gpu, None, &[], n, launch, check) }
}

pub(crate) fn groups() -> Vec<AnyGroup> {
    let row = |name: &'static str, make: fn(&Rc<Gpu>, &Rc<Ones>) -> Made| {
        Implementation::gpu(name, Clock::Events, make)
    };
    let group = Group::new("faults", Sizes::new([64, 128], [64], [64]), None, |_| {
        Cost::default()
    })
    .with(row("fill", |gpu, problem| kernel(gpu, problem, "fill")))
    .with(row("traps", |gpu, problem| kernel(gpu, problem, "traps")))
    .with(row("large", |gpu, problem| {
        drop(gpu.alloc::<u8>(8 << 30)?);
        kernel(gpu, problem, "fill")
    }))
    .with(Implementation::cpu("fill", |problem: &Rc<Ones>| {
        let n = problem.0;
        let check = move |y: &[f32]| compare(y, vec![1.0; n], 1.0, 0.0);
        Ok(on_cpu(n, |y| y.fill(1.0), check))
    }));
    vec![group.into()]
}

pub(crate) fn trials() -> Vec<Trial> {
    let tests: &[(&str, fn())] = &[
        ("a_kernel_that_traps", traps),
        ("memory_that_another_process_holds", held_memory),
    ];
    let trial = |&(name, test): &(&'static str, fn())| {
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(true)
    };
    tests.iter().map(trial).collect()
}

// ---- helpers ----

/// Takes the device's memory but for `leave` bytes, until standard input ends.
pub(crate) fn hold(leave: usize) -> ExitCode {
    let gpu = Gpu::open(0).expect("a device");
    let mut held = Vec::new();
    let mut piece = 1usize << 36;
    while piece >= 1 << 20 {
        let (free, _) = cudarc::driver::result::mem_get_info().expect("an answer");
        match (free >= leave + piece).then(|| gpu.alloc::<u8>(piece)) {
            Some(Ok(memory)) => held.push(memory),
            _ => piece /= 2,
        }
        gpu.synchronize().expect("no fault");
    }
    println!("held");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
    ExitCode::SUCCESS
}

fn on_device(root: &Path, filter: &str) -> Command {
    let mut command = bench(root, &["--bench", "--quick", filter]);
    command.env_remove("CROSSOVER_DEVICE");
    command
}

/// Results of a sound run.
fn measured() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    expect(&mut on_device(&root, "fill"), 0, "");
    assert_eq!(shown(&root), SOUND);
    (dir, root)
}

const SOUND: [&str; 4] = [
    "faults/cpu/fill/128",
    "faults/cpu/fill/64",
    "faults/gpu/fill/128",
    "faults/gpu/fill/64",
];

/// Prints a line of the table of faults.
fn told(fault: &str, code: i32, said: &str) {
    let begins = ["FAILED", "skipped", "error:"];
    let lines = said
        .lines()
        .filter(|line| begins.iter().any(|b| line.starts_with(b)));
    println!("| {fault} | {code} |");
    for line in lines {
        println!("    {line}");
    }
}

// ---- the faults ----

fn traps() {
    let (_dir, root) = measured();
    let said = expect(
        &mut on_device(&root, "faults/.*/64|faults/.*/128"),
        1,
        "FAILED faults/gpu/traps/",
    );
    assert!(
        said.contains("the CUDA context was lost in faults/gpu/traps/64"),
        "{said}"
    );
    told("a kernel that traps", 1, &said);
    // The CPU's benchmarks come later and were measured; the GPU's earlier results are unchanged.
    let ids = shown(&root);
    assert!(
        SOUND.iter().all(|id| ids.contains(&(*id).to_owned())),
        "{ids:?}"
    );
    expect(&mut on_device(&root, "fill"), 0, "");
}

fn held_memory() {
    let (_dir, root) = measured();
    for leave in [2usize << 30, 300 << 20, 0] {
        let mut holder: Child = Command::new(std::env::current_exe().unwrap())
            .env(LEAVE, leave.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut held = [0; 4];
        holder
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut held)
            .unwrap();
        let said = expect(
            &mut on_device(&root, "large|fill"),
            1,
            "GiB of device memory are free: end the process that holds the rest",
        );
        told(
            &format!("{} MiB left by another process", leave >> 20),
            1,
            &said,
        );
        drop(holder.stdin.take());
        holder.wait().unwrap();
        let ids = shown(&root);
        assert!(
            SOUND.iter().all(|id| ids.contains(&(*id).to_owned())),
            "{ids:?}"
        );
    }
    expect(&mut on_device(&root, "large"), 0, "");
}
