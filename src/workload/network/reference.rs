//! A network in float64: its activations, and the gradients of linear layers. All threads share the
//! rows. Results are compared with it here.

use std::borrow::Cow;
use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};
use rayon::prelude::*;

use crossover_arithmetic::error;

use crate::model::Format;
use crate::workload::matmul::UNIT_ROUNDOFF;
use crate::workload::network::model::{
    Activation, EPSILON, HEAD, HEADS, Layer, LayerKind, Model, SEQUENCE, WIDTH,
};
use crate::workload::product::properties;

/// A network and its parameters in float64.
pub(crate) struct InFloat64<'a> {
    pub(crate) model: &'a Model,
    pub(crate) parameters: &'a [f64],
}

/// The gradients of a loss.
pub(crate) struct Gradients {
    /// With respect to each activation, after its ReLU if it has one; empty for the inputs.
    pub(crate) activations: Vec<Array2<f64>>,
    /// With respect to the parameters.
    pub(crate) parameters: Vec<f64>,
}

pub(crate) fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&v| v.into()).collect()
}

impl InFloat64<'_> {
    fn of(&self, range: &Range<usize>) -> &[f64] {
        &self.parameters[range.clone()]
    }

    /// The output of the last layer that writes to each activation, before ReLU. A network takes either
    /// `inputs` or `tokens`.
    pub(crate) fn forward(&self, inputs: Array2<f64>, tokens: &[u32]) -> Vec<Array2<f64>> {
        let mut values = vec![Array2::zeros((0, 0)); self.model.activations.len()];
        values[0] = inputs;
        for Layer { kind, x, y } in &self.model.layers {
            let from = &values[x.place];
            values[y.place] = match kind {
                LayerKind::Embed(table) => {
                    let rows: Vec<usize> = tokens.iter().map(|&token| token as usize).collect();
                    matrix(self.of(table), y.width).select(Axis(0), &rows)
                }
                LayerKind::Norm([gain, bias]) => layer_norm(from, self.of(gain), self.of(bias)),
                LayerKind::Linear(linear) => {
                    let weights = matrix(self.of(&linear.weights), x.width);
                    let sum = affine(&activated(*x, &values), weights, self.of(&linear.bias));
                    match linear.spare {
                        Some(_) => sum + &values[y.place],
                        None => sum,
                    }
                }
                LayerKind::Attention => attention(from),
                LayerKind::Narrow => from.clone(),
            };
        }
        values
    }

    /// The gradients, given the activations and the gradient of the last one; all layers are linear.
    pub(crate) fn backward(&self, values: &[Array2<f64>], of_last: Array2<f64>) -> Gradients {
        let mut activations = vec![Array2::zeros((0, 0)); values.len()];
        let mut parameters = vec![f64::NAN; self.parameters.len()];
        activations[values.len() - 1] = of_last;
        for (linear, x, y) in self.model.linears().rev() {
            let mut of_y = Cow::Borrowed(&activations[y.place]);
            if y.relu() {
                (of_y.to_mut()).zip_mut_with(&values[y.place], |g, &z| {
                    *g = if z > 0.0 { *g } else { 0.0 };
                });
            }
            let inputs = activated(x, values);
            let weights = matrix(self.of(&linear.weights), x.width);
            let of_weights = &mut parameters[linear.weights.clone()];
            let of_weights = ArrayViewMut2::from_shape(weights.dim(), of_weights);
            multiply(of_y.t(), inputs.view(), of_weights.expect("whole rows"));
            let of_bias = of_y.sum_axis(Axis(0));
            parameters[linear.bias.clone()].copy_from_slice(of_bias.as_slice().expect("a row"));
            if x.place > 0 {
                let mut of_x = Array2::zeros(inputs.dim());
                multiply(of_y.view(), weights, of_x.view_mut());
                activations[x.place] = of_x;
            }
        }
        Gradients {
            activations,
            parameters,
        }
    }
}

fn matrix(values: &[f64], columns: usize) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((values.len() / columns, columns), values).expect("whole rows")
}

/// An activation after its ReLU.
pub(crate) fn activated(of: Activation, values: &[Array2<f64>]) -> Cow<'_, Array2<f64>> {
    let values = &values[of.place];
    if of.relu() {
        Cow::Owned(values.mapv(|z| z.max(0.0)))
    } else {
        Cow::Borrowed(values)
    }
}

/// C = A B, a block of rows per thread.
fn multiply(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>, mut c: ArrayViewMut2<'_, f64>) {
    let rows = a.nrows().div_ceil(rayon::current_num_threads()).max(1);
    let blocks = a
        .axis_chunks_iter(Axis(0), rows)
        .zip(c.axis_chunks_iter_mut(Axis(0), rows));
    (blocks.collect::<Vec<_>>().into_par_iter())
        .for_each(|(a, mut c)| general_mat_mul(1.0, &a, &b, 0.0, &mut c));
}

