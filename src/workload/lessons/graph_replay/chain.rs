//! The inputs of a chain, its cost, and the check of its result.

use std::cell::OnceCell;

use crate::device::kernel::Source;
use crate::model::{Cost, Verified};
use crate::workload::lessons::graph_replay::source::{self, LINKS, Link, draw};
use crate::workload::prepare::seed;
use crate::workload::routine::{Workload, visit_f32};
use crossover_arithmetic::error::worse;

/// n inputs and the factors and terms of the links, from a fixed seed.
pub struct Chain {
    pub(super) x: Vec<f32>,
    pub(super) links: [Link; LINKS],
    expected: OnceCell<Vec<f64>>,
}

impl Workload for Chain {
    fn new(n: u64) -> Self {
        Chain::new(n)
    }

    fn host_bytes(n: u64) -> u64 {
        16 * n
    }

    fn device_bytes(n: u64) -> u64 {
        8 * n
    }

    fn kernels() -> &'static [&'static Source] {
        source::all()
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        let links = self.links.iter().flat_map(|link| [link.factor, link.term]);
        visit_f32(&links.collect::<Vec<_>>(), visit);
        visit_f32(&self.x, visit);
    }
}

impl Chain {
    /// n inputs in [-1, 1), factors of magnitude 0.75 to 1.25, terms in [-1, 1).
    pub fn new(n: u64) -> Self {
        let (links, units) = draw();
        // The links are those of the kernels, so other values come later in the same stream.
        let skipped = seed(0) % 4_099;
        Self {
            links,
            x: units.skip(skipped as usize).take(n as usize).collect(),
            expected: OnceCell::new(),
        }
    }

    /// Every link in float64.
    fn expected(&self) -> &[f64] {
        self.expected.get_or_init(|| {
            let chain = |&x: &f32| {
                self.links.iter().fold(f64::from(x), |y, link| {
                    f64::from(link.factor) * y + f64::from(link.term)
                })
            };
            self.x.iter().map(chain).collect()
        })
    }

    /// Largest error that rounding once per link can cause: with |y| ≤ m before a link and an
    /// error up to e there, the fused multiply-add leaves |f| e, and rounds a value of up to
    /// |f| (m + e) + |t| by at most 2^-24 of it.
    fn bound(&self) -> f64 {
        let (_, error) = self.links.iter().fold((1.0, 0.0), |(m, e), link| {
            let (f, t) = (f64::from(link.factor).abs(), f64::from(link.term).abs());
            let rounding = (f * (m + e) + t) * 2f64.powi(-24);
            (f * m + t, f * e + rounding)
        });
        error
    }

    pub(super) fn compare(&self, y: &[f32]) -> Verified {
        let error = y
            .iter()
            .zip(self.expected())
            .map(|(&y, expected)| (f64::from(y) - expected).abs())
            .fold(0.0, worse);
        Verified {
            // `zip` would ignore what is missing from an output of another length.
            error: if y.len() == self.x.len() {
                error
            } else {
                f64::INFINITY
            },
            bound: self.bound(),
            method: "max absolute error, every element".to_owned(),
        }
    }
}

/// Cost of a chain: each kernel reads and writes every element and does a fused
/// multiply-add on it.
pub fn cost(n: u64) -> Cost {
    let elements = n as f64 * LINKS as f64;
    Cost::default()
        .flop(2.0 * elements)
        .bytes(8.0 * elements)
        .written(4.0 * elements)
        .launches(LINKS as u32)
}

/// As [`cost`], in one kernel that reads every element and writes it once.
pub fn cost_fused(n: u64) -> Cost {
    cost(n)
        .bytes(8.0 * n as f64)
        .written(4.0 * n as f64)
        .launches(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(chain: &Chain, order: impl Iterator<Item = usize> + Clone) -> Vec<f32> {
        let link = |y: f32, i: usize| y.mul_add(chain.links[i].factor, chain.links[i].term);
        let y = |&x: &f32| order.clone().fold(x, link);
        chain.x.iter().map(y).collect()
    }

    #[test]
    fn float32_arithmetic_stays_within_the_bound_and_well_above_nothing() {
        let chain = Chain::new(1 << 12);
        let verified = chain.compare(&run(&chain, 0..LINKS));
        assert!(verified.passed(), "{verified:?}");
        assert!(verified.error > verified.bound / 100.0, "{verified:?}");
    }

    #[test]
    fn a_link_left_out_or_out_of_order_is_found() {
        let chain = Chain::new(64);
        for left_out in 0..LINKS {
            let y = run(&chain, (0..LINKS).filter(|&i| i != left_out));
            assert!(!chain.compare(&y).passed(), "without link {left_out}");
        }
        for early in 1..LINKS {
            let swapped = move |i| match i {
                i if i == early => early - 1,
                i if i + 1 == early => early,
                i => i,
            };
            let y = run(&chain, (0..LINKS).map(swapped));
            assert!(!chain.compare(&y).passed(), "link {early} too early");
        }
    }

    #[test]
    fn an_unwritten_or_short_output_is_found() {
        let chain = Chain::new(64);
        let mut y = run(&chain, 0..LINKS);
        assert!(!chain.compare(&y[1..]).passed());
        for place in [0, 31, 63] {
            let right = std::mem::replace(&mut y[place], f32::NAN);
            assert!(!chain.compare(&y).passed(), "value {place}");
            y[place] = right;
        }
    }
}
