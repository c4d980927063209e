//! Loops that measure a core's limits with its widest vector unit.

use std::hint::black_box;

use pulp::{Simd, WithSimd};

use crate::isa::{Isa, fence, stream};

/// Independent accumulators of the multiply-adds: FMA latency (4 cycles) times two units, with
/// some to spare for cores with more.
pub const CHAINS: usize = 12;
/// Independent loads in flight.
const LOADS: usize = 8;
/// Bytes that the widest reading loop takes at once.
pub const BLOCK_BYTES: usize = 64 * LOADS;

impl Isa {
    /// Runs the loop of multiply-adds and returns its floating-point operations.
    pub fn multiply_add(self, rounds: u64) -> f64 {
        self.run(MultiplyAdds(rounds))
    }

    /// Reads every word. There must be a multiple of [`BLOCK_BYTES`] / 8 of them.
    pub fn read(self, words: &[u64]) {
        assert_eq!(size_of_val(words) % BLOCK_BYTES, 0);
        self.run(Read(words));
    }

    /// Writes every word, which must begin at a cache line; past the caches where that is asked for and
    /// the instruction set can. There must be as many words as for [`read`](Self::read).
    pub fn write(self, words: &mut [u64], past_caches: bool) {
        assert_eq!(size_of_val(words) % BLOCK_BYTES, 0);
        assert_eq!(words.as_ptr() as usize % 64, 0);
        if past_caches {
            self.run(Write::<true>(words))
        } else {
            self.run(Write::<false>(words))
        }
    }
}

/// `CHAINS` accumulators, each `acc * factor + term`. The factor keeps them finite, and `black_box`
/// keeps the compiler from removing unused results.
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
