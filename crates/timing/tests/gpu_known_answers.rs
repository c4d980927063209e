//! Known answers on a real device: a kernel that spins for an exact time, on each clock that
//! claims device time.

mod cheats;
mod device;

use std::time::{Duration, Instant};

use crossover_timing::cudarc::driver::{CudaSlice, DevicePtr};
use crossover_timing::{Clock, CudaTime, LAUNCHES_PER_GATE, Launch, TimingError};

use crate::device::{Opened, READ, TestResult, function, middle};

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
    let spin = device.spin(ns)?;
    let n = iterations(ns);
    // SAFETY: the kernel takes one 64-bit number.
    let launch = || unsafe { spin.launch(&device.stream) };
    let sample = || device.time.measure(clock, n, 1, launch);
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

fn known_answers(clock: Clock) -> TestResult {
    let device = Opened::new()?;
    let time = &device.time;
    if clock == Clock::EventsGated && gate_is_off(time) {
        return Ok(());
    }
    assert_eq!(time.effective_clock(clock), clock);
    let times = [5_000u64, 20_000, 100_000, 1_000_000, 10_000_000];
    let mut constants = Vec::new();
    for ns in times {
        let answer = measured(&device, clock, ns)?;
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
fn gated_known_answers() -> TestResult {
    known_answers(Clock::EventsGated)
}

#[test]
#[ignore = "needs a CUDA device"]
fn events_known_answers() -> TestResult {
    known_answers(Clock::Events)
}

#[test]
#[ignore = "needs a CUDA device"]
fn cold_known_answers() -> TestResult {
    // The flush takes tens of microseconds: were it in the window, the constant would show it.
    known_answers(Clock::EventsCold)
}

#[test]
#[ignore = "needs a CUDA device"]
fn wall_covers_the_device_and_submit_does_not() -> TestResult {
    let device = Opened::new()?;
    let ns = 2_000_000;
    let wall = measured(&device, Clock::Wall, ns)?;
    let submit = measured(&device, Clock::Submit, ns)?;
    assert!(
        wall >= ns as f64,
        "wall clock {wall} ns for a kernel of {ns} ns"
    );
    assert!(submit < 0.1 * ns as f64, "submitting took {submit} ns");
    Ok(())
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
    let reading = |clock| middle(15, || time.measure(clock, 20, 1, launch));
    let warm = reading(Clock::EventsGated)? / 20.0;
    let cold = reading(Clock::EventsCold)? / 20.0;
    // Each clock's own constant, without any data.
    let empty = time.empty_kernel().expect("opened on a device");
    // SAFETY: no arguments.
    let launch = || unsafe { empty.launch(stream) };
    let nothing = |clock| middle(15, || time.measure(clock, 50, 1, launch));
    let constant = |clock| nothing(clock).map(|ns| ns / 50.0);
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
fn work_on_another_stream_is_not_in_the_window() -> TestResult {
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    let context = time.context().expect("opened on a device").clone();
    let other = context.new_stream()?;
    // Nothing is loaded from here on: loading may wait for the whole device.
    let (short, long) = (device.spin(20_000)?, device.spin(1_000_000_000)?);
    // SAFETY: the kernel takes one 64-bit number.
    let launch = || unsafe { short.launch(stream) };
    let sample = || time.measure(Clock::EventsGated, 400, 1, launch);
    let median = || middle(7, sample).map(|ns| ns / 400.0);
    time.ignore_other_streams(true);
    let ended = context.new_event(None)?;
    let alone = median()?;
    // SAFETY: as above.
    unsafe { long.launch(&other) }?;
    ended.record(&other)?;
    let beside = median()?;
    assert!(
        !ended.is_complete(),
        "the other stream was done before the measurement"
    );
    other.synchronize()?;
    assert!(
        (alone - beside).abs() < 1_000.0,
        "alone {alone} ns, beside another stream {beside} ns"
    );
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn gated_empty_kernel_is_steady() -> TestResult {
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    if gate_is_off(time) {
        return Ok(());
    }
    let empty = time.empty_kernel().expect("opened on a device");
    let one_argument = device.spin(0)?;
    let mut means = Vec::new();
    for (name, kernel, clock) in [
        ("empty kernel", &empty, Clock::EventsGated),
        ("empty kernel", &empty, Clock::Events),
        (
            "kernel with an argument that ends at once",
            &one_argument,
            Clock::EventsGated,
        ),
    ] {
        let mut samples = Vec::new();
        for _ in 0..52 {
            // SAFETY: no arguments, or the one that the kernel declares.
            let ns = time.measure(clock, 9_000, 1, || unsafe { kernel.launch(stream) })?;
            samples.push(ns / 9_000.0);
        }
        let samples = &samples[2..];
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let variance =
            samples.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (samples.len() - 1) as f64;
        let deviation = variance.sqrt() / mean;
        println!(
            "{name}, {clock}: {mean:.2} ns, standard deviation {:.4} % over {} samples",
            100.0 * deviation,
            samples.len()
        );
        // 0.02 % on an H200, where the same without the gate has 2 to 10 %.
        if clock == Clock::EventsGated {
            let percent = 100.0 * deviation;
            assert!(
                deviation < 0.002,
                "{name}: standard deviation {percent:.4} %"
            );
        }
        means.push(mean);
    }
    // Without the gate a time is the longer of launch rate and device time.
    let (gated, eager) = (means[0], means[1]);
    assert!(
        gated <= 1.05 * eager,
        "gated {gated} ns, not gated {eager} ns"
    );
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_slow_host_shows_on_events_and_not_behind_the_gate() -> TestResult {
    const DELAY: Duration = Duration::from_micros(20);
    const LAUNCHES: u64 = 4_480;
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    if gate_is_off(time) {
        return Ok(());
    }
    let empty = time.empty_kernel().expect("opened on a device");
    let each = |clock, delay: Duration| -> Result<f64, TimingError> {
        let total = time.measure(clock, LAUNCHES, 1, || {
            let begun = Instant::now();
            while begun.elapsed() < delay {}
            // SAFETY: no arguments.
            unsafe { empty.launch(stream) }
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

/// Nanoseconds of an empty kernel, launched as often as it is said to be.
fn empty_kernel(time: &CudaTime) -> Result<f64, TimingError> {
    let stream = time.stream().expect("opened on a device");
    let empty = time.empty_kernel().expect("opened on a device");
    let mut launched = 0;
    let ns = time.measure(Clock::EventsGated, 100, 1, || {
        launched += 1;
        // SAFETY: no arguments.
        unsafe { empty.launch(stream) }
    })?;
    assert_eq!(launched, 100);
    Ok(ns / 100.0)
}

/// 1.4 µs on an H200 behind the gate, 2.5 without it; a clamped time would be 5 ns and a gate
/// that timed out 50 ms.
fn plausible(ns: f64) {
    assert!(
        (200.0..20_000.0).contains(&ns),
        "an empty kernel took {ns} ns"
    );
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_routine_that_synchronises_behind_the_gate_is_an_error_and_the_clock_survives() -> TestResult {
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    if gate_is_off(time) {
        return Ok(());
    }
    let empty = time.empty_kernel().expect("opened on a device");
    let error = time
        .measure(Clock::EventsGated, 2, 1, || {
            // SAFETY: no arguments.
            unsafe { empty.launch(stream) }.map_err(|e| e.to_string())?;
            stream.synchronize().map_err(|e| e.to_string())
        })
        .unwrap_err();
    assert!(matches!(error, TimingError::GateTimeout { .. }), "{error}");
    assert!(error.to_string().contains("wall clock"), "{error}");
    plausible(empty_kernel(time)?);
    assert_eq!(time.effective_clock(Clock::EventsGated), Clock::EventsGated);
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn more_launches_than_fit_behind_a_gate_are_refused() -> TestResult {
    let device = Opened::new()?;
    let time = &device.time;
    if gate_is_off(time) {
        return Ok(());
    }
    let error = time
        .measure(Clock::EventsGated, 1, LAUNCHES_PER_GATE + 1, || {
            Ok::<(), String>(())
        })
        .unwrap_err();
    assert!(
        matches!(error, TimingError::TooManyLaunches { .. }),
        "{error}"
    );
    Ok(())
}
