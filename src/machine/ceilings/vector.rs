//! The loops that a core's limits are measured with, for the widest vector unit there is.

use std::hint::black_box;

use pulp::{Simd, WithSimd};

use crate::machine::isa::{Isa, fence, stream};

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
        self.run(MultiplyAdds(rounds))
    }

    /// Reads every word. There must be a multiple of [`BLOCK_BYTES`] / 8 of them.
    pub(super) fn read(self, words: &[u64]) {
        debug_assert_eq!(size_of_val(words) % BLOCK_BYTES, 0);
        self.run(Read(words));
    }

    /// Writes every word, which must begin at a cache line; past the caches where that is asked for and
    /// the instruction set can. There must be as many words as for [`read`](Self::read).
    pub(super) fn write(self, words: &mut [u64], past_caches: bool) {
        assert_eq!(size_of_val(words) % BLOCK_BYTES, 0);
        assert_eq!(words.as_ptr() as usize % 64, 0);
        match past_caches {
            true => self.run(Write::<true>(words)),
            false => self.run(Write::<false>(words)),
        }
    }
}

/// `CHAINS` accumulators, each `acc * factor + term`. The factor keeps them finite, and `black_box`
/// keeps the compiler from removing what is not used.
struct MultiplyAdds(u64);

impl WithSimd for MultiplyAdds {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let factor = simd.splat_f32s(black_box(0.5));
        let term = simd.splat_f32s(black_box(1.0));
        let mut chains = [term; CHAINS];
        for _ in 0..self.0 {
            for chain in &mut chains {
                *chain = simd.mul_add_e_f32s(*chain, factor, term);
            }
        }
        black_box(chains);
        2.0 * (S::F32_LANES * CHAINS) as f64 * self.0 as f64
    }
}

/// `LOADS` accumulators, into each of which every eighth vector is ORed, which takes less time than
/// its load.
struct Read<'a>(&'a [u64]);

impl WithSimd for Read<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut seen = [simd.splat_u64s(0); LOADS];
        for block in S::as_simd_u64s(self.0).0.as_chunks::<LOADS>().0 {
            for (seen, &vector) in seen.iter_mut().zip(block) {
                *seen = simd.or_u64s(*seen, vector);
            }
        }
        black_box(seen);
    }
}

/// Writes each vector, past the caches or through them.
struct Write<'a, const PAST_CACHES: bool>(&'a mut [u64]);

impl<const PAST_CACHES: bool> WithSimd for Write<'_, PAST_CACHES> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let vector = simd.splat_u64s(black_box(1));
        for to in S::as_mut_simd_u64s(self.0).0 {
            match PAST_CACHES {
                // SAFETY: vectors follow one another from the start of a cache line on.
                true => unsafe { stream(to, vector) },
                false => *to = vector,
            }
        }
        // Stores past the caches are done when this returns.
        fence();
    }
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
