//! The vector instruction sets that the code supports, and which of them this CPU has.

use std::sync::LazyLock;

#[cfg(target_arch = "aarch64")]
use pulp::aarch64;
#[cfg(target_arch = "x86_64")]
use pulp::x86;
use pulp::{Scalar, Simd, WithSimd};

/// A vector instruction set that this CPU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Kind);

/// Which one. Code that is compiled for it may run where an [`Isa`] of this kind exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// With fused multiply-adds.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// The vector instructions of every CPU of the architecture.
    Portable,
}

impl Isa {
    /// The vector instructions of every CPU of the architecture.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// The instruction sets of this CPU, the widest first; never empty.
    pub fn available() -> Vec<Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if x86::V4::is_available() {
                sets.push(Self(Kind::Avx512));
            }
            if x86::V3::is_available() {
                sets.push(Self(Kind::Avx2));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if aarch64::Neon::is_available() {
            sets.push(Self(Kind::Neon));
        }
        sets.push(Self::PORTABLE);
        sets
    }

    /// The widest instruction set of this CPU.
    #[inline]
    pub fn best() -> Self {
        // Looked up once, because small products and short arrays need it in every call.
        static BEST: LazyLock<Isa> = LazyLock::new(|| Isa::available()[0]);
        *BEST
    }

    /// Runs vector code that is compiled for this instruction set.
    pub(crate) fn run<O: WithSimd>(self, code: O) -> O::Output {
        match self.0 {
            // SAFETY: only `available` makes an `Isa` of this kind, where the CPU has AVX-512.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => Simd::vectorize(unsafe { x86::V4::new_unchecked() }, code),
            // SAFETY: only `available` makes an `Isa` of this kind, where the CPU has AVX2.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => Simd::vectorize(unsafe { x86::V3::new_unchecked() }, code),
            // SAFETY: only `available` makes an `Isa` of this kind, where the CPU has NEON.
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => Simd::vectorize(unsafe { aarch64::Neon::new_unchecked() }, code),
            Kind::Portable => Simd::vectorize(Scalar::new(), code),
        }
    }

    /// Name for notes, such as `AVX2`.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "AVX2",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "NEON",
            Kind::Portable => "portable",
        }
    }
}

/// Writes a vector past the caches if there is an instruction for it. [`fence`] must follow the last
/// write before other threads read.
///
/// # Safety
/// The address must be a multiple of the vector's size, and the vector one of the instruction set
/// that the code around the call is [run](Isa::run) in.
#[inline(always)]
pub(crate) unsafe fn stream<V: Copy>(to: &mut V, vector: V) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm256_stream_ps, _mm512_stream_ps};
        let address = std::ptr::from_mut(to).cast();
        // SAFETY: the vectors are of this size, so the instruction set is one that stores them.
        unsafe {
            match size_of::<V>() {
                64 => return _mm512_stream_ps(address, std::mem::transmute_copy(&vector)),
                32 => return _mm256_stream_ps(address, std::mem::transmute_copy(&vector)),
                _ => {}
            }
        }
    }
    *to = vector;
}

/// Makes what was written past the caches visible to other threads before later stores.
#[inline(always)]
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every CPU of the architecture has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
