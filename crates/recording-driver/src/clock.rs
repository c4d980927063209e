//! The virtual clock: work takes a defined time, so that times in tests are known.

use crate::device::Description;

/// Nanoseconds since the driver was loaded, on a clock that only work advances.
pub(crate) type Time = u64;

/// The host's position on the clock, and the variation of times.
#[derive(Default)]
pub(crate) struct Clock {
    /// The host's time: enqueueing a launch advances it slightly, a wait advances it to the end of the
    /// awaited work.
    pub(crate) host: Time,
    /// Nanoseconds that a kernel on the current device takes longer.
    pub(crate) longer: Time,
    /// Number of times drawn.
    drawn: u64,
}

impl Clock {
    /// Advances the host to `time`, unless it is already later.
    pub(crate) fn wait_until(&mut self, time: Time) {
        self.host = self.host.max(time);
    }

    /// `nanoseconds` with the variation, because Criterion panics if all samples are equal.
    pub(crate) fn vary(&mut self, on: &Description, nanoseconds: u64) -> u64 {
        self.drawn += 1;
        let span = nanoseconds * on.variation_ppm / 1_000_000;
        nanoseconds - span + mixed(self.drawn) % (2 * span + 1)
    }
}

/// The time of a copy or a set of `bytes` at a rate.
pub(crate) fn moved(on: &Description, bytes: u64, bytes_per_s: u64) -> u64 {
    let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s.max(1));
    on.copy_ns + nanoseconds as u64
}

/// The n-th of a fixed sequence of random numbers (SplitMix64, Steele et al. 2014).
fn mixed(n: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
