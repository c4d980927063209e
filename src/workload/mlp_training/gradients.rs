//! Every gradient against float64, before the update. What each counts relative to, and how large
//! an error may be, is derived in [`verify`](super::verify).

use std::ops::Range;

use ndarray::Axis;
use rayon::prelude::*;

use crate::workload::matmul::worse;
use crate::workload::mlp_training::model::{CLASSES, HIDDEN, INPUTS, longest_sum, ranges};
use crate::workload::mlp_training::problem::Training;
use crate::workload::network::{Format, Part, largest_of, relative, rms};

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
    let errors =
        rows.map(|((found, expected), scale)| relative(largest_of(found, |i| expected[i]), *scale));
    Part {
        name,
        error: errors.reduce(|| 0.0, worse),
        bound,
    }
}

/// The four gradients, given the activations that were computed.
pub(super) fn gradients(
    problem: &Training,
    format: Format,
    hidden: &[f32],
    found: &[f32],
) -> Vec<Part> {
    let reference = problem.reference();
    let corrected = Corrected::new(problem, format, hidden);
    let of_columns = of_columns(problem);
    let let_through = let_through(problem, &corrected);
    let activated = reference.hidden.mapv(|z| z.max(0.0));
    let of_activated = rms(activated.as_slice().expect("row by row"));
    let of_inputs = rms(reference.inputs.as_slice().expect("row by row"));
    let [w1, b1, w2, b2] = ranges();
    let e = format.unit(longest_sum(problem.batch));
    let times = |scale: &[f64], factor: f64| scale.iter().map(|s| s * factor).collect::<Vec<_>>();
    let (of_w2, of_w1) = (
        times(&of_columns, of_activated),
        times(&let_through, of_inputs),
    );
    let of = |range: &Range<usize>| (&found[range.clone()], &corrected.gradients[range.clone()]);
    vec![
        compared("gradient of W2", of(&w2), &of_w2, W2_BOUND * e),
        compared("gradient of b2", of(&b2), &of_columns, B2_BOUND * e),
        compared("gradient of W1", of(&w1), &of_w1, W1_BOUND * e),
        compared("gradient of b1", of(&b1), &let_through, B1_BOUND * e),
    ]
}

/// The scale of each column of the gradient with respect to the logits: independent terms, and
/// the probabilities, which have a common sign.
fn of_columns(problem: &Training) -> Vec<f64> {
    let reference = problem.reference();
    let mut labelled = vec![0.0; CLASSES];
    for &label in &problem.labels {
        labelled[label as usize] += 1.0 / problem.batch as f64;
    }
    let squares = reference.of_logits.mapv(|g| g * g).sum_axis(Axis(0));
    let [.., b2] = ranges();
    (squares
        .iter()
        .zip(reference.gradients[b2].iter().zip(labelled)))
    .map(|(squares, (sum, labelled))| (squares + (sum + labelled).powi(2)).sqrt())
    .collect()
}

/// The scale of each column of the gradient behind ReLU, as far as that lets it through.
fn let_through(problem: &Training, corrected: &Corrected) -> Vec<f64> {
    let reference = problem.reference();
    let [_, _, w2, _] = ranges();
    let w2 = &problem.start.parameters[w2];
    let squares_of_w2 = w2.iter().map(|&w| f64::from(w).powi(2)).sum::<f64>() / w2.len() as f64;
    let squares = reference.of_logits.mapv(|g| g * g).sum_axis(Axis(1));
    let columns = (0..HIDDEN).into_par_iter().map(|j| {
        let column = corrected.on[j..].iter().step_by(HIDDEN).zip(&squares);
        let squares = column.filter_map(|(on, squares)| on.then_some(squares));
        (squares.sum::<f64>() * squares_of_w2).sqrt()
    });
    columns.collect()
}

/// The gradients behind ReLU, with the derivative of the activations that were computed where
/// both derivatives are right.
struct Corrected {
    /// Whether a pre-activation counts as positive, row by row.
    on: Vec<bool>,
    /// Those of all parameters.
    gradients: Vec<f64>,
}

impl Corrected {
    fn new(problem: &Training, format: Format, hidden: &[f32]) -> Self {
        let reference = problem.reference();
        let z = reference.hidden.as_slice().expect("row by row");
        let near = HIDDEN_BOUND * format.unit(longest_sum(problem.batch)) * rms(z);
        let [w1, b1, ..] = ranges();
        let mut gradients = reference.gradients.clone();
        let mut on: Vec<bool> = z.iter().map(|&z| z > 0.0).collect();
        for (i, (on, &h)) in on.iter_mut().zip(hidden).enumerate() {
            let found = h > 0.0;
            if found == *on || z[i].abs() > near {
                continue;
            }
            *on = found;
            let (row, column) = (i / HIDDEN, i % HIDDEN);
            let sign = if found { 1.0 } else { -1.0 };
            let change = sign * reference.of_hidden[[row, column]];
            gradients[b1.start + column] += change;
            let of_column = &mut gradients[w1.start + column * INPUTS..][..INPUTS];
            for (g, x) in of_column.iter_mut().zip(reference.inputs.row(row)) {
                *g += change * x;
            }
        }
        Self { on, gradients }
    }
}
