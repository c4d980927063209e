//! Products of small matrices by the widest fused multiply-adds that the CPU has, on the operands
//! in place, without packing.
//!
//! A library packs panels of A and B before it multiplies, which pays if they are read many times. With
//! a few dozen rows of A or B, packing takes as long as the product.

use ndarray::{ArrayView2, ArrayViewMut2};
use pulp::{MemMask, Simd, WithSimd};

use crate::isa::Isa;

/// Whether this CPU can run [`multiply`].
#[inline]
pub fn is_available() -> bool {
    Isa::best() != Isa::PORTABLE
}

/// Whether rows of B and of C are contiguous, as loads and stores of vectors require.
#[inline]
pub fn takes(b: &ArrayView2<'_, f32>, c: &ArrayViewMut2<'_, f32>) -> bool {
    let in_one_piece = |columns: usize, stride: isize| columns < 2 || stride == 1;
    (b.is_empty() || in_one_piece(b.ncols(), b.strides()[1]))
        && in_one_piece(c.ncols(), c.strides()[1])
}

/// C = A B on the calling thread.
///
/// # Panics
/// If [`takes`] is false for the matrices.
#[inline]
pub fn multiply(a: ArrayView2<'_, f32>, b: ArrayView2<'_, f32>, c: ArrayViewMut2<'_, f32>) {
    multiply_by(Isa::best(), a, b, c);
}

/// As [`multiply`], by this instruction set.
///
/// # Panics
/// As [`multiply`].
pub fn multiply_by(
    isa: Isa,
    a: ArrayView2<'_, f32>,
    b: ArrayView2<'_, f32>,
    mut c: ArrayViewMut2<'_, f32>,
) {
    assert!(takes(&b, &c) && b.nrows() == a.ncols() && c.dim() == (a.nrows(), b.ncols()));
    isa.run(Operands {
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
    });
}

/// Terms that are summed at a time: this many rows of B stay in a level-1 cache and in the
/// entries of a TLB, also where they lie far apart, while all rows of A pass over them.
const TERMS: usize = 128;

/// Upper bound on the vectors side by side in a tile of C. Three keep both multiply-add units
/// busy with few rows; with more, a tile would have too few rows for each load of B.
const VECTORS: usize = 3;

/// Rows of a tile of so many vectors that fit the registers beside the vectors of B and an element
/// of A.
#[inline(always)]
fn rows_of_tile<S: Simd>(vectors: usize) -> usize {
    match S::REGISTER_COUNT {
        32.. => [12, 12, 8][vectors - 1],
        _ => [12, 6, 4][vectors - 1],
    }
}

/// Where the matrices lie; strides in elements. Columns of B and C are one element apart.
#[derive(Clone, Copy)]
struct Operands {
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

impl WithSimd for Operands {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // SAFETY: `multiply_by` makes the operands of views of matching shapes, which outlive this.
        unsafe { product(simd, self) };
    }
}

/// # Safety
/// The operands must be valid matrices of these sizes, and nothing else may use C.
#[inline(always)]
unsafe fn product<S: Simd>(simd: S, o: Operands) {
    let mut first = 0;
    while first < o.k.max(1) {
        let here = Operands {
            k: TERMS.min(o.k - first),
            a: o.a.wrapping_offset(first as isize * o.a_column),
            b: o.b.wrapping_offset(first as isize * o.b_row),
            adds: first > 0,
            ..o
        };
        // SAFETY: the terms from `first` on lie within the caller's matrices.
        unsafe { columns::<S>(simd, here) };
        first += TERMS;
    }
}

