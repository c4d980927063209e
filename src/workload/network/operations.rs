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

/// The transposed of a row-major matrix with this number of columns.
pub(crate) fn transpose(threads: &Threads, from: &[f32], columns: usize, to: &mut [f32]) {
    let height = from.len() / columns;
    let tasks = to.chunks_mut(LINE * height).enumerate();
    threads.each(tasks.collect(), |(at, rows)| {
        columns_as_rows(from, columns, at * LINE, rows, height);
    });
}
