//! What a batch costs.

use crate::model::Cost;
use crate::workload::network::{Format, cost::RowCost};
use crate::workload::transformer::model::{SEQUENCE, VOCABULARY, model};

/// Parameters are read once.
fn of(batch: u64, format: Format, fused: bool) -> Cost {
    let (model, mut token) = (model(), RowCost::new(format, fused));
    token.forward(&model);
    token.of_rows(batch * SEQUENCE as u64, token.element * model.parameters)
}

/// Cost of a batch in 29 kernels: 7 per layer (four products, two norms, attention), of which the
/// first norm has the embedding, and the logits. FLOP are those of the products alone, attention's
/// included: 7.3 million per token.
pub fn cost(batch: u64) -> Cost {
    of(batch, Format::F32, true)
}

/// As [`cost`], where products read BF16, and with one kernel more, which writes the residual as
/// BF16 for the product of the logits. Norms, biases on the residual and the embedding stay f32;
/// nearly all parameters are read as BF16.
pub fn cost_bf16(batch: u64) -> Cost {
    of(batch, Format::Bf16, true)
}

/// As [`cost`], in 75 kernels: 18 per layer, the embedding, the logits and their bias.
pub fn cost_eager(batch: u64) -> Cost {
    of(batch, Format::F32, false)
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
        let launches = [cost(2), cost_bf16(2), cost_eager(2)].map(|cost| cost.launches);
        assert_eq!(launches, [29, 30, 75].map(Some));
        let cost = cost(2);
        let per_token = 4.0 * 2.0 * (786_432.0 + 65_536.0) + 512_000.0;
        assert_eq!(cost.flop, Some(256.0 * per_token));
        let bytes = 4.0 * 4.0 * (1536.0 + 1024.0 + 1536.0 + 512.0 + 2048.0) + 4.0 * 1513.0;
        assert_eq!(cost.bytes, Some(256.0 * bytes + 4.0 * 3_672_040.0));
        // Two norms, two sums, what these add; norms' results; queries, keys and values; heads;
        // scores; the values inside.
        let layer = (14 + 4 + 4) * 256 + 6 * 768 + 4 * 4 * 128 + 6 * 1024;
        let values = 4.0 * f64::from(4 * layer + 1 + 3 * 256 + 3 * 1000);
        assert_eq!(
            cost_eager(2).bytes,
            Some(256.0 * values + 4.0 * 3_672_040.0)
        );
        let layer = 4 * 6 * 256 + 2 * (4 * 256 + 2 * 768 + 2 * 256 + 2 * 1024);
        let values = f64::from(4 * layer + 4 * 513 + 2 * 1000 + 4 * 256);
        assert_eq!(cost_bf16(2).bytes, Some(256.0 * values + 2.0 * 3_672_040.0));
    }
}
