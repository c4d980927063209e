//! The sizes of a group or of an implementation.

use crossover_protocol::settings::SizeSet;

/// The sizes of each size set. They depend only on the set, so that two runs have the same ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    quick: Vec<u64>,
    default: Vec<u64>,
    full: Vec<u64>,
    pub(super) odd: Vec<u64>,
}

impl Sizes {
    /// Sizes by size set.
    pub fn new(
        quick: impl IntoIterator<Item = u64>,
        default: impl IntoIterator<Item = u64>,
        full: impl IntoIterator<Item = u64>,
    ) -> Self {
        Self {
            quick: quick.into_iter().collect(),
            default: default.into_iter().collect(),
            full: full.into_iter().collect(),
            odd: Vec::new(),
        }
    }

    /// Further sizes of the size set `full`.
    pub fn in_full(mut self, sizes: impl IntoIterator<Item = u64>) -> Self {
        self.full.extend(sizes);
        self.full.sort_unstable();
        self
    }

    /// Sizes at which every implementation is verified and never timed, instead of the smallest one and
    /// its neighbours: some that are no multiple of a block or a vector, and one for each branch of the
    /// code.
    pub fn odd(mut self, sizes: impl IntoIterator<Item = u64>) -> Self {
        self.odd = sizes.into_iter().collect();
        self
    }

    /// Powers of two, given by their exponents.
    pub fn powers_of_two(
        quick: impl IntoIterator<Item = u32>,
        default: impl IntoIterator<Item = u32>,
        full: impl IntoIterator<Item = u32>,
    ) -> Self {
        let power = |e| 1u64 << e;
        Self::new(
            quick.into_iter().map(power),
            default.into_iter().map(power),
            full.into_iter().map(power),
        )
    }

    /// The same sizes without those above a limit for each size set.
    pub fn up_to(&self, quick: u64, default: u64, full: u64) -> Self {
        let cut = |sizes: &[u64], limit| sizes.iter().copied().filter(|&s| s <= limit).collect();
        Self {
            quick: cut(&self.quick, quick),
            default: cut(&self.default, default),
            full: cut(&self.full, full),
            odd: self.odd.clone(),
        }
    }

    /// The sizes of a size set.
    pub fn of(&self, set: SizeSet) -> &[u64] {
        match set {
            SizeSet::Quick => &self.quick,
            SizeSet::Default => &self.default,
            SizeSet::Full => &self.full,
        }
    }

    /// Where tests verify: the odd sizes, or else the smallest and its neighbours.
    pub(super) fn for_tests(&self) -> Vec<u64> {
        match (self.odd.is_empty(), self.all().first()) {
            (true, Some(&smallest)) => (smallest.max(2) - 1..=smallest + 1).collect(),
            _ => self.odd.clone(),
        }
    }

    /// Every size of any size set, ascending.
    pub fn all(&self) -> Vec<u64> {
        let mut all: Vec<u64> = [&self.quick, &self.default, &self.full]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_size_set_and_the_limits() {
        let sizes = Sizes::powers_of_two([3, 6], 0..=10, 0..=15).up_to(64, 256, 1 << 12);
        assert_eq!(sizes.of(SizeSet::Quick), [8, 64]);
        assert_eq!(sizes.of(SizeSet::Default).last(), Some(&256));
        assert_eq!(sizes.of(SizeSet::Full).last(), Some(&4096));
        assert_eq!(sizes.all().len(), 13);
    }

    #[test]
    fn odd_sizes_take_the_place_of_the_smallest() {
        let sizes = Sizes::new([4], [8], [16]);
        assert_eq!(sizes.for_tests(), [3, 4, 5]);
        assert_eq!(sizes.odd([1, 7]).for_tests(), [1, 7]);
        assert_eq!(Sizes::new([], [1], []).for_tests(), [1, 2]);
    }
}
