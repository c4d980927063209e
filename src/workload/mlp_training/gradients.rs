//! Every gradient against float64, before the update. What each counts relative to, and how large
//! an error may be, is derived in [`verify`](super::verify).

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use crate::workload::mlp_training::model::{HIDDEN, INPUTS, longest_sum, ranges};
use crate::workload::mlp_training::problem::Training;
use crate::workload::network::{Format, Part};
use crossover_arithmetic::error::{largest, relative, worse};

/// Of activations, in units of [`Format::unit`].
pub(super) const HIDDEN_BOUND: f64 = 9.0;
/// Of the gradients of W2, b2, W1 and b1.
const W2_BOUND: f64 = 18.0;
const B2_BOUND: f64 = 3.0;
const W1_BOUND: f64 = 15.0;
const B1_BOUND: f64 = 9.0;

/// One gradient, a matrix or a bias, whose rows are single values, each relative to its scale; the
/// bound is in units of [`Format::unit`].
fn compared(
    name: &'static str,
    (found, expected): (&[f32], &[f64]),
    scale: &[f64],
    bound: f64,
) -> Part {
    let width = found.len() / scale.len();
    let rows = (found.par_chunks(width))
        .zip(expected.par_chunks(width))
        .zip(scale);
    let errors = rows.map(|((found, expected), scale)| {
        relative(largest(found, expected, f64::NEG_INFINITY), *scale)
    });
    Part::new(name, errors.reduce(|| 0.0, worse), bound)
}

/// The four gradients, given the activations that were computed.
pub(super) fn gradients(
    problem: &Training,
    format: Format,
    hidden: &[f32],
    found: &[f32],
) -> Vec<Part> {
    let scales = &problem.reference().scales;
    let e = format.unit(longest_sum(problem.batch));
    let (expected, let_through) = corrected(problem, HIDDEN_BOUND * e * scales.hidden, hidden);
    let times = |scale: &[f64], factor: f64| scale.iter().map(|s| s * factor).collect::<Vec<_>>();
    let of_w2 = times(&scales.columns_of_logits, scales.activated);
    let of_w1 = times(&let_through, scales.inputs);
    let [w1, b1, w2, b2] = ranges();
    let of = |range: &Range<usize>| (&found[range.clone()], &expected[range.clone()]);
    vec![
        compared("gradient of W2", of(&w2), &of_w2, W2_BOUND * e),
        compared(
            "gradient of b2",
            of(&b2),
            &scales.columns_of_logits,
            B2_BOUND * e,
        ),
        compared("gradient of W1", of(&w1), &of_w1, W1_BOUND * e),
        compared("gradient of b1", of(&b1), &let_through, B1_BOUND * e),
    ]
}

/// The gradients, with the derivative of the activations that were computed where both derivatives are
/// right: where a pre-activation is this near to zero. And the scale of each column of the gradient
/// behind ReLU, as far as that lets it through.
fn corrected<'a>(problem: &'a Training, near: f64, hidden: &[f32]) -> (Cow<'a, [f64]>, Vec<f64>) {
    let reference = problem.reference();
    let [w1, b1, ..] = ranges();
    let mut gradients = Cow::Borrowed(&reference.gradients[..]);
    let mut let_through = vec![0.0; HIDDEN];
    let rows = reference
        .hidden
        .rows()
        .into_iter()
        .zip(hidden.chunks_exact(HIDDEN));
    for (row, (z, h)) in rows.enumerate() {
        let square = reference.scales.rows_of_hidden[row];
        for (column, (z, h)) in z.into_iter().zip(h).enumerate() {
            let (mut on, found) = (*z > 0.0, *h > 0.0);
            if found != on && z.abs() <= near {
                on = found;
                let gradients = gradients.to_mut();
                let sign = if found { 1.0 } else { -1.0 };
                let change = sign * reference.of_hidden[[row, column]];
                gradients[b1.start + column] += change;
                let of_column = &mut gradients[w1.start + column * INPUTS..][..INPUTS];
                for (g, x) in of_column.iter_mut().zip(reference.inputs.row(row)) {
                    *g += change * x;
                }
            }
            let_through[column] += if on { square } else { 0.0 };
        }
    }
    let_through
        .iter_mut()
        .for_each(|squares: &mut f64| *squares = squares.sqrt());
    (gradients, let_through)
}
