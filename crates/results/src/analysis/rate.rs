//! Which rate describes a group: arithmetic or moved bytes.

use crate::model::cost::LinkBytes;
use crate::statistics::positive;
use crate::store::curves::{Group, Series};

/// Which rate describes a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateKind {
    /// Arithmetic, FLOP/s.
    Flop,
    /// Moved bytes, B/s.
    Bytes,
}

impl RateKind {
    /// `FLOP/s` or `B/s`.
    pub fn unit(self) -> &'static str {
        match self {
            RateKind::Flop => "FLOP/s",
            RateKind::Bytes => "B/s",
        }
    }

    /// The amount of one iteration at a point of a curve.
    pub fn amount(self, series: &Series, index: usize) -> Option<f64> {
        let cost = &series.points.get(index)?.cost;
        positive(match self {
            RateKind::Flop => cost.flop?,
            // The link bounds end-to-end work.
            RateKind::Bytes => cost.link_bytes.map(LinkBytes::sum).or(cost.bytes)?,
        })
    }
}

/// Above this many FLOP per byte at the largest size, a group is about arithmetic: today's
/// processors balance between about 5 and 20.
const ARITHMETIC: f64 = 8.0;

/// FLOP/s or B/s, by the least arithmetic intensity at the largest size, so that every curve
/// with a cost has a rate; `None` without costs, and where a rate says nothing.
pub fn work(groups: &[&Group]) -> Option<RateKind> {
    if groups.iter().any(|g| !g.topic.rated) {
        return None;
    }
    let costs = || {
        groups
            .iter()
            .flat_map(|g| g.benchmarks())
            .map(|b| (b.size, b.cost))
    };
    let intensity = costs()
        .filter_map(|(size, c)| Some((size, c.flop.unwrap_or(0.0) / c.bytes?)))
        .filter(|(_, i)| i.is_finite())
        .min_by(|a, b| b.0.cmp(&a.0).then(a.1.total_cmp(&b.1)));
    match intensity {
        Some((_, flop_a_byte)) if flop_a_byte > ARITHMETIC => Some(RateKind::Flop),
        Some(_) => Some(RateKind::Bytes),
        None if costs().any(|(_, c)| c.flop.is_some()) => Some(RateKind::Flop),
        None if costs().any(|(_, c)| c.bytes.is_some() || c.link_bytes.is_some()) => {
            Some(RateKind::Bytes)
        }
        None => None,
    }
}
