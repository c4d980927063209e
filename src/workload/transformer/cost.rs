//! What a batch costs.

use crate::model::cost::Cost;
use crate::workload::transformer::model::{
    HIDDEN, LAYERS, Model, QKV, SEQUENCE, VOCABULARY, WIDTH,
};

/// The products' FLOP alone, those of attention among them: 7.3 million per token.
fn flop(batch: u64) -> f64 {
    let linear = WIDTH * QKV + WIDTH * WIDTH + 2 * WIDTH * HIDDEN;
    let attention = 2 * SEQUENCE * WIDTH;
    let per_token = LAYERS * (linear + attention) + WIDTH * VOCABULARY;
    2.0 * (batch as usize * SEQUENCE * per_token) as f64
}

fn of(batch: u64, bytes_per_token: usize, bytes_of_parameters: usize, launches: u32) -> Cost {
    let tokens = batch * SEQUENCE as u64;
    Cost {
        flop: Some(flop(batch)),
        bytes: Some(tokens as f64 * bytes_per_token as f64 + bytes_of_parameters as f64),
        link_bytes: None,
        launches: Some(launches),
    }
}

/// Bytes per token and layer where products read values of so many bytes. The residual is f32: two
/// norms read it, two products read and write it. What those norms give is written and read, and
/// so are queries, keys and values, what attention gives, and what lies inside the feed-forward
/// part.
fn fused_bytes(element: usize) -> usize {
    let residual = 4 * 6 * WIDTH;
    let layer = residual + element * (2 * 2 * WIDTH + 2 * QKV + 2 * WIDTH + 2 * HIDDEN);
    // The embedding: a token, a row of the table, the residual written (the first norm has it in
    // registers); before the logits the residual is read.
    LAYERS * layer + 4 * (1 + WIDTH) + element * VOCABULARY
}

/// A batch in 29 kernels: 7 per layer (four products, two norms, attention), the first norm with
/// the embedding, the logits. All kernels are taken to start from memory, and parameters are read
/// once.
pub fn cost(batch: u64) -> Cost {
    of(batch, fused_bytes(4), 4 * Model::new().parameters, 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_a_known_batch() {
        let cost = cost(2);
        let per_token = 4.0 * 2.0 * (786_432.0 + 65_536.0) + 512_000.0;
        assert_eq!(cost.flop, Some(256.0 * per_token));
        let bytes = 4.0 * 4.0 * (1536.0 + 1024.0 + 1536.0 + 512.0 + 2048.0) + 4.0 * 1257.0;
        assert_eq!(cost.bytes, Some(256.0 * bytes + 4.0 * 3_672_040.0));
    }
}
