//! The measurement, as Criterion drives it by itself: `b.iter`.

use std::time::Instant;

use criterion::measurement::{Measurement, ValueFormatter};
use cudarc::driver::{CudaEvent, result};

use crate::cuda_error::{Called, CudaError};
use crate::cuda_time::{CudaTime, finite};
use crate::device::elapsed;
use crate::error::TimingError;
use crate::prepared_launch::bind;
use crossover_words::Clock;

/// What [`Measurement::start`] hands to [`Measurement::end`].
#[derive(Debug)]
pub struct Started(Begin);

#[derive(Debug)]
enum Begin {
    Host(Instant),
    Device(CudaEvent),
}

impl Measurement for CudaTime {
    type Intermediate = Started;
    type Value = f64;

    fn start(&self) -> Started {
        let Some(device) = self.device() else {
            return Started(Begin::Host(Instant::now()));
        };
        let begin = || -> Result<CudaEvent, CudaError> {
            bind(&device.context)?;
            let event = device.event()?;
            device.record(&event)?;
            Ok(event)
        };
        match begin() {
            Ok(event) => Started(Begin::Device(event)),
            Err(e) => self.fail(e),
        }
    }

    fn end(&self, started: Started) -> f64 {
        let measured = match (started.0, self.device()) {
            (Begin::Device(start), Some(device)) => {
                let finish = || -> Result<f64, TimingError> {
                    let end = device.event()?;
                    device.record(&end)?;
                    // SAFETY: the event is alive and was recorded just above.
                    unsafe { result::event::synchronize(end.cu_event()) }
                        .called("cuEventSynchronize")?;
                    let nanoseconds = elapsed(&start, &end)?;
                    device.give_back(end);
                    self.require_alone(device, nanoseconds)?;
                    finite(nanoseconds, Clock::Events)
                };
                let measured = finish();
                device.give_back(start);
                device.last_use.set(Some(Instant::now()));
                measured
            }
            (Begin::Host(start), _) => finite(start.elapsed().as_nanos() as f64, Clock::Wall),
            (Begin::Device(_), None) => Err(TimingError::NoDevice {
                clock: Clock::Events,
            }),
        };
        measured.unwrap_or_else(|e| self.fail(e))
    }

    fn add(&self, a: &f64, b: &f64) -> f64 {
        a + b
    }

    fn zero(&self) -> f64 {
        0.0
    }

    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        &self.criterion().formatter
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_host_only_measurement_spans_start_to_end() {
        let time = CudaTime::host_only();
        let started = time.start();
        let before = Instant::now();
        std::thread::sleep(Duration::from_millis(2));
        let slept = before.elapsed().as_nanos() as f64;
        assert!(time.end(started) >= slept);
    }
}
