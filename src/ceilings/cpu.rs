//! The limits of the CPU, its caches and its memory.

use std::time::{Duration, Instant};

use crate::ceilings::cpu_memory;
use crate::ceilings::measured::{Effort, raise};
use crate::model::record::RunRecord;
use crate::model::role::Threads;
use crossover_arithmetic::Isa;
use crossover_arithmetic::limits::CHAINS;
use crossover_words::units;

/// Rounds of the loop between two readings of the clock: about 0.1 ms.
const ROUNDS: u64 = 40_000;

/// Measures the CPU's limits. The curve of the memory ends at the largest working set that fits.
pub(crate) fn measure(effort: Effort, record: &mut RunRecord) {
    for threads in [Threads::One, Threads::All] {
        multiply_adds(threads, effort, effort.arithmetic.0, record);
    }
    cpu_memory::measure(Isa::best(), effort, record);
}

/// Measures the peak of these threads once, in 10 ms at most. A busy core before the first benchmark
/// and after the last may be free in between.
pub(crate) fn peak(threads: Threads, effort: Effort, record: &mut RunRecord) {
    multiply_adds(threads, effort, 1, record);
}

fn multiply_adds(threads: Threads, effort: Effort, repeats: usize, record: &mut RunRecord) {
    let (whole, window) = effort.arithmetic;
    let isa = Isa::best();
    let (name, threads) = match threads {
        Threads::One => ("cpu_fma_1", 1),
        Threads::All => ("cpu_fma_all", rayon::current_num_threads()),
    };
    let rates = std::iter::repeat_with(|| fma_rate(isa, threads, window));
    let best = rates.take(repeats).fold(0.0, f64::max);
    let method = format!(
        "{CHAINS} independent chains of {} f32 fused multiply-adds in registers, {}, best of {whole} before the first benchmark, {whole} after the last and one before each CPU benchmark on as many threads",
        isa.name(),
        units::counted(threads, "thread")
    );
    raise(record, name, best, "FLOP/s", method);
}

/// FLOP/s of all threads together. Each thread counts over its own time, so that one that starts late
/// or is interrupted does not slow the others.
fn fma_rate(isa: Isa, threads: usize, window: Duration) -> f64 {
    let run = || {
        let start = Instant::now();
        let mut flop = 0.0;
        while start.elapsed() < window {
            flop += isa.multiply_add(ROUNDS);
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
