//! Known answers on a real device: a kernel that spins for an exact time, on each clock that claims device time. And
//! what goes wrong in benchmarks without an error elsewhere: cheats, inputs that stay in the cache, a caller's wait,
//! and kernels that overlap.

mod cheats;
mod device;

use std::time::{Duration, Instant};

use crossover_timing::cudarc::driver::{CudaSlice, DevicePtr, LaunchConfig, PushKernelArg, sys};
use crossover_timing::{BoxError, Clock, CudaTime, Launch, TimingError};

use crate::device::{Opened, READ, TestResult, function, middle, nothing, spins};

/// Without a gate there is nothing to test. Profilers and sanitizers need CROSSOVER_GATE=off; where
/// that is not set there must be a gate.
fn gate_is_off(time: &CudaTime) -> bool {
    let Some(reason) = time.gate_off_reason() else {
        return false;
    };
    assert!(
        std::env::var("CROSSOVER_GATE").is_ok_and(|v| v == "off"),
        "the gate is off on a plain machine: {reason}"
    );
    println!("(the gate is off: {reason})");
    true
}

/// Nanoseconds of one kernel that spins for `ns`, the median of some samples.
fn measured(device: &Opened, clock: Clock, ns: u64) -> TestResult<f64> {
    let (spin, n) = (spins(&device.stream, ns)?, iterations(ns));
    let sample = || device.time.measure_launches(clock, n, 1, &spin);
    // The first loads the kernel.
    for _ in 0..2 {
        sample()?;
    }
    Ok(middle(7, sample)? / n as f64)
}

