//! The links of a chain.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Kernels of a chain.
pub const LINKS: usize = 32;

const SEED: u64 = 0x0063_6861_696e;

/// y = factor * y + term.
#[derive(Clone, Copy, Default)]
pub(super) struct Link {
    pub(super) factor: f32,
    pub(super) term: f32,
}

/// Values in [-1, 1), the same in every run.
pub(super) struct Units(Xoshiro256PlusPlus);

impl Iterator for Units {
    type Item = f32;

    fn next(&mut self) -> Option<f32> {
        Some((self.0.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0)
    }
}

/// The links of every chain, with factors of magnitude 0.75 to 1.25 and terms in [-1, 1), and
/// the values that are drawn after them.
pub(super) fn draw() -> ([Link; LINKS], Units) {
    let mut units = Units(Xoshiro256PlusPlus::seed_from_u64(SEED));
    let mut unit = || units.next().unwrap_or_default();
    let links = std::array::from_fn(|_| {
        let u = unit();
        Link {
            factor: u.signum() * (0.75 + 0.5 * u.abs()),
            term: unit(),
        }
    });
    (links, units)
}