/// Cuts C into columns of tiles, as equal as whole vectors allow.
///
/// # Safety
/// As [`product`].
#[inline(always)]
unsafe fn columns<S: Simd>(simd: S, o: Operands) {
    let vectors = o.n.div_ceil(S::F32_LANES);
    let columns = vectors.div_ceil(VECTORS).max(1);
    let mut first = 0;
    for column in 0..columns {
        let wide = vectors / columns + usize::from(column < vectors % columns);
        let width = (wide * S::F32_LANES).min(o.n - first);
        let here = Operands {
            n: width,
            b: o.b.wrapping_add(first),
            c: o.c.wrapping_add(first),
            ..o
        };
        // SAFETY: the columns add up to `o.n`, so they lie within the caller's matrices.
        unsafe {
            match wide {
                1 => tiles::<S, 1>(simd, here),
                2 => tiles::<S, 2>(simd, here),
                3 => tiles::<S, 3>(simd, here),
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
unsafe fn tiles<S: Simd, const V: usize>(simd: S, o: Operands) {
    let most = rows_of_tile::<S>(V);
    let tiles = o.m.div_ceil(most);
    let mut first = 0;
    for at in 0..tiles {
        let rows = o.m / tiles + usize::from(at < o.m % tiles);
        let here = Operands {
            a: o.a.wrapping_offset(first as isize * o.a_row),
            c: o.c.wrapping_offset(first as isize * o.c_row),
            ..o
        };
        macro_rules! of_rows {
            ($($rows:literal)*) => {
                match rows {
                    // SAFETY: the tiles add up to `o.m` rows, so they lie within the caller's matrices.
                    $($rows if $rows <= most => unsafe { tile::<S, $rows, V>(simd, here) },)*
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
unsafe fn tile<S: Simd, const R: usize, const V: usize>(simd: S, o: Operands) {
    // Only a mask for a masked load: pulp's own loads jump to one of many.
    let last = simd.mask_between_m32s(0, (o.n - (V - 1) * S::F32_LANES) as u32);
    let last = MemMask::new(last.mask());
    let mut sums = [[simd.splat_f32s(0.0); V]; R];
    if o.adds {
        for (r, sums) in sums.iter_mut().enumerate() {
            for (v, sum) in sums.iter_mut().enumerate() {
                // SAFETY: row r of C has the vector's elements, of the last one those of the mask.
                unsafe {
                    let at = o.c.offset(r as isize * o.c_row).add(v * S::F32_LANES);
                    *sum = load(simd, at, (v + 1 == V).then_some(last));
                }
            }
        }
    }
    for k in 0..o.k as isize {
        let mut row = [simd.splat_f32s(0.0); V];
        for (v, vector) in row.iter_mut().enumerate() {
            // SAFETY: row k of B has the vector's elements, of the last one those of the mask.
            *vector = unsafe {
                let at = o.b.offset(k * o.b_row).add(v * S::F32_LANES);
                load(simd, at, (v + 1 == V).then_some(last))
            };
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: A has this row and this column.
            let element = unsafe { *o.a.offset(r as isize * o.a_row + k * o.a_column) };
            let element = simd.splat_f32s(element);
            for (sum, &vector) in sums.iter_mut().zip(&row) {
                *sum = simd.mul_add_f32s(element, vector, *sum);
            }
        }
    }
    for (r, sums) in sums.into_iter().enumerate() {
        for (v, sum) in sums.into_iter().enumerate() {
            // SAFETY: row r of C has the vector's elements, of the last one those of the mask.
            unsafe {
                let at = o.c.offset(r as isize * o.c_row).add(v * S::F32_LANES);
                if v + 1 == V {
                    simd.mask_store_ptr_f32s(last, at, sum)
                } else {
                    at.cast::<S::f32s>().write_unaligned(sum)
                }
            }
        }
    }
}

/// A whole vector, or the elements that a mask selects.
///
/// # Safety
/// `from` must be valid for these.
#[inline(always)]
unsafe fn load<S: Simd>(simd: S, from: *const f32, mask: Option<MemMask<S::m32s>>) -> S::f32s {
    match mask {
        // SAFETY: the caller promises the elements that the mask selects.
        Some(mask) => unsafe { simd.mask_load_ptr_f32s(mask, from) },
        // SAFETY: the caller promises a whole vector.
        None => unsafe { from.cast::<S::f32s>().read_unaligned() },
    }
}
