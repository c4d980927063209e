//! What the sine needs of a vector of float32, and the vector of one element.

/// Vectors of float32 of one instruction set.
///
/// A type that implements this belongs to an instruction set that the running CPU must
/// have; `Isa` guarantees it before it lets any of them compute.
pub(super) trait Vector: Copy {
    /// Elements of a vector.
    const LANES: usize;
    fn splat(value: f32) -> Self;
    /// Reads `LANES` elements.
    ///
    /// # Safety
    /// `source` must be valid for that.
    unsafe fn load(source: *const f32) -> Self;
    /// Writes `LANES` elements.
    ///
    /// # Safety
    /// `target` must be valid for that.
    unsafe fn store(self, target: *mut f32);
    /// Writes `LANES` elements past the caches where the instruction set can, for results that are
    /// not read again soon. [`fence`](Self::fence) must follow the last.
    ///
    /// # Safety
    /// As [`store`](Self::store), and `target` a multiple of the size of the vector.
    unsafe fn stream(self, target: *mut f32) {
        // SAFETY: the caller's.
        unsafe { self.store(target) }
    }
    /// Makes streamed stores visible to other threads before later ones.
    fn fence() {}
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// `self * factor + term`, rounded once: the range reduction depends on it.
    fn fused(self, factor: Self, term: Self) -> Self;
    /// `self * factor + term`, rounded once or twice.
    fn mul_add(self, factor: Self, term: Self) -> Self {
        self.fused(factor, term)
    }
    /// Changes the sign of each element where the lowest bit of `k`'s is set.
    fn flip_if_odd(self, k: Self) -> Self;
    /// Whether any element's magnitude lies above `limit`. NaN does not.
    fn any_above(self, limit: f32) -> bool;
}

/// One element with the fused multiply-add of the C library or the CPU: for single
/// elements, and as the model of the CUDA kernel's arithmetic.
#[derive(Clone, Copy)]
pub(super) struct Scalar(pub(super) f32);

impl Vector for Scalar {
    const LANES: usize = 1;
    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self(value)
    }
    #[inline(always)]
    unsafe fn load(source: *const f32) -> Self {
        // SAFETY: the caller's.
        Self(unsafe { source.read() })
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut f32) {
        // SAFETY: the caller's.
        unsafe { target.write(self.0) };
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }
    #[inline(always)]
    fn fused(self, factor: Self, term: Self) -> Self {
        Self(self.0.mul_add(factor.0, term.0))
    }
    #[inline(always)]
    fn flip_if_odd(self, k: Self) -> Self {
        Self(f32::from_bits(
            self.0.to_bits().wrapping_add(k.0.to_bits() << 31),
        ))
    }
    #[inline(always)]
    fn any_above(self, limit: f32) -> bool {
        self.0.abs() > limit
    }
}
