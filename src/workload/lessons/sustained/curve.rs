//! What was recorded, and what it tells of a time since the start.

use std::time::Duration;

use crate::machine::monitor::{Reading, Recorder};
use crate::model::{Energy, Telemetry};

/// Number of groups of products that are the samples of a size.
pub(super) const SAMPLES: usize = 10;

/// What NVML read over this long before a time is the telemetry of that time, ns.
const TELEMETRY_WINDOW: f64 = 100e6;
/// The energy is that over this long before a time, ns, or over half of the time since the start if
/// that is longer: a device that renews its counter every 100 ms tells it within 10 % after a second,
/// and within 1 % after 20.
const ENERGY_WINDOW: f64 = 1e9;
/// Over a shorter time, ns, no energy is told: it would be only a few steps of such a counter.
const SHORTEST_ENERGY: f64 = 300e6;

/// The state of the device, as NVML read it.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    /// Time on the device since the product began, ns.
    at_ns: f64,
    /// Products that were done by then.
    products: u64,
    reading: Reading,
    /// Energy by the device's counter, joules.
    energy_j: Option<f64>,
}

/// Groups of products, one after the other without a pause, and the readings meanwhile.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Curve {
    /// End of each group since the first began, ns.
    ends_ns: Vec<f64>,
    /// Time of one product, by group, ns.
    each_ns: Vec<f64>,
    products: u64,
    seen: Vec<Seen>,
}

impl Curve {
    /// Adds a group of `products` that took `ns`.
    pub(super) fn ran(&mut self, products: u32, ns: f64) {
        self.ends_ns.push(self.length_ns() + ns);
        self.each_ns.push(ns / f64::from(products));
        self.products += u64::from(products);
    }

