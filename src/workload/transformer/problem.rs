//! The network, its cost, a batch of sequences, and the check of the logits.

use std::cell::OnceCell;
use std::rc::Rc;

use ndarray::Array2;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::kernel::Source;
use crate::model::{Cost, Format, LinkBytes, Verified};
use crate::workload::matmul::uniform;
use crate::workload::network::layers::{ATTENTION, TRANSFORMER};
use crate::workload::network::model::{
    HEADS, Kept, LayerKind, Model, QKV, RowCost, SEQUENCE, WIDTH,
};
use crate::workload::network::reference::{InFloat64, wide};
use crate::workload::network::{largest, layers::NETWORK, rms, unit};
use crate::workload::prepare::seed;
use crate::workload::product::{CUBLAS_WORKSPACE, LINEAR};
use crate::workload::routine::{Workload, visit_f32};
use crossover_arithmetic::error::worse;

/// Number of different tokens, and of logits of a position.
const VOCABULARY: usize = 1000;
/// Encoder layers.
const LAYERS: usize = 4;
/// Values of a token inside the feed-forward part.
const HIDDEN: usize = 1024;

/// Embedding, encoder layers x += attention(norm(x)), x += feed_forward(norm(x)), and logits of each
/// position.
fn model() -> Model {
    let mut model = Model::default();
    let mut activation = |width, kept| model.activation(width, kept);
    let [tokens, x, spare] = [1, WIDTH, WIDTH].map(|width| activation(width, Kept::Wide));
    let [normed, qkv, heads] = [WIDTH, QKV, WIDTH].map(|width| activation(width, Kept::Narrow));
    let (hidden, logits) = (
        activation(HIDDEN, Kept::Relu),
        activation(VOCABULARY, Kept::Narrow),
    );
    let table = model.room(VOCABULARY * WIDTH);
    model.layer(LayerKind::Embed(table), tokens, x);
    for _ in 0..LAYERS {
        let mut norm = || LayerKind::Norm([model.room(WIDTH), model.room(WIDTH)]);
        let [before_attention, before_hidden] = [norm(), norm()];
        model.layer(before_attention, x, normed);
        model.linear("queries, keys and values", [normed, qkv], None);
        model.layer(LayerKind::Attention, qkv, heads);
        model.linear("projection", [heads, x], Some(spare));
        model.layer(before_hidden, x, normed);
        model.linear("way in", [normed, hidden], None);
        model.linear("way back", [hidden, x], Some(spare));
    }
    model.layer(LayerKind::Narrow, x, normed);
    model.linear("logits", [normed, logits], None);
    model
}

/// Cost of a batch, with operands of products in this format. FLOP are those of the products alone,
/// attention's included: 7.3 million per token. Parameters are read once.
///
/// Fused it is 29 kernels: 7 per layer (four products, two norms, attention), of which the first norm has
/// the embedding, and the logits. In BF16 one kernel more writes the residual as BF16 for the product of
/// the logits; norms, biases on the residual and the embedding stay f32, and nearly all parameters are
/// read as BF16. Otherwise it is 75: 18 per layer, the embedding, the logits and their bias.
pub fn cost(batch: u64, format: Format, fused: bool) -> Cost {
    let (model, mut token) = (model(), RowCost::new(format, fused));
    token.forward(&model);
    token.of_rows(batch * SEQUENCE as u64, token.element * model.parameters)
}

/// Bytes of the tokens on their way to the device, and of the logits on their way back.
pub fn link_bytes(batch: u64) -> LinkBytes {
    let tokens = (4 * batch * SEQUENCE as u64) as f64;
    LinkBytes::new(tokens, tokens * VOCABULARY as f64)
}

/// Upper bound on the sequences that are compared with float64. Sequences are independent, so these
/// suffice for a larger batch: the first, the last, and others at even distances. In the others every
/// logit must be finite.
const SAMPLE: usize = 8;

/// Factor of the weights of queries and keys. As PyTorch initialises them, scores have a standard
/// deviation of 0.3: all tokens count nearly the same, and a wrong score would hardly show. The
/// factor makes it 1.3.
const SHARPNESS: f32 = 2.0;

/// A batch of sequences of tokens and a network with its parameters, the same in every run. The
/// size is the batch.
pub struct Inference {
    pub(super) batch: usize,
    /// Sequence by sequence.
    pub(super) tokens: Vec<u32>,
    pub(super) model: Rc<Model>,
    pub(super) parameters: Vec<f32>,
    reference: OnceCell<Vec<f64>>,
}

impl Inference {
    /// All tokens of the batch.
    pub(super) fn rows(&self) -> usize {
        self.batch * SEQUENCE
    }

    /// The sequences that are compared with float64.
    pub(super) fn sample(&self) -> Vec<usize> {
        match self.batch {
            0..=SAMPLE => (0..self.batch).collect(),
            batch => (0..SAMPLE)
                .map(|i| i * (batch - 1) / (SAMPLE - 1))
                .collect(),
        }
    }

