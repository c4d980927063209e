//! The check of a step: its loss, its activations and logits, every gradient before the update, and the
//! update by itself.
//!
//! **Relative to what.** A value's error counts relative to the size that its sum would have if
//! its terms were independent. For activations and logits that is their root mean square. For row
//! j of a gradient dW = dY^T A it is the norm of column j of dY times the root mean square of A;
//! for the bias, the norm alone. Behind ReLU, dY is itself a sum, dL W2, and counts as large as
//! the norm of its row of dL times the root mean square of W2, wherever ReLU let something
//! through: one that happens to be near zero has no smaller error for that. The probabilities in
//! a column of dL have a common sign, and so may their errors: to its squared norm comes the
//! square of their sum.
//!
//! **How large.** In units of [`unit`], the error e of an operand:
//!
//! - Operands that are rounded give a sum an error of 0.54 e (standard deviation, as derived in
//!   [`matmul::precision`](crate::workload::matmul::precision)), and the largest of ten million
//!   lies at 5.5 deviations, 3 e. Operands that are cut off are 0.36 e too small on average, so
//!   that a sum, too, loses 0.7 e of itself: of one at 5.5 root mean squares 4 e, and on top of
//!   that the half of what rounding does. Activations: 5.5 e; to a format with fewer bits they
//!   are rounded once more.
//! - Logits have such an error of their own and that of the activations: sqrt(2) times as much,
//!   7.8 e.
//! - A row of a gradient may be a single product. Its factors are off by 2 e together, as far as
//!   they are rounded, and an activation has values up to 5 times its root mean square: 10 e. An
//!   input has values up to sqrt(3) of its own, but what comes back through ReLU is a sum again,
//!   with 3 e of a value that may be five times as large as its scale: 8 e.
//! - A bias's gradient sums such values without a factor: 5 e behind ReLU, and 1 e of the
//!   logits, of which most is the rounding of the gradient itself.
//!
//! Products of operands that were rounded or cut off on the CPU (batches 1 to 4096, 250c968d) showed 5.9, 7.4,
//! 9.0, 7.7, 4.6 and 0.8 e. The constants below leave half as much again or more,
//! and the next coarser format exceeds at least one of them.
//!
//! **ReLU's corner.** Where a pre-activation is as near to zero as its error, either derivative
//! is right. There, and nowhere else, the derivative is taken from the activation that was
//! computed.
//!
//! **AdamW** divides a gradient by its own size, so parameters after the update prove little
//! about gradients. It is compared with float64 given the gradients that were computed. Each of
//! its results comes from at most eight roundings to f32. The step counter is compared too: a later
//! step reads it.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use crate::model::{Format, Verified};
use crate::workload::matmul::UNIT_ROUNDOFF;
use crate::workload::mlp_training::problem::{
    CLASSES, HIDDEN, INPUTS, PARAMETERS, Training, longest_sum, ranges,
};
use crate::workload::network::{Compared, largest, unit};
use crossover_arithmetic::adamw::State;
use crossover_arithmetic::error::{self, largest_relative, relative, worse};

/// Bound on the error of activations, in units of [`unit`].
const HIDDEN_BOUND: f64 = 9.0;
/// Bounds on the errors of the gradients of W2, b2, W1 and b1.
const W2_BOUND: f64 = 18.0;
const B2_BOUND: f64 = 3.0;
const W1_BOUND: f64 = 15.0;
const B1_BOUND: f64 = 9.0;

/// One gradient, a matrix or a bias, whose rows are single values, each relative to its scale; the
/// bound is in units of [`unit`].
fn compared(
    name: &'static str,
    (found, expected): (&[f32], &[f64]),
    scale: &[f64],
    bound: f64,
) -> Compared {
    let width = found.len() / scale.len();
    let rows = (found.par_chunks(width))
        .zip(expected.par_chunks(width))
        .zip(scale);
    let errors = rows.map(|((found, expected), scale)| {
        relative(error::largest(found, expected, f64::NEG_INFINITY), *scale)
    });
    Compared::new(name, errors.reduce(|| 0.0, worse), bound)
}

