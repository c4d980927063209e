//! Softmax, cross-entropy and their gradient on the CPU.

use crate::workload::mlp_training::model::CLASSES;
use crate::workload::network::operations::rows_per_task;
use crate::workload::prepare::{Threads, exponentials, wide};

wide! {
    /// The logits of some rows in, their gradient out. Gives the sum of the rows' losses.
    fn rows(logits: &[f32], labels: &[u32], share: f32, gradient: &mut [f32]) -> f64 {
        let mut losses = 0.0;
        let rows = logits.chunks_exact(CLASSES).zip(gradient.chunks_exact_mut(CLASSES));
        for ((z, g), &label) in rows.zip(labels) {
            g.copy_from_slice(z);
            let (largest, sum) = exponentials(g, 1.0);
            let factor = share / sum;
            for g in g.iter_mut() {
                *g *= factor;
            }
            g[label as usize] -= share;
            losses += f64::from(largest + sum.ln() - z[label as usize]);
        }
        losses
    }
}

/// The mean loss of the rows, and its gradient with respect to the logits.
pub(super) fn cross_entropy(
    threads: &Threads,
    logits: &[f32],
    labels: &[u32],
    gradient: &mut [f32],
) -> f32 {
    let share = 1.0 / labels.len() as f32;
    let task = rows_per_task(CLASSES);
    let mut sums = vec![0.0f64; labels.len().div_ceil(task)];
    let tasks = (logits.chunks(task * CLASSES))
        .zip(gradient.chunks_mut(task * CLASSES))
        .zip(labels.chunks(task))
        .zip(&mut sums);
    threads.each(tasks.collect(), |(((logits, gradient), labels), sum)| {
        *sum = rows(logits, labels, share, gradient);
    });
    (sums.iter().sum::<f64>() * f64::from(share)) as f32
}
