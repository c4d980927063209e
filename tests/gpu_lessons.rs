//! Every implementation of the groups that teach, at small sizes: poison does not pass, a run
//! does, and a second run does. Without a harness, because the routines that measure a fresh
//! process start this executable again.

use std::process::ExitCode;
use std::rc::Rc;

use crossover::device::Gpu;
use crossover::timing::Launch;
use crossover::workload::HostMemory::{Pageable, Pinned};
use crossover::workload::cold_start::{self, ColdStart};
use crossover::workload::host_sync::{self, Pipeline, pipeline};
use crossover::workload::loader::{self, Feed, Loader, epoch};
use crossover::workload::matmul::gpu::cublas;
use crossover::workload::memory::{Allocator, Memory, allocation};
use crossover::workload::streams::{self, Streams};
use crossover::workload::timing_methods::{
    Product, SPIN, Spin, first_product, first_spin, spin, waited,
};
use crossover::workload::transfer::{Kind, Transfer, Way, copy};
use crossover::workload::{Routine, RoutineError, Workload, run_child};

type Make<W> = fn(&Rc<Gpu>, &Rc<W>) -> Result<Box<dyn Routine>, RoutineError>;
type TestResult = Result<(), RoutineError>;

type Test = (&'static str, fn(&Rc<Gpu>) -> TestResult);

const TESTS: [Test; 9] = [
    ("transfers", transfers),
    ("host_sync", host_syncs),
    ("memory", memories),
    ("spins", spins),
    ("products", products),
    ("streams", overlapped),
    ("loaders", loaders),
    ("first_calls", first_calls),
    ("loader_says_how_busy_the_device_was", busy),
];

fn main() -> ExitCode {
    if let Some(code) = run_child() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |option: &str| arguments.iter().any(|a| a == option);
    let filter = filter(&arguments);
    let selected = TESTS
        .iter()
        .filter(|(name, _)| filter.is_none_or(|f| name.contains(f)));
    if given("--list") {
        selected.for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    if !given("--ignored") && !given("--include-ignored") {
        selected.for_each(|(name, _)| println!("test {name} ... ignored, needs a CUDA device"));
        return ExitCode::SUCCESS;
    }
    let gpu = match Gpu::open(0) {
        Ok(gpu) => Rc::new(gpu),
        Err(absence) => {
            eprintln!("{absence}");
            return ExitCode::FAILURE;
        }
    };
    let mut failed = 0;
    for (name, test) in selected {
        match test(&gpu) {
            Ok(()) => println!("test {name} ... ok"),
            Err(error) => {
                failed += 1;
                println!("test {name} ... FAILED: {error}");
            }
        }
    }
    println!("\n{failed} failed");
    ExitCode::from(u8::from(failed > 0))
}

/// The name to select by: what is no option and no option's value.
fn filter(arguments: &[String]) -> Option<&str> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--test-threads" | "--format" | "--color" | "--skip" | "-Z" => drop(rest.next()),
            option if option.starts_with('-') => {}
            name => return Some(name),
        }
    }
    None
}

/// Poisons, runs and checks each implementation at each size, twice: what a routine reads, it
/// must not have written.
fn each<W: Workload>(gpu: &Rc<Gpu>, sizes: &[u64], table: &[(&str, Make<W>)]) -> TestResult {
    for &size in sizes {
        let problem = Rc::new(W::new(size));
        for (name, make) in table {
            one(gpu, &mut *make(gpu, &problem)?).map_err(|e| format!("{name} at {size}: {e}"))?;
        }
    }
    Ok(())
}

fn one(gpu: &Gpu, routine: &mut dyn Routine) -> TestResult {
    // One, as the suite verifies it, and several in a row without a wait between them, as a
    // clock has them.
    for runs in [1, 3] {
        routine.poison()?;
        gpu.synchronize()?;
        if routine.check()?.passed() {
            return Err("poison passes".into());
        }
        for _ in 0..runs {
            routine.run()?;
        }
        gpu.synchronize()?;
        let verified = routine.check()?;
        if !verified.passed() {
            return Err(format!("{verified:?}").into());
        }
    }
    Ok(gpu
        .context()
        .check_err()
        .map_err(|e| format!("an earlier call: {e}"))?)
}

