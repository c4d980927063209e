//! A step in float64: the loss and every gradient.

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, linalg::general_mat_mul};
use rayon::prelude::*;

use crate::workload::mlp_training::model::{B1, B2, CLASSES, HIDDEN, INPUTS, W1, W2};

/// What a step computes, in float64, from the same inputs and parameters.
pub(super) struct Reference {
    pub(super) inputs: Array2<f64>,
    /// Before ReLU.
    pub(super) hidden: Array2<f64>,
    pub(super) logits: Array2<f64>,
    pub(super) loss: f64,
    /// Of the loss, with respect to the logits.
    pub(super) of_logits: Array2<f64>,
    /// Of the loss, with respect to what ReLU gave.
    pub(super) of_hidden: Array2<f64>,
    pub(super) of_w1: Array2<f64>,
    pub(super) of_b1: Array1<f64>,
    pub(super) of_w2: Array2<f64>,
    pub(super) of_b2: Array1<f64>,
}

impl Reference {
    /// A step on `inputs`, row by row, with the class of each row.
    pub(super) fn new(inputs: &[f32], labels: &[u32], parameters: &[f32]) -> Self {
        let wide = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
        Self::of(wide(inputs), labels, &wide(parameters))
    }

    /// The same of values in float64.
    pub(super) fn of(inputs: Vec<f64>, labels: &[u32], parameters: &[f64]) -> Self {
        let batch = labels.len();
        let inputs = Array2::from_shape_vec((batch, INPUTS), inputs).expect("whole rows");
        let w1 = matrix(&parameters[W1], HIDDEN);
        let w2 = matrix(&parameters[W2], CLASSES);
        let mut hidden = product(inputs.view(), w1.t());
        add_bias(&mut hidden, &parameters[B1]);
        let activated = hidden.mapv(|z| z.max(0.0));
        let mut logits = product(activated.view(), w2.t());
        add_bias(&mut logits, &parameters[B2]);

        let mut loss = 0.0;
        let mut of_logits = Array2::zeros((batch, CLASSES));
        for ((row, gradient), &label) in logits
            .rows()
            .into_iter()
            .zip(of_logits.rows_mut())
            .zip(labels)
        {
            let largest = row.fold(f64::NEG_INFINITY, |a, &b| a.max(b));
            let sum: f64 = row.iter().map(|z| (z - largest).exp()).sum();
            let normal = largest + sum.ln();
            loss += (normal - row[label as usize]) / batch as f64;
            for (class, (g, z)) in gradient.into_iter().zip(row).enumerate() {
                let hit = f64::from(u8::from(class == label as usize));
                *g = ((z - normal).exp() - hit) / batch as f64;
            }
        }

        let of_w2 = product(of_logits.t(), activated.view());
        let of_hidden = product(of_logits.view(), w2);
        let mut before_relu = of_hidden.clone();
        before_relu.zip_mut_with(&hidden, |g, &z| {
            if z <= 0.0 {
                *g = 0.0;
            }
        });
        Self {
            of_w1: product(before_relu.t(), inputs.view()),
            of_b1: before_relu.sum_axis(Axis(0)),
            of_w2,
            of_b2: of_logits.sum_axis(Axis(0)),
            inputs,
            hidden,
            logits,
            loss,
            of_logits,
            of_hidden,
        }
    }
}

fn matrix(values: &[f64], rows: usize) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((rows, values.len() / rows), values).expect("whole rows")
}

fn add_bias(rows: &mut Array2<f64>, bias: &[f64]) {
    for mut row in rows.rows_mut() {
        row.iter_mut().zip(bias).for_each(|(z, b)| *z += b);
    }
}

/// A B, a block of rows per thread.
fn product(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> Array2<f64> {
    let mut c = Array2::zeros((a.nrows(), b.ncols()));
    let rows = a.nrows().div_ceil(rayon::current_num_threads()).max(1);
    let blocks: Vec<(ArrayView2<f64>, ArrayViewMut2<f64>)> = a
        .axis_chunks_iter(Axis(0), rows)
        .zip(c.axis_chunks_iter_mut(Axis(0), rows))
        .collect();
    blocks
        .into_par_iter()
        .for_each(|(a, mut c)| general_mat_mul(1.0, &a, &b, 0.0, &mut c));
    c
}
