//! The cost of a batch.

use crate::model::{Cost, LinkBytes};
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

/// Bytes of the tokens on their way to the device, and of the logits on their way back.
pub fn link_bytes(batch: u64) -> LinkBytes {
    let tokens = (4 * batch * SEQUENCE as u64) as f64;
    LinkBytes::new(tokens, tokens * VOCABULARY as f64)
}
