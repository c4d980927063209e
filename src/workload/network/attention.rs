//! Attention on the CPU.

use std::cell::RefCell;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};

use crate::workload::matmul::blocks::Library;
use crate::workload::network::model::{HEAD, HEADS, QKV, SEQUENCE, WIDTH};
use crate::workload::network::product::{matrix, matrix_mut};
use crate::workload::prepare::{Threads, exponentials, wide};

/// Queries of a task: with four tasks per head, even one sequence has work for 16 threads, and
/// their scores stay in a level-1 cache.
const QUERIES: usize = 32;

wide! {
    /// Of rows of scores their softmax, scaled before.
    fn softmax(scores: &mut [f32], scale: f32) {
        for row in scores.chunks_exact_mut(SEQUENCE) {
            let (_, sum) = exponentials(row, scale);
            let factor = sum.recip();
            for s in row.iter_mut() {
                *s *= factor;
            }
        }
    }
}

/// softmax(q k^T / sqrt(length of a head)) v of each sequence and head, without a mask. Rows of
/// queries, keys and values side by side in, rows of all heads' results out.
pub(crate) fn attention(threads: &Threads, qkv: &[f32], heads: &mut [f32]) {
    thread_local! {
        static SCORES: RefCell<Array2<f32>> = RefCell::new(Array2::zeros((QUERIES, SEQUENCE)));
    }
    let qkv = matrix(qkv, QKV);
    let mut heads = matrix_mut(heads, WIDTH);
    // Each with its first row and its head.
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
    softmax(scores.as_slice_mut().expect("row by row"), scale);
    Library::Gemm.multiply(scores.view(), v, to);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softmax_gives_shares_by_the_exponentials_of_scaled_scores() {
        let mut scores = vec![0.0f32; 2 * SEQUENCE];
        scores[5] = 2.0 * 9.0f32.ln();
        softmax(&mut scores, 0.5);
        let share = |i: usize| match i {
            5 => 9.0 / 136.0,
            0..SEQUENCE => 1.0 / 136.0,
            _ => 1.0 / 128.0,
        };
        for (i, s) in scores.iter().enumerate() {
            assert!((s - share(i)).abs() < 1e-6, "{i}: {s}");
        }
    }

    /// A query whose score with one key is far above all others gives that key's value, in each
    /// sequence and head.
    #[test]
    fn each_query_finds_its_key() {
        const SEQUENCES: usize = 2;
        let mut qkv = vec![0.0f32; SEQUENCES * SEQUENCE * QKV];
        let liked = |row: usize, head: usize| (row * 7 + head * 11) % HEAD;
        for (row, values) in qkv.chunks_exact_mut(QKV).enumerate() {
            for head in 0..HEADS {
                values[head * HEAD + liked(row, head)] = 1000.0;
                // The keys after the first `HEAD` are zero.
                if row % SEQUENCE < HEAD {
                    values[WIDTH + head * HEAD + row % SEQUENCE] = 1.0;
                }
                for i in 0..HEAD {
                    values[2 * WIDTH + head * HEAD + i] = (row * 1000 + head * 100 + i + 1) as f32;
                }
            }
        }
        let mut heads = vec![f32::NAN; SEQUENCES * SEQUENCE * WIDTH];
        attention(&Threads::up_to(2), &qkv, &mut heads);
        for (i, found) in heads.iter().enumerate() {
            let (row, head) = (i / WIDTH, i % WIDTH / HEAD);
            let key = row / SEQUENCE * SEQUENCE + liked(row, head);
            let expected = (key * 1000 + head * 100 + i % HEAD + 1) as f32;
            // The others count e^-87 at most.
            let error = (found - expected).abs();
            assert!(error <= 1e-6 * expected, "row {row}, head {head}: {found}");
        }
    }
}
