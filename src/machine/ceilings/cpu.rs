//! What the CPU and its memory can do at most.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::machine::ceilings::entry::{Ceilings, insert};
use crate::machine::memory;

/// Repetitions; the best counts. Whatever else runs on a CPU only ever slows it, and a limit
/// is what nothing exceeds.
const REPEATS: usize = 10;
/// Length of a repetition of the FMA loop.
const WINDOW: Duration = Duration::from_millis(25);
/// Rounds of the FMA loop between two looks at the clock: about 0.1 ms.
const ROUNDS: u64 = 40_000;
/// Independent accumulators: FMA latency (4 cycles) times two units, with some to spare for
/// cores with more.
const CHAINS: usize = 12;
/// Bytes of each array of the copy: several times any cache.
const COPY_BYTES: usize = 256 << 20;
/// With less, the copy would be one of a cache.
const FEWEST_COPY_BYTES: usize = 32 << 20;

/// Measures the CPU's ceilings; takes about a second. The memory's is absent where there is no
/// room for the copy.
pub(crate) fn measure() -> Ceilings {
    let mut ceilings = Ceilings::new();
    let path = FmaPath::best();
    let threads = rayon::current_num_threads();
    let one = best(|| fma_rate(path, 1));
    let all = best(|| fma_rate(path, threads));
    let method = |threads| {
        format!(
            "{} independent chains of {} f32 fused multiply-adds in registers, {threads} thread(s), best of {REPEATS}",
            CHAINS,
            path.name()
        )
    };
    insert(&mut ceilings, "cpu_fma_1", one, "FLOP/s", method(1));
    insert(&mut ceilings, "cpu_fma_all", all, "FLOP/s", method(threads));
    if let Some((from, to)) = arrays() {
        let mib = size_of_val(&from[..]) >> 20;
        insert(
            &mut ceilings,
            "cpu_memory",
            copy_rate(&from, to),
            "B/s",
            format!(
                "copy of {mib} MiB, {threads} thread(s), bytes read plus written, best of {REPEATS}"
            ),
        );
    }
    ceilings
}

/// The highest rate of [`REPEATS`] measurements.
fn best(rate: impl FnMut() -> f64) -> f64 {
    std::iter::repeat_with(rate)
        .take(REPEATS)
        .fold(0.0, f64::max)
}

/// FLOP/s of all threads together, each over its own time: a thread that the system starts
/// late or takes off its core does not count for the others.
fn fma_rate(path: FmaPath, threads: usize) -> f64 {
    let run = || {
        let start = Instant::now();
        let mut flop = 0.0;
        while start.elapsed() < WINDOW {
            flop += path.run(ROUNDS);
        }
        flop / start.elapsed().as_secs_f64()
    };
    if threads == 1 {
        run()
    } else {
        // One loop a thread: parallel iterators may give one thread two.
        rayon::broadcast(|_| run()).into_iter().sum()
    }
}

/// Two arrays as large as there is memory for.
fn arrays() -> Option<(Vec<u64>, Vec<u64>)> {
    // The benchmarks need some as well.
    let most = COPY_BYTES.min(usize::try_from(memory::usable() / 4).unwrap_or(COPY_BYTES));
    std::iter::successors(Some(most), |bytes| Some(bytes / 2))
        .take_while(|&bytes| bytes >= FEWEST_COPY_BYTES)
        .find_map(|bytes| Some((filled(bytes, 1)?, filled(bytes, 0)?)))
}

/// Where the system refuses the memory, none, instead of the end of the process.
fn filled(bytes: usize, value: u64) -> Option<Vec<u64>> {
    let mut array = Vec::new();
    array.try_reserve_exact(bytes / size_of::<u64>()).ok()?;
    array.resize(bytes / size_of::<u64>(), value);
    Some(array)
}

fn copy_rate(from: &[u64], mut to: Vec<u64>) -> f64 {
    let piece = from.len().div_ceil(4 * rayon::current_num_threads());
    best(|| {
        let start = Instant::now();
        to.par_chunks_mut(piece)
            .zip(from.par_chunks(piece))
            .for_each(|(to, from)| to.copy_from_slice(from));
        black_box(&mut to);
        2.0 * size_of_val(from) as f64 / start.elapsed().as_secs_f64()
    })
}

/// The widest vector unit there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FmaPath {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Scalar,
}

impl FmaPath {
    fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Self::Avx2;
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            return Self::Neon;
        }
        Self::Scalar
    }

    fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "AVX2",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "NEON",
            Self::Scalar => "scalar",
        }
    }

    /// Runs the loop and returns its floating-point operations.
    fn run(self, rounds: u64) -> f64 {
        let lanes = match self {
            // SAFETY: `best` chose the path after detecting its features.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { avx512(rounds) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2(rounds) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Self::Neon => unsafe { neon(rounds) },
            Self::Scalar => scalar(rounds),
        };
        2.0 * (lanes * CHAINS) as f64 * rounds as f64
    }
}

/// One function a vector type: `CHAINS` accumulators, each `acc * factor + term`. The factor
/// keeps them finite, and `black_box` keeps the compiler from seeing that nobody looks.
macro_rules! fma_loop {
    ($name:ident, $features:literal, $lanes:literal, $set:path, $fma:expr) => {
        #[target_feature(enable = $features)]
        fn $name(rounds: u64) -> usize {
            let factor = $set(black_box(0.5));
            let term = $set(black_box(1.0));
            let mut chains = [term; CHAINS];
            for _ in 0..rounds {
                for chain in &mut chains {
                    *chain = $fma(*chain, factor, term);
                }
            }
            black_box(chains);
            $lanes
        }
    };
}

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as x86;

#[cfg(target_arch = "x86_64")]
fma_loop!(
    avx512,
    "avx512f",
    16,
    x86::_mm512_set1_ps,
    x86::_mm512_fmadd_ps
);
#[cfg(target_arch = "x86_64")]
fma_loop!(
    avx2,
    "avx2,fma",
    8,
    x86::_mm256_set1_ps,
    x86::_mm256_fmadd_ps
);
#[cfg(target_arch = "aarch64")]
fma_loop!(
    neon,
    "neon",
    4,
    std::arch::aarch64::vdupq_n_f32,
    |chain, factor, term| std::arch::aarch64::vfmaq_f32(term, chain, factor)
);

fn scalar(rounds: u64) -> usize {
    let (factor, term) = (black_box(0.5f32), black_box(1.0f32));
    let mut chains = [term; CHAINS];
    for _ in 0..rounds {
        for chain in &mut chains {
            *chain = *chain * factor + term;
        }
    }
    black_box(chains);
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_counts_its_lanes() {
        assert_eq!(FmaPath::Scalar.run(10), 2.0 * CHAINS as f64 * 10.0);
        let best = FmaPath::best();
        let lanes = best.run(10) / FmaPath::Scalar.run(10);
        assert_eq!(
            lanes,
            match best.name() {
                "AVX-512" => 16.0,
                "AVX2" => 8.0,
                "NEON" => 4.0,
                _ => 1.0,
            }
        );
    }
}
