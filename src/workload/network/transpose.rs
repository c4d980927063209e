//! Transposing a matrix on the CPU.

use crate::workload::prepare::{Threads, wide};

/// Floats of a cache line.
const LINE: usize = 16;

wide! {
    /// Rows of `height` floats: columns of `from`, whose rows have `width`, from `first` on.
    fn columns_as_rows(from: &[f32], width: usize, first: usize, rows: &mut [f32], height: usize) {
        let count = rows.len() / height;
        // By way of a small square each line is read and written once, also where lines a power of
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

/// The transposed of a row-major matrix of so many columns.
pub(crate) fn transpose(threads: &Threads, from: &[f32], columns: usize, to: &mut [f32]) {
    let height = from.len() / columns;
    let tasks = to.chunks_mut(LINE * height).enumerate();
    threads.each(tasks.collect(), |(at, rows)| {
        columns_as_rows(from, columns, at * LINE, rows, height);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposed_is_every_element_in_its_place() {
        for (rows, columns) in [(1, 1), (1, 40), (17, 3), (16, 16), (33, 47), (64, 100)] {
            let from: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
            let mut to = vec![f32::NAN; from.len()];
            transpose(&Threads::up_to(2), &from, columns, &mut to);
            for (i, x) in from.iter().enumerate() {
                let (row, column) = (i / columns, i % columns);
                assert_eq!(to[column * rows + row], *x, "{rows} x {columns}, {i}");
            }
        }
    }
}
