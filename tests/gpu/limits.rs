//! The peak of the device's f32 arithmetic, measured against the table of architectures. Needs a
//! device, NVRTC and NVML; prints with `--nocapture`.

use std::sync::Arc;

use crossover_machine::{Monitor, monitor::Watch};
use crossover_results::analysis::peak::flop_per_clock;
use crossover_results::statistics::median::median;
use crossover_suite::device::Gpu;
use crossover_suite::limits::fma_rate;
use crossover_suite::model::Format;
use crossover_suite::timing::{CudaTime, GateMode};
use crossover_suite::workload::RoutineError;

use crate::device::{one_at_a_time, stream};

/// Measurements of some 30 ms each: several readings of the clock.
const ROUNDS: usize = 40;

#[test]
#[ignore = "needs a CUDA device"]
fn multiply_adds_in_registers_reach_the_peak_of_the_table() -> Result<(), RoutineError> {
    let _one = one_at_a_time();
    let gpu = Gpu::open(0)?;
    let Some(per_clock) = flop_per_clock(gpu.properties().compute_capability, Format::F32) else {
        println!("skipped: the table does not know this device");
        return Ok(());
    };
    let Some(monitor) = Monitor::open(gpu.properties()).map(Arc::new) else {
        println!("skipped: without NVML the clock is not known");
        return Ok(());
    };
    let time = CudaTime::on_stream(stream(&gpu), GateMode::Auto)?;
    time.wake()?;
    // Raises the clock before the first measurement.
    fma_rate(&gpu, &time)?;
    let watch = Watch::start(monitor)?;
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        rates.push(fma_rate(&gpu, &time)?);
    }
    let telemetry = watch.finish();
    let clocks = telemetry.sm_clock_mhz.into_iter().flatten();
    let clock = median(clocks.map(f64::from)).expect("some");
    let rate = median(rates).expect("some");
    let peak = f64::from(gpu.properties().multiprocessors) * per_clock * clock * 1e6;
    println!(
        "{:.2} TFLOP/s of {:.2} at {clock} MHz: {:.4}",
        rate * 1e-12,
        peak * 1e-12,
        rate / peak
    );
    assert!((0.95..=1.01).contains(&(rate / peak)), "{}", rate / peak);
    Ok(())
}
