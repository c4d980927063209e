//! Every implementation of the groups that teach, at small sizes: poison does not pass, a run
//! does, and a second run does. Without a harness, because the routines that measure a fresh
//! process start this executable again.

use std::process::ExitCode;
use std::rc::Rc;

use crossover::device::Gpu;
use crossover::timing::Launch;
use crossover::workload::cold_start::{self, ColdStart};
use crossover::workload::host_sync::{self, Pipeline};
use crossover::workload::loader::{self, Loader};
use crossover::workload::memory::{self, Memory};
use crossover::workload::streams::{self, Streams};
use crossover::workload::timing_methods::{Product, SPIN, Spin, product, spin};
use crossover::workload::transfer::{self, Transfer};
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
    use transfer::gpu::*;
    let table: [(&str, Make<Transfer>); 11] = [
        ("h2d_pageable", h2d_pageable),
        ("h2d_pinned", h2d_pinned),
        ("h2d_write_combined", h2d_write_combined),
        ("h2d_registered", h2d_registered),
        ("h2d_many", h2d_many),
        ("d2h_pageable", d2h_pageable),
        ("d2h_pinned", d2h_pinned),
        ("d2h_registered", d2h_registered),
        ("both_pinned", both_pinned),
        ("zero_copy", zero_copy),
        ("managed", managed),
    ];
    each(gpu, &[1, 15, 1 << 10, 4097, 1 << 20], &table)
}

fn host_syncs(gpu: &Rc<Gpu>) -> TestResult {
    use host_sync::gpu::*;
    let table: [(&str, Make<Pipeline>); 5] = [
        ("asynchronous", asynchronous),
        ("sync_each", sync_each),
        ("read_each", read_each),
        ("hybrid", hybrid),
        ("graph", graph),
    ];
    each(gpu, &[1, 255, 257, 1 << 16], &table)
}

fn memories(gpu: &Rc<Gpu>) -> TestResult {
    use memory::gpu::*;
    let table: [(&str, Make<Memory>); 4] = [
        ("malloc", malloc),
        ("malloc_async", malloc_async),
        ("malloc_async_kept", malloc_async_kept),
        ("reuse", reuse),
    ];
    each(gpu, &[4, 4096, 64 << 20], &table)
}

fn spins(gpu: &Rc<Gpu>) -> TestResult {
    let table: [(&str, Make<Spin>); 2] = [("enqueued", spin::enqueued), ("waited", spin::waited)];
    each(gpu, &[1_000, 100_000, 10_000_000], &table)
}

fn products(gpu: &Rc<Gpu>) -> TestResult {
    let table: [(&str, Make<Product>); 2] =
        [("enqueued", product::enqueued), ("waited", product::waited)];
    each(gpu, &[1, 64, 513], &table)
}

/// Also with the stream of the kernels held up by a spin: a copy that does not wait for its
/// kernel, or a kernel that does not wait for its copy, then works on poison.
fn overlapped(gpu: &Rc<Gpu>) -> TestResult {
    use streams::gpu::*;
    let table: [(&str, u32, Make<Streams>); 8] = [
        ("sequence", 1, sequence),
        ("synced", 8, synced),
        ("chunks_2", 2, chunks_2),
        ("chunks_4", 4, chunks_4),
        ("chunks_8", 8, chunks_8),
        ("chunks_16", 16, chunks_16),
        ("chunks_32", 32, chunks_32),
        ("chunks_64", 64, chunks_64),
    ];
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
        for (name, pieces, make) in table {
            let at = |e: RoutineError| format!("{name} at {size}: {e}");
            let mut routine = make(gpu, &problem).map_err(at)?;
            one(gpu, &mut *routine).map_err(at)?;
            // Pieces are multiples of 1,024 values.
            if size % (1024 * u64::from(pieces)) == 0 && routine.launches() != pieces {
                let launches = routine.launches();
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
    use loader::gpu::*;
    let table: [(&str, Make<Loader>); 5] = [
        ("pageable", pageable),
        ("pinned", pinned),
        ("prefetch", prefetch),
        ("threads_2", threads_2),
        ("threads_4", threads_4),
    ];
    let image = loader::IMAGE as u64;
    each(gpu, &[image, 3 * image, 1 << 20], &table)
}

/// What fresh processes measure is poisoned and verified in them; here they are run, and each
/// phase must have a time for each sample.
fn first_calls(gpu: &Rc<Gpu>) -> TestResult {
    use cold_start::gpu::*;
    let phases: [(&str, Make<ColdStart>); 14] = [
        ("driver_init", driver_init),
        ("context", context),
        ("first_stream", first_stream),
        ("warm_stream", warm_stream),
        ("first_alloc", first_alloc),
        ("warm_alloc", warm_alloc),
        ("nvrtc_compile", nvrtc_compile),
        ("warm_nvrtc_compile", warm_nvrtc_compile),
        ("ptx_jit", ptx_jit),
        ("cubin_load", cubin_load),
        ("first_launch", first_launch),
        ("warm_launch", warm_launch),
        ("first_gemm", first_gemm),
        ("warm_gemm", warm_gemm),
    ];
    let start = Rc::new(ColdStart::new(1));
    for (name, make) in phases {
        sampled(name, &mut *make(gpu, &start)?)?;
    }
    for nanoseconds in [1_000, 1_000_000] {
        let problem = Rc::new(Spin::new(nanoseconds));
        let ns = sampled("first spin", &mut *spin::first_call(gpu, &problem)?)?;
        if ns < nanoseconds as f64 {
            return Err(format!("a first spin of {nanoseconds} ns took {ns} ns").into());
        }
    }
    let problem = Rc::new(Product::new(256));
    sampled("first product", &mut *product::first_call(gpu, &problem)?).map(drop)
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
    use loader::gpu::*;
    let problem = Rc::new(Loader::new(1 << 22));
    let table: [(&str, Make<Loader>); 3] = [
        ("pageable", pageable),
        ("pinned", pinned),
        ("threads_4", threads_4),
    ];
    for (name, make) in table {
        let mut routine = make(gpu, &problem)?;
        routine.run()?;
        let extra = routine.extra()?;
        let share = extra["device_busy"];
        println!(
            "{name}: the device was busy {:.1} % of the time",
            100.0 * share
        );
        // One stream: its kernels do not overlap.
        if !(share > 0.0 && share <= 1.0) {
            return Err(format!("{name}: busy for {share} of the time").into());
        }
    }
    Ok(())
}