fn transfers(gpu: &Rc<Gpu>) -> TestResult {
    let table: [(&str, Make<Transfer>); 11] = [
        ("h2d-pageable", |g, p| {
            copy(g, p, Way::ToDevice, Kind::Pageable)
        }),
        ("h2d-pinned", |g, p| copy(g, p, Way::ToDevice, Kind::Pinned)),
        ("h2d-write-combined", |g, p| {
            copy(g, p, Way::ToDevice, Kind::WriteCombined)
        }),
        ("h2d-registered", |g, p| {
            copy(g, p, Way::ToDevice, Kind::Registered)
        }),
        ("h2d-many", |g, p| {
            copy(g, p, Way::ToDeviceInPieces, Kind::Pinned)
        }),
        ("d2h-pageable", |g, p| {
            copy(g, p, Way::ToHost, Kind::Pageable)
        }),
        ("d2h-pinned", |g, p| copy(g, p, Way::ToHost, Kind::Pinned)),
        ("d2h-registered", |g, p| {
            copy(g, p, Way::ToHost, Kind::Registered)
        }),
        ("both-pinned", |g, p| copy(g, p, Way::Both, Kind::Pinned)),
        ("zero-copy", |g, p| {
            copy(g, p, Way::KernelReads, Kind::Pinned)
        }),
        ("managed", |g, p| {
            copy(g, p, Way::KernelReads, Kind::Managed)
        }),
    ];
    each(gpu, &[1, 15, 1 << 10, 4097, 1 << 20], &table)
}

fn host_syncs(gpu: &Rc<Gpu>) -> TestResult {
    let table: [(&str, Make<Pipeline>); 5] = [
        ("async", |g, p| pipeline(g, p, host_sync::Wait::Never)),
        ("sync-each", |g, p| {
            pipeline(g, p, host_sync::Wait::EachStep)
        }),
        ("read-each", |g, p| {
            pipeline(g, p, host_sync::Wait::ReadEachStep)
        }),
        ("hybrid", |g, p| pipeline(g, p, host_sync::Wait::CpuSteps)),
        ("graph", |g, p| pipeline(g, p, host_sync::Wait::Graph)),
    ];
    each(gpu, &[1, 255, 257, 1 << 16], &table)
}

fn memories(gpu: &Rc<Gpu>) -> TestResult {
    let table: [(&str, Make<Memory>); 4] = [
        ("malloc", |g, p| allocation(g, p, Allocator::Malloc)),
        ("malloc-async", |g, p| {
            allocation(g, p, Allocator::MallocAsync)
        }),
        ("malloc-async-kept", |g, p| {
            allocation(g, p, Allocator::MallocAsyncKept)
        }),
        ("reuse", |g, p| allocation(g, p, Allocator::Reuse)),
    ];
    each(gpu, &[4, 4096, 64 << 20], &table)
}

fn spins(gpu: &Rc<Gpu>) -> TestResult {
    let table: [(&str, Make<Spin>); 2] = [
        ("enqueued", spin),
        ("waited", |g, p| Ok(waited(g, spin(g, p)?))),
    ];
    each(gpu, &[1_000, 100_000, 10_000_000], &table)
}

fn products(gpu: &Rc<Gpu>) -> TestResult {
    let table: [(&str, Make<Product>); 2] = [
        ("enqueued", |g, p| cublas(g, p.matmul())),
        ("waited", |g, p| Ok(waited(g, cublas(g, p.matmul())?))),
    ];
    each(gpu, &[1, 64, 513], &table)
}

/// Also with the stream of the kernels held up by a spin: a copy that does not wait for its
/// kernel, or a kernel that does not wait for its copy, then works on poison.
fn overlapped(gpu: &Rc<Gpu>) -> TestResult {
    use streams::Wait;
    let at_the_end = [1, 2, 4, 8, 16, 32, 64].map(|pieces| (pieces, Wait::AtTheEnd));
    let schedules = [&at_the_end[..], &[(8, Wait::EachStage)]].concat();
    let spin = gpu.function(&SPIN, "spin")?;
    let spin = Launch::new(spin, (1, 1, 1), (1, 1, 1)).arg(2_000_000u64);
    for size in [
        1,
        1000,
        1024,
        1025,
        8 * 1024 + 3,
        65_537,
        1 << 20,
        (1 << 20) + 1,
    ] {
        let problem = Rc::new(Streams::new(size));
        for &(pieces, wait) in &schedules {
            let name = format!("{pieces} pieces, {wait:?}");
            let at = |e: RoutineError| format!("{name} at {size}: {e}");
            let mut routine = streams::pieces(gpu, &problem, pieces, wait).map_err(at)?;
            one(gpu, &mut *routine).map_err(at)?;
            // Pieces are multiples of 1,024 values.
            let launches = routine.launches();
            if size % (1024 * pieces as u64) == 0 && launches != pieces as u32 {
                return Err(format!("{name} at {size}: {launches} pieces").into());
            }
            routine.poison().map_err(at)?;
            gpu.synchronize()?;
            // SAFETY: the argument is the one that the kernel declares.
            unsafe { spin.launch(gpu.stream()) }?;
            routine.run().map_err(at)?;
            let verified = routine.check().map_err(at)?;
            if !verified.passed() {
                return Err(format!("{name} at {size}, held up: {verified:?}").into());
            }
        }
    }
    Ok(())
}

