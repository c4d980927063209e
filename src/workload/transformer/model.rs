//! The network.

pub(super) use crate::workload::network::model::{HEADS, QKV, SEQUENCE, WIDTH};
use crate::workload::network::model::{Kept, Kind, Model};

/// Different tokens, and logits of a position.
pub(super) const VOCABULARY: usize = 1000;
/// Encoder layers.
pub(super) const LAYERS: usize = 4;
/// Values of a token inside the feed-forward part.
pub(super) const HIDDEN: usize = 1024;

/// Embedding, encoder layers x += attention(norm(x)), x += feed_forward(norm(x)), and logits of each
/// position.
pub(super) fn model() -> Model {
    let mut model = Model::default();
    let mut of = |width, kept| model.activation(width, kept);
    let [tokens, x, spare] = [1, WIDTH, WIDTH].map(|width| of(width, Kept::Wide));
    let [normed, qkv, heads] = [WIDTH, QKV, WIDTH].map(|width| of(width, Kept::Narrow));
    let (hidden, logits) = (of(HIDDEN, Kept::Relu), of(VOCABULARY, Kept::Narrow));
    let table = model.room(VOCABULARY * WIDTH);
    model.layer(Kind::Embed(table), tokens, x);
    for _ in 0..LAYERS {
        let mut norm = || Kind::Norm([model.room(WIDTH), model.room(WIDTH)]);
        let [before_attention, before_hidden] = [norm(), norm()];
        model.layer(before_attention, x, normed);
        model.linear("queries, keys and values", [normed, qkv], None);
        model.layer(Kind::Attention, qkv, heads);
        model.linear("projection", [heads, x], Some(spare));
        model.layer(before_hidden, x, normed);
        model.linear("way in", [normed, hidden], None);
        model.linear("way back", [hidden, x], Some(spare));
    }
    model.layer(Kind::Narrow, x, normed);
    model.linear("logits", [normed, logits], None);
    model
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::network::model::assert_ranges;

    #[test]
    fn every_range_is_aligned_and_follows_the_one_before() {
        let model = model();
        assert_eq!(model.parameters, 3_672_040);
        assert_ranges(&model);
    }
}