    /// Adds what NVML reads after the last group.
    pub(super) fn saw(&mut self, reading: Reading, energy_j: Option<f64>) {
        self.seen.push(Seen {
            at_ns: self.length_ns(),
            products: self.products,
            reading: Reading {
                // NVML's share is that of its last period of up to a second, which may have been
                // idle; here the device is busy from the start.
                utilisation_percent: None,
                ..reading
            },
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

    /// What NVML read in the last 100 ms, or first after the start; `None` without readings. Times
    /// are since the product began.
    pub(super) fn telemetry(&self, at_ns: f64) -> Option<Telemetry> {
        let after_the_start = || self.seen.iter().filter(|seen| seen.at_ns > 0.0);
        let recent = |seen: &&Seen| at_ns - TELEMETRY_WINDOW < seen.at_ns && seen.at_ns <= at_ns;
        let mut readings: Vec<&Seen> = after_the_start().filter(recent).collect();
        if readings.is_empty() {
            readings.push(after_the_start().next()?);
        }
        let mut recorder = Recorder::default();
        for seen in readings {
            recorder.add(
                Duration::from_nanos(seen.at_ns as u64),
                seen.reading.clone(),
            );
        }
        Some(Telemetry {
            energy: self.energy(at_ns),
            ..recorder.telemetry(Duration::from_nanos(at_ns as u64))
        })
    }

    /// Energy over [`ENERGY_WINDOW`], or since the start; `None` without a counter of energy, and
    /// where the time is too short for it.
    fn energy(&self, at_ns: f64) -> Option<Energy> {
        let known = || {
            let seen = self.seen.iter();
            seen.filter_map(|seen| Some((seen, seen.energy_j?)))
        };
        let (end, after) = known().rfind(|(seen, _)| seen.at_ns <= at_ns)?;
        let window = ENERGY_WINDOW.max(end.at_ns / 2.0);
        let (start, before) = known().find(|(seen, _)| seen.at_ns >= end.at_ns - window)?;
        let (joules, ns) = (after - before, end.at_ns - start.at_ns);
        (ns >= SHORTEST_ENERGY && joules > 0.0).then(|| Energy {
            joules,
            seconds: ns * 1e-9,
            iterations: end.products - start.products,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::telemetry::TelemetryEventKind::ThrottlingSetIn;

    fn reading(mhz: u32, reasons: &[&'static str]) -> Reading {
        Reading {
            sm_clock_mhz: Some(mhz),
            utilisation_percent: Some(0),
            throttle_reasons: Some(reasons.to_vec()),
            ..Reading::default()
        }
    }

    /// Groups of 10 ms, at 0.1 ms a product for half a second and 0.2 ms from then on; NVML is
    /// read every 50 ms, at 1,980 MHz and 300 W, then 1,400 MHz and 700 W.
    fn recorded() -> Curve {
        let mut curve = Curve::default();
        let (mut joules, settled) = (1e6, 500e6);
        curve.saw(reading(345, &[]), Some(joules));
        for group in 0..200 {
            let is_settled = curve.length_ns() >= settled;
            curve.ran(if is_settled { 50 } else { 100 }, 10e6);
            joules += if is_settled { 7.0 } else { 3.0 };
            if group % 5 == 4 {
                let seen = match is_settled {
                    true => reading(1400, &["power cap"]),
                    false => reading(1980, &[]),
                };
                curve.saw(seen, Some(joules));
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
    fn telemetry_is_that_of_the_time_before() {
        let curve = recorded();
        let at = |ns| curve.telemetry(ns).unwrap();
        let both = |mhz| vec![Some(mhz); 2];
        assert_eq!(at(100e6).time_ms, [50, 100]);
        assert_eq!(at(100e6).sm_clock_mhz, both(1980), "not the idle device's");
        assert_eq!(at(10e6).sm_clock_mhz, [Some(1980)], "the first one");
        assert_eq!(at(2e9).sm_clock_mhz, both(1400));
        assert_eq!(at(2e9).utilisation_percent, []);
        assert_eq!(at(500e6).events, []);
        let settled = at(2e9).events;
        assert_eq!(settled.len(), 1);
        assert_eq!(
            (settled[0].kind, &*settled[0].detail),
            (ThrottlingSetIn, "power cap")
        );
        let mut blind = Curve::default();
        blind.ran(1, 1e9);
        assert_eq!(blind.telemetry(1e9), None);
        blind.saw(Reading::default(), None);
        assert_eq!(blind.telemetry(1e9).unwrap().energy, None);
    }

    #[test]
    fn energy_is_that_of_the_last_second() {
        let curve = recorded();
        let at = |ns| curve.telemetry(ns).unwrap().energy;
        let near = |ns, watts: f64, iterations| {
            let energy = at(ns).unwrap();
            assert!((energy.joules / energy.seconds - watts).abs() < 1e-6);
            assert_eq!(energy.iterations, iterations);
        };
        assert_eq!(at(200e6), None, "too early for the counter");
        near(500e6, 300.0, 5_000);
        // Half a second of each.
        near(1e9, 500.0, 7_500);
        near(2e9, 700.0, 5_000);
    }

    #[test]
    fn steps_of_the_counter_count_for_less_after_a_longer_time() {
        // 600 W throughout, by a counter that is renewed every 100 ms and read every 60 ms.
        let mut curve = Curve::default();
        curve.saw(Reading::default(), Some(0.0));
        while curve.length_ns() < 20e9 {
            curve.ran(100, 60e6);
            let renewed_ns = (curve.length_ns() / 100e6).floor() * 100e6;
            curve.saw(Reading::default(), Some(600.0 * renewed_ns * 1e-9));
        }
        let error_at = |seconds: f64| {
            let energy = curve.telemetry(seconds * 1e9).unwrap().energy.unwrap();
            (energy.joules / energy.seconds / 600.0 - 1.0).abs()
        };
        let worst_up_to = |seconds: f64| {
            let times = (0..100).map(|step| seconds - 0.01 * f64::from(step));
            times.map(error_at).max_by(f64::total_cmp).unwrap()
        };
        // Steps over the window, which readings every 60 ms may shorten by as much.
        for (seconds, step_over_window) in [(2.0, 0.107), (5.0, 0.051), (20.0, 0.0106)] {
            let worst = worst_up_to(seconds);
            assert!(worst <= step_over_window, "{seconds} s: {worst}");
        }
    }
}
