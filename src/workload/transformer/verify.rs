//! The check of the logits, relative to their root mean square.
//!
//! **How large** an error may be, in units of [`Format::unit`], the error e of an operand. The
//! longest sums run over the hidden values of the feed-forward part.
//!
//! - Operands that are rounded give a product an error of 0.54 e (standard deviation, as derived
//!   in [`matmul::precision`](crate::workload::matmul::precision)) of its root mean square.
//! - The residual is f32 in every format: the embedding, with a mean square of 1/3, and the
//!   changes of four layers, together 0.26 (1/3 by how the weights are scaled, halved by ReLU,
//!   once more 1/3: 0.06 per layer; attention averages values, and adds a tenth of that). A change
//!   has gone through two products, behind a norm that passes on what was wrong before it. So the
//!   residual is off by about 0.54 e of itself, and a logit, by its own product as well, by 0.9 e.
//!   The largest of a million lies at 4.9 deviations: 4.4 e.
//! - In BF16 a logit is rounded once more, by up to e / 2 of itself: at 4.9 root mean squares
//!   2.4 e, so 5 e to 7 e in all.
//!
//! Networks with rounded operands on the CPU (`tests.rs`; batches 1 to 9) show 0.9 e in f32 and 6.1 e
//! in BF16, an H200 1.0 e and 5.8 e. The bound leaves half as much again, and operands cut off to TF32
//! exceed that of f32.

use crate::model::Verified;
use crate::workload::network::{Format, largest, rms};
use crate::workload::transformer::model::{HIDDEN, SEQUENCE, VOCABULARY};
use crate::workload::transformer::problem::Inference;
use crossover_arithmetic::error::worse;

/// Of the logits, in units of [`Format::unit`].
const BOUND: f64 = 10.0;

/// Compares the logits of the sample with float64; all others must be finite.
pub(super) fn verified(problem: &Inference, format: Format, logits: &[f32]) -> Verified {
    const LEN: usize = SEQUENCE * VOCABULARY;
    assert_eq!(logits.len(), problem.batch * LEN, "logits of a batch");
    let reference = problem.reference();
    let mut error = 0.0;
    for (at, sequence) in problem.sample().into_iter().enumerate() {
        let found = &logits[sequence * LEN..][..LEN];
        let expected = &reference[at * LEN..][..LEN];
        error = worse(error, largest(found, expected, f64::NEG_INFINITY));
    }
    if !logits.iter().all(|v| v.is_finite()) {
        error = f64::NAN;
    }
    Verified {
        error: error / rms(reference),
        bound: BOUND * format.unit(HIDDEN),
        method: format!(
            "logits of {} sequences against float64, relative to their root mean square; the \
             others are finite",
            problem.sample().len()
        ),
    }
}
