//! What goes wrong in benchmarks without an error elsewhere, on a real device: work that a clock does
//! not time, a caller's wait, wrong counts of launches, and a full queue.

mod device;

use std::time::Instant;

use crossover_timing::cudarc::driver::CudaContext;
use crossover_timing::cudarc::nvrtc::Ptx;
use crossover_timing::{BoxError, Clock, CudaError, Launch, TimingError, bind};

use crate::device::{Opened, TestResult, middle};

#[test]
#[ignore = "needs two CUDA devices"]
fn work_on_a_second_device_is_an_error_on_every_clock() -> TestResult {
    const SETTLED: u32 = 1_000;
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    let settling = || -> TestResult<u128> {
        let begun = Instant::now();
        for _ in 0..SETTLED {
            time.settle()?;
        }
        Ok(begun.elapsed().as_nanos() / u128::from(SETTLED))
    };
    println!("waiting after a sample: {} ns", settling()?);
    let Ok(elsewhere) = CudaContext::new(1) else {
        println!("(skipped: there is one device)");
        return Ok(());
    };
    println!("with a second device in use: {} ns", settling()?);
    let other = elsewhere.new_stream()?;
    let module = elsewhere.load_module(Ptx::from_src(include_str!("../src/gate.ptx")))?;
    let spin = Launch::new(
        module.load_function("crossover_spin")?,
        (1, 1, 1),
        (1, 1, 1),
    )
    .arg(1_000_000u64);
    bind(stream.context())?;
    let empty = time.empty_kernel().expect("opened on a device");
    let hidden = || -> Result<(), CudaError> {
        // SAFETY: the kernel takes no arguments.
        unsafe { empty.launch(stream) }?;
        bind(&elsewhere)?;
        // SAFETY: the kernel takes one 64-bit number.
        unsafe { spin.launch(&other) }?;
        bind(stream.context())
    };
    for &clock in Clock::ALL {
        let error = time.measure(clock, 10, hidden).expect_err("it is hidden");
        println!("{clock}: {error}");
        assert!(matches!(error, TimingError::WorkElsewhere { .. }));
        time.ignore_other_streams(true);
        let ns = time.measure(clock, 10, hidden)? / 10.0;
        println!("{clock}, ignored: {ns:.0} ns");
        time.settle()?;
        time.ignore_other_streams(false);
    }
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_caller_waits_for_each_iteration_on_wall() -> TestResult {
    const N: u64 = 200;
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    for ns in [2_000, 10_000, 100_000] {
        let spin = device.spin(ns)?;
        // SAFETY: the kernel takes one 64-bit number.
        let launch = || unsafe { spin.launch(stream) };
        let waits = || -> Result<(), BoxError> {
            launch()?;
            Ok(stream.synchronize()?)
        };
        time.measure(Clock::Wall, 1, launch)?;
        let each = |total: Result<f64, TimingError>| total.map(|ns| ns / N as f64);
        let awaited = || {
            let begun = Instant::now();
            for _ in 0..N {
                waits()?;
            }
            Ok(begun.elapsed().as_nanos() as f64 / N as f64)
        };
        let known = middle(15, awaited)?;
        let wall = middle(15, || each(time.measure(Clock::Wall, N, launch)))?;
        let itself = middle(15, || each(time.measure_awaited(N, waits)))?;
        let twice = middle(15, || each(time.measure(Clock::Wall, N, waits)))?;
        let overlapped = middle(15, || each(time.measure_awaited(N, launch)))?;
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
    let (time, stream) = (&device.time, &device.stream);
    let other = stream.context().new_stream()?;
    let empty = time.empty_kernel().expect("opened on a device");
    for ns in [2_000, 20_000, 200_000] {
        let spin = device.spin(ns)?;
        let hidden = || -> Result<(), CudaError> {
            // SAFETY: the kernel takes no arguments.
            unsafe { empty.launch(stream) }?;
            // SAFETY: the kernel takes one 64-bit number.
            unsafe { spin.launch(&other) }
        };
        for &clock in Clock::ALL {
            match time.measure(clock, 1_000, hidden) {
                Ok(total) => {
                    println!("{ns} ns elsewhere, {clock}: {:.0} ns", total / 1_000.0);
                    assert!(ns < 200_000, "{clock} does not notice {ns} ns");
                }
                Err(error) => println!("{ns} ns elsewhere, {clock}: {error}"),
            }
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn launches_are_counted_and_nothing_is_an_error() -> TestResult {
    const NS: u64 = 5_000;
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    for &clock in Clock::ALL {
        let nothing = time.measure(clock, 10, || Ok::<(), CudaError>(()));
        let error = nothing.expect_err("nothing is enqueued");
        println!("{clock}: {error}");
        assert!(matches!(error, TimingError::NothingEnqueued));
    }
    let spin = device.spin(NS)?;
    // SAFETY: the kernel takes one 64-bit number.
    let launch = || unsafe { spin.launch(stream) };
    let mut calls = 0;
    let mut three = || {
        calls += 1;
        (0..3).try_for_each(|_| launch())
    };
    for clock in [Clock::Events, Clock::EventsGated, Clock::EventsCold] {
        time.measure(clock, 1, &mut three)?;
        let ns = time.measure(clock, 900, &mut three)? / 900.0;
        println!("{clock}: three kernels of {NS} ns {ns:.0} ns");
        assert!(ns >= 3.0 * NS as f64, "{ns}");
    }
    println!("{calls} calls for 2,703 iterations");
    let error = time.measure(Clock::Events, 0, launch);
    assert!(matches!(error, Err(TimingError::NoIterations)));
    Ok(())
}

/// With `CUDA_SCALE_LAUNCH_QUEUES=4x` more fit.
#[test]
#[ignore = "needs a CUDA device"]
fn an_iteration_may_fill_the_queue_behind_the_gate() -> TestResult {
    let device = Opened::new()?;
    let (time, stream) = (&device.time, &device.stream);
    let is_scaled = std::env::var_os("CUDA_SCALE_LAUNCH_QUEUES").is_some();
    println!("the gate is off: {:?}", time.gate_off_reason());
    let empty = time.empty_kernel().expect("opened on a device");
    for launches in [448, 600, 800, 1_000, 2_000, 3_500, 8_000] {
        let routine = || {
            // SAFETY: the kernel takes no arguments.
            (0..launches).try_for_each(|_| unsafe { empty.launch(stream) })
        };
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
