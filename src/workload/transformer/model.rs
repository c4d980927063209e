//! The network: its lengths, and where its parameters lie.

use std::ops::Range;

pub(super) use crate::workload::network::linear::Linear;

/// Different tokens, and logits of a position.
pub(super) const VOCABULARY: usize = 1000;
/// Values of a token between the layers.
pub(super) const WIDTH: usize = 256;
/// Encoder layers.
pub(super) const LAYERS: usize = 4;
/// Heads of an attention.
pub(super) const HEADS: usize = 4;
/// Values of a head.
pub(super) const HEAD: usize = WIDTH / HEADS;
/// Queries, keys and values of a token, side by side.
pub(super) const QKV: usize = 3 * WIDTH;
/// Values of a token inside the feed-forward part.
pub(super) const HIDDEN: usize = 1024;
/// Tokens of a sequence.
pub(super) const SEQUENCE: usize = 128;
/// What a layer norm adds to the variance, as PyTorch does:
/// <https://docs.pytorch.org/docs/stable/generated/torch.nn.LayerNorm.html>
pub(super) const EPSILON: f64 = 1e-5;

/// A layer norm's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Norm {
    pub(super) gain: Range<usize>,
    pub(super) bias: Range<usize>,
}

/// One encoder layer: x += attention(norm(x)), x += feed_forward(norm(x)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) before_attention: Norm,
    /// To queries, keys and values.
    pub(super) qkv: Linear,
    /// Of the heads' results.
    pub(super) projection: Linear,
    pub(super) before_hidden: Norm,
    /// With ReLU behind it.
    pub(super) hidden: Linear,
    pub(super) back: Linear,
}

/// Where each parameter lies. Each range begins at a multiple of 256 bytes, also of BF16.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Model {
    /// A row of `WIDTH` for each token.
    pub(super) embedding: Range<usize>,
    pub(super) layers: [Layer; LAYERS],
    pub(super) logits: Linear,
    /// All of them.
    pub(super) parameters: usize,
}

impl Model {
    pub(super) fn new() -> Self {
        let mut end = 0;
        let mut next = |len: usize| {
            let start = end;
            end += len;
            start..end
        };
        let embedding = next(VOCABULARY * WIDTH);
        let layers = std::array::from_fn(|_| {
            let mut norm = || Norm {
                gain: next(WIDTH),
                bias: next(WIDTH),
            };
            let (before_attention, before_hidden) = (norm(), norm());
            let mut linear = |inputs, outputs| Linear {
                weights: next(inputs * outputs),
                bias: next(outputs),
            };
            Layer {
                before_attention,
                qkv: linear(WIDTH, QKV),
                projection: linear(WIDTH, WIDTH),
                before_hidden,
                hidden: linear(WIDTH, HIDDEN),
                back: linear(HIDDEN, WIDTH),
            }
        });
        let logits = Linear {
            weights: next(WIDTH * VOCABULARY),
            bias: next(VOCABULARY),
        };
        Self {
            embedding,
            layers,
            logits,
            parameters: end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_is_aligned_and_follows_the_one_before() {
        let model = Model::new();
        assert_eq!(model.parameters, 3_672_040);
        let mut ranges = vec![model.embedding];
        for layer in model.layers {
            for norm in [layer.before_attention, layer.before_hidden] {
                ranges.extend([norm.gain, norm.bias]);
            }
            for linear in [layer.qkv, layer.projection, layer.hidden, layer.back] {
                ranges.extend([linear.weights, linear.bias]);
            }
        }
        ranges.extend([model.logits.weights, model.logits.bias]);
        let mut end = 0;
        for range in ranges {
            assert_eq!(range.start, end, "{range:?}");
            assert_eq!(range.start * 2 % 256, 0, "{range:?}");
            end = range.end;
        }
        assert_eq!(end, model.parameters);
    }
}
