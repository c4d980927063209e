//! The steps of a transformer that treat each token's row separately, on the CPU.

use crate::workload::network::model::{EPSILON, WIDTH};
use crate::workload::network::operations::rows_per_task;
use crate::workload::prepare::{Threads, wide};

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
