//! A batch of sequences, and the parameters of the network.

use std::cell::OnceCell;
use std::rc::Rc;

use ndarray::Array2;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::kernel::Source;
use crate::workload::matmul::uniform;
use crate::workload::network::layers::{ATTENTION, TRANSFORMER};
use crate::workload::network::model::Model;
use crate::workload::network::reference::{InFloat64, wide};
use crate::workload::network::{LINEAR, kernels::NETWORK};
use crate::workload::prepare::{CUBLAS_WORKSPACE, seed};
use crate::workload::routine::{Workload, visit_f32};
use crate::workload::transformer::model::{HEADS, HIDDEN, QKV, SEQUENCE, VOCABULARY, WIDTH, model};

/// Upper bound on the sequences that are compared with float64. Sequences are independent, so of a
/// larger batch these suffice: the first, the last, and others at even distances. Of all others
/// every logit must be finite.
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
    pub(super) fn reference(&self) -> &[f64] {
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

#[cfg(test)]
mod tests {
    use super::*;

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
