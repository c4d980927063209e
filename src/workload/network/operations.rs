//! The small steps between products, on the CPU.

use crate::workload::prepare::Threads;
use crossover_arithmetic::rows::{
    LINE, bias_of_rows, columns_as_rows, sums_of_columns, where_positive,
};

/// Values per task: some 20 µs of work, within a level-2 cache.
pub(crate) const GRAIN: usize = 1 << 14;

/// Rows of `width` values that a task takes.
pub(crate) fn rows_per_task(width: usize) -> usize {
    (GRAIN / width).max(1)
}

/// Adds the bias to each row, and applies ReLU where asked to.
pub(crate) fn add_bias(threads: &Threads, y: &mut [f32], bias: &[f32], relu: bool) {
    let least = if relu { 0.0 } else { f32::NEG_INFINITY };
    let tasks = y.chunks_mut(rows_per_task(bias.len()) * bias.len());
    threads.each(tasks.collect(), |rows| bias_of_rows(rows, bias, least));
}

/// The derivative of ReLU in place, given its output.
pub(crate) fn relu_backward(threads: &Threads, gradient: &mut [f32], y: &[f32]) {
    let tasks = gradient.chunks_mut(GRAIN).zip(y.chunks(GRAIN));
    threads.each(tasks.collect(), |(gradient, y)| where_positive(gradient, y));
}

/// Sums over the rows, one for each column.
pub(crate) fn sum_rows(threads: &Threads, rows: &[f32], sums: &mut [f32]) {
    /// Columns per task: whole cache lines, and enough tasks for many cores.
    const COLUMNS: usize = 64;
    let width = sums.len();
    let tasks = sums.chunks_mut(COLUMNS).enumerate();
    threads.each(tasks.collect(), |(at, sums)| {
        sums_of_columns(rows, width, at * COLUMNS, sums);
    });
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
    fn each_does_what_its_name_says() {
        // More than one task each, and widths that no vector divides.
        let (rows, width) = (1000, 67);
        let value = |i: usize| (i * 7 % 11) as f32 - 5.0;
        let x: Vec<f32> = (0..rows * width).map(value).collect();
        let bias: Vec<f32> = (0..width).map(value).collect();
        let (mut plain, mut positive, mut back) = (x.clone(), x.clone(), x.clone());
        let threads = Threads::up_to(2);
        add_bias(&threads, &mut plain, &bias, false);
        add_bias(&threads, &mut positive, &bias, true);
        relu_backward(&threads, &mut back, &positive);
        let mut sums = vec![f32::NAN; width];
        sum_rows(&threads, &x, &mut sums);
        for (i, x) in x.iter().enumerate() {
            let z = x + bias[i % width];
            assert_eq!((plain[i], positive[i]), (z, z.max(0.0)), "value {i}");
            assert_eq!(back[i], if z > 0.0 { *x } else { 0.0 }, "value {i}");
        }
        for (j, sum) in sums.iter().enumerate() {
            let column = x.iter().skip(j).step_by(width);
            assert_eq!(*sum, column.sum::<f32>(), "column {j}");
        }
    }

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
