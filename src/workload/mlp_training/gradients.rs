//! Every gradient against float64, before the update. What each counts relative to, and how large
//! an error may be, is derived in [`verify`](super::verify).

use ndarray::Axis;
use rayon::prelude::*;

use crate::workload::matmul::worse;
use crate::workload::mlp_training::model::{B1, B2, CLASSES, HIDDEN, W1, W2, longest_sum};
use crate::workload::mlp_training::problem::Training;
use crate::workload::network::{Format, Part, largest_of, relative, rms};

/// Of activations, in units of [`Format::unit`].
pub(super) const HIDDEN_BOUND: f64 = 9.0;
/// Of the gradients of W2, b2, W1 and b1.
const W2_BOUND: f64 = 18.0;
const B2_BOUND: f64 = 3.0;
const W1_BOUND: f64 = 15.0;
const B1_BOUND: f64 = 9.0;

/// One gradient: a matrix, or a bias, whose rows are single values.
struct Gradient<'a> {
    name: &'static str,
    found: &'a [f32],
    expected: &'a [f64],
    /// Of each row.
    scale: Vec<f64>,
    /// In units of [`Format::unit`].
    bound: f64,
}

impl Gradient<'_> {
    fn compared(&self, e: f64) -> Part {
        let width = self.found.len() / self.scale.len();
        let rows = (self.found.par_chunks(width))
            .zip(self.expected.par_chunks(width))
            .zip(&self.scale);
        let errors = rows
            .map(|((found, expected), scale)| relative(largest_of(found, |i| expected[i]), *scale));
        Part {
            name: self.name,
            error: errors.reduce(|| 0.0, worse),
            bound: self.bound * e,
        }
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
    let times = |scale: &[f64], factor: f64| scale.iter().map(|s| s * factor).collect();
    let all = [
        Gradient {
            name: "gradient of W2",
            found: &found[W2],
            expected: reference.of_w2.as_slice().expect("row by row"),
            scale: times(&of_columns, of_activated),
            bound: W2_BOUND,
        },
        Gradient {
            name: "gradient of b2",
            found: &found[B2],
            expected: reference.of_b2.as_slice().expect("contiguous"),
            scale: of_columns,
            bound: B2_BOUND,
        },
        Gradient {
            name: "gradient of W1",
            found: &found[W1],
            expected: corrected.of_w1.as_slice().expect("row by row"),
            scale: times(&let_through, of_inputs),
            bound: W1_BOUND,
        },
        Gradient {
            name: "gradient of b1",
            found: &found[B1],
            expected: &corrected.of_b1,
            scale: let_through,
            bound: B1_BOUND,
        },
    ];
    let e = format.unit(longest_sum(problem.batch));
    all.iter().map(|gradient| gradient.compared(e)).collect()
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
    (squares.iter().zip(reference.of_b2.iter().zip(labelled)))
        .map(|(squares, (sum, labelled))| (squares + (sum + labelled).powi(2)).sqrt())
        .collect()
}

/// The scale of each column of the gradient behind ReLU, as far as that lets it through.
fn let_through(problem: &Training, corrected: &Corrected) -> Vec<f64> {
    let reference = problem.reference();
    let w2 = problem.start.parameters[W2].iter();
    let squares_of_w2 = w2.map(|&w| f64::from(w).powi(2)).sum::<f64>() / W2.len() as f64;
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
    of_w1: ndarray::Array2<f64>,
    of_b1: Vec<f64>,
}

impl Corrected {
    fn new(problem: &Training, format: Format, hidden: &[f32]) -> Self {
        let reference = problem.reference();
        let z = reference.hidden.as_slice().expect("row by row");
        let near = HIDDEN_BOUND * format.unit(longest_sum(problem.batch)) * rms(z);
        let mut of_w1 = reference.of_w1.clone();
        let mut of_b1 = reference.of_b1.to_vec();
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
            of_b1[column] += change;
            of_w1
                .row_mut(column)
                .scaled_add(change, &reference.inputs.row(row));
        }
        Self { on, of_w1, of_b1 }
    }
}
