//! The limits of the CPU, its caches and its memory.

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossover_arithmetic::Isa;
use crossover_arithmetic::limits::{BLOCK_BYTES, CHAINS};
use crossover_machine::limits;
use crossover_words::units;

use crate::limits::{Effort, raise, raise_curve};
use crate::model::record::{BandwidthPoint, RunRecord};
use crate::model::role::Threads;

/// Rounds of the loop between two readings of the clock: about 0.1 ms.
const ROUNDS: u64 = 40_000;

/// Measures the CPU's limits. The curve of the memory ends at the largest working set that fits.
pub(crate) fn measure(effort: Effort, record: &mut RunRecord) {
    for threads in [Threads::One, Threads::All] {
        multiply_adds(threads, effort, effort.arithmetic.0, record);
    }
    memory(Isa::best(), effort, record);
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

/// The smallest working set of all threads together: that of an L1 cache.
const SMALLEST: usize = 32 << 10;
/// Bytes between two readings of the clock, where a pass moves fewer: some 10 µs.
const BETWEEN: usize = 1 << 20;

/// The memory of a thread. Copies read one half and write the other.
struct Buffer {
    words: Vec<u64>,
}

impl Buffer {
    /// Written by the thread that will use it, so that it lies in the memory nearest to that thread.
    /// `None` if the system refuses the allocation, which would otherwise end the process.
    fn new(bytes: usize) -> Option<Self> {
        let mut words = Vec::new();
        // Room to begin at a cache line.
        let len = (bytes + 64) / size_of::<u64>();
        words.try_reserve_exact(len).ok()?;
        words.resize(len, 1);
        Some(Self { words })
    }

    /// The first `bytes` from a cache line on.
    fn first(&mut self, bytes: usize) -> &mut [u64] {
        let skipped = self.words.as_ptr().align_offset(64).min(8);
        &mut self.words[skipped..skipped + bytes / size_of::<u64>()]
    }
}

/// An access to a working set.
#[derive(Clone, Copy)]
enum Access {
    Read(Isa),
    Copy,
    /// With ordinary stores, which first read the line, or past the caches: the faster of the two
    /// counts.
    Write(Isa, bool),
}

impl Access {
    fn pass(self, words: &mut [u64]) {
        match self {
            Access::Read(isa) => isa.read(black_box(words)),
            Access::Write(isa, past_caches) => isa.write(black_box(words), past_caches),
            Access::Copy => {
                let (to, from) = words.split_at_mut(words.len() / 2);
                black_box(to).copy_from_slice(black_box(from));
            }
        }
    }
}

/// Adds the curves of reading, writing and copying with all threads, each of which repeatedly passes
/// over its own part of the working set. Adds none if there is no memory for them.
fn memory(isa: Isa, effort: Effort, record: &mut RunRecord) {
    let threads = rayon::current_num_threads();
    // The rest is for the benchmarks.
    let most = limits::memory() / 4;
    let most = usize::try_from(most).map_or(effort.largest, |most| most.min(effort.largest));
    // A thread's part is a multiple of a loop's block, in each of its halves.
    let part = |bytes: usize| bytes / threads / (2 * BLOCK_BYTES) * (2 * BLOCK_BYTES);
    let mut sizes: Vec<usize> = std::iter::successors(Some(SMALLEST), |bytes| Some(2 * bytes))
        .take_while(|&bytes| bytes <= most)
        .map(part)
        .filter(|&part| part > 0)
        .collect();
    let buffers = loop {
        let Some(&largest) = sizes.last() else { return };
        let buffers = rayon::broadcast(|_| Buffer::new(largest).map(Mutex::new));
        match buffers.into_iter().collect::<Option<Vec<_>>>() {
            Some(buffers) => break buffers,
            None => drop(sizes.pop()),
        }
    };
    for (name, access, does) in [
        ("cpu_read", vec![Access::Read(isa)], "reads its own part"),
        (
            "cpu_write",
            vec![Access::Write(isa, false), Access::Write(isa, true)],
            "writes its own part, with ordinary stores or past the caches, whichever is faster,",
        ),
        (
            "cpu_copy",
            vec![Access::Copy],
            "copies one half of its own part to the other half",
        ),
    ] {
        let fastest = |bytes| {
            let rates = access
                .iter()
                .map(|&access| rate(access, effort, &buffers, bytes));
            rates.fold(0.0, f64::max)
        };
        let points = sizes.iter().map(|&bytes| BandwidthPoint {
            bytes: (threads * bytes) as u64,
            rate: fastest(bytes),
        });
        let method = format!(
            "{} {does} repeatedly; bytes read plus written, best of {}, before the first benchmark and again after the last",
            each_of(threads),
            effort.memory.0
        );
        raise_curve(record, name, points.collect(), method);
    }
}

/// The threads: `each of 16 threads`.
fn each_of(threads: usize) -> String {
    match threads {
        1 => "one thread".to_owned(),
        n => format!("each of {n} threads"),
    }
}

/// B/s of all threads together, each over its own time: that of a repetition, or of one pass if that
/// takes longer.
fn rate(access: Access, effort: Effort, buffers: &[Mutex<Buffer>], bytes: usize) -> f64 {
    let (repeats, window) = effort.memory;
    let once = || -> f64 {
        let rates = rayon::broadcast(|thread| {
            let buffer = buffers[thread.index()].lock();
            let mut buffer = buffer.unwrap_or_else(PoisonError::into_inner);
            let words = buffer.first(bytes);
            let (mut start, mut done) = (Instant::now(), 1);
            // Loads as much of it into the caches as fits. A pass that takes so long finds little there.
            access.pass(words);
            if start.elapsed() < window {
                (start, done) = (Instant::now(), 0);
            }
            let passes = BETWEEN.div_ceil(bytes);
            while done == 0 || start.elapsed() < window {
                for _ in 0..passes {
                    access.pass(words);
                }
                done += passes;
            }
            (done * bytes) as f64 / start.elapsed().as_secs_f64()
        });
        rates.into_iter().sum()
    };
    std::iter::repeat_with(once)
        .take(repeats)
        .fold(0.0, f64::max)
}
