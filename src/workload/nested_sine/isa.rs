//! The sine in each instruction set.

use crate::machine::isa::{Isa, Kind};
use crate::workload::nested_sine::sine::{self, Stores};
use crate::workload::nested_sine::vector::{Scalar, Vector};

impl Isa {
    /// y = sin x, each within 2 ulp, on the calling thread.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn sine(self, x: &[f32], y: &mut [f32]) {
        self.sines::<1>(x, y, Stores::Cached);
    }

    /// y = sin(sin(sin(sin x))) on the calling thread.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn nested_sine(self, x: &[f32], y: &mut [f32]) {
        self.nested_sine_stored(x, y, Stores::Cached);
    }

    /// The same, and how results are stored.
    pub(super) fn nested_sine_stored(self, x: &[f32], y: &mut [f32], stores: Stores) {
        self.sines::<4>(x, y, stores);
    }

    fn sines<const PASSES: usize>(self, x: &[f32], y: &mut [f32], stores: Stores) {
        match self.kind() {
            // SAFETY: a value of `Isa` exists only where the CPU has the instruction set.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { x86::avx512::<PASSES>(x, y, stores) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { x86::avx2::<PASSES>(x, y, stores) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => unsafe { neon::sines::<PASSES>(x, y) },
            Kind::Portable => sine::sines::<Portable, PASSES>(x, y, Stores::Cached),
        }
    }
}

/// Plain arithmetic for CPUs without a fused multiply-add, in arrays that the compiler turns into
/// the CPU's vectors.
#[derive(Clone, Copy)]
struct Portable([f32; 8]);

impl Portable {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Self(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }
}

