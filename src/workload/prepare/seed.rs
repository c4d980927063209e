//! Seeds of inputs.

use std::cell::Cell;
use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::workload::routine::Workload;

thread_local! {
    /// How many times other values were made before, and whether they are being made.
    static OTHER: Cell<(u64, bool)> = const { Cell::new((0, false)) };
}

/// The seed of a random stream of inputs: `usual`, or another one where an implementation is verified
/// with other values than the timed ones. Call it on the thread that makes the inputs, before other
/// threads help.
pub fn seed(usual: u64) -> u64 {
    match OTHER.get() {
        (times, true) => usual ^ (0x2a00_0000 + times * 0x0001_0000),
        (_, false) => usual,
    }
}

/// `n` random values within `range`, from the [`seed`] of `usual`.
pub fn uniform(usual: u64, n: u64, range: Range<f32>) -> Vec<f32> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed(usual));
    (0..n).map(|_| random.random_range(range.clone())).collect()
}

/// Inputs of a size with other values than the timed inputs, and than all made before. A workload
/// without random values gets the same values at other addresses.
pub(crate) fn with_other_values<W: Workload>(size: u64) -> W {
    struct Usual;
    impl Drop for Usual {
        fn drop(&mut self) {
            OTHER.set((OTHER.get().0 + 1, false));
        }
    }
    OTHER.set((OTHER.get().0, true));
    let _usual = Usual;
    W::new(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{fft::Fft, nested_sine::NestedSine, reduction::Sum};

    #[test]
    fn other_values_are_others_and_the_next_are_the_usual_ones() {
        fn bytes<W: Workload>(inputs: &W) -> Vec<u8> {
            let mut bytes = Vec::new();
            inputs.visit_inputs(&mut |piece| bytes.extend_from_slice(piece));
            bytes
        }
        fn differ<W: Workload>() {
            let usual = bytes(&W::new(64));
            let other = bytes(&with_other_values::<W>(64));
            assert_eq!(other.len(), usual.len());
            assert_ne!(other, usual);
            assert_ne!(bytes(&with_other_values::<W>(64)), other);
            assert_eq!(bytes(&W::new(64)), usual);
        }
        differ::<Sum>();
        differ::<Fft>();
        differ::<NestedSine>();
        differ::<NestedSine<f64>>();
    }
}
