//! The network in float64, a sequence at a time.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, Axis, linalg::general_mat_mul, s};
use rayon::prelude::*;

use crate::workload::transformer::model::{
    EPSILON, HEAD, HEADS, Layer, Linear, Model, Norm, WIDTH,
};

/// The logits of some sequences, one after the other: a sequence per thread.
pub(super) fn sequences(model: &Model, parameters: &[f64], tokens: &[&[u32]]) -> Vec<f64> {
    let logits: Vec<Array2<f64>> = tokens
        .par_iter()
        .map(|tokens| {
            let network = Network { model, parameters };
            network.logits(tokens)
        })
        .collect();
    logits.iter().flatten().copied().collect()
}

struct Network<'a> {
    model: &'a Model,
    parameters: &'a [f64],
}

impl Network<'_> {
    fn logits(&self, tokens: &[u32]) -> Array2<f64> {
        let table = self.matrix(&self.model.embedding, WIDTH);
        let rows: Vec<usize> = tokens.iter().map(|&token| token as usize).collect();
        let mut x = table.select(Axis(0), &rows);
        for layer in &self.model.layers {
            x += &self.attention_part(layer, &x);
            x += &self.hidden_part(layer, &x);
        }
        self.linear(&self.model.logits, &x)
    }

    fn attention_part(&self, layer: &Layer, x: &Array2<f64>) -> Array2<f64> {
        let normed = self.norm(&layer.before_attention, x);
        let qkv = self.linear(&layer.qkv, &normed);
        let mut heads = Array2::zeros((x.nrows(), WIDTH));
        for head in 0..HEADS {
            let columns = |which: usize| {
                let first = which * WIDTH + head * HEAD;
                qkv.slice(s![.., first..first + HEAD])
            };
            let of_head = attention(columns(0), columns(1), columns(2));
            heads
                .slice_mut(s![.., head * HEAD..(head + 1) * HEAD])
                .assign(&of_head);
        }
        self.linear(&layer.projection, &heads)
    }

    fn hidden_part(&self, layer: &Layer, x: &Array2<f64>) -> Array2<f64> {
        let normed = self.norm(&layer.before_hidden, x);
        let hidden = self.linear(&layer.hidden, &normed);
        self.linear(&layer.back, &hidden.mapv(|z| z.max(0.0)))
    }

    fn norm(&self, norm: &Norm, x: &Array2<f64>) -> Array2<f64> {
        let parameters = self.parameters;
        layer_norm(
            x,
            &parameters[norm.gain.clone()],
            &parameters[norm.bias.clone()],
        )
    }

    fn linear(&self, linear: &Linear, x: &Array2<f64>) -> Array2<f64> {
        let weights = self.matrix(&linear.weights, linear.inputs());
        affine(x, weights, &self.parameters[linear.bias.clone()])
    }

    fn matrix(&self, range: &Range<usize>, columns: usize) -> ArrayView2<'_, f64> {
        let values = &self.parameters[range.clone()];
        ArrayView2::from_shape((values.len() / columns, columns), values).expect("whole rows")
    }
}

/// x W^T + b.
fn affine(x: &Array2<f64>, weights: ArrayView2<'_, f64>, bias: &[f64]) -> Array2<f64> {
    let mut y = Array2::zeros((x.nrows(), weights.nrows()));
    general_mat_mul(1.0, x, &weights.t(), 0.0, &mut y);
    for mut row in y.rows_mut() {
        row.iter_mut().zip(bias).for_each(|(y, b)| *y += b);
    }
    y
}

/// Each row with mean 0 and variance 1, times the gain, plus the bias.
fn layer_norm(x: &Array2<f64>, gain: &[f64], bias: &[f64]) -> Array2<f64> {
    let mut y = x.clone();
    for mut row in y.rows_mut() {
        let len = row.len() as f64;
        let mean = row.sum() / len;
        row -= mean;
        let variance = row.iter().map(|v| v * v).sum::<f64>() / len;
        let factor = (variance + EPSILON).sqrt().recip();
        for (y, (gain, bias)) in row.iter_mut().zip(gain.iter().zip(bias)) {
            *y = *y * factor * gain + bias;
        }
    }
    y
}

/// softmax(q k^T / sqrt(length of a head)) v, without a mask.
fn attention(
    q: ArrayView2<'_, f64>,
    k: ArrayView2<'_, f64>,
    v: ArrayView2<'_, f64>,
) -> Array2<f64> {
    let mut scores = q.dot(&k.t()) / (q.ncols() as f64).sqrt();
    for mut row in scores.rows_mut() {
        let largest = row.fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        row.mapv_inplace(|s| (s - largest).exp());
        let sum = row.sum();
        row /= sum;
    }
    scores.dot(&v)
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    fn near(found: &Array2<f64>, expected: &Array2<f64>) {
        let far = (found - expected).iter().any(|d| d.abs() > 1e-9);
        assert!(!far, "{found}, not {expected}");
    }

    #[test]
    fn a_linear_layer_has_a_row_of_weights_for_each_output() {
        let weights = array![[1.0, 2.0], [3.0, 4.0], [0.0, -1.0]];
        let y = affine(&array![[1.0, 10.0]], weights.view(), &[0.5, 0.0, 1.0]);
        near(&y, &array![[21.5, 43.0, -9.0]]);
    }

    #[test]
    fn a_norm_has_the_mean_and_the_variance_of_its_row() {
        // Mean 3, variance 4: -1 and 1 with a variance that hardly notices what is added to it.
        let y = layer_norm(&array![[1.0, 5.0]], &[2.0, 10.0], &[0.0, 1.0]);
        let one = 2.0 / (4.0f64 + 1e-5).sqrt();
        near(&y, &array![[-2.0 * one, 10.0 * one + 1.0]]);
        // Without a variance, what is added keeps the quotient finite.
        near(
            &layer_norm(&array![[7.0, 7.0]], &[1.0, 1.0], &[0.0, 2.0]),
            &array![[0.0, 2.0]],
        );
    }

    #[test]
    fn attention_is_the_mean_of_values_by_the_softmax_of_scores() {
        // Four values per head, so scores are halved: 2 ln 3 becomes ln 3, weights 3/4 and 1/4.
        let q = array![[2.0 * 3.0f64.ln(), 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]];
        let k = array![[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]];
        let v = array![[4.0, 0.0, 8.0, 0.0], [0.0, 4.0, -8.0, 0.0]];
        near(
            &attention(q.view(), k.view(), v.view()),
            &array![[3.0, 1.0, 4.0, 0.0], [2.0, 2.0, 0.0, 0.0]],
        );
    }
}
