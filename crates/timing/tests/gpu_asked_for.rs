//! Known answers on a real device for what is built on the clocks: replay, and the call that chooses everything itself.

mod device;

use crossover_timing::{BoxError, Clock, CudaError, TimingError};

use crate::device::{Opened, TestResult};

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