    /// The logits of the sample in float64, sequence by sequence, computed when something is first
    /// compared with them.
    fn reference(&self) -> &[f64] {
        self.reference.get_or_init(|| {
            let sample = self.sample().into_iter();
            let tokens = sample.map(|i| &self.tokens[i * SEQUENCE..][..SEQUENCE]);
            let tokens = tokens.collect::<Vec<_>>().concat();
            let network = InFloat64 {
                model: &self.model,
                parameters: &wide(&self.parameters),
            };
            let values = network.forward(Array2::zeros((0, 0)), &tokens);
            let logits = values.into_iter().next_back().expect("activations");
            logits.into_raw_vec_and_offset().0
        })
    }
}

/// The parameters: embeddings uniform in [-1, 1), the rest as [`Model::initialise`] says, except for
/// queries and keys.
fn parameters(model: &Model) -> Vec<f32> {
    let mut parameters = uniform(model.parameters, 0x20);
    model.initialise(&mut parameters);
    for (qkv, ..) in model.linears().filter(|(_, _, y)| y.width == QKV) {
        let sharpened = &mut parameters[qkv.weights.clone()][..2 * WIDTH * WIDTH];
        sharpened.iter_mut().for_each(|w| *w *= SHARPNESS);
    }
    parameters
}

impl Workload for Inference {
    fn new(size: u64) -> Self {
        let batch = size as usize;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed(0x7472_616e));
        let tokens = (0..batch * SEQUENCE).map(|_| random.next_u32() % VOCABULARY as u32);
        let model = Rc::new(model());
        Self {
            batch,
            tokens: tokens.collect(),
            parameters: parameters(&model),
            model,
            reference: OnceCell::new(),
        }
    }

    fn host_bytes(batch: u64) -> u64 {
        // The parameters in f32, twice on their way to the device, and in float64; per token what
        // lies between the kernels in f32, and of the sample what the reference has in float64.
        let per_token = 4 * (1 + 3 * WIDTH + QKV + HIDDEN + 3 * VOCABULARY);
        let in_float64 = 8 * (4 * WIDTH + QKV + 2 * HIDDEN + 2 * VOCABULARY + SEQUENCE);
        let parameters = 24 * model().parameters as u64;
        let sampled = batch.min(SAMPLE as u64);
        parameters + SEQUENCE as u64 * (batch * per_token as u64 + sampled * in_float64 as u64)
    }

    fn device_bytes(batch: u64) -> u64 {
        // The parameters in f32 and BF16; per token those of a kernel for each step: queries, keys
        // and values twice, the scores of each head, what lies between the layers.
        let per_token = 1 + 6 * WIDTH + 2 * QKV + HEADS * SEQUENCE + HIDDEN + VOCABULARY;
        let parameters = 6 * model().parameters as u64;
        parameters + batch * (4 * SEQUENCE * per_token) as u64 + CUBLAS_WORKSPACE
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&NETWORK, &LINEAR, &TRANSFORMER, &ATTENTION] }
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        visit_f32(&self.parameters, visit);
        for token in &self.tokens {
            visit(&token.to_le_bytes());
        }
    }
}

/// Bound on the error of the logits, in units of [`unit`].
const BOUND: f64 = 10.0;

/// Compares the logits of the sample with float64, relative to their root mean square; all others must be
/// finite.
///
/// **How large** an error may be, in units of [`unit`], the error e of an operand. The
/// longest sums run over the hidden values of the feed-forward part.
///
/// - Operands that are rounded give a product an error of 0.54 e (standard deviation, as derived
///   in [`matmul::precision`](crate::workload::matmul::precision)) of its root mean square.
/// - The residual is f32 in every format: the embedding, with a mean square of 1/3, and the
///   changes of four layers, together 0.26 (1/3 by how the weights are scaled, halved by ReLU,
///   once more 1/3: 0.06 per layer; attention averages values, and adds a tenth of that). A change
///   has gone through two products, behind a norm that passes on what was wrong before it. So the
///   residual is off by about 0.54 e of itself, and a logit, by its own product as well, by 0.9 e.
///   The largest of a million lies at 4.9 deviations: 4.4 e.
/// - In BF16 a logit is rounded once more, by up to e / 2 of itself: at 4.9 root mean squares
///   2.4 e, so 5 e to 7 e in all.
///
/// A network on the CPU with rounded weights and logits (`tests.rs`) shows 4.3 to 4.7 e in BF16 (batches 1 to 9).
/// Rounded activations come on top: an H200 shows 5.8 e, and 1.0 e in f32. The bound leaves half as much again, and
/// weights cut off to TF32 exceed that of f32.
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
        bound: BOUND * unit(format, HIDDEN),
        method: format!(
            "logits of {} sequences against float64, relative to their root mean square; the \
             others are finite",
            problem.sample().len()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::network::model::assert_ranges;

    #[test]
    fn every_range_is_aligned_and_follows_the_one_before() {
        assert_ranges(&model());
    }

    #[test]
    fn the_sample_has_the_first_and_the_last_sequence() {
        for batch in [1, 3, 8, 9, 16, 64] {
            let sample = Inference::new(batch).sample();
            assert_eq!(sample.len() as u64, batch.min(8));
            assert_eq!(sample.first(), Some(&0));
            assert_eq!(sample.last(), Some(&(batch as usize - 1)));
            assert!(sample.is_sorted_by(|a, b| a < b), "{sample:?}");
        }
    }
}
