//! What goes wrong in benchmarks without an error elsewhere, on a real device: work that a clock does
//! not time, a caller's wait, wrong counts of launches, and a full queue.

mod device;

use std::sync::Arc;
use std::time::Instant;

use crossover_timing::cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, LaunchConfig, PushKernelArg, sys,
};
use crossover_timing::{BoxError, Clock, CudaTime, GateMode, TimingError};

use crate::device::{Opened, READ, TestResult, function, middle, nothing, spins};

#[test]
#[ignore = "needs a CUDA device"]
fn a_graph_takes_rotating_inputs_in_turn() -> TestResult {
    const BYTES: usize = 8 << 20;
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    let kernel = function(time, READ, "read")?;
    let mut sink = stream.alloc_zeros::<f32>(1)?;
    let mut inputs = time.rotating(BYTES, |_| stream.alloc_zeros::<u8>(BYTES))?;
    let rounds = 10 * inputs.copies().len() as u64;
    let n = (BYTES / 4) as u64;
    let mut read = |from: &CudaSlice<u8>| {
        let mut launch = stream.launch_builder(&kernel);
        launch.arg(from).arg(&n).arg(&mut sink);
        // SAFETY: the kernel reads `n` floats of the first, and may write one to the last.
        unsafe { launch.launch(LaunchConfig::for_num_elems(1 << 16)) }.map(drop)
    };
    let one = stream.alloc_zeros::<u8>(BYTES)?;
    let clock = Clock::EventsGated;
    let each = |total: f64| total / rounds as f64;
    time.measure_graph(clock, 1, || read(&one))?;
    let warm = each(time.measure_graph(clock, rounds, || read(&one))?);
    let launched = each(time.measure_launches(clock, rounds, 1, || read(inputs.next_copy()))?);
    let replayed = each(time.measure_graph(clock, rounds, || read(inputs.next_copy()))?);
    println!(
        "8 MiB: warm replay {warm:.0} ns, in turn {launched:.0} ns, replayed {replayed:.0} ns"
    );
    assert!(
        replayed > 1.1 * warm,
        "the replays find their inputs in the cache"
    );
    let apart = (replayed - launched).abs();
    assert!(apart < 0.15 * launched + 2_000.0, "{apart} ns apart");
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_caller_waits_for_each_iteration_on_wall() -> TestResult {
    const N: u64 = 200;
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    for ns in [2_000, 10_000, 100_000] {
        let launch = spins(stream, ns)?;
        let waits = || -> Result<(), BoxError> {
            launch()?;
            Ok(stream.synchronize()?)
        };
        time.measure(Clock::Wall, 1, &launch)?;
        let each = |total: Result<f64, TimingError>| total.map(|ns| ns / N as f64);
        let awaited = || {
            let begun = Instant::now();
            for _ in 0..N {
                waits()?;
            }
            Ok(begun.elapsed().as_nanos() as f64 / N as f64)
        };
        let known = middle(15, awaited)?;
        let wall = middle(15, || each(time.measure(Clock::Wall, N, &launch)))?;
        let itself = middle(15, || each(time.measure_awaited(N, waits)))?;
        let twice = middle(15, || each(time.measure(Clock::Wall, N, waits)))?;
        let overlapped = middle(15, || each(time.measure_awaited(N, &launch)))?;
        println!(
            "{ns} ns: loop of launch and wait {known:.0} ns, wall {wall:.0}, waiting itself {itself:.0}, awaited \
             twice {twice:.0}, one wait per sample {overlapped:.0}"
        );
        for measured in [wall, itself] {
            let apart = (measured - known).abs();
            assert!(apart < 0.05 * known + 1_000.0, "{measured} ns, {known} ns");
        }
        assert!(wall > overlapped, "launches overlap");
    }
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn short_work_on_another_stream_is_below_the_limit() -> TestResult {
    let device = Opened::new()?;
    let (time, empty) = (&device.time, nothing(&device.time));
    let other = device.stream.context().new_stream()?;
    for ns in [2_000, 20_000, 200_000] {
        let spin = spins(&other, ns)?;
        let hidden = || empty().and_then(|()| spin());
        for &clock in Clock::OF_STREAM {
            match time.measure(clock, 1_000, hidden) {
                Ok(total) => {
                    println!("{ns} ns elsewhere, {clock}: {:.0} ns", total / 1_000.0);
                    assert!(ns < 200_000, "{clock} does not notice {ns} ns");
                }
                Err(error @ TimingError::WorkElsewhere { .. }) => {
                    println!("{ns} ns elsewhere, {clock}: {error}");
                    assert!(ns > 2_000, "{clock}: {error}");
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn launches_are_counted() -> TestResult {
    const NS: u64 = 5_000;
    let device = Opened::new()?;
    let (time, launch) = (&device.time, spins(&device.stream, NS)?);
    let mut three = || (0..3).try_for_each(|_| launch());
    let counted = time.count_launches(&mut three)?.ok_or("a device")?;
    assert_eq!(counted.launches, 3);
    for clock in [Clock::Events, Clock::EventsGated, Clock::EventsCold] {
        time.measure(clock, 1, &mut three)?;
        let ns = time.measure(clock, 900, &mut three)? / 900.0;
        println!("{clock}: three kernels of {NS} ns {ns:.0} ns");
        assert!(ns >= 3.0 * NS as f64, "{ns}");
    }
    Ok(())
}

/// With `CUDA_SCALE_LAUNCH_QUEUES=4x` more fit.
#[test]
#[ignore = "needs a CUDA device"]
fn an_iteration_may_fill_the_queue_behind_the_gate() -> TestResult {
    let device = Opened::new()?;
    let (time, empty) = (&device.time, nothing(&device.time));
    let is_scaled = std::env::var_os("CUDA_SCALE_LAUNCH_QUEUES").is_some();
    println!("the gate is off: {:?}", time.gate_off_reason());
    for launches in [448, 600, 800, 1_000, 2_000, 3_500, 8_000] {
        let routine = || (0..launches).try_for_each(|_| empty());
        match time.measure(Clock::EventsGated, 3, routine) {
            Ok(ns) => println!(
                "{launches} launches: {:.1} ns each",
                ns / 3.0 / f64::from(launches)
            ),
            Err(error @ TimingError::TooManyLaunches { .. }) => {
                println!("{launches} launches: {error}");
                assert!(launches > 448 || is_scaled, "{error}");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

const SCALE: &str = r#"
extern "C" __global__ void scale(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}"#;

/// A program as candle's are: cudarc orders the streams of its context by events, and memory comes from a pool. A kernel on
/// the other stream is refused on each clock, unless the timed stream waits for it, and so is one that
/// runs although the gate is closed; one on the timed stream is timed.
#[test]
#[ignore = "needs a CUDA device"]
fn work_beside_a_tracked_stream_is_right_or_refused() -> TestResult {
    let _one_at_a_time = Opened::new()?;
    for values in [1 << 20, 16 << 20] {
        let context = CudaContext::new(0)?;
        let [stream, other] = &[context.new_stream()?, context.new_stream()?];
        let time = &CudaTime::on_stream(stream, GateMode::Auto)?;
        time.wake()?;
        let kernel = function(time, SCALE, "scale")?;
        let (x, mut y) = (
            other.alloc_zeros::<f32>(values)?,
            other.alloc_zeros::<f32>(values)?,
        );
        let scale = |on: &Arc<CudaStream>, y: &mut CudaSlice<f32>| -> Result<(), BoxError> {
            let count = values as i32;
            let mut builder = on.launch_builder(&kernel);
            builder.arg(&x).arg(y).arg(&count);
            // SAFETY: the kernel takes two arrays of so many values, and their number.
            unsafe { builder.launch(LaunchConfig::for_num_elems(count as u32)) }?;
            Ok(())
        };
        // What it takes on the timed stream.
        let mut right = Vec::new();
        for &clock in Clock::OF_STREAM {
            let mut own = || scale(stream, &mut y);
            let ns = middle(5, || time.measure(clock, 100, &mut own))? / 100.0;
            println!("{values} values, {clock}: {ns:.0} ns");
            right.push(ns);
        }
        let at = |clock| {
            right[Clock::OF_STREAM
                .iter()
                .position(|it| *it == clock)
                .expect("a clock")]
        };
        // 8 bytes a value, at no more than 20 TB/s from the cache.
        assert!(at(Clock::EventsGated) > values as f64 * 8.0 / 20e3);
        // Each trial has one outcome, however often it is made.
        for clock in Clock::OF_STREAM.repeat(10) {
            for launches in [None, Some(1)] {
                let mut beside = || scale(other, &mut y);
                let measured = match launches {
                    None => time.measure(clock, 100, &mut beside),
                    Some(launches) => time.measure_launches(clock, 100, launches, &mut beside),
                };
                println!("{values} values beside, {clock}: {measured:?}");
                assert!(
                    matches!(measured, Err(TimingError::NothingEnqueued)),
                    "{clock}"
                );
                time.settle()?;
            }
            let is_gated = matches!(clock, Clock::EventsGated | Clock::EventsCold);
            // The free waits for the other stream, and the kernel for nothing.
            let mut pooled = || -> Result<(), BoxError> {
                // SAFETY: the kernel writes all values.
                let mut y = unsafe { stream.alloc(values) }?;
                scale(other, &mut y)
            };
            let measured = time.measure(clock, 100, &mut pooled).map(|ns| ns / 100.0);
            println!("{values} values beside and freed, {clock}: {measured:?}");
            match measured {
                Err(TimingError::NotHeld | TimingError::NothingEnqueued) => {
                    assert!(is_gated, "{clock}");
                }
                Err(error) => return Err(error.into()),
                // A kernel that is done before the gate opens is not found.
                Ok(_) if is_gated => assert_eq!(values, 1 << 20),
                Ok(ns) => assert!(clock == Clock::Submit || ns > 0.8 * at(Clock::EventsGated)),
            }
            time.settle()?;
        }
    }
    Ok(())
}

/// Kernels that let the next one begin at once.
#[test]
#[ignore = "needs a CUDA device from compute capability 9.0 on"]
fn programmatic_launches_overlap_and_are_recognised() -> TestResult {
    const DEPENDENT: &str = r#"
extern "C" __global__ void dependent(unsigned long long nanoseconds) {
    asm volatile("griddepcontrol.launch_dependents;");
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - begin < nanoseconds);
}"#;
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    if stream.context().compute_capability()? < (9, 0) {
        println!("(skipped: an older device)");
        return Ok(());
    }
    let kernel = function(time, DEPENDENT, "dependent")?;
    for ns in [20_000u64, 0] {
        for is_dependent in [0, 1] {
            let launch = || {
                let mut attribute = sys::CUlaunchAttribute {
                    id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                    pad: [0; 4],
                    value: sys::CUlaunchAttributeValue {
                        programmaticStreamSerializationAllowed: is_dependent,
                    },
                };
                let config = sys::CUlaunchConfig {
                    gridDimX: 1,
                    gridDimY: 1,
                    gridDimZ: 1,
                    blockDimX: 1,
                    blockDimY: 1,
                    blockDimZ: 1,
                    sharedMemBytes: 0,
                    hStream: stream.cu_stream(),
                    attrs: &mut attribute,
                    numAttrs: 1,
                };
                let mut arguments = [(&raw const ns).cast_mut().cast()];
                let (function, arguments) = (kernel.cu_function(), arguments.as_mut_ptr());
                // SAFETY: the kernel takes one 64-bit number, which the driver copies.
                unsafe { sys::cuLaunchKernelEx(&config, function, arguments, std::ptr::null_mut()) }
                    .result()
            };
            let each = |clock| middle(5, || time.measure(clock, 100, launch)).map(|ns| ns / 100.0);
            time.measure(Clock::EventsGated, 1, launch)?;
            let (gated, cold) = (each(Clock::EventsGated)?, each(Clock::EventsCold)?);
            let overlaps = time.overlaps(launch)?;
            println!(
                "{ns} ns, dependent {is_dependent}: gated {gated:.0} ns, cold {cold:.0} ns; {overlaps}"
            );
            assert_eq!(overlaps, is_dependent == 1);
            if ns > 0 && is_dependent == 1 {
                assert!(gated < 0.5 * cold, "they overlap");
            }
        }
    }
    Ok(())
}
