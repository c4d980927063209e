//! Reduces many readings to the telemetry of a benchmark.

use std::time::Duration;

use crate::monitor::{INTERVAL, Reading};
use crossover_results::model::record::{Telemetry, TelemetryEvent, TelemetryEventKind};

/// The SM clock has fallen if it is below this share of the highest reading so far.
const FALLEN: f64 = 0.97;
/// It has recovered if it is above this share. Steps of the clock between the two (15 MHz on an H200)
/// are no event.
const RECOVERED: f64 = 0.98;

/// Readings of a device, and what changed between them.
#[derive(Default)]
pub(super) struct Recorder {
    points: Vec<(u32, Reading)>,
    events: Vec<TelemetryEvent>,
    throttled: Vec<&'static str>,
    /// Whether any reading had reasons of throttling, even if none applied.
    told: bool,
    highest_mhz: u32,
    fallen: bool,
}

impl Recorder {
    /// Adds the reading `at` this time after the start.
    pub(super) fn add(&mut self, at: Duration, reading: Reading) {
        let time_ms = u32::try_from(at.as_millis()).unwrap_or(u32::MAX);
        self.find_events(time_ms, &reading);
        self.points.push((time_ms, reading));
    }

    fn find_events(&mut self, time_ms: u32, reading: &Reading) {
        use TelemetryEventKind::{ClockFell, ClockRecovered, ThrottlingEnded, ThrottlingSetIn};
        self.told |= reading.throttle_reasons.is_some();
        // A failed reading changes nothing.
        if let Some(reasons) = &reading.throttle_reasons
            && *reasons != self.throttled
        {
            let (kind, named) = if reasons.is_empty() {
                (ThrottlingEnded, &self.throttled)
            } else {
                (ThrottlingSetIn, reasons)
            };
            let detail = named.join(", ");
            self.event(time_ms, kind, detail);
            self.throttled.clone_from(reasons);
        }
        let Some(mhz) = reading.sm_clock_mhz else {
            return;
        };
        let share = f64::from(mhz) / f64::from(self.highest_mhz.max(1));
        let highest = self.highest_mhz;
        if !self.fallen && share < FALLEN && !reading.idle {
            self.fallen = true;
            self.event(time_ms, ClockFell, format!("from {highest} to {mhz} MHz"));
        } else if self.fallen && share > RECOVERED {
            self.fallen = false;
            self.event(time_ms, ClockRecovered, format!("{mhz} MHz"));
        }
        self.highest_mhz = highest.max(mhz);
    }

    fn event(&mut self, time_ms: u32, kind: TelemetryEventKind, detail: String) {
        if self.events.len() < Telemetry::MOST_EVENTS {
            self.events.push(TelemetryEvent {
                time_ms,
                kind,
                detail,
            });
        }
    }

    /// The telemetry up to `end`: always the first reading, and if there are many, only some of the
    /// others.
    pub(super) fn telemetry(mut self, end: Duration) -> Telemetry {
        // A reading within an interval after the last sample still saw the load.
        let end = u32::try_from((end + INTERVAL / 2).as_millis()).unwrap_or(u32::MAX);
        let kept = self.points.iter().filter(|(t, _)| *t <= end).count();
        let step = kept.div_ceil(Telemetry::MOST_POINTS).max(1);
        let thinned = self.points.into_iter().take(kept.max(1)).step_by(step);
        self.points = thinned.collect();
        self.events.retain(|event| event.time_ms <= end);
        Telemetry {
            time_ms: self.points.iter().map(|(t, _)| *t).collect(),
            sm_clock_mhz: self.series(|l| l.sm_clock_mhz),
            memory_clock_mhz: self.series(|l| l.memory_clock_mhz),
            utilisation_percent: self.series(|l| l.utilisation_percent),
            // A tenth of a watt is finer than any sensor, and shorter to write.
            power_w: self.series(|l| l.power_w.map(|w| (10.0 * w).round() / 10.0)),
            temperature_c: self.series(|l| l.temperature_c),
            pcie: self.points.last().and_then(|(_, reading)| reading.pcie),
            events: self.events,
            throttling_unknown: !self.told,
            energy: None,
        }
    }

