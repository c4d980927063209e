use std::hint::black_box;
use std::time::Instant;

use rayon::prelude::*;

use super::{Ceilings, insert, median};

/// Repetitions; the median counts.
const REPEATS: usize = 7;
/// Rounds of the FMA loop a repetition: about 20 ms, beside which waking the other threads
/// does not show.
const ROUNDS: u64 = 8_000_000;
/// Independent accumulators: FMA latency (4 cycles) times two units, with some to spare for
/// cores with more.
const CHAINS: usize = 12;
/// Bytes of each array of the copy: several times any cache.
const COPY_BYTES: usize = 256 << 20;

/// Measures the CPU's ceilings; takes about a second.
pub fn measure() -> Ceilings {
    let mut ceilings = Ceilings::new();
    let path = FmaPath::best();
    let one = median((0..REPEATS).map(|_| fma_rate(path, 1)).collect());
    let threads = rayon::current_num_threads();
    let all = median((0..REPEATS).map(|_| fma_rate(path, threads)).collect());
    let method = |threads| {
        format!(
            "{} independent chains of {} f32 fused multiply-adds in registers, {threads} thread(s), median of {REPEATS}",
            CHAINS,
            path.name()
        )
    };
    insert(&mut ceilings, "cpu_fma_1", one, "FLOP/s", method(1));
    insert(&mut ceilings, "cpu_fma_all", all, "FLOP/s", method(threads));
    insert(
        &mut ceilings,
        "cpu_memory",
        copy_rate(),
        "B/s",
        format!(
            "copy of {} MiB, {threads} thread(s), bytes read plus written, median of {REPEATS}",
            COPY_BYTES >> 20
        ),
    );
    ceilings
}

fn fma_rate(path: FmaPath, threads: usize) -> f64 {
    let start = Instant::now();
    let flop: f64 = if threads == 1 {
        path.run(ROUNDS)
    } else {
        // One loop a thread: parallel iterators may give one thread two.
        rayon::broadcast(|_| path.run(ROUNDS)).into_iter().sum()
    };
    flop / start.elapsed().as_secs_f64()
}

fn copy_rate() -> f64 {
    let n = COPY_BYTES / size_of::<u64>();
    let from = vec![1u64; n];
    let mut to = vec![0u64; n];
    let piece = n.div_ceil(4 * rayon::current_num_threads());
    let rates = (0..=REPEATS).map(|_| {
        let start = Instant::now();
        to.par_chunks_mut(piece)
            .zip(from.par_chunks(piece))
            .for_each(|(to, from)| to.copy_from_slice(from));
        black_box(&mut to);
        2.0 * COPY_BYTES as f64 / start.elapsed().as_secs_f64()
    });
    // The first pass pays for the pages.
    median(rates.skip(1).collect())
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
