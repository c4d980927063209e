//! The measurement, as Criterion drives it by itself: `b.iter`.

use std::time::Instant;

use criterion::measurement::{Measurement, ValueFormatter};

use crate::cuda_error::CudaError;
use crate::cuda_time::CudaTime;
use crate::device::ClockedDevice;
use crate::error::TimingError;
use crate::events::EventPair;
use crate::measure::finite;
use crate::prepared_launch::bind;
use crossover_words::Clock;

/// The state between [`Measurement::start`] and [`Measurement::end`].
#[derive(Debug)]
pub struct Started {
    begun: Instant,
    /// The first is recorded on the device if there is one.
    events: Option<EventPair>,
}

impl Measurement for CudaTime {
    type Intermediate = Started;
    type Value = f64;

    fn start(&self) -> Started {
        let begin = |device: &ClockedDevice| -> Result<EventPair, CudaError> {
            bind(&device.context)?;
            let events = device.events()?;
            events.start(&device.stream)?;
            Ok(events)
        };
        Started {
            begun: Instant::now(),
            events: (self.device()).map(|device| begin(device).unwrap_or_else(|e| self.fail(e))),
        }
    }

    fn end(&self, started: Started) -> f64 {
        let measured = match self.device().zip(started.events) {
            Some((device, events)) => {
                let finish = || -> Result<f64, TimingError> {
                    events.end(&device.stream)?;
                    events.wait()?;
                    let nanoseconds = events.elapsed_ns()?;
                    self.require_alone(device, nanoseconds)?;
                    finite(nanoseconds, device.resolution_ns(Clock::Events))
                };
                let measured = finish();
                device.give_back(events);
                device.last_use.set(Some(Instant::now()));
                measured
            }
            None => {
                let nanoseconds = started.begun.elapsed().as_nanos() as f64;
                finite(nanoseconds, Clock::Wall.resolution_ns())
            }
        };
        measured.unwrap_or_else(|e| self.fail(e))
    }

    fn add(&self, a: &f64, b: &f64) -> f64 {
        a + b
    }

    fn zero(&self) -> f64 {
        // A benchmark begins, which may not measure on a clock of this one.
        self.inner.criterion.measures_on(Clock::Wall);
        0.0
    }

    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        &self.inner.criterion.formatter
    }
}
