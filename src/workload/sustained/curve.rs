//! What was recorded, and what it tells of a time since the start.

use crate::model::median::median;

/// Number of groups of products that are the samples of a size.
pub(super) const SAMPLES: usize = 10;

/// The clock at a time is the median of the readings over this long before it, ns.
const CLOCK_WINDOW: f64 = 100e6;
/// Power is the energy over this long, ns, as newer devices average it themselves.
const POWER_WINDOW: f64 = 1e9;
/// Over a shorter time no power is told, ns: devices renew the counter of energy in steps of up to
/// 100 ms.
const SHORTEST_ENERGY: f64 = 300e6;

/// The state of the device, as NVML read it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// Time on the device since the product began, ns.
    pub(super) at_ns: f64,
    /// SM clock, MHz.
    pub(super) sm_clock_mhz: Option<u32>,
    /// Energy by the device's counter, joules.
    pub(super) energy_j: Option<f64>,
}

/// Groups of products, one after the other without a pause, and the readings meanwhile.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Curve {
    /// End of each group since the first began, ns.
    ends_ns: Vec<f64>,
    /// Time of one product, by group, ns.
    each_ns: Vec<f64>,
    seen: Vec<Seen>,
}

impl Curve {
    /// Adds a group of `products` that took `ns`.
    pub(super) fn ran(&mut self, products: u32, ns: f64) {
        self.ends_ns.push(self.length_ns() + ns);
        self.each_ns.push(ns / f64::from(products));
    }

    /// Adds what NVML reads after the last group.
    pub(super) fn saw(&mut self, sm_clock_mhz: Option<u32>, energy_j: Option<f64>) {
        self.seen.push(Seen {
            at_ns: self.length_ns(),
            sm_clock_mhz,
            energy_j,
        });
    }

    /// Time on the device so far, ns.
    pub(super) fn length_ns(&self) -> f64 {
        self.ends_ns.last().copied().unwrap_or(0.0)
    }

    /// Whether it is as long as `ns`.
    pub(super) fn reaches(&self, ns: f64) -> bool {
        self.length_ns() >= ns && self.each_ns.len() >= SAMPLES
    }

    /// Times of a product, ns, in the groups up to the one in which `at_ns` falls: [`SAMPLES`] of
    /// them, or the first ones where fewer had run by then.
    pub(super) fn samples(&self, at_ns: f64) -> &[f64] {
        let until = self.ends_ns.partition_point(|end| *end < at_ns) + 1;
        let until = until.max(SAMPLES).min(self.each_ns.len());
        &self.each_ns[until.saturating_sub(SAMPLES)..until]
    }

    /// Median of the SM clock in the last 100 ms, MHz, or the first reading after the start.
    pub(super) fn sm_clock_mhz(&self, at_ns: f64) -> Option<f64> {
        let known = || {
            let after_the_start = self.seen.iter().filter(|seen| seen.at_ns > 0.0);
            after_the_start.filter_map(|seen| Some((seen.at_ns, f64::from(seen.sm_clock_mhz?))))
        };
        let recent = known().filter(|(at, _)| at_ns - CLOCK_WINDOW < *at && *at <= at_ns);
        median(recent.map(|(_, mhz)| mhz)).or_else(|| Some(known().next()?.1))
    }

    /// Mean power over the last second, or since the start, watts; `None` without a counter of
    /// energy, and where the time is too short for it.
    pub(super) fn power_w(&self, at_ns: f64) -> Option<f64> {
        let known = || {
            let seen = self.seen.iter();
            seen.filter_map(|seen| Some((seen.at_ns, seen.energy_j?)))
        };
        let (end, joules) = known().rfind(|(at, _)| *at <= at_ns)?;
        let (start, before) = known().find(|(at, _)| *at >= end - POWER_WINDOW)?;
        let watts = (joules - before) / ((end - start) * 1e-9);
        (end - start >= SHORTEST_ENERGY && watts > 0.0).then_some(watts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups of 10 ms, at 0.1 ms a product for half a second and 0.2 ms from then on; NVML is
    /// read every 50 ms, at 1,980 MHz and 300 W, then 1,400 MHz and 700 W.
    fn recorded() -> Curve {
        let mut curve = Curve::default();
        let (mut joules, settled) = (1e6, 500e6);
        curve.saw(Some(345), Some(joules));
        for group in 0..200 {
            let is_settled = curve.length_ns() >= settled;
            curve.ran(if is_settled { 50 } else { 100 }, 10e6);
            joules += if is_settled { 7.0 } else { 3.0 };
            if group % 5 == 4 {
                curve.saw(Some(if is_settled { 1400 } else { 1980 }), Some(joules));
            }
        }
        curve
    }

    #[test]
    fn a_size_has_the_groups_before_it() {
        let curve = recorded();
        assert_eq!(curve.length_ns(), 2e9);
        assert_eq!(curve.samples(100e6), [0.1e6; SAMPLES]);
        assert_eq!(curve.samples(500e6), [0.1e6; SAMPLES]);
        let mut changing = [0.1e6; SAMPLES];
        changing[6..].fill(0.2e6);
        assert_eq!(curve.samples(540e6), changing);
        assert_eq!(curve.samples(2e9), [0.2e6; SAMPLES]);
        // Earlier than ten groups, and later than all.
        assert_eq!(curve.samples(1.0), [0.1e6; SAMPLES]);
        assert_eq!(curve.samples(1e18), [0.2e6; SAMPLES]);
        assert!(curve.reaches(2e9) && !curve.reaches(2.1e9));
        let mut short = Curve::default();
        short.ran(1, 5e9);
        assert!(!short.reaches(1e9), "one group has no ten samples");
        assert_eq!(short.samples(1e9), [5e9]);
    }

    #[test]
    fn clock_and_power_are_those_of_the_time_before() {
        let curve = recorded();
        assert_eq!(
            curve.sm_clock_mhz(100e6),
            Some(1980.0),
            "not that of the idle device"
        );
        assert_eq!(
            curve.sm_clock_mhz(10e6),
            Some(1980.0),
            "the first one after the start"
        );
        assert_eq!(curve.sm_clock_mhz(2e9), Some(1400.0));
        let near = |watts: Option<f64>, planted: f64| (watts.unwrap() - planted).abs() < 1e-6;
        assert_eq!(curve.power_w(200e6), None, "too early for the counter");
        assert!(near(curve.power_w(500e6), 300.0));
        assert!(near(curve.power_w(1e9), 500.0), "half a second of each");
        assert!(near(curve.power_w(2e9), 700.0));
        let mut blind = Curve::default();
        blind.ran(1, 1e9);
        blind.saw(None, None);
        assert_eq!((blind.sm_clock_mhz(1e9), blind.power_w(1e9)), (None, None));
    }
}
