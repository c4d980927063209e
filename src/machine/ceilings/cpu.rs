//! The limits of the CPU, its caches and its memory.

use std::time::{Duration, Instant};

use crate::machine::ceilings::cpu_memory;
use crate::machine::ceilings::measured::Measured;
use crate::machine::ceilings::vector::CHAINS;
use crate::machine::isa::Isa;
use crate::model::role::Threads;
use crate::presentation::units;

/// Repetitions before the first benchmark, and after the last; the best counts. Whatever else runs
/// on a CPU only ever slows it, and nothing may exceed a limit.
const REPEATS: usize = 10;
/// Length of a repetition.
const WINDOW: Duration = Duration::from_millis(25);
/// Rounds of the loop between two readings of the clock: about 0.1 ms.
const ROUNDS: u64 = 40_000;

/// Measures the CPU's ceilings; takes two to three seconds on two cores. The curve of the memory ends
/// at the largest working set that there is room for.
pub(crate) fn measure() -> Measured {
    let mut measured = Measured::default();
    for threads in [Threads::One, Threads::All] {
        multiply_adds(threads, REPEATS, &mut measured);
    }
    cpu_memory::measure(Isa::best(), &mut measured);
    measured
}

/// Measures the peak of so many threads once, which takes 25 ms: a neighbour that keeps a core busy
/// before the first benchmark and after the last may leave it alone in between.
pub(crate) fn peak(threads: Threads) -> Measured {
    let mut measured = Measured::default();
    multiply_adds(threads, 1, &mut measured);
    measured
}

fn multiply_adds(threads: Threads, repeats: usize, measured: &mut Measured) {
    let isa = Isa::best();
    let (name, threads) = match threads {
        Threads::One => ("cpu_fma_1", 1),
        Threads::All => ("cpu_fma_all", rayon::current_num_threads()),
    };
    let rates = std::iter::repeat_with(|| fma_rate(isa, threads));
    measured.insert(
        name,
        rates.take(repeats).fold(0.0, f64::max),
        "FLOP/s",
        format!(
            "{CHAINS} independent chains of {} f32 fused multiply-adds in registers, {}, best of {REPEATS} before the first benchmark, {REPEATS} after the last and one before each CPU benchmark on as many threads",
            isa.name(),
            units::counted(threads, "thread")
        ),
    );
}

/// FLOP/s of all threads together, each over its own time, so that a thread which the system
/// starts late or takes off its core does not slow the others.
fn fma_rate(isa: Isa, threads: usize) -> f64 {
    let run = || {
        let start = Instant::now();
        let mut flop = 0.0;
        while start.elapsed() < WINDOW {
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
