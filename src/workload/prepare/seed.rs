//! Seeds of inputs.

use std::cell::Cell;
use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use crate::workload::routine::{Number, Workload};

/// Values drawn from one seed by [`in_blocks`]. Each block has a seed of its own, so that the inputs do not
/// depend on the number of threads that draw them.
pub(crate) const BLOCK: usize = 1 << 16;

thread_local! {
    /// The version of the inputs that this thread makes: 0 is the timed one. Groups make their inputs
    /// in [`Workload::new`], which gets a size alone.
    static VERSION: Cell<u64> = const { Cell::new(0) };
}

/// The seed of a random stream of inputs: `usual`, or another one where an implementation is verified
/// with other values than the timed ones. Call it on the thread that makes the inputs, before other
/// threads help.
pub fn seed(usual: u64) -> u64 {
    match VERSION.get() {
        0 => usual,
        version => usual ^ (0x2a00_0000 + (version - 1) * 0x0001_0000),
    }
}

/// `n` random values within `range`, from the [`seed`] of `usual`.
pub fn uniform(usual: u64, n: u64, range: Range<f32>) -> Vec<f32> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed(usual));
    (0..n).map(|_| random.random_range(range.clone())).collect()
}

/// Random values in [-reach, reach), in blocks that all threads share out. `seed_of` gives the seed of each
/// block. From 24 or 53 random bits: within [-1, 1) all values are exact, multiples of 2^-23 or 2^-52.
pub(crate) fn in_blocks<T: Number>(
    len: usize,
    reach: f32,
    seed_of: impl Fn(u64) -> u64 + Sync,
) -> Vec<T> {
    let mut values = vec![T::zero(); len];
    let blocks = values.par_chunks_mut(BLOCK).enumerate();
    blocks.for_each(|(block, values)| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed_of(block as u64));
        T::fill_uniform(values, reach, &mut random);
    });
    values
}

/// The version of the inputs that this thread makes, for another process that makes the same.
pub(crate) fn version() -> u64 {
    VERSION.get()
}

/// Inputs of a size in a version, which has other values than the timed ones (version 0) and than other
/// versions. A workload without random values gets the same values at other addresses.
pub(crate) fn in_version<W: Workload>(size: u64, version: u64) -> W {
    struct Restored(u64);
    impl Drop for Restored {
        fn drop(&mut self) {
            VERSION.set(self.0);
        }
    }
    let _before = Restored(VERSION.replace(version));
    W::new(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::reduction::Sum;

    #[test]
    fn the_inputs_after_other_ones_are_the_usual_ones() {
        let usual = uniform(7, 4, 0.0..1.0);
        in_version::<Sum>(64, 1);
        assert_eq!(uniform(7, 4, 0.0..1.0), usual);
    }
}
