//! The check of a step: its loss, its activations and logits, every gradient before the update,
//! and the update by itself.
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
//! **How large.** In units of [`Format::unit`], the error e of an operand:
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
//! Products of operands that are rounded or cut off on the CPU (`tests.rs`; batches 1 to 4096)
//! show 5.9, 7.4, 9.0, 7.7, 4.6 and 0.8 e. The constants below leave half as much again or more,
//! and the next coarser format exceeds at least one of them.
//!
//! **ReLU's corner.** Where a pre-activation is as near to zero as its error, either derivative
//! is right. There, and nowhere else, the derivative is taken from the activation that was
//! computed.
//!
//! **AdamW** divides a gradient by its own size, so parameters after the update prove little
//! about gradients. It is compared with float64 given the gradients that were computed. Each of
//! its results comes from at most eight roundings to f32.

use rayon::prelude::*;

use crate::model::Verified;
use crate::workload::matmul::{UNIT_ROUNDOFF, worse};
use crate::workload::mlp_training::adamw::{DECAY, RATE, Value};
use crate::workload::mlp_training::gradients::{HIDDEN_BOUND, gradients};
use crate::workload::mlp_training::model::{CLASSES, HIDDEN, PARAMETERS, longest_sum};
use crate::workload::mlp_training::problem::Training;
use crate::workload::network::{Format, Part, largest, relative};

/// Of the logits; and of the loss, relative to their root mean square.
const LOGITS_BOUND: f64 = 12.0;
/// Of the update, in units of f32's rounding.
const UPDATE_BOUND: f64 = 8.0;

/// What a step left.
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
    let mut computed = forward(problem, format, outputs.hidden, outputs.logits);
    computed.push(loss(problem, format, outputs.loss));
    computed.extend(gradients(
        problem,
        format,
        outputs.hidden,
        outputs.gradients,
    ));
    let computed = nearest(computed);
    let updated = nearest(update(problem, outputs));
    let shown = match updated.used() > computed.used().max(1.0) {
        true => updated,
        false => computed,
    };
    said(
        shown,
        "loss, activations, logits, every gradient and the update",
    )
}

fn said(shown: Part, compared: &str) -> Verified {
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
fn nearest(parts: Vec<Part>) -> Part {
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
    said(shown, "activations and logits")
}

fn forward(problem: &Training, format: Format, computed: &[f32], outputs: &[f32]) -> Vec<Part> {
    let reference = problem.reference();
    let e = format.unit(longest_sum(problem.batch));
    let hidden = reference.hidden.as_slice().expect("row by row");
    let logits = reference.logits.as_slice().expect("row by row");
    let relu = |z: f64| z.max(0.0);
    let of_hidden = largest(computed, |i| relu(hidden[i])) / reference.scales.hidden;
    let of_logits = largest(outputs, |i| logits[i]) / reference.scales.logits;
    vec![
        Part::new("activations", of_hidden, HIDDEN_BOUND * e),
        Part::new("logits", of_logits, LOGITS_BOUND * e),
    ]
}

fn loss(problem: &Training, format: Format, loss: f32) -> Part {
    let reference = problem.reference();
    let e = format.unit(longest_sum(problem.batch));
    let of_logits = reference.scales.logits;
    let error = (f64::from(loss) - reference.loss).abs() / of_logits;
    // It is itself a sum in f32.
    let bound = LOGITS_BOUND * e + 32.0 * UNIT_ROUNDOFF * reference.loss / of_logits;
    Part::new("loss", error, bound)
}

/// The larger of each two errors.
fn worst([a, b, c, d]: [f64; 4], [e, f, g, h]: [f64; 4]) -> [f64; 4] {
    [worse(a, e), worse(b, f), worse(c, g), worse(d, h)]
}

fn update(problem: &Training, outputs: &Outputs<'_>) -> Vec<Part> {
    let start = &problem.start;
    let counter = start.counter.next();
    let wide = |values: &[f32], i: usize| f64::from(values[i]);
    const CHUNK: usize = 1 << 14;
    let of_chunk = |first: usize| {
        let mut largest = [0.0; 4];
        for i in first..PARAMETERS.min(first + CHUNK) {
            let before = Value {
                w: wide(&start.parameters, i),
                m: wide(&start.first, i),
                v: wide(&start.second, i),
            };
            let g = wide(outputs.gradients, i);
            let after = before.updated(g, counter);
            let w = wide(outputs.parameters, i);
            // Relative to what is added up, whatever cancels.
            let terms = Value {
                m: before.m.abs(),
                ..before
            };
            let size = terms.updated(g.abs(), counter);
            let step = (size.w - before.w * (1.0 - RATE * DECAY)).abs();
            let of_w = relative((w - after.w).abs(), before.w.abs() + step);
            let of_m = relative((wide(outputs.first, i) - after.m).abs(), size.m);
            let of_v = relative((wide(outputs.second, i) - after.v).abs(), after.v);
            let of_copy = outputs
                .copies
                .map_or(0.0, |copies| relative((wide(copies, i) - w).abs(), w.abs()));
            largest = worst(largest, [of_w, of_m, of_v, of_copy]);
        }
        largest
    };
    let chunks = (0..PARAMETERS).into_par_iter().step_by(CHUNK);
    let errors = chunks.map(of_chunk).reduce(|| [0.0; 4], worst);
    let names = ["parameters", "first moments", "second moments"];
    let mut parts: Vec<Part> = (names.into_iter().zip(errors))
        .map(|(name, error)| Part::new(name, error, UPDATE_BOUND * UNIT_ROUNDOFF))
        .collect();
    if outputs.copies.is_some() {
        // Half the distance of neighbours with 7 bits of fraction.
        parts.push(Part::new("BF16 copies", errors[3], 1.0 / 256.0));
    }
    parts
}
