//! The limits of the CPU, its caches and its memory.

use std::time::{Duration, Instant};

use crate::machine::ceilings::cpu_memory;
use crate::machine::ceilings::entry::Measured;
use crate::machine::ceilings::vector::{CHAINS, VectorPath};
use crate::presentation::units;

/// Repetitions; the best counts. Whatever else runs on a CPU only ever slows it, and nothing may
/// exceed a limit.
const REPEATS: usize = 10;
/// Length of a repetition.
const WINDOW: Duration = Duration::from_millis(25);
/// Rounds of the loop between two readings of the clock: about 0.1 ms.
const ROUNDS: u64 = 40_000;

/// Measures the CPU's ceilings; takes about a second. The curve of the memory ends at the largest
/// working set that there is room for.
pub(crate) fn measure() -> Measured {
    let mut measured = Measured::default();
    let path = VectorPath::best();
    let threads = rayon::current_num_threads();
    for (name, threads) in [("cpu_fma_1", 1), ("cpu_fma_all", threads)] {
        let rates = std::iter::repeat_with(|| fma_rate(path, threads));
        measured.insert(
            name,
            rates.take(REPEATS).fold(0.0, f64::max),
            "FLOP/s",
            format!(
                "{CHAINS} independent chains of {} f32 fused multiply-adds in registers, {}, best of {REPEATS}, before the first benchmark and again after the last",
                path.name(),
                units::counted(threads, "thread")
            ),
        );
    }
    cpu_memory::measure(path, &mut measured);
    measured
}

/// FLOP/s of all threads together, each over its own time, so that a thread which the system
/// starts late or takes off its core does not slow the others.
fn fma_rate(path: VectorPath, threads: usize) -> f64 {
    let run = || {
        let start = Instant::now();
        let mut flop = 0.0;
        while start.elapsed() < WINDOW {
            flop += path.multiply_add(ROUNDS);
        }
        flop / start.elapsed().as_secs_f64()
    };
    if threads == 1 {
        run()
    } else {
        // One loop per thread: parallel iterators may give one thread two.
        rayon::broadcast(|_| run()).into_iter().sum()
    }
}
