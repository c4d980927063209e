//! Products of small matrices by the widest fused multiply-adds that the CPU has, on the operands
//! in place, without packing.
//!
//! A library packs panels of A and B before it multiplies, which pays where they are read many
//! times. With a few dozen rows of A or of B, packing takes as long as the product.

use ndarray::{ArrayView2, ArrayViewMut2};

/// Whether this CPU has what [`multiply`] needs.
pub(super) fn is_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx512f")
            || is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether rows of B and of C lie in one piece, as vectors of them are loaded and stored.
pub(super) fn takes(b: &ArrayView2<'_, f32>, c: &ArrayViewMut2<'_, f32>) -> bool {
    let in_one_piece = |columns: usize, stride: isize| columns < 2 || stride == 1;
    in_one_piece(b.ncols(), b.strides()[1]) && in_one_piece(c.ncols(), c.strides()[1])
}

/// C = A B on the calling thread.
///
/// # Panics
/// Where the CPU or the matrices are not what [`is_available`] and [`takes`] ask for.
pub(super) fn multiply(a: ArrayView2<'_, f32>, b: ArrayView2<'_, f32>, c: ArrayViewMut2<'_, f32>) {
    assert!(takes(&b, &c) && b.nrows() == a.ncols() && c.dim() == (a.nrows(), b.ncols()));
    #[cfg(target_arch = "x86_64")]
    {
        let operands = x86::Operands::of(a, b, c);
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the CPU has it, and the operands are of views of matching shapes.
            return unsafe { x86::avx512(operands) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            return unsafe { x86::avx2(operands) };
        }
    }
    panic!("this CPU has no fused multiply-adds in vectors");
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use ndarray::{ArrayView2, ArrayViewMut2};

    /// Terms that are summed at a time: this many rows of B stay in a level-1 cache and in the
    /// entries of a TLB, also where they lie far apart, while all rows of A pass over them.
    const TERMS: usize = 128;

    /// Upper bound on the vectors side by side in a tile of C. Three keep both multiply-add units
    /// busy with few rows; with more, a tile would have too few rows for each load of B.
    const VECTORS: usize = 3;

    /// Where the matrices lie; strides in elements. Columns of B and C are one element apart.
    #[derive(Clone, Copy)]
    pub(super) struct Operands {
        m: usize,
        n: usize,
        k: usize,
        a: *const f32,
        a_row: isize,
        a_column: isize,
        b: *const f32,
        b_row: isize,
        c: *mut f32,
        c_row: isize,
        /// Whether the product is added to C.
        adds: bool,
    }

    impl Operands {
        pub(super) fn of(
            a: ArrayView2<'_, f32>,
            b: ArrayView2<'_, f32>,
            mut c: ArrayViewMut2<'_, f32>,
        ) -> Self {
            Self {
                m: a.nrows(),
                n: b.ncols(),
                k: a.ncols(),
                a: a.as_ptr(),
                a_row: a.strides()[0],
                a_column: a.strides()[1],
                b: b.as_ptr(),
                b_row: b.strides()[0],
                c: c.as_mut_ptr(),
                c_row: c.strides()[0],
                adds: false,
            }
        }
    }

    /// Vectors of f32 whose loads and stores can leave elements out.
    trait Lanes: Copy {
        const WIDTH: usize;
        /// Rows of a tile, by its number of vectors, that fit the registers beside the vectors of B
        /// and an element of A.
        const ROWS: [usize; VECTORS + 1];
        /// Which elements are loaded or stored.
        type Mask: Copy;
        /// The mask of the first `count` elements.
        fn first(count: usize) -> Self::Mask;
        fn splat(value: f32) -> Self;
        /// # Safety
        /// `source` must be valid for the elements of the mask.
        unsafe fn load(source: *const f32, mask: Self::Mask) -> Self;
        /// # Safety
        /// `target` must be valid for the elements of the mask.
        unsafe fn store(self, target: *mut f32, mask: Self::Mask);
        fn mul_add(self, factor: Self, term: Self) -> Self;
    }

    // SAFETY (all the arithmetic below): only reached from the functions at the end of this module,
    // whose callers vouch for the instruction set.
    macro_rules! lanes {
        ($name:ident($register:ty), $width:literal, rows $rows:expr, mask $mask:ty, first($count:ident) $first:expr,
         splat $splat:ident, load($source:ident, $of:ident) $load:expr, store $store:ident,
         fmadd $fmadd:ident) => {
            #[derive(Clone, Copy)]
            struct $name($register);

            impl Lanes for $name {
                const WIDTH: usize = $width;
                const ROWS: [usize; VECTORS + 1] = $rows;
                type Mask = $mask;
                #[inline(always)]
                #[allow(unused_unsafe, reason = "the mask of AVX-512 is a number")]
                fn first($count: usize) -> $mask {
                    // SAFETY: see above.
                    unsafe { $first }
                }
                #[inline(always)]
                fn splat(value: f32) -> Self {
                    // SAFETY: see above.
                    Self(unsafe { $splat(value) })
                }
                #[inline(always)]
                unsafe fn load($source: *const f32, $of: $mask) -> Self {
                    // SAFETY: see above; the caller vouches for the address.
                    Self(unsafe { $load })
                }
                #[inline(always)]
                unsafe fn store(self, target: *mut f32, mask: $mask) {
                    // SAFETY: see above; the caller vouches for the address.
                    unsafe { $store(target, mask, self.0) }
                }
                #[inline(always)]
                fn mul_add(self, factor: Self, term: Self) -> Self {
                    // SAFETY: see above.
                    Self(unsafe { $fmadd(self.0, factor.0, term.0) })
                }
            }
        };
    }

    lanes!(Avx512(__m512), 16, rows [0, 12, 12, 8], mask __mmask16,
    first(count) u16::MAX >> (16 - count),
    splat _mm512_set1_ps, load(source, mask) _mm512_maskz_loadu_ps(mask, source),
    store _mm512_mask_storeu_ps, fmadd _mm512_fmadd_ps);

    lanes!(Avx2(__m256), 8, rows [0, 12, 6, 4], mask __m256i,
    first(count) {
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), lanes)
    },
    splat _mm256_set1_ps, load(source, mask) _mm256_maskload_ps(source, mask),
    store _mm256_maskstore_ps, fmadd _mm256_fmadd_ps);

    /// # Safety
    /// The operands must be valid matrices of these sizes, and nothing else may use C.
    #[inline(always)]
    unsafe fn product<L: Lanes>(o: Operands) {
        let mut first = 0;
        while first < o.k.max(1) {
            let here = Operands {
                k: TERMS.min(o.k - first),
                // SAFETY: the terms lie within the matrices.
                a: unsafe { o.a.offset(first as isize * o.a_column) },
                // SAFETY: as above.
                b: unsafe { o.b.offset(first as isize * o.b_row) },
                adds: first > 0,
                ..o
            };
            // SAFETY: as above.
            unsafe { columns::<L>(here) };
            first += TERMS;
        }
    }

    /// Cuts C into columns of tiles, as equal as whole vectors allow.
    ///
    /// # Safety
    /// As [`product`].
    #[inline(always)]
    unsafe fn columns<L: Lanes>(o: Operands) {
        let vectors = o.n.div_ceil(L::WIDTH);
        let columns = vectors.div_ceil(VECTORS).max(1);
        let mut first = 0;
        for column in 0..columns {
            let wide = vectors / columns + usize::from(column < vectors % columns);
            let width = (wide * L::WIDTH).min(o.n - first);
            let here = Operands {
                n: width,
                // SAFETY: the column lies within the matrices.
                b: unsafe { o.b.add(first) },
                // SAFETY: as above.
                c: unsafe { o.c.add(first) },
                ..o
            };
            // SAFETY: as above.
            unsafe {
                match wide {
                    1 => tiles::<L, 1>(here),
                    2 => tiles::<L, 2>(here),
                    3 => tiles::<L, 3>(here),
                    _ => {}
                }
            }
            first += width;
        }
    }

    /// Cuts a column of `V` vectors into tiles, as equal as whole rows allow.
    ///
    /// # Safety
    /// As [`product`].
    #[inline(always)]
    unsafe fn tiles<L: Lanes, const V: usize>(o: Operands) {
        let tiles = o.m.div_ceil(L::ROWS[V]);
        let mut first = 0;
        for at in 0..tiles {
            let rows = o.m / tiles + usize::from(at < o.m % tiles);
            let here = Operands {
                // SAFETY: the rows lie within the matrices.
                a: unsafe { o.a.offset(first as isize * o.a_row) },
                // SAFETY: as above.
                c: unsafe { o.c.offset(first as isize * o.c_row) },
                ..o
            };
            macro_rules! of_rows {
                ($($rows:literal)*) => {
                    match rows {
                        // SAFETY: as above.
                        $($rows if $rows <= L::ROWS[V] => unsafe { tile::<L, $rows, V>(here) },)*
                        _ => unreachable!("no tile has more rows"),
                    }
                };
            }
            of_rows!(1 2 3 4 5 6 7 8 9 10 11 12);
            first += rows;
        }
    }

    /// A tile of `R` rows and `V` vectors, whose sums stay in registers.
    ///
    /// # Safety
    /// As [`product`].
    #[inline(always)]
    unsafe fn tile<L: Lanes, const R: usize, const V: usize>(o: Operands) {
        let last = L::first(o.n - (V - 1) * L::WIDTH);
        let whole = L::first(L::WIDTH);
        let mask = |v: usize| if v + 1 == V { last } else { whole };
        let mut sums = [[L::splat(0.0); V]; R];
        if o.adds {
            for (r, sums) in sums.iter_mut().enumerate() {
                for (v, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: row r of C has the elements of the mask.
                    unsafe {
                        let at = o.c.offset(r as isize * o.c_row).add(v * L::WIDTH);
                        *sum = L::load(at, mask(v));
                    }
                }
            }
        }
        for k in 0..o.k as isize {
            let mut row = [L::splat(0.0); V];
            for (v, vector) in row.iter_mut().enumerate() {
                // SAFETY: row k of B has the elements of the mask.
                *vector = unsafe { L::load(o.b.offset(k * o.b_row).add(v * L::WIDTH), mask(v)) };
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                // SAFETY: A has this row and this column.
                let element = unsafe { *o.a.offset(r as isize * o.a_row + k * o.a_column) };
                let element = L::splat(element);
                for (sum, &vector) in sums.iter_mut().zip(&row) {
                    *sum = element.mul_add(vector, *sum);
                }
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            for (v, sum) in sums.into_iter().enumerate() {
                // SAFETY: row r of C has the elements of the mask.
                unsafe {
                    let at = o.c.offset(r as isize * o.c_row).add(v * L::WIDTH);
                    sum.store(at, mask(v));
                }
            }
        }
    }

    /// # Safety
    /// The CPU must have AVX-512; beside that as [`product`].
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn avx512(operands: Operands) {
        // SAFETY: the caller's promise.
        unsafe { product::<Avx512>(operands) }
    }

    /// # Safety
    /// The CPU must have AVX2 and FMA; beside that as [`product`].
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn avx2(operands: Operands) {
        // SAFETY: the caller's promise.
        unsafe { product::<Avx2>(operands) }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use ndarray::{Array2, linalg::general_mat_mul, s};

    use super::*;

    type Multiply = fn(ArrayView2<'_, f32>, ArrayView2<'_, f32>, ArrayViewMut2<'_, f32>);

    /// Each instruction set that this CPU has.
    fn paths() -> Vec<(&'static str, Multiply)> {
        let mut paths: Vec<(&'static str, Multiply)> = Vec::new();
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the CPU has it, and the callers' shapes match.
            paths.push(("AVX-512", |a, b, c| unsafe {
                x86::avx512(x86::Operands::of(a, b, c));
            }));
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            paths.push(("AVX2", |a, b, c| unsafe {
                x86::avx2(x86::Operands::of(a, b, c));
            }));
        }
        paths
    }

    /// Small whole numbers, whose sums are exact.
    fn value((i, j): (usize, usize)) -> f32 {
        ((i * 7 + j * 3) % 11) as f32 - 5.0
    }

    #[test]
    fn every_shape_and_stride_is_exact_and_nothing_beside_it_is_touched() {
        let lengths = [
            1, 2, 3, 7, 8, 12, 13, 15, 16, 17, 31, 33, 47, 48, 49, 64, 65, 97,
        ];
        for (name, multiply) in paths() {
            for m in lengths {
                for n in lengths {
                    let k = (m * 5 + n * 3) % 150 + 1;
                    // A transposed and a plain one; B and C parts of wider ones.
                    for a in [
                        Array2::from_shape_fn((m, k), value),
                        Array2::from_shape_fn((k, m), value).reversed_axes(),
                    ] {
                        let b = Array2::from_shape_fn((k, n + 5), value);
                        let mut c = Array2::from_elem((m + 1, n + 3), f32::NAN);
                        let mut expected = Array2::zeros((m, n));
                        general_mat_mul(1.0, &a, &b.slice(s![.., 2..n + 2]), 0.0, &mut expected);
                        multiply(
                            a.view(),
                            b.slice(s![.., 2..n + 2]),
                            c.slice_mut(s![..m, 1..=n]),
                        );
                        assert_eq!(c.slice(s![..m, 1..=n]), expected, "{name}, {m} x {n} x {k}");
                        c.slice_mut(s![..m, 1..=n]).fill(f32::NAN);
                        assert!(c.iter().all(|x| x.is_nan()), "{name}, {m} x {n} x {k}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_terms_give_zeros() {
        for (_, multiply) in paths() {
            let (a, b) = (Array2::zeros((3, 0)), Array2::zeros((0, 20)));
            let mut c = Array2::from_elem((3, 20), f32::NAN);
            multiply(a.view(), b.view(), c.view_mut());
            assert!(c.iter().all(|&x| x == 0.0));
        }
    }

    #[test]
    fn columns_that_lie_apart_are_not_taken() {
        let matrix = Array2::<f32>::zeros((4, 6));
        let mut c = Array2::zeros((4, 6));
        assert!(takes(&matrix.view(), &c.view_mut()));
        assert!(!takes(&matrix.t(), &c.view_mut()));
        assert!(!takes(&matrix.view(), &c.view_mut().reversed_axes()));
    }
}
