//! Work on other streams, and rotating inputs in a graph. Needs a device; prints with `--nocapture`.

use std::sync::Arc;

use crossover_suite::timing::{Clock, CudaError, CudaTime, Launch, TimingError};
use crossover_suite::workload::RoutineError;
use cudarc::driver::{CudaSlice, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::{Ptx, compile_ptx};

use crate::device::one_at_a_time;

type Outcome = Result<(), RoutineError>;

const ITERATIONS: u64 = 20;

/// Reads `n` floats and keeps nothing, though the compiler cannot know.
const READ: &str = r#"
extern "C" __global__ void read(const float *x, unsigned long long n, float *sink) {
    float sum = 0.0f;
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        sum += x[i];
    if (sum == 12345.678f) *sink = sum;
}"#;

fn opened() -> Result<(CudaTime, Arc<CudaStream>), RoutineError> {
    // SAFETY: no slice is used on two streams.
    let time = unsafe { CudaTime::new(0) }?;
    time.wake()?;
    let stream = time.stream().ok_or("it has a device")?.clone();
    Ok((time, stream))
}

/// A clock with its stream, and another stream that nobody orders.
fn opened_with_another() -> Result<(CudaTime, Arc<CudaStream>, Arc<CudaStream>), RoutineError> {
    let (time, stream) = opened()?;
    let other = stream.context().new_stream()?;
    Ok((time, stream, other))
}

/// A kernel of one thread that spins for so many nanoseconds.
fn spin(stream: &Arc<CudaStream>, ns: u64) -> Result<Launch, RoutineError> {
    let ptx = Ptx::from_src(include_str!("../../crates/timing/src/gate.ptx"));
    let function = stream.context().load_module(ptx)?;
    let function = function.load_function("crossover_spin")?;
    Ok(Launch::new(function, (1, 1, 1), (1, 1, 1)).arg(ns))
}

/// The time of an iteration on each clock, and of a graph's replay.
fn on_each_clock(
    time: &CudaTime,
    mut routine: impl FnMut() -> Result<(), CudaError>,
) -> Vec<(String, Result<f64, TimingError>)> {
    let mut times = Vec::new();
    for &clock in Clock::ALL {
        let sample = (time.measure_launches(clock, 1, 1, &mut routine))
            .and_then(|_| time.measure_launches(clock, ITERATIONS, 1, &mut routine));
        times.push((clock.to_string(), sample.map(|ns| ns / ITERATIONS as f64)));
    }
    for clock in [Clock::EventsGated, Clock::EventsCold] {
        let sample = (time.measure_graph(clock, 1, &mut routine))
            .and_then(|_| time.measure_graph(clock, ITERATIONS, &mut routine));
        let name = format!("graph on {clock}");
        times.push((name, sample.map(|ns| ns / ITERATIONS as f64)));
    }
    times
}

#[test]
#[ignore = "needs a CUDA device"]
fn work_on_a_second_stream_is_an_error_on_every_clock() -> Outcome {
    let _one = one_at_a_time();
    let (time, stream, other) = opened_with_another()?;
    let (short, long) = (spin(&stream, 1_000)?, spin(&stream, 1_000_000)?);
    let routine = || {
        // SAFETY: the kernel takes one 64-bit number.
        unsafe { short.launch(&stream) }?;
        // SAFETY: the kernel takes one 64-bit number.
        unsafe { long.launch(&other) }
    };
    for (name, measured) in on_each_clock(&time, routine) {
        match measured {
            Err(error @ TimingError::WorkElsewhere { .. }) => println!("{name}: {error}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    time.ignore_other_streams(true);
    let ns = time.measure_launches(Clock::EventsGated, ITERATIONS, 1, routine)?;
    println!("ignored: {:.0} ns", ns / ITERATIONS as f64);
    time.settle()?;
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_second_stream_that_is_joined_is_timed_on_every_clock() -> Outcome {
    const LONG: f64 = 200_000.0;
    let _one = one_at_a_time();
    let (time, stream, other) = opened_with_another()?;
    let (short, long) = (spin(&stream, 1_000)?, spin(&stream, LONG as u64)?);
    let (forked, joined) = (stream.record_event(None)?, other.record_event(None)?);
    let routine = || -> Result<(), CudaError> {
        let on_events = || {
            forked.record(&stream)?;
            other.wait(&forked)
        };
        let driver = |error| CudaError::new("an event or a wait", error);
        on_events().map_err(driver)?;
        // SAFETY: the kernel takes one 64-bit number.
        unsafe { long.launch(&other) }?;
        // SAFETY: the kernel takes one 64-bit number.
        unsafe { short.launch(&stream) }?;
        joined.record(&other).map_err(driver)?;
        stream.wait(&joined).map_err(driver)
    };
    for (name, measured) in on_each_clock(&time, routine) {
        let ns = measured?;
        println!("{name}: {ns:.0} ns");
        // Launches, events and the wait of one stream for the other come on top.
        let expected = LONG..LONG + 60_000.0;
        assert!(
            name == "submit" || expected.contains(&ns),
            "{name}: {ns} ns"
        );
    }
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_graph_takes_rotating_inputs_in_turn() -> Outcome {
    const BYTES: usize = 8 << 20;
    let _one = one_at_a_time();
    let (time, stream) = opened()?;
    let read = (stream.context())
        .load_module(compile_ptx(READ)?)?
        .load_function("read")?;
    let mut sink = stream.alloc_zeros::<f32>(1)?;
    let mut inputs = time.rotating(BYTES, |_| stream.alloc_zeros::<u8>(BYTES))?;
    let rounds = 10 * inputs.copies().len() as u64;
    let n = (BYTES / 4) as u64;
    let config = LaunchConfig::for_num_elems(1 << 16);
    let mut read = |from: &CudaSlice<u8>| {
        let mut launch = stream.launch_builder(&read);
        launch.arg(from).arg(&n).arg(&mut sink);
        // SAFETY: the kernel reads `n` floats of the first, and may write one to the last.
        unsafe { launch.launch(config) }.map(drop)
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
