//! Attention on the CPU.

use std::cell::RefCell;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};

use crate::workload::network::model::{HEAD, HEADS, QKV, SEQUENCE, WIDTH};
use crate::workload::network::products::{matrix, matrix_mut};
use crate::workload::prepare::{Threads, exponentials, wide};
use crate::workload::product::Library;

/// Queries of a task: with four tasks per head, even one sequence has work for 16 threads, and
/// their scores stay in a level-1 cache.
const QUERIES: usize = 32;

wide! {
    /// Scales rows of scores and replaces them by their softmax.
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
    softmax(scores.as_slice_mut().expect("row by row"), scale);
    Library::Gemm.multiply(scores.view(), v, to);
}