impl Vector for Portable {
    const LANES: usize = 8;
    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self([value; 8])
    }
    #[inline(always)]
    unsafe fn load(source: *const f32) -> Self {
        // SAFETY: the caller's.
        Self(unsafe { source.cast::<[f32; 8]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut f32) {
        // SAFETY: the caller's.
        unsafe { target.cast::<[f32; 8]>().write_unaligned(self.0) };
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    /// In float64 the product is exact and the sum good to 53 bits.
    #[inline(always)]
    fn fused(self, factor: Self, term: Self) -> Self {
        Self(std::array::from_fn(|i| {
            (f64::from(self.0[i]) * f64::from(factor.0[i]) + f64::from(term.0[i])) as f32
        }))
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] * factor.0[i] + term.0[i]))
    }
    #[inline(always)]
    fn flip_if_odd(self, k: Self) -> Self {
        self.zip(k, |value, k| Scalar(value).flip_if_odd(Scalar(k)).0)
    }
    #[inline(always)]
    fn any_above(self, limit: f32) -> bool {
        self.0.iter().fold(false, |any, v| any | (v.abs() > limit))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::workload::nested_sine::sine::{self, Stores};
    use crate::workload::nested_sine::vector::Vector;
    use std::arch::x86_64::*;

    // The intrinsics are inlined into the functions at the end of this module, which switch
    // their instruction set on.
    macro_rules! vector {
        ($name:ident, $register:ty, $lanes:literal, splat $splat:ident, load $load:ident,
         store $store:ident, stream $stream:ident, sub $sub:ident, mul $mul:ident, fmadd $fmadd:ident,
         flip $flip:expr, above $above:expr) => {
            #[derive(Clone, Copy)]
            struct $name($register);

            // SAFETY (all the arithmetic below): only reached from the functions at the end
            // of this module, whose callers vouch for the instruction set.
            impl Vector for $name {
                const LANES: usize = $lanes;
                #[inline(always)]
                fn splat(value: f32) -> Self {
                    // SAFETY: see above.
                    Self(unsafe { $splat(value) })
                }
                #[inline(always)]
                unsafe fn load(source: *const f32) -> Self {
                    // SAFETY: see above; the caller vouches for the address.
                    Self(unsafe { $load(source) })
                }
                #[inline(always)]
                unsafe fn store(self, target: *mut f32) {
                    // SAFETY: see above; the caller vouches for the address.
                    unsafe { $store(target, self.0) }
                }
                #[inline(always)]
                unsafe fn stream(self, target: *mut f32) {
                    // SAFETY: see above; the caller vouches for the address.
                    unsafe { $stream(target, self.0) }
                }
                #[inline(always)]
                fn fence() {
                    // SAFETY: every x86-64 CPU has it.
                    unsafe { _mm_sfence() }
                }
                #[inline(always)]
                fn sub(self, other: Self) -> Self {
                    // SAFETY: see above.
                    Self(unsafe { $sub(self.0, other.0) })
                }
                #[inline(always)]
                fn mul(self, other: Self) -> Self {
                    // SAFETY: see above.
                    Self(unsafe { $mul(self.0, other.0) })
                }
                #[inline(always)]
                fn fused(self, factor: Self, term: Self) -> Self {
                    // SAFETY: see above.
                    Self(unsafe { $fmadd(self.0, factor.0, term.0) })
                }
                #[inline(always)]
                fn flip_if_odd(self, k: Self) -> Self {
                    // SAFETY: see above.
                    Self(unsafe { $flip(self.0, k.0) })
                }
                #[inline(always)]
                fn any_above(self, limit: f32) -> bool {
                    // SAFETY: see above.
                    unsafe { $above(self.0, limit) }
                }
            }
        };
    }

    vector!(Avx2, __m256, 8, splat _mm256_set1_ps, load _mm256_loadu_ps,
    store _mm256_storeu_ps, stream _mm256_stream_ps, sub _mm256_sub_ps, mul _mm256_mul_ps, fmadd _mm256_fmadd_ps,
    flip |value, k| {
        let sign = _mm256_slli_epi32::<31>(_mm256_castps_si256(k));
        _mm256_xor_ps(value, _mm256_castsi256_ps(sign))
    },
    above |value, limit| {
        let magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0), value);
        let above = _mm256_cmp_ps::<_CMP_GT_OQ>(magnitude, _mm256_set1_ps(limit));
        _mm256_movemask_ps(above) != 0
    });

    vector!(Avx512, __m512, 16, splat _mm512_set1_ps, load _mm512_loadu_ps,
    store _mm512_storeu_ps, stream _mm512_stream_ps, sub _mm512_sub_ps, mul _mm512_mul_ps, fmadd _mm512_fmadd_ps,
    flip |value, k| {
        let sign = _mm512_slli_epi32::<31>(_mm512_castps_si512(k));
        // Exclusive or of floats would need AVX-512DQ.
        _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(value), sign))
    },
    above |value, limit| {
        let magnitude = _mm512_abs_ps(value);
        _mm512_cmp_ps_mask::<_CMP_GT_OQ>(magnitude, _mm512_set1_ps(limit)) != 0
    });

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn avx2<const PASSES: usize>(x: &[f32], y: &mut [f32], stores: Stores) {
        sine::sines::<Avx2, PASSES>(x, y, stores);
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn avx512<const PASSES: usize>(x: &[f32], y: &mut [f32], stores: Stores) {
        sine::sines::<Avx512, PASSES>(x, y, stores);
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use crate::workload::nested_sine::sine::{self, Stores};
    use crate::workload::nested_sine::vector::Vector;
    use std::arch::aarch64::*;

    #[derive(Clone, Copy)]
    struct Neon(float32x4_t);

    // SAFETY (all the arithmetic below): only reached from the functions at the end of this
    // module, whose callers vouch for the instruction set.
    impl Vector for Neon {
        const LANES: usize = 4;
        #[inline(always)]
        fn splat(value: f32) -> Self {
            // SAFETY: see above.
            Self(unsafe { vdupq_n_f32(value) })
        }
        #[inline(always)]
        unsafe fn load(source: *const f32) -> Self {
            // SAFETY: see above; the caller vouches for the address.
            Self(unsafe { vld1q_f32(source) })
        }
        #[inline(always)]
        unsafe fn store(self, target: *mut f32) {
            // SAFETY: see above; the caller vouches for the address.
            unsafe { vst1q_f32(target, self.0) }
        }
        #[inline(always)]
        fn sub(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { vsubq_f32(self.0, other.0) })
        }
        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { vmulq_f32(self.0, other.0) })
        }
        #[inline(always)]
        fn fused(self, factor: Self, term: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { vfmaq_f32(term.0, self.0, factor.0) })
        }
        #[inline(always)]
        fn flip_if_odd(self, k: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe {
                let sign = vshlq_n_u32::<31>(vreinterpretq_u32_f32(k.0));
                vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(self.0), sign))
            })
        }
        #[inline(always)]
        fn any_above(self, limit: f32) -> bool {
            // SAFETY: see above.
            unsafe { vmaxvq_u32(vcagtq_f32(self.0, vdupq_n_f32(limit))) != 0 }
        }
    }

    #[target_feature(enable = "neon")]
    pub(super) fn sines<const PASSES: usize>(x: &[f32], y: &mut [f32]) {
        sine::sines::<Neon, PASSES>(x, y, Stores::Cached);
    }
}
