//! The sizes of a group or of an implementation, the benchmarks that it plans, and the memory that they need.

use crossover_protocol::settings::SizeSet;

use crate::model::cost::Cost;
use crate::model::role::Role;
use crate::timing::Clock;

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
        let mut sizes: Vec<u64> = [&self.quick, &self.default, &self.full]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// One benchmark of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// `<group>/<cpu|gpu>/<implementation>/<size>`.
    pub id: String,
    /// Problem size, the last part of the id.
    pub size: u64,
    /// The clock that it is timed on where the gate works.
    pub clock: Clock,
    /// The work of its implementation, and the way that it is done.
    pub role: Role,
    /// Cost of one iteration.
    pub cost: Cost,
    /// The work of one iteration and its unit, where the group has a throughput.
    pub throughput: Option<(f64, &'static str)>,
    /// Host memory that the inputs and one implementation take, in bytes.
    pub host_bytes: u64,
    /// Device memory that the inputs and one implementation take, in bytes; `None` on the CPU.
    pub device_bytes: Option<u64>,
}

impl Planned {
    /// Why it does not fit in this memory, in a sentence; `None` where it does.
    pub fn lacks(&self, memory: MachineMemory) -> Option<String> {
        memory.lacks(self.host_bytes, self.device_bytes)
    }
}

/// Share of a memory that a benchmark may take: the driver, the libraries' workspaces and other
/// processes need the rest.
const USABLE_SHARE: f64 = 0.85;

/// The memory of a machine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineMemory {
    /// The host's, as far as this process may use it.
    pub host: u64,
    /// The device's, 0 without one.
    pub device: u64,
}

impl MachineMemory {
    pub(super) fn lacks(self, host: u64, device: Option<u64>) -> Option<String> {
        does_not_fit("host", host, self.host)
            .or_else(|| does_not_fit("device", device?, self.device))
    }
}

fn does_not_fit(which: &str, needed: u64, there: u64) -> Option<String> {
    let gib = |bytes: f64| bytes / f64::from(1u32 << 30);
    let usable = there as f64 * USABLE_SHARE;
    (needed as f64 > usable).then(|| {
        format!(
            "needs {:.1} GiB of {which} memory and {:.1} GiB of {:.1} GiB may be used; run it on a machine with more",
            gib(needed as f64),
            gib(usable),
            gib(there as f64)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_sizes_take_the_place_of_the_smallest() {
        let sizes = Sizes::new([4], [8], [16]);
        assert_eq!(sizes.for_tests(), [3, 4, 5]);
        assert_eq!(sizes.odd([1, 7]).for_tests(), [1, 7]);
        assert_eq!(Sizes::new([], [1], []).for_tests(), [1, 2]);
    }

    #[test]
    fn a_size_that_does_not_fit_is_named() {
        assert_eq!(does_not_fit("host", 80, 100), None);
        let text = does_not_fit("host", 90, 100).expect("of 100 B 85 are usable");
        assert!(text.contains("of host memory"), "{text}");
        let memory = MachineMemory {
            host: 100,
            device: 0,
        };
        assert_eq!(memory.lacks(80, None), None);
        assert!(memory.lacks(80, Some(1)).is_some());
    }
}
