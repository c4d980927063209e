//! Loops over the rows of matrices, which the compiler vectorises.

use crate::wide;

/// Floats of a cache line.
pub const LINE: usize = 16;

wide! {
    /// Adds the bias to each row. Results below `least` become `least`.
    pub fn bias_of_rows(rows: &mut [f32], bias: &[f32], least: f32) {
        for row in rows.chunks_exact_mut(bias.len()) {
            for (y, b) in row.iter_mut().zip(bias) {
                let z = *y + b;
                *y = if z <= least { least } else { z };
            }
        }
    }
}

wide! {
    /// The gradient where `y` is positive, and 0 elsewhere.
    pub fn where_positive(gradient: &mut [f32], y: &[f32]) {
        for (g, y) in gradient.iter_mut().zip(y) {
            *g = if *y > 0.0 { *g } else { 0.0 };
        }
    }
}

wide! {
    /// Sums the columns from `first` on over rows of `width` values.
    pub fn sums_of_columns(rows: &[f32], width: usize, first: usize, sums: &mut [f32]) {
        sums.fill(0.0);
        for row in rows.chunks_exact(width) {
            for (sum, x) in sums.iter_mut().zip(&row[first..]) {
                *sum += x;
            }
        }
    }
}

wide! {
    /// Rows of `height` floats: columns of `from`, whose rows have `width`, from `first` on; at most [`LINE`].
    pub fn columns_as_rows(from: &[f32], width: usize, first: usize, rows: &mut [f32], height: usize) {
        let count = rows.len() / height;
        // Through a small square, so that each line is read and written once, even if lines a power of
        // two apart share a few places of the cache.
        let mut square = [[0.0; LINE]; LINE];
        for top in (0..height).step_by(LINE) {
            let tall = LINE.min(height - top);
            for (i, line) in square[..tall].iter_mut().enumerate() {
                line[..count].copy_from_slice(&from[(top + i) * width + first..][..count]);
            }
            for (j, row) in rows.chunks_exact_mut(height).enumerate() {
                for (i, to) in row[top..top + tall].iter_mut().enumerate() {
                    *to = square[i][j];
                }
            }
        }
    }
}
