//! The small steps between products, on the CPU.

use std::cell::RefCell;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};

use crossover_arithmetic::exponential::softmax_of_rows;
use crossover_arithmetic::rows::{bias_of_rows, sums_of_columns, where_positive};

use crate::workload::network::model::{EPSILON, HEAD, HEADS, QKV, SEQUENCE, WIDTH};
use crate::workload::network::products::{matrix, matrix_mut};
use crate::workload::prepare::{Threads, wide};
use crate::workload::product::Library;

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

/// Values that go through a step together.
const LANES: usize = 16;

/// Copies the row of each token.
pub(crate) fn embed(threads: &Threads, tokens: &[u32], table: &[f32], to: &mut [f32]) {
    let task = rows_per_task(WIDTH);
    let tasks = to.chunks_mut(task * WIDTH).zip(tokens.chunks(task));
    threads.each(tasks.collect(), |(to, tokens)| {
        for (to, &token) in to.chunks_exact_mut(WIDTH).zip(tokens) {
            to.copy_from_slice(&table[token as usize * WIDTH..][..WIDTH]);
        }
    });
}

wide! {
    fn norm_of_rows(x: &[f32], gain: &[f32], bias: &[f32], y: &mut [f32]) {
        for (x, y) in x.chunks_exact(WIDTH).zip(y.chunks_exact_mut(WIDTH)) {
            let mut sums = [0.0f32; LANES];
            for x in x.chunks_exact(LANES) {
                for i in 0..LANES {
                    sums[i] += x[i];
                }
            }
            let mean = sums.iter().sum::<f32>() / WIDTH as f32;
            let mut squares = [0.0f32; LANES];
            for x in x.chunks_exact(LANES) {
                for i in 0..LANES {
                    squares[i] += (x[i] - mean) * (x[i] - mean);
                }
            }
            let variance = squares.iter().sum::<f32>() / WIDTH as f32;
            let factor = (variance + EPSILON as f32).sqrt().recip();
            for (((y, x), gain), bias) in y.iter_mut().zip(x).zip(gain).zip(bias) {
                *y = (x - mean) * factor * gain + bias;
            }
        }
    }
}

/// Each row with mean 0 and variance 1, times the gain, plus the bias.
pub(crate) fn layer_norm(threads: &Threads, x: &[f32], gain: &[f32], bias: &[f32], y: &mut [f32]) {
    let task = rows_per_task(WIDTH) * WIDTH;
    let tasks = y.chunks_mut(task).zip(x.chunks(task));
    threads.each(tasks.collect(), |(y, x)| norm_of_rows(x, gain, bias, y));
}

wide! {
    fn add_rows(residual: &mut [f32], change: &[f32], bias: &[f32]) {
        let rows = residual.chunks_exact_mut(WIDTH).zip(change.chunks_exact(WIDTH));
        for (residual, change) in rows {
            for ((x, y), b) in residual.iter_mut().zip(change).zip(bias) {
                *x += y + b;
            }
        }
    }
}

/// Adds the change, and the bias to each row.
pub(crate) fn add_with_bias(threads: &Threads, residual: &mut [f32], change: &[f32], bias: &[f32]) {
    let task = rows_per_task(WIDTH) * WIDTH;
    let tasks = residual.chunks_mut(task).zip(change.chunks(task));
    threads.each(tasks.collect(), |(residual, change)| {
        add_rows(residual, change, bias);
    });
}

/// Queries of a task: with four tasks per head, even one sequence has work for 16 threads, and
/// their scores stay in a level-1 cache.
const QUERIES: usize = 32;

/// softmax(q k^T / sqrt(length of a head)) v of each sequence and head, without a mask. The input rows
/// have queries, keys and values side by side, the output rows the results of all heads.
pub(crate) fn attention(threads: &Threads, qkv: &[f32], heads: &mut [f32]) {
    thread_local! {
        static SCORES: RefCell<Array2<f32>> = RefCell::new(Array2::zeros((QUERIES, SEQUENCE)));
    }
    let qkv = matrix(qkv, QKV);
    let mut heads = matrix_mut(heads, WIDTH);
    // Each tile with its first row and its head.
    let mut tiles: Vec<(usize, usize, ArrayViewMut2<'_, f32>)> = Vec::new();
    let mut rest = heads.view_mut();
    for row in (0..qkv.nrows()).step_by(QUERIES) {
        let (mut tile, others) = rest.split_at(Axis(0), QUERIES);
        rest = others;
        for head in 0..HEADS {
            let (of_head, others) = tile.split_at(Axis(1), HEAD);
            tile = others;
            tiles.push((row, head, of_head));
        }
    }
    threads.each(tiles, |(row, head, to)| {
        SCORES.with_borrow_mut(|scores| of_tile(qkv, row, head, scores, to));
    });
}

/// The queries from `row` on, of one head.
fn of_tile(
    qkv: ArrayView2<'_, f32>,
    row: usize,
    head: usize,
    scores: &mut Array2<f32>,
    to: ArrayViewMut2<'_, f32>,
) {
    let first = row / SEQUENCE * SEQUENCE;
    let columns = |which: usize| which * WIDTH + head * HEAD..which * WIDTH + (head + 1) * HEAD;
    let q = qkv.slice(s![row..row + QUERIES, columns(0)]);
    let k = qkv.slice(s![first..first + SEQUENCE, columns(1)]);
    let v = qkv.slice(s![first..first + SEQUENCE, columns(2)]);
    Library::Gemm.multiply(q, k.t(), scores.view_mut());
    let scale = (HEAD as f32).sqrt().recip();
    let values = scores.as_slice_mut().expect("row by row");
    softmax_of_rows(values, SEQUENCE, scale);
    Library::Gemm.multiply(scores.view(), v, to);
}