/// The four gradients, given the activations that were computed.
fn gradients(problem: &Training, format: Format, hidden: &[f32], found: &[f32]) -> Vec<Compared> {
    let scales = &problem.reference().scales;
    let e = unit(format, longest_sum(problem.batch));
    let (expected, let_through) = corrected(problem, HIDDEN_BOUND * e * scales.hidden, hidden);
    let times = |scale: &[f64], factor: f64| scale.iter().map(|s| s * factor).collect::<Vec<_>>();
    let of_w2 = times(&scales.columns_of_logits, scales.activated);
    let of_w1 = times(&let_through, scales.inputs);
    let [w1, b1, w2, b2] = ranges();
    let both = |range: &Range<usize>| (&found[range.clone()], &expected[range.clone()]);
    let of_b2 = &scales.columns_of_logits;
    vec![
        compared("gradient of W2", both(&w2), &of_w2, W2_BOUND * e),
        compared("gradient of b2", both(&b2), of_b2, B2_BOUND * e),
        compared("gradient of W1", both(&w1), &of_w1, W1_BOUND * e),
        compared("gradient of b1", both(&b1), &let_through, B1_BOUND * e),
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
    let rows = reference.hidden.rows().into_iter();
    for (row, (z, h)) in rows.zip(hidden.chunks_exact(HIDDEN)).enumerate() {
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

/// Bound on the error of the logits, and of the loss relative to their root mean square.
const LOGITS_BOUND: f64 = 12.0;
/// Bound on the error of the update, in units of f32's rounding.
const UPDATE_BOUND: f64 = 8.0;
/// Bound on the error of the step counter, which is in float64 and subtracts powers close to 1 from 1.
const COUNTER_BOUND: f64 = 1e-12;

/// The outputs of a step.
pub(super) struct Outputs<'a> {
    pub(super) hidden: &'a [f32],
    pub(super) logits: &'a [f32],
    pub(super) loss: f32,
    /// In the order of the parameters.
    pub(super) gradients: &'a [f32],
    pub(super) parameters: &'a [f32],
    pub(super) first: &'a [f32],
    pub(super) second: &'a [f32],
    /// The parameters in BF16, as f32.
    pub(super) copies: Option<&'a [f32]>,
    /// The step counter's values.
    pub(super) counter: [f64; 5],
}

/// Compares everything, and returns the part that is nearest to its bound. Parts of the update
/// count only where they are wrong, so that the errors of different formats are those of their
/// products.
///
/// # Panics
/// If an output does not have the length that the step writes.
pub(super) fn verified(problem: &Training, format: Format, outputs: &Outputs<'_>) -> Verified {
    let lengths = [
        (outputs.hidden.len(), problem.batch * HIDDEN),
        (outputs.logits.len(), problem.batch * CLASSES),
        (outputs.gradients.len(), PARAMETERS),
        (outputs.parameters.len(), PARAMETERS),
        (outputs.first.len(), PARAMETERS),
        (outputs.second.len(), PARAMETERS),
    ];
    for (found, expected) in lengths {
        assert_eq!(found, expected, "values of an output");
    }
    let (hidden, found) = (outputs.hidden, outputs.gradients);
    let mut computed = forward(problem, format, hidden, outputs.logits);
    // Nothing is farther beyond its bound than values that were not written.
    if let Some(part) = computed.iter().position(|part| part.error.is_nan()) {
        return against_float64(computed.swap_remove(part), "activations and logits");
    }
    computed.push(loss(problem, format, outputs.loss));
    computed.extend(gradients(problem, format, hidden, found));
    let computed = nearest(computed);
    let updated = nearest(update(problem, outputs));
    let shown = if updated.used() > computed.used().max(1.0) {
        updated
    } else {
        computed
    };
    let compared = "loss, activations, logits, every gradient and the update";
    against_float64(shown, compared)
}

fn against_float64(shown: Compared, compared: &str) -> Verified {
    Verified {
        error: shown.error,
        bound: shown.bound,
        method: format!(
            "{compared} against float64, each within its bound; nearest to it: {}",
            shown.name
        ),
    }
}

/// The part that is nearest to its bound, or farthest beyond it.
fn nearest(parts: Vec<Compared>) -> Compared {
    (parts.into_iter())
        .max_by(|a, b| a.used().total_cmp(&b.used()))
        .expect("there are several")
}

/// Compares a forward pass in f32, and returns the part that is nearest to its bound.
///
/// # Panics
/// As [`verified`].
pub(super) fn verified_forward(problem: &Training, hidden: &[f32], logits: &[f32]) -> Verified {
    assert_eq!(hidden.len(), problem.batch * HIDDEN, "values of an output");
    assert_eq!(logits.len(), problem.batch * CLASSES, "values of an output");
    let shown = nearest(forward(problem, Format::F32, hidden, logits));
    against_float64(shown, "activations and logits")
}

fn forward(problem: &Training, format: Format, computed: &[f32], outputs: &[f32]) -> Vec<Compared> {
    let reference = problem.reference();
    let e = unit(format, longest_sum(problem.batch));
    let hidden = reference.hidden.as_slice().expect("row by row");
    let logits = reference.logits.as_slice().expect("row by row");
    let of_hidden = largest(computed, hidden, 0.0) / reference.scales.hidden;
    let of_logits = largest(outputs, logits, f64::NEG_INFINITY) / reference.scales.logits;
    vec![
        Compared::new("activations", of_hidden, HIDDEN_BOUND * e),
        Compared::new("logits", of_logits, LOGITS_BOUND * e),
    ]
}

fn loss(problem: &Training, format: Format, loss: f32) -> Compared {
    let reference = problem.reference();
    let e = unit(format, longest_sum(problem.batch));
    let of_logits = reference.scales.logits;
    let error = (f64::from(loss) - reference.loss).abs() / of_logits;
    // It is itself a sum in f32.
    let bound = LOGITS_BOUND * e + 32.0 * UNIT_ROUNDOFF * reference.loss / of_logits;
    Compared::new("loss", error, bound)
}

fn update(problem: &Training, outputs: &Outputs<'_>) -> Vec<Compared> {
    const CHUNK: usize = 1 << 14;
    let (before, counter) = (problem.start.state(), problem.start.counter.next());
    let after = State {
        parameters: outputs.parameters,
        first: outputs.first,
        second: outputs.second,
    };
    let chunks = outputs.gradients.par_chunks(CHUNK).enumerate();
    let errors = chunks.map(|(at, gradients)| {
        let range = at * CHUNK..at * CHUNK + gradients.len();
        (before.part(range.clone())).errors(gradients, counter, after.part(range))
    });
    let worst = |x: [f64; 3], y: [f64; 3]| std::array::from_fn(|i| worse(x[i], y[i]));
    let errors = errors.reduce(|| [0.0; 3], worst);
    let names = ["parameters", "first moments", "second moments"];
    let mut parts: Vec<Compared> = (names.into_iter().zip(errors))
        .map(|(name, error)| Compared::new(name, error, UPDATE_BOUND * UNIT_ROUNDOFF))
        .collect();
    let values = outputs.counter.into_iter().zip(counter.values());
    let errors = values.map(|(found, expected)| relative((found - expected).abs(), expected));
    let error = errors.fold(0.0, worse);
    parts.push(Compared::new("step counter", error, COUNTER_BOUND));
    if let Some(copies) = outputs.copies {
        let error = largest_relative(copies, outputs.parameters);
        // Half the distance of neighbours with 7 bits of fraction.
        parts.push(Compared::new("BF16 copies", error, 1.0 / 256.0));
    }
    parts
}
