//! One measurement on the GPU.

use crate::timing::{Clock, CudaError, CudaTime, TimingError};
use crossover_results::statistics::median::median;

/// Repetitions; the median counts.
pub(super) const REPEATS: usize = 7;

/// Median nanoseconds of one iteration.
pub(super) fn typical(
    time: &CudaTime,
    clock: Clock,
    iterations: u64,
    mut routine: impl FnMut() -> Result<(), CudaError>,
) -> Result<f64, TimingError> {
    time.measure(clock, 1, 1, &mut routine)?;
    let mut samples = Vec::with_capacity(REPEATS);
    for _ in 0..REPEATS {
        samples.push(time.measure(clock, iterations, 1, &mut routine)? / iterations as f64);
    }
    // The median: what a device, which runs nothing else meanwhile, sustains.
    Ok(median(samples).expect("there are repetitions"))
}
