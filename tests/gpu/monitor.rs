//! Whether the monitor changes the time of a kernel that runs meanwhile: the same kernel with the
//! monitor and without it, by turns, and without it twice, which shows how far two equal
//! measurements are apart.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crossover_machine::{Monitor, monitor::Watch};
use crossover_results::statistics::median::median;
use crossover_suite::device::Gpu;
use crossover_suite::timing::{Clock, CudaTime, GateMode};
use crossover_suite::workload::timing_methods::{Spin, spin};
use crossover_suite::workload::{Routine, RoutineError, Workload};

use crate::device::{one_at_a_time, stream};

/// Rounds; each measures each state once.
const ROUNDS: usize = 15;
/// How long a round measures a state: several readings' intervals.
const ROUND: Duration = Duration::from_millis(250);

#[test]
#[ignore = "needs a CUDA device"]
fn the_monitor_does_not_disturb_what_is_timed() -> Result<(), RoutineError> {
    let _one = one_at_a_time();
    let gpu = Rc::new(Gpu::open(0)?);
    let Some(monitor) = Monitor::open(gpu.properties()).map(Arc::new) else {
        println!("(without NVML there is nothing to watch with)");
        return Ok(());
    };
    let time = CudaTime::on_stream(stream(&gpu), GateMode::Auto)?;
    time.wake()?;
    if let Some(reason) = time.gate_off_reason() {
        println!("skipped: the gate is off ({reason}), and without it launches wander by more");
        return Ok(());
    }
    let short = Rc::new(Spin::new(2_000));
    let long = Rc::new(Spin::new(200_000));
    let mut awaited = spin(&gpu, &short)?;
    awaited.wait_for_each()?;
    // The variation of the host's part of a time limits how small a difference can be seen.
    for (clock, nanoseconds, mut routine, most) in [
        (Clock::EventsGated, 2_000, spin(&gpu, &short)?, 0.02),
        (Clock::EventsGated, 200_000, spin(&gpu, &long)?, 0.01),
        (Clock::Events, 2_000, spin(&gpu, &short)?, 0.05),
        (Clock::Wall, 2_000, awaited, 0.10),
    ] {
        let ratio = compare(&time, clock, &mut *routine, &monitor, nanoseconds)?;
        assert!(
            (ratio - 1.0).abs() < most,
            "spin {nanoseconds} ns, {clock}: watched it takes {ratio:.4} times as long"
        );
    }
    Ok(())
}

/// Measures `routine` watched, unwatched, and unwatched again, in an order that turns with
/// each round, so that none of them always comes first. Gives watched over unwatched.
fn compare(
    time: &CudaTime,
    clock: Clock,
    routine: &mut dyn Routine,
    monitor: &Arc<Monitor>,
    nanoseconds: u64,
) -> Result<f64, RoutineError> {
    let iterations = (ROUND.as_nanos() as u64 / (nanoseconds + 2_000)).max(1);
    let mut states = [const { Vec::new() }; 3];
    time.measure_launches(clock, 1, 1, || routine.run())?;
    for round in 0..ROUNDS {
        for turn in 0..states.len() {
            let state = (round + turn) % states.len();
            let watch = match state {
                0 => Some(Watch::start(monitor.clone())?),
                _ => None,
            };
            let ns = time.measure_launches(clock, iterations, 1, || routine.run())?;
            states[state].push(ns / iterations as f64);
            if let Some(mut watch) = watch {
                watch.sampled(iterations);
                let telemetry = watch.finish();
                let readings = telemetry.time_ms.len();
                assert!(readings > 1, "the monitor saw nothing: {telemetry:?}");
            }
        }
    }
    let [watched, unwatched, again] = states.map(|times| median(times).expect("some"));
    println!(
        "spin {nanoseconds} ns, {clock}: watched {watched:.2} ns, not {unwatched:.2} and {again:.2} ns; \
         watched / not {:.5}, not / not {:.5}",
        watched / unwatched,
        again / unwatched
    );
    Ok(watched / unwatched)
}
