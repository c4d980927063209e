//! Known answers on a real device for what is built on the clocks: replay, inputs in turn, and
//! the call that chooses everything itself.

mod device;

use crossover_timing::cudarc::driver::{CudaSlice, DevicePtr};
use crossover_timing::{BoxError, Clock, CudaError, Launch, TimingError};

use crate::device::{Opened, READ, TestResult, function};

const US: u64 = 1_000;

/// Within 2 % or 5 µs above: a kernel in a stream and an event pair have a constant.
fn about(measured: f64, known: u64) {
    let over = measured - known as f64;
    let most = (0.02 * known as f64).max(5_000.0);
    assert!((0.0..most).contains(&over), "{measured} ns for {known} ns");
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_replay_takes_what_was_captured() -> TestResult {
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    let (short, long) = (device.spin(20 * US)?, device.spin(80 * US)?);
    let both = || -> Result<(), CudaError> {
        // SAFETY: the kernels take one 64-bit number.
        unsafe { short.launch(stream) }?;
        // SAFETY: as above.
        unsafe { long.launch(stream) }
    };
    time.measure_graph(Clock::EventsGated, 1, both)?;
    for clock in [Clock::EventsGated, Clock::EventsCold] {
        about(time.measure_graph(clock, 50, both)? / 50.0, 100 * US);
    }
    let error = time.measure_graph(Clock::EventsGated, 2, || -> Result<(), BoxError> {
        both()?;
        Ok(stream.synchronize()?)
    });
    let error = error.unwrap_err();
    assert!(matches!(error, TimingError::NotCaptured { .. }), "{error}");
    // The stream captures nothing any more.
    about(
        time.measure(Clock::EventsGated, 50, 2, both)? / 50.0,
        100 * US,
    );
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn one_call_counts_and_chooses() -> TestResult {
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    let kernel = device.spin(50 * US)?;
    // SAFETY: the kernel takes one 64-bit number.
    let measured = time.do_bench(|| unsafe { kernel.launch(stream) })?;
    println!("{measured}");
    assert_eq!(measured.launches, Some(1));
    about(measured.median_ns(), 50 * US);
    let waits = time.do_bench(|| -> Result<(), BoxError> {
        // SAFETY: as above.
        unsafe { kernel.launch(stream) }?;
        Ok(stream.synchronize()?)
    })?;
    println!("{waits}");
    assert_eq!((waits.clock, waits.launches), (Clock::Wall, None));
    let nothing = time.do_bench(|| Ok::<(), CudaError>(())).unwrap_err();
    assert!(
        matches!(nothing, TimingError::NothingEnqueued { .. }),
        "{nothing}"
    );
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn inputs_in_turn_come_from_memory() -> TestResult {
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    let bytes = 8 << 20;
    let to = stream.alloc_zeros::<u8>(bytes)?;
    let (to, _guard) = to.device_ptr(stream);
    let make = |_| stream.alloc_zeros::<u8>(bytes);
    let mut inputs = time.rotating(bytes, make)?;
    let (sum, n) = (function(time, READ, "read")?, (bytes / 4) as u64);
    let read = |input: &CudaSlice<u8>| {
        let (from, _guard) = input.device_ptr(stream);
        let launch = Launch::new(sum.clone(), (256, 1, 1), (256, 1, 1));
        // SAFETY: both buffers outlive the launch, and the first has `n` floats.
        unsafe { launch.arg(from).arg(n).arg(to).launch(stream) }
    };
    let rounds = 10 * inputs.copies().len() as u64;
    let one = make(0)?;
    let warm = || read(&one);
    time.measure(Clock::EventsGated, 1, 1, warm)?;
    let warm = time.measure(Clock::EventsGated, rounds, 1, warm)? / rounds as f64;
    let cold = || read(inputs.next_copy());
    let cold = time.measure(Clock::EventsGated, rounds, 1, cold)? / rounds as f64;
    println!("8 MiB: {warm:.0} ns from the cache, {cold:.0} ns in turn");
    assert!(
        cold > 1.1 * warm,
        "{cold} ns in turn, {warm} ns from the cache"
    );
    Ok(())
}
