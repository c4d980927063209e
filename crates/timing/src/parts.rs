//! Several kernels of one iteration, each with its own name and time.

use std::fmt;

use crate::cuda_time::{CudaTime, finite};
use crate::error::{BoxError, TimingError};
use crate::prepared_launch::LAUNCHES_PER_GATE;
use crate::sequence;
use crossover_words::Clock;

/// What one iteration enqueues, in parts with names, such as the kernels of a layer. Each part is
/// timed where it stands, after the parts before it and with the others behind it, so that it finds
/// the caches as in the whole.
///
/// ```no_run
/// # #[cfg(feature = "criterion")] {
/// use crossover_timing::criterion::Criterion;
/// use crossover_timing::{CudaBencherExt, CudaError, CudaTime, Parts};
///
/// let time = CudaTime::new(0)?;
/// let (normalise, multiply) = (|| Ok::<(), CudaError>(()), || Ok::<(), CudaError>(()));
/// let mut layer = Parts::new()
///     .part("normalise", 1, normalise)
///     .part("multiply", 1, multiply);
/// let mut criterion = Criterion::default().with_measurement(time.clone());
/// let mut group = criterion.benchmark_group("layer");
/// for name in layer.names() {
///     group.bench_function(&name, |b| b.iter_part(&time, &mut layer, &name));
/// }
/// # }
/// # Ok::<(), crossover_timing::Absence>(())
/// ```
#[derive(Default)]
pub struct Parts<'a> {
    parts: Vec<Part<'a>>,
}

struct Part<'a> {
    name: String,
    launches: u32,
    routine: Box<dyn FnMut() -> Result<(), TimingError> + 'a>,
}

impl fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl<'a> Parts<'a> {
    /// No parts so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a part behind the others: its name, the launches that it makes, and the routine that
    /// enqueues it.
    pub fn part<E: Into<BoxError>>(
        mut self,
        name: impl Into<String>,
        launches: u32,
        mut routine: impl FnMut() -> Result<(), E> + 'a,
    ) -> Self {
        self.parts.push(Part {
            name: name.into(),
            launches,
            routine: Box::new(move || routine().map_err(|e| TimingError::from(e.into()))),
        });
        self
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<String> {
        self.parts.iter().map(|part| part.name.clone()).collect()
    }

    /// Launches of an iteration.
    pub(crate) fn launches(&self) -> u32 {
        let each = self.parts.iter().map(|part| part.launches);
        each.fold(0, u32::saturating_add)
    }
}

fn run(parts: &mut [Part<'_>]) -> Result<(), TimingError> {
    parts.iter_mut().try_for_each(|part| (part.routine)())
}

impl CudaTime {
    /// Runs all parts `iterations` times in order, and returns the device time of the part `name` in
    /// all of them together, in nanoseconds. Each iteration is behind a gate of its own
    /// ([`Clock::EventsGated`]), and each time carries the constant of one event pair (1.3 µs on an
    /// H200).
    ///
    /// # Errors
    /// As [`measure`](Self::measure), and [`TimingError::NoSuchPart`].
    pub fn measure_part(
        &self,
        iterations: u64,
        parts: &mut Parts<'_>,
        name: &str,
    ) -> Result<f64, TimingError> {
        let clock = Clock::EventsGated;
        let launches = parts.launches();
        let at = parts.parts.iter().position(|part| part.name == name);
        let at = at.ok_or_else(|| TimingError::NoSuchPart {
            name: name.to_owned(),
            names: parts.names(),
        })?;
        let device = self.device().ok_or(TimingError::NoDevice { clock })?;
        device.gate.borrow().check(clock)?;
        if launches > LAUNCHES_PER_GATE {
            return Err(TimingError::TooManyLaunches { launches });
        }
        let all = &mut || run(&mut parts.parts);
        if iterations == 1 {
            sequence::load(&mut device.window(all)?)?;
        }
        let (before, rest) = parts.parts.split_at_mut(at);
        let (timed, after) = rest.split_at_mut(1);
        let (timed, before, after) = (&mut || run(timed), &mut || run(before), &mut || run(after));
        let mut window = device.window(timed)?;
        window.around = Some([before, after]);
        let use_gate = self.gate_off_reason().is_none();
        finite(sequence::part(&mut window, iterations, use_gate)?, clock)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    type Never = std::convert::Infallible;

    #[test]
    fn parts_run_in_order_and_an_unknown_name_lists_them() {
        let ran = RefCell::new(String::new());
        let note = |letter| {
            let ran = &ran;
            move || {
                ran.borrow_mut().push(letter);
                Ok::<(), Never>(())
            }
        };
        let mut parts = Parts::new()
            .part("first", 1, note('a'))
            .part("second", 447, note('b'));
        assert_eq!(parts.launches(), 448);
        run(&mut parts.parts).unwrap();
        assert_eq!(*ran.borrow(), "ab");
        let time = CudaTime::host_only();
        let error = time
            .measure_part(1, &mut parts, "third")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("\"third\"") && error.contains("first, second"),
            "{error}"
        );
        let error = time.measure_part(1, &mut parts, "first").unwrap_err();
        assert!(matches!(error, TimingError::NoDevice { .. }), "{error}");
    }
}