fn rows_of(matrix: &mut Array2<f64>) -> impl IndexedParallelIterator<Item = &mut [f64]> {
    let width = matrix.ncols();
    (matrix.as_slice_mut().expect("row by row")).par_chunks_mut(width)
}

/// x W^T + b.
fn affine(x: &Array2<f64>, weights: ArrayView2<'_, f64>, bias: &[f64]) -> Array2<f64> {
    let mut y = Array2::zeros((x.nrows(), weights.nrows()));
    multiply(x.view(), weights.t(), y.view_mut());
    rows_of(&mut y).for_each(|row| row.iter_mut().zip(bias).for_each(|(y, b)| *y += b));
    y
}

/// Each row with mean 0 and variance 1, times the gain, plus the bias.
fn layer_norm(x: &Array2<f64>, gain: &[f64], bias: &[f64]) -> Array2<f64> {
    let mut y = x.clone();
    rows_of(&mut y).for_each(|row| {
        let len = row.len() as f64;
        let mean = row.iter().sum::<f64>() / len;
        let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / len;
        let factor = (variance + EPSILON).sqrt().recip();
        for (y, (gain, bias)) in row.iter_mut().zip(gain.iter().zip(bias)) {
            *y = (*y - mean) * factor * gain + bias;
        }
    });
    y
}

/// Attention of each sequence and head.
fn attention(qkv: &Array2<f64>) -> Array2<f64> {
    let mut heads = Array2::zeros((qkv.nrows(), WIDTH));
    let sequences = heads
        .axis_chunks_iter_mut(Axis(0), SEQUENCE)
        .zip(qkv.axis_chunks_iter(Axis(0), SEQUENCE));
    let sequences = sequences.collect::<Vec<_>>().into_par_iter();
    sequences.for_each(|(mut heads, qkv)| {
        for head in 0..HEADS {
            let columns = |which: usize| {
                let first = which * WIDTH + head * HEAD;
                qkv.slice(s![.., first..first + HEAD])
            };
            let of_head = attention_of(columns(0), columns(1), columns(2));
            let to = s![.., head * HEAD..(head + 1) * HEAD];
            heads.slice_mut(to).assign(&of_head);
        }
    });
    heads
}

/// softmax(q k^T / sqrt(length of a head)) v, without a mask.
fn attention_of(
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

/// One part of a result that was compared.
pub(crate) struct Compared {
    pub(crate) name: &'static str,
    pub(crate) error: f64,
    pub(crate) bound: f64,
}

impl Compared {
    pub(crate) fn new(name: &'static str, error: f64, bound: f64) -> Self {
        Self { name, error, bound }
    }

    /// The error over its bound; infinite for a NaN.
    pub(crate) fn used(&self) -> f64 {
        let used = self.error / self.bound;
        if used.is_nan() { f64::INFINITY } else { used }
    }
}

/// Values that a thread takes.
const CHUNK: usize = 1 << 14;

/// [`error::largest`] on all threads.
pub(crate) fn largest(found: &[f32], expected: &[f64], least: f64) -> f64 {
    let chunks = (found.par_chunks(CHUNK)).zip(expected.par_chunks(CHUNK));
    chunks
        .map(|(found, expected)| error::largest(found, expected, least))
        .reduce(|| 0.0, error::worse)
}

pub(crate) fn rms(values: &[f64]) -> f64 {
    let squares = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>();
    let squares: Vec<f64> = values.par_chunks(CHUNK).map(squares).collect();
    (squares.iter().sum::<f64>() / values.len() as f64).sqrt()
}

/// The error of an operand of a product, relative to it, plus that of the sums, relative to what they
/// would be if their terms were independent.
///
/// An operand is rounded to nearest in BF16, by up to 2^-8. Sums of k terms in f32 err by sqrt(k) u,
/// u = 2^-24, as in [`Matmul::verified`](crate::workload::matmul::Matmul::verified), taken twice here for
/// those whose terms have a common sign; tensor cores cut off up to 2 u of each block of 8 terms. `terms`
/// are those of the longest sums.
pub(crate) fn unit(format: Format, terms: usize) -> f64 {
    let terms = terms as f64;
    let sums = 2.0 * UNIT_ROUNDOFF * terms.sqrt();
    if format == Format::F32 {
        return sums;
    }
    properties(format).unit_roundoff + sums + 0.25 * UNIT_ROUNDOFF * terms
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
        // Mean 3, variance 4: -1 and 1, with a variance much larger than the term added to it.
        let y = layer_norm(&array![[1.0, 5.0]], &[2.0, 10.0], &[0.0, 1.0]);
        let one = 2.0 / (4.0f64 + 1e-5).sqrt();
        near(&y, &array![[-2.0 * one, 10.0 * one + 1.0]]);
        // Without a variance, the added term keeps the quotient finite.
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
            &attention_of(q.view(), k.view(), v.view()),
            &array![[3.0, 1.0, 4.0, 0.0], [2.0, 2.0, 0.0, 0.0]],
        );
    }
}
