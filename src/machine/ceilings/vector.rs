//! The loops that a core's limits are measured with, for the widest vector unit there is.

use std::hint::black_box;

use crate::machine::isa::{Isa, Kind};

/// Independent accumulators of the multiply-adds: FMA latency (4 cycles) times two units, with
/// some to spare for cores with more.
pub(super) const CHAINS: usize = 12;
/// Independent loads in flight.
const LOADS: usize = 8;
/// Bytes that the widest reading loop takes at once.
pub(super) const BLOCK_BYTES: usize = 64 * LOADS;

impl Isa {
    /// Runs the loop of multiply-adds and returns its floating-point operations.
    pub(super) fn multiply_add(self, rounds: u64) -> f64 {
        let lanes = match self.kind() {
            // SAFETY: a value of `Isa` exists only where the CPU has the instruction set.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { avx512(rounds) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { avx2(rounds) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => unsafe { neon(rounds) },
            Kind::Portable => scalar(rounds),
        };
        2.0 * (lanes * CHAINS) as f64 * rounds as f64
    }

    /// Reads every word. There must be a multiple of [`BLOCK_BYTES`] / 8 of them.
    pub(super) fn read(self, words: &[u64]) {
        debug_assert_eq!(size_of_val(words) % BLOCK_BYTES, 0);
        match self.kind() {
            // SAFETY: a value of `Isa` exists only where the CPU has the instruction set.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { read_avx512(words) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { read_avx2(words) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => unsafe { read_neon(words) },
            Kind::Portable => read_scalar(words),
        }
    }

    /// Writes every word, which must begin at a cache line; past the caches where that is asked for and
    /// the instruction set can. There must be as many words as for [`read`](Self::read).
    pub(super) fn write(self, words: &mut [u64], past_caches: bool) {
        debug_assert_eq!(size_of_val(words) % BLOCK_BYTES, 0);
        debug_assert_eq!(words.as_ptr() as usize % 64, 0);
        match (self.kind(), past_caches) {
            // SAFETY: a value of `Isa` exists only where the CPU has the instruction set.
            #[cfg(target_arch = "x86_64")]
            (Kind::Avx512, false) => unsafe { write_avx512(words) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            (Kind::Avx512, true) => unsafe { stream_avx512(words) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            (Kind::Avx2, false) => unsafe { write_avx2(words) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            (Kind::Avx2, true) => unsafe { stream_avx2(words) },
            _ => words.fill(black_box(1)),
        }
    }
}

/// One function per vector type: `CHAINS` accumulators, each `acc * factor + term`. The factor
/// keeps them finite, and `black_box` keeps the compiler from removing what is not used.
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

/// One function per vector type: `LOADS` accumulators, into each of which every eighth vector is
/// ORed, which takes less time than its load.
macro_rules! read_loop {
    ($name:ident, $features:literal, $words:literal, $zero:expr, $load:path, $or:path) => {
        #[target_feature(enable = $features)]
        fn $name(words: &[u64]) {
            let mut seen = [$zero; LOADS];
            for block in words.chunks_exact($words * LOADS) {
                for (i, seen) in seen.iter_mut().enumerate() {
                    // SAFETY: the block holds this many words from there on, and the load takes
                    // any alignment.
                    let vector = unsafe { $load(block.as_ptr().add($words * i).cast()) };
                    *seen = $or(*seen, vector);
                }
            }
            black_box(seen);
        }
    };
}

/// One function per vector type and kind of store.
#[cfg(target_arch = "x86_64")]
macro_rules! write_loop {
    ($name:ident, $features:literal, $words:literal, $set:path, $store:path) => {
        #[target_feature(enable = $features)]
        fn $name(words: &mut [u64]) {
            let vector = $set(black_box(1));
            for block in words.chunks_exact_mut($words) {
                // SAFETY: the block is a vector's length, and begins at a multiple of it.
                unsafe { $store(block.as_mut_ptr().cast(), vector) };
            }
            // Stores past the caches are done when this returns.
            // SAFETY: it is of SSE, which every x86-64 has; Rust 1.89 does not know yet that it is safe.
            #[allow(unused_unsafe)]
            unsafe {
                x86::_mm_sfence();
            }
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

#[cfg(target_arch = "x86_64")]
read_loop!(
    read_avx512,
    "avx512f",
    8,
    x86::_mm512_setzero_si512(),
    x86::_mm512_loadu_si512,
    x86::_mm512_or_si512
);
#[cfg(target_arch = "x86_64")]
read_loop!(
    read_avx2,
    "avx2",
    4,
    x86::_mm256_setzero_si256(),
    x86::_mm256_loadu_si256,
    x86::_mm256_or_si256
);
#[cfg(target_arch = "aarch64")]
read_loop!(
    read_neon,
    "neon",
    2,
    std::arch::aarch64::vdupq_n_u64(0),
    std::arch::aarch64::vld1q_u64,
    std::arch::aarch64::vorrq_u64
);

#[cfg(target_arch = "x86_64")]
write_loop!(
    write_avx512,
    "avx512f",
    8,
    x86::_mm512_set1_epi64,
    x86::_mm512_store_si512
);
#[cfg(target_arch = "x86_64")]
write_loop!(
    stream_avx512,
    "avx512f",
    8,
    x86::_mm512_set1_epi64,
    x86::_mm512_stream_si512
);
#[cfg(target_arch = "x86_64")]
write_loop!(
    write_avx2,
    "avx2",
    4,
    x86::_mm256_set1_epi64x,
    x86::_mm256_store_si256
);
#[cfg(target_arch = "x86_64")]
write_loop!(
    stream_avx2,
    "avx2",
    4,
    x86::_mm256_set1_epi64x,
    x86::_mm256_stream_si256
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

fn read_scalar(words: &[u64]) {
    let mut seen = [0; LOADS];
    for block in words.chunks_exact(LOADS) {
        for (seen, word) in seen.iter_mut().zip(block) {
            *seen |= word;
        }
    }
    black_box(seen);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_writes_every_word() {
        #[repr(align(64))]
        struct Lines([u64; 2 * BLOCK_BYTES / 8]);
        for (isa, past_caches) in Isa::available()
            .into_iter()
            .flat_map(|isa| [(isa, false), (isa, true)])
        {
            let mut lines = Lines([0; 2 * BLOCK_BYTES / 8]);
            isa.write(&mut lines.0, past_caches);
            assert!(lines.0.iter().all(|word| *word == 1), "{}", isa.name());
        }
    }

    #[test]
    fn every_instruction_set_counts_its_lanes() {
        assert_eq!(Isa::PORTABLE.multiply_add(10), 2.0 * CHAINS as f64 * 10.0);
        for isa in Isa::available() {
            let lanes = isa.multiply_add(10) / Isa::PORTABLE.multiply_add(10);
            let expected = match isa.name() {
                "AVX-512" => 16.0,
                "AVX2" => 8.0,
                "NEON" => 4.0,
                _ => 1.0,
            };
            assert_eq!(lanes, expected, "{}", isa.name());
        }
    }
}
