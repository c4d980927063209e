//! Every implementation of the groups that teach, at small sizes: poison does not pass, a run
//! does, and a second run does. Without a harness, because the routines that measure a fresh
//! process start this executable again.

use std::process::ExitCode;
use std::rc::Rc;

use crossover::device::Gpu;
use crossover::workload::cold_start::{self, ColdStart};
use crossover::workload::host_sync::{self, Pipeline};
use crossover::workload::loader::{self, Loader};
use crossover::workload::memory::{self, Memory};
use crossover::workload::timing_methods::{Product, Spin, product, spin};
use crossover::workload::transfer::{self, Transfer};
use crossover::workload::{Routine, RoutineError, Workload, run_child};

type Make<W> = fn(&Rc<Gpu>, &Rc<W>) -> Result<Box<dyn Routine>, RoutineError>;
type TestResult = Result<(), RoutineError>;

type Test = (&'static str, fn(&Rc<Gpu>) -> TestResult);

const TESTS: [Test; 8] = [
    ("transfers", transfers),
    ("host_sync", host_syncs),
    ("memory", memories),
    ("spins", spins),
    ("products", products),
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
    let filter = arguments.iter().find(|a| !a.starts_with('-'));
    let selected = TESTS
        .iter()
        .filter(|(name, _)| filter.is_none_or(|f| name.contains(f.as_str())));
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
    for _ in 0..2 {
        routine.poison()?;
        gpu.synchronize()?;
        if routine.check()?.passed() {
            return Err("poison passes".into());
        }
        // Several in a row without a wait between them, as a clock has them.
        for _ in 0..3 {
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