/// Iterations of a sample of a kernel that spins for `ns`.
fn iterations(ns: u64) -> u64 {
    (20_000_000 / ns).clamp(3, 400)
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_kernel_takes_its_known_time_on_each_clock_of_the_device() -> TestResult {
    let device = Opened::new()?;
    known_answers(&device, Clock::Events)?;
    // The flush takes tens of microseconds: were it in the window, the constant would show it.
    known_answers(&device, Clock::EventsCold)?;
    match gate_is_off(&device.time) {
        true => Ok(()),
        false => known_answers(&device, Clock::EventsGated),
    }
}

fn known_answers(device: &Opened, clock: Clock) -> TestResult {
    let time = &device.time;
    assert_eq!(time.effective_clock(clock), clock);
    let times = [5_000u64, 20_000, 100_000, 1_000_000, 10_000_000];
    let mut constants = Vec::new();
    for ns in times {
        let answer = measured(device, clock, ns)?;
        println!(
            "{clock}: spin {ns} ns measured {answer:.1} ns, {:.1} over",
            answer - ns as f64
        );
        constants.push(answer - ns as f64);
    }
    // Each kernel in a stream carries a constant (about 1.6 µs on an H200, an event pair
    // more on the cold clock), so it is differences that are known exactly.
    for (i, pair) in times.windows(2).enumerate() {
        let known = (pair[1] - pair[0]) as f64;
        let difference = known + constants[i + 1] - constants[i];
        let tolerance = (0.01 * known).max(500.0);
        assert!(
            (difference - known).abs() <= tolerance,
            "{clock}: {} ns apart, measured {difference:.1}",
            known
        );
    }
    for (ns, constant) in times.into_iter().zip(&constants) {
        // Without a gate the first launch follows its event by what the host takes, some 20 µs
        // that the iterations share.
        let host = match clock.includes_launch() {
            true => 50_000.0 / iterations(ns) as f64,
            false => 0.0,
        };
        assert!(
            *constant >= 0.0,
            "{clock}: measured less than the kernel spins"
        );
        assert!(
            *constant < 5_000.0 + host,
            "{clock}: more than launch and event: {constants:?}"
        );
        // `%globaltimer`, which the kernel spins by, and the clock of the events run apart by
        // up to 100 ppm on an H200: 1 µs in 10 ms.
        let moved = (constant - constants[0]).abs();
        assert!(
            moved <= 700.0 + 1.5e-4 * ns as f64 + host,
            "{clock}: the constant moves: {constants:?}"
        );
    }
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn each_cheat_gets_its_sentence_and_what_is_honest_none() -> TestResult {
    cheats::all(&Opened::new()?.time).map_err(|error| error as _)
}

#[test]
#[ignore = "needs a CUDA device"]
fn cold_finds_the_cache_empty_and_gated_finds_it_full() -> TestResult {
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    // A tenth of an H200's L2, and less than half of a small card's.
    let n = 1 << 20;
    let x: CudaSlice<f32> = stream.alloc_zeros(n)?;
    let sink: CudaSlice<f32> = stream.alloc_zeros(1)?;
    let (address, _x) = x.device_ptr(stream);
    let (sink, _sink) = sink.device_ptr(stream);
    let read = Launch::new(function(time, READ, "read")?, (256, 1, 1), (256, 1, 1))
        .arg(address)
        .arg(n as u64)
        .arg(sink);
    // SAFETY: the buffers hold what the kernel reads and outlive it.
    let launch = || unsafe { read.launch(stream) };
    let reading = |clock| middle(15, || time.measure_launches(clock, 20, 1, launch));
    let warm = reading(Clock::EventsGated)? / 20.0;
    let cold = reading(Clock::EventsCold)? / 20.0;
    // Each clock's own constant, without any data.
    let empty = nothing(time);
    let samples = |clock| middle(15, || time.measure_launches(clock, 50, 1, &empty));
    let constant = |clock| samples(clock).map(|ns| ns / 50.0);
    let warm = warm - constant(Clock::EventsGated)?;
    let constant = constant(Clock::EventsCold)?;
    println!(
        "reading 4 MiB: warm {warm:.0} ns, cold {:.0} ns, beside constants",
        cold - constant
    );
    assert!(warm > 0.0, "reading takes no longer than nothing");
    assert!(cold - constant > 1.1 * warm, "the flush evicted nothing");
    assert!(
        constant < 5_000.0,
        "the flush is in the window: an empty kernel took {constant} ns"
    );
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn gated_empty_kernel_is_steady() -> TestResult {
    let device = Opened::new()?;
    let time = &device.time;
    if gate_is_off(time) {
        return Ok(());
    }
    let empty = nothing(time);
    let mut samples = Vec::new();
    for _ in 0..52 {
        samples.push(time.measure_launches(Clock::EventsGated, 9_000, 1, &empty)? / 9_000.0);
    }
    let samples = &samples[2..];
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    let squares = samples.iter().map(|s| (s - mean).powi(2)).sum::<f64>();
    let percent = 100.0 * (squares / (samples.len() - 1) as f64).sqrt() / mean;
    println!("empty kernel: {mean:.2} ns, standard deviation {percent:.4} %");
    // 0.02 % on an H200, where the same without the gate has 2 to 10 %.
    assert!(percent < 0.2, "standard deviation {percent:.4} %");
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn kernels_on_many_streams_lengthen_launches_until_a_second_context_was_made() -> TestResult {
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    if gate_is_off(time) {
        return Ok(());
    }
    let empty = time.empty_kernel().expect("opened on a device");
    let short = time.shorten_launches()?.expect("the gate works");
    // The cold clock flushes by writing alone.
    time.measure_launches(Clock::EventsCold, 40, 1, nothing(time))?;
    let cold = time.launch_state()?.expect("the gate works");
    let streams = (0..8).map(|_| stream.context().new_stream());
    for stream in streams.collect::<Result<Vec<_>, _>>()? {
        // SAFETY: the kernel takes no arguments.
        unsafe { empty.launch(&stream) }?;
        stream.synchronize()?;
    }
    let long = time.launch_state()?.expect("the gate works");
    let again = time.shorten_launches()?.expect("the gate works");
    println!("{short:?}, {cold:?}, {long:?}, {again:?}");
    assert!(!short.is_long && !cold.is_long && long.is_long);
    assert!(again.is_restored && !again.is_long);
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_slow_host_shows_on_events_and_not_behind_the_gate() -> TestResult {
    const DELAY: Duration = Duration::from_micros(20);
    const LAUNCHES: u64 = 4_480;
    let device = Opened::new()?;
    let time = &device.time;
    if gate_is_off(time) {
        return Ok(());
    }
    let empty = nothing(time);
    let each = |clock, delay: Duration| -> Result<f64, TimingError> {
        let total = time.measure_launches(clock, LAUNCHES, 1, || {
            let begun = Instant::now();
            while begun.elapsed() < delay {}
            empty()
        })?;
        Ok(total / LAUNCHES as f64)
    };
    let quick = each(Clock::EventsGated, Duration::ZERO)?;
    let slow = each(Clock::EventsGated, DELAY)?;
    let events = each(Clock::Events, DELAY)?;
    assert!(
        (slow / quick - 1.0).abs() < 0.05,
        "{slow} ns behind a slow host, {quick} ns else"
    );
    assert!(
        events > 0.9 * DELAY.as_nanos() as f64,
        "without the gate {events} ns"
    );
    Ok(())
}

/// Within 2 % or 7 µs above: each of two kernels has a constant, and so has an event pair (on an H100 with a
/// launch constant of 1.9 µs together 6 µs on the cold clock).
fn about(measured: f64, known: u64) {
    let over = measured - known as f64;
    let most = (0.02 * known as f64).max(7_000.0);
    assert!((0.0..most).contains(&over), "{measured} ns for {known} ns");
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_routine_that_synchronises_behind_the_gate_is_an_error_and_the_clock_survives() -> TestResult {
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    if gate_is_off(time) {
        return Ok(());
    }
    let spin = spins(stream, 20_000)?;
    let error = time
        .measure_launches(Clock::EventsGated, 2, 1, || -> Result<(), BoxError> {
            spin()?;
            Ok(stream.synchronize()?)
        })
        .unwrap_err();
    assert!(matches!(error, TimingError::GateTimeout), "{error}");
    for cause in ["wall clock", "another host thread"] {
        assert!(error.to_string().contains(cause), "{error}");
    }
    about(
        time.measure_launches(Clock::EventsGated, 100, 1, &spin)? / 100.0,
        20_000,
    );
    assert_eq!(time.effective_clock(Clock::EventsGated), Clock::EventsGated);
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_replay_takes_what_was_captured() -> TestResult {
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    let (short, long) = (spins(stream, 20_000)?, spins(stream, 80_000)?);
    let both = || short().and_then(|()| long());
    time.measure_graph(Clock::EventsGated, 1, both)?;
    for clock in [Clock::EventsGated, Clock::EventsCold] {
        about(time.measure_graph(clock, 50, both)? / 50.0, 100_000);
    }
    let error = time.measure_graph(Clock::EventsGated, 2, || -> Result<(), BoxError> {
        both()?;
        Ok(stream.synchronize()?)
    });
    let error = error.unwrap_err();
    assert!(matches!(error, TimingError::NotCaptured { .. }), "{error}");
    // The stream captures nothing any more.
    about(
        time.measure_launches(Clock::EventsGated, 50, 2, both)? / 50.0,
        100_000,
    );
    Ok(())
}

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
fn a_caller_waits_for_each_iteration_on_wall_and_not_on_submit() -> TestResult {
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
        let submitted = middle(15, || each(time.measure(Clock::Submit, N, &launch)))?;
        assert!(
            ns < 100_000 || submitted < 0.3 * ns as f64,
            "{submitted} ns to submit"
        );
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

/// Work beside the timed stream that is shorter than the limit is no error on any clock, and longer work is one.
#[test]
#[ignore = "needs a CUDA device"]
fn short_work_on_another_stream_is_below_the_limit() -> TestResult {
    let device = Opened::new()?;
    let (time, empty) = (&device.time, nothing(&device.time));
    let other = device.stream.context().new_stream()?;
    for (ns, is_short) in [(2_000, true), (200_000, false)] {
        let spin = spins(&other, ns)?;
        let hidden = || empty().and_then(|()| spin());
        for &clock in Clock::OF_STREAM {
            let measured = time.measure(clock, 1_000, hidden);
            let is_found = matches!(measured, Err(TimingError::WorkElsewhere { .. }));
            let is_right = if is_short { measured.is_ok() } else { is_found };
            assert!(is_right, "{ns} ns elsewhere, {clock}: {measured:?}");
        }
    }
    Ok(())
}

/// With `CUDA_SCALE_LAUNCH_QUEUES=4x` more fit.
#[test]
#[ignore = "needs a CUDA device"]
fn an_iteration_may_fill_the_queue_behind_the_gate() -> TestResult {
    let device = Opened::new()?;
    let empty = nothing(&device.time);
    for launches in [448, 800, 2_000] {
        let routine = || (0..launches).try_for_each(|_| empty());
        let measured = device.time.measure(Clock::EventsGated, 3, routine);
        let is_refused = matches!(measured, Err(TimingError::TooManyLaunches { .. }));
        let is_right = measured.is_ok() || is_refused && launches > 448;
        assert!(is_right, "{launches} launches: {measured:?}");
    }
    Ok(())
}
