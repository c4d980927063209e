//! What a batch costs.

use crate::model::Cost;
use crate::workload::transformer::model::{
    HEADS, HIDDEN, LAYERS, Model, QKV, SEQUENCE, VOCABULARY, WIDTH,
};

/// FLOP of the products alone, including those of attention: 7.3 million per token.
fn flop(batch: u64) -> f64 {
    let linear = WIDTH * QKV + WIDTH * WIDTH + 2 * WIDTH * HIDDEN;
    let attention = 2 * SEQUENCE * WIDTH;
    let per_token = LAYERS * (linear + attention) + WIDTH * VOCABULARY;
    2.0 * (batch as usize * SEQUENCE * per_token) as f64
}

fn of(batch: u64, bytes_per_token: usize, bytes_of_parameters: usize, launches: u32) -> Cost {
    let tokens = batch * SEQUENCE as u64;
    Cost::default()
        .flop(flop(batch))
        .bytes(tokens as f64 * bytes_per_token as f64 + bytes_of_parameters as f64)
        .launches(launches)
}

/// Bytes per token where products read values of `element` bytes. The residual is f32: in each
/// layer two norms read it, and two products read and write it. The results of the norms are
/// written and read, and so are queries, keys and values, the results of attention, and the values
/// inside the feed-forward part.
fn fused_bytes(element: usize) -> usize {
    let residual = 4 * 6 * WIDTH;
    let layer = residual + element * (2 * 2 * WIDTH + 2 * QKV + 2 * WIDTH + 2 * HIDDEN);
    // The embedding: a token and a row of the table. The residual is written then and read for the
    // logits, but the first norm has it in registers.
    LAYERS * layer + 4 * (1 + 2 * WIDTH) + element * VOCABULARY
}

/// Cost of a batch in 29 kernels: 7 per layer (four products, two norms, attention), of which the
/// first norm has the embedding, and the logits. Every kernel is taken to read its data from
/// memory, and parameters are read once.
pub fn cost(batch: u64) -> Cost {
    of(batch, fused_bytes(4), 4 * Model::new().parameters, 29)
}

/// As [`cost`], where products read BF16, and with one kernel more, which writes the residual as
/// BF16 for the product of the logits. Norms, biases on the residual and the embedding stay f32;
/// nearly all parameters are read as BF16.
pub fn cost_bf16(batch: u64) -> Cost {
    let bytes = fused_bytes(2) + 2 * 2 * WIDTH;
    of(batch, bytes, 2 * Model::new().parameters, 30)
}

/// As [`cost`], in 75 kernels: 18 per layer, the embedding, the logits and their bias. Biases, ReLU
/// and sums take passes of their own; queries, keys and values are copied into matrices, and the
/// results of the heads out of them; scores are written, read and written by softmax, and read.
pub fn cost_eager(batch: u64) -> Cost {
    // Two norms read the residual, two sums read and write it; what they add is written, read and
    // written by a bias, and read.
    let residual = 2 + 2 * 2 + 2 * 4;
    // What the norms give is written and read.
    let normed = 2 * 2;
    // Written, read and written by the bias, copied, and the copy read.
    let qkv = 6 * QKV;
    // As matrices written and copied, and the copy read.
    let heads = 4;
    let scores = 4 * HEADS * SEQUENCE;
    // Written, read and written twice, and read.
    let hidden = 6 * HIDDEN;
    let layer = (residual + normed + heads) * WIDTH + qkv + scores + hidden;
    // A token, a row of the table, the residual; before the logits it is read.
    let values = LAYERS * layer + 1 + 3 * WIDTH + 3 * VOCABULARY;
    of(batch, 4 * values, 4 * Model::new().parameters, 75)
}

/// As [`cost`], with the tokens uploaded to the device and the logits downloaded.
pub fn cost_transfer(batch: u64) -> Cost {
    let tokens = (4 * batch * SEQUENCE as u64) as f64;
    cost(batch).over_link(tokens, tokens * VOCABULARY as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_a_known_batch() {
        let cost = cost(2);
        let per_token = 4.0 * 2.0 * (786_432.0 + 65_536.0) + 512_000.0;
        assert_eq!(cost.flop, Some(256.0 * per_token));
        let bytes = 4.0 * 4.0 * (1536.0 + 1024.0 + 1536.0 + 512.0 + 2048.0) + 4.0 * 1513.0;
        assert_eq!(cost.bytes, Some(256.0 * bytes + 4.0 * 3_672_040.0));
    }
}