fn loaders(gpu: &Rc<Gpu>) -> TestResult {
    let table: [(&str, Make<Loader>); 5] = [
        ("pageable", |g, p| epoch(g, p, Feed::InSequence(Pageable))),
        ("pinned", |g, p| epoch(g, p, Feed::InSequence(Pinned))),
        ("prefetch", |g, p| epoch(g, p, Feed::Threads(1))),
        ("threads-2", |g, p| epoch(g, p, Feed::Threads(2))),
        ("threads-4", |g, p| epoch(g, p, Feed::Threads(4))),
    ];
    let image = loader::IMAGE as u64;
    each(gpu, &[image, 3 * image, 1 << 20], &table)
}

/// What fresh processes measure is poisoned and verified in them; here they are run, and each
/// phase must have a time for each sample.
fn first_calls(gpu: &Rc<Gpu>) -> TestResult {
    use cold_start::Phase;
    let phases = [
        Phase::DriverInit,
        Phase::Context,
        Phase::FirstStream,
        Phase::WarmStream,
        Phase::FirstAlloc,
        Phase::WarmAlloc,
        Phase::NvrtcCompile,
        Phase::WarmNvrtcCompile,
        Phase::PtxJit,
        Phase::CubinLoad,
        Phase::FirstLaunch,
        Phase::WarmLaunch,
        Phase::FirstGemm,
        Phase::WarmGemm,
    ];
    let start = Rc::new(ColdStart::new(1));
    for phase in phases {
        sampled(phase.name(), &mut *cold_start::phase(gpu, &start, phase)?)?;
    }
    for nanoseconds in [1_000, 1_000_000] {
        let problem = Rc::new(Spin::new(nanoseconds));
        let ns = sampled("first spin", &mut *first_spin(gpu, &problem)?)?;
        if ns < nanoseconds as f64 {
            return Err(format!("a first spin of {nanoseconds} ns took {ns} ns").into());
        }
    }
    let problem = Rc::new(Product::new(256));
    sampled("first product", &mut *first_product(gpu, &problem)?).map(drop)
}

/// The shortest of ten samples, in nanoseconds, of a routine that times itself.
fn sampled(name: &str, routine: &mut dyn Routine) -> Result<f64, RoutineError> {
    routine.run()?;
    let verified = routine.check()?;
    if !verified.passed() {
        return Err(format!("{name}: {verified:?}").into());
    }
    let mut shortest = f64::INFINITY;
    for _ in 0..10 {
        let ns = routine
            .time(1)
            .ok_or_else(|| format!("{name} does not time itself"))??;
        if ns.is_nan() || ns <= 0.0 {
            return Err(format!("{name} took {ns} ns").into());
        }
        shortest = shortest.min(ns);
    }
    println!("{name}: {:.3} ms at best", shortest / 1e6);
    Ok(shortest)
}

fn busy(gpu: &Rc<Gpu>) -> TestResult {
    let problem = Rc::new(Loader::new(1 << 22));
    for feed in [
        Feed::InSequence(Pageable),
        Feed::InSequence(Pinned),
        Feed::Threads(4),
    ] {
        let mut routine = epoch(gpu, &problem, feed)?;
        routine.run()?;
        let extra = routine.extra()?;
        let share = extra["device_busy"];
        println!(
            "{feed:?}: the device was busy {:.1} % of the time",
            100.0 * share
        );
        // One stream: its kernels do not overlap.
        if !(share > 0.0 && share <= 1.0) {
            return Err(format!("{feed:?}: busy for {share} of the time").into());
        }
    }
    Ok(())
}