    fn series<T>(&self, value: impl Fn(&Reading) -> Option<T>) -> Vec<Option<T>> {
        let series: Vec<Option<T>> = self
            .points
            .iter()
            .map(|(_, reading)| value(reading))
            .collect();
        if series.iter().all(Option::is_none) {
            return Vec::new();
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(mhz: u32) -> Reading {
        Reading {
            sm_clock_mhz: Some(mhz),
            ..Reading::default()
        }
    }

    fn record(readings: impl IntoIterator<Item = Reading>) -> Recorder {
        let mut recorder = Recorder::default();
        for (i, reading) in readings.into_iter().enumerate() {
            recorder.add(INTERVAL * i as u32, reading);
        }
        recorder
    }

    fn events(
        readings: impl IntoIterator<Item = Reading>,
    ) -> Vec<(u32, TelemetryEventKind, String)> {
        record(readings)
            .telemetry(Duration::MAX / 2)
            .events
            .into_iter()
            .map(|e| (e.time_ms, e.kind, e.detail))
            .collect()
    }

    #[test]
    fn a_long_run_is_thinned_evenly_and_spans_the_whole() {
        for readings in [1, 59, 60, 61, 119, 120, 121, 1_000, 5_000] {
            let telemetry = record((0..readings).map(|_| clock(1980))).telemetry(Duration::MAX / 2);
            let times = &telemetry.time_ms;
            assert!(
                (1..=Telemetry::MOST_POINTS).contains(&times.len()),
                "{readings}"
            );
            assert!(
                times.len() > 29 || times.len() == readings as usize,
                "{readings}"
            );
            let step = times.get(1).copied().unwrap_or(100);
            let even = times.iter().enumerate().all(|(i, t)| *t == step * i as u32);
            assert!(even, "{readings}: {times:?}");
            assert!(times.last().unwrap() + step >= 100 * readings, "{readings}");
        }
    }

    #[test]
    fn a_falling_clock_is_an_event_and_its_steps_are_none() {
        use TelemetryEventKind::{ClockFell, ClockRecovered};
        assert_eq!(events([1980, 1965, 1950, 1980].map(clock)), []);
        assert_eq!(
            events([1755, 1980, 1900, 1905, 1930, 1980].map(clock)),
            [
                (200, ClockFell, "from 1980 to 1900 MHz".to_owned()),
                (500, ClockRecovered, "1980 MHz".to_owned()),
            ]
        );
        let idle = Reading {
            idle: true,
            ..clock(345)
        };
        assert_eq!(events([clock(1980), idle, clock(1980)]), []);
    }

    #[test]
    fn throttling_is_an_event_when_it_sets_in_changes_and_ends() {
        use TelemetryEventKind::{ThrottlingEnded, ThrottlingSetIn};
        let throttled = |reasons: &[&'static str]| Reading {
            throttle_reasons: Some(reasons.to_vec()),
            ..Reading::default()
        };
        let hot = ["power cap", "hardware thermal slowdown"];
        assert_eq!(
            events([
                throttled(&[]),
                throttled(&hot[..1]),
                throttled(&hot[..1]),
                throttled(&hot),
                Reading::default(),
                throttled(&[]),
            ]),
            [
                (100, ThrottlingSetIn, "power cap".to_owned()),
                (300, ThrottlingSetIn, hot.join(", ")),
                (500, ThrottlingEnded, hot.join(", ")),
            ]
        );
        let told = |readings: [Reading; 2]| {
            let telemetry = record(readings).telemetry(Duration::MAX / 2);
            !telemetry.throttling_unknown
        };
        assert!(told([clock(1980), throttled(&[])]));
        assert!(!told([clock(1980), clock(1980)]));
        let flapping = (0..100).map(|i| throttled(&hot[..i % 2]));
        assert_eq!(events(flapping).len(), Telemetry::MOST_EVENTS);
    }

    #[test]
    fn readings_after_the_last_sample_are_left_out() {
        let readings = [1980, 1980, 1980, 345, 345].map(clock);
        let telemetry = record(readings.clone()).telemetry(Duration::from_millis(210));
        assert_eq!(telemetry.time_ms, [0, 100, 200]);
        assert_eq!(telemetry.events, []);
        let telemetry = record(readings).telemetry(Duration::ZERO);
        assert_eq!(telemetry.time_ms, [0], "a sample shorter than a reading");
    }
}
