//! Telemetry: reads the state of the device ten times per second while a benchmark runs, from a thread of its
//! own.
//!
//! A reading takes the host tens to hundreds of microseconds in the driver, and the device nothing: at
//! ten per second about a thousandth of one core. NVML updates most values only a few times per second,
//! so more readings would be of little use. PCIe throughput is left out, because NVML measures it over
//! 20 ms per call. `tests/gpu/monitor.rs` compares a kernel's time with and without readings.

mod recorder;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crossover_results::model::environment::PcieLink;
use crossover_results::model::record::{Energy, Telemetry};

use crate::monitor::recorder::Recorder;

/// Time between two readings.
const INTERVAL: Duration = Duration::from_millis(100);

/// The state of a device at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// SM clock, MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Memory clock, MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Share of NVML's last sample period in which a kernel ran, percent.
    pub utilisation_percent: Option<u32>,
    /// Power draw, watts.
    pub power_w: Option<f64>,
    /// Temperature, degrees Celsius.
    pub temperature_c: Option<u32>,
    /// The PCIe link; an idle one runs at a lower generation.
    pub pcie: Option<PcieLink>,
    /// Reasons for which the device lowers its clock; `None` if the driver does not tell.
    pub throttle_reasons: Option<Vec<&'static str>>,
    /// Whether the clock is low because the device is idle.
    pub idle: bool,
}

/// Where readings come from: NVML, or a test.
pub trait Source: Send + Sync {
    /// Reads the state of the device now.
    fn read(&self) -> Reading;
    /// Energy since the driver was loaded, joules; `None` where there is no counter.
    fn energy_j(&self) -> Option<f64>;
}

/// Time between two readings of the energy counter, between samples.
const ENERGY_INTERVAL: Duration = Duration::from_millis(50);
/// Shortest time over which energy is reported: devices update the counter in steps of up to 100 ms,
/// which is a third of it.
const SHORTEST_ENERGY: Duration = Duration::from_millis(300);

/// Reads a device until it is finished or dropped.
pub struct Watch {
    source: Arc<dyn Source>,
    start: Instant,
    stop: Sender<()>,
    thread: JoinHandle<Recorder>,
    energy_before: Option<f64>,
    /// Number of iterations that have run so far.
    iterations: u64,
    /// End of the last sample.
    sampled_until: Duration,
    read_at: Duration,
    energy: Option<Energy>,
}

impl Watch {
    /// Starts reading.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(source: Arc<dyn Source>) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let energy_before = source.energy_j();
        let start = Instant::now();
        let read_by_thread = source.clone();
        let thread = Builder::new().name("monitor".to_owned()).spawn(move || {
            let mut recorder = Recorder::default();
            loop {
                recorder.add(start.elapsed(), read_by_thread.read());
                if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return recorder;
                }
            }
        })?;
        Ok(Self {
            source,
            start,
            stop,
            thread,
            energy_before,
            iterations: 0,
            sampled_until: Duration::ZERO,
            read_at: Duration::ZERO,
            energy: None,
        })
    }

    /// Notes that a sample of `iterations` has just ended and the device is idle. Call it outside
    /// the timed window.
    pub fn sampled(&mut self, iterations: u64) {
        self.sampled_at(self.start.elapsed(), iterations);
    }

    fn sampled_at(&mut self, now: Duration, iterations: u64) {
        self.iterations += iterations;
        self.sampled_until = now;
        let Some(before) = self.energy_before else {
            return;
        };
        if now >= SHORTEST_ENERGY && now - self.read_at >= ENERGY_INTERVAL {
            self.read_at = now;
            let joules = self.source.energy_j().map(|joules| joules - before);
            // A counter that went back was reset when the driver was reloaded, so it is useless.
            let joules = joules.filter(|joules| *joules > 0.0);
            self.energy = joules.map(|joules| Energy {
                joules,
                seconds: now.as_secs_f64(),
                iterations: self.iterations,
            });
        }
    }

    /// Stops reading. Returns the telemetry up to the end of the last sample.
    pub fn finish(self) -> Telemetry {
        drop(self.stop);
        // A thread that panicked has no readings.
        let recorder = self.thread.join().unwrap_or_default();
        let mut telemetry = recorder.telemetry(self.sampled_until);
        telemetry.energy = self.energy;
        telemetry
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::monitor::Reading;

    /// A device that takes ten joules a reading.
    #[derive(Default)]
    struct Fake {
        readings: AtomicU64,
        counts: bool,
    }

    impl Source for Fake {
        fn read(&self) -> Reading {
            Reading {
                sm_clock_mhz: Some(1980),
                temperature_c: Some(40),
                ..Reading::default()
            }
        }

        fn energy_j(&self) -> Option<f64> {
            let before = self.readings.fetch_add(1, Ordering::Relaxed);
            self.counts.then_some(10.0 * before as f64)
        }
    }

    #[test]
    fn a_watch_looks_at_once_and_leaves_out_what_is_not_reported() {
        let mut watch = Watch::start(Arc::new(Fake::default())).unwrap();
        watch.sampled(5);
        let telemetry = watch.finish();
        assert_eq!(telemetry.time_ms.len(), telemetry.sm_clock_mhz.len());
        assert_eq!(telemetry.sm_clock_mhz[0], Some(1980));
        assert_eq!(telemetry.temperature_c[0], Some(40));
        assert!(telemetry.power_w.is_empty() && telemetry.memory_clock_mhz.is_empty());
        assert_eq!(telemetry.energy, None, "no counter");
    }

    #[test]
    fn energy_is_that_of_the_iterations_between_the_readings() {
        let fake = Fake {
            counts: true,
            ..Fake::default()
        };
        let mut watch = Watch::start(Arc::new(fake)).unwrap();
        watch.sampled_at(SHORTEST_ENERGY / 2, 3);
        assert_eq!(watch.energy, None, "too early to tell");
        watch.sampled_at(SHORTEST_ENERGY, 2);
        let energy = watch.energy.unwrap();
        assert_eq!((energy.joules, energy.iterations), (10.0, 5));
        assert_eq!(energy.per_iteration(), 2.0);
        assert_eq!(energy.seconds, SHORTEST_ENERGY.as_secs_f64());
        drop(watch);
    }

    #[test]
    fn a_watch_that_is_dropped_lets_its_source_go() {
        let source: Arc<dyn Source> = Arc::new(Fake::default());
        let thread = {
            let watch = Watch::start(source.clone()).unwrap();
            watch.thread
        };
        thread.join().unwrap();
        assert_eq!(Arc::strong_count(&source), 1);
    }
}
