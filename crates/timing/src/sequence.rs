//! The order of a measurement (flush, close the gate, record, launch, open, wait), separate from the
//! CUDA calls, so that it can be tested without a GPU.

use crate::error::TimingError;

/// Which end of the timed window an event marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Start,
    End,
}

/// The steps of a measurement on a device. Everything but `open_gate`, `wait`, `synchronize` and `now`
/// enqueues and returns.
pub(super) trait Timeline {
    /// Evicts the L2 cache.
    fn flush(&mut self) -> Result<(), TimingError>;
    /// Enqueues the gate: what follows on the stream waits until `open_gate`.
    fn close_gate(&mut self) -> Result<(), TimingError>;
    /// Lets the stream continue. May be called when the gate is not closed.
    fn open_gate(&mut self);
    /// Records the event of an edge.
    fn record(&mut self, edge: Edge) -> Result<(), TimingError>;
    /// Enqueues one iteration of the routine.
    fn launch(&mut self) -> Result<(), TimingError>;
    /// Waits for the end event; an error if the gate opened by itself.
    fn wait(&mut self) -> Result<(), TimingError>;
    /// Nanoseconds between the two events.
    fn elapsed(&mut self) -> Result<f64, TimingError>;
    /// Waits until the stream is idle.
    fn synchronize(&mut self) -> Result<(), TimingError>;
    /// The host's clock, in nanoseconds.
    fn now(&mut self) -> f64;
}

/// One launch outside any window, awaited. It loads code lazily loaded by the routine, which could
/// otherwise wait behind a closed gate.
pub(super) fn load(t: &mut impl Timeline) -> Result<(), TimingError> {
    guarded(t, |t| {
        t.launch()?;
        t.record(Edge::End)?;
        t.wait()
    })
}

/// `iterations` launches between one pair of events.
pub(super) fn events(t: &mut impl Timeline, iterations: u64) -> Result<f64, TimingError> {
    guarded(t, |t| window(t, iterations, false))
}

/// `iterations` launches in batches of at most `batch`, each queued behind a closed gate;
/// the sum of the batches' times.
pub(super) fn gated(
    t: &mut impl Timeline,
    iterations: u64,
    batch: u64,
) -> Result<f64, TimingError> {
    guarded(t, |t| {
        let batches = even_batches(iterations, batch);
        batches.map(|size| window(t, size, true)).sum()
    })
}

/// `iterations` windows of one launch each, the L2 cache flushed before each window. The
/// gate, where it works, keeps the launch's latency out of the window.
pub(super) fn cold(
    t: &mut impl Timeline,
    iterations: u64,
    use_gate: bool,
) -> Result<f64, TimingError> {
    guarded(t, |t| {
        let windows = (0..iterations).map(|_| {
            t.flush()?;
            window(t, 1, use_gate)
        });
        windows.sum()
    })
}

/// `iterations` launches on the host's clock, from an idle stream to an idle one. Each is awaited here,
/// unless it waits itself.
pub(super) fn wall(
    t: &mut impl Timeline,
    iterations: u64,
    waits_itself: bool,
) -> Result<f64, TimingError> {
    guarded(t, |t| {
        t.synchronize()?;
        let start = t.now();
        for _ in 0..iterations {
            t.launch()?;
            if !waits_itself {
                t.synchronize()?;
            }
        }
        if waits_itself {
            t.synchronize()?;
        }
        Ok(t.now() - start)
    })
}

/// `iterations` launches on the host's clock, without a wait for them inside: in batches of at most
/// `batch`, each from an idle stream.
pub(super) fn submit(
    t: &mut impl Timeline,
    iterations: u64,
    batch: u64,
) -> Result<f64, TimingError> {
    guarded(t, |t| {
        let mut total = 0.0;
        for size in even_batches(iterations, batch) {
            t.synchronize()?;
            let start = t.now();
            for _ in 0..size {
                t.launch()?;
            }
            total += t.now() - start;
        }
        // Work still queued must not extend into the next measurement. Criterion plans its samples by
        // the host's clock, which must include it.
        t.synchronize()?;
        Ok(total)
    })
}

fn window(t: &mut impl Timeline, launches: u64, use_gate: bool) -> Result<f64, TimingError> {
    if use_gate {
        t.close_gate()?;
    }
    t.record(Edge::Start)?;
    for _ in 0..launches {
        t.launch()?;
    }
    t.record(Edge::End)?;
    if use_gate {
        t.open_gate();
    }
    t.wait()?;
    t.elapsed()
}

/// Runs `body`. If it fails or panics, opens the gate and waits until the stream is idle: with a closed gate
/// the next synchronisation would hang until the gate's timeout.
fn guarded<T: Timeline, R>(
    t: &mut T,
    body: impl FnOnce(&mut T) -> Result<R, TimingError>,
) -> Result<R, TimingError> {
    let mut end = OpenGate {
        t,
        is_success: false,
    };
    let result = body(end.t);
    end.is_success = result.is_ok();
    result
}

/// The end of a measurement, also where the routine panics.
struct OpenGate<'a, T: Timeline> {
    t: &'a mut T,
    is_success: bool,
}

impl<T: Timeline> Drop for OpenGate<'_, T> {
    fn drop(&mut self) {
        if !self.is_success {
            self.t.open_gate();
            // The failure that led here is the one to report.
            let _ = self.t.synchronize();
        }
    }
}

/// Splits `iterations` into the fewest batches of at most `batch`, sizes differing by at
/// most one: each batch carries the same constant cost (event and gate), which a short last
/// batch would weigh differently.
fn even_batches(iterations: u64, batch: u64) -> impl Iterator<Item = u64> {
    let count = iterations.div_ceil(batch.max(1)).max(1);
    let (size, longer) = (iterations / count, iterations % count);
    (0..count).map(move |i| size + u64::from(i < longer))
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Writes down every call, and fails or panics at the one it is told to.
    #[derive(Default)]
    struct Fake {
        calls: Vec<&'static str>,
        fail_at: Option<usize>,
        panic_at: Option<usize>,
        gate_closed: bool,
        launched_in_window: u64,
        pending: u64,
        host_ns: f64,
    }

    impl Fake {
        fn step(&mut self, name: &'static str) -> Result<(), TimingError> {
            self.calls.push(name);
            assert_ne!(self.panic_at, Some(self.calls.len() - 1), "told to");
            if self.fail_at == Some(self.calls.len() - 1) {
                return Err(TimingError::Routine(name.into()));
            }
            Ok(())
        }
    }

    impl Timeline for Fake {
        fn flush(&mut self) -> Result<(), TimingError> {
            self.step("flush")
        }
        fn close_gate(&mut self) -> Result<(), TimingError> {
            assert!(!self.gate_closed, "two gates in one window");
            self.step("close")?;
            self.gate_closed = true;
            Ok(())
        }
        fn open_gate(&mut self) {
            self.calls.push("open");
            self.gate_closed = false;
        }
        fn record(&mut self, edge: Edge) -> Result<(), TimingError> {
            if edge == Edge::Start {
                self.launched_in_window = 0;
            }
            self.step(if edge == Edge::Start { "start" } else { "end" })
        }
        fn launch(&mut self) -> Result<(), TimingError> {
            self.step("launch")?;
            self.launched_in_window += 1;
            self.pending += 1;
            Ok(())
        }
        fn wait(&mut self) -> Result<(), TimingError> {
            assert!(!self.gate_closed, "waiting behind a closed gate hangs");
            self.step("wait")?;
            self.pending = 0;
            Ok(())
        }
        fn elapsed(&mut self) -> Result<f64, TimingError> {
            self.step("elapsed")?;
            Ok(self.launched_in_window as f64 * 10.0)
        }
        fn synchronize(&mut self) -> Result<(), TimingError> {
            assert!(
                !self.gate_closed,
                "synchronising behind a closed gate hangs"
            );
            self.step("synchronize")?;
            self.pending = 0;
            Ok(())
        }
        fn now(&mut self) -> f64 {
            self.calls.push("now");
            self.host_ns += 1.0;
            // Work that is pending when the clock is read was not waited for.
            self.host_ns + 1_000.0 * self.pending as f64
        }
    }

    /// The calls that these words name.
    fn said(calls: &str) -> Vec<&str> {
        calls.split(' ').collect()
    }

    type Run = fn(&mut Fake) -> Result<f64, TimingError>;

    /// Each sequence with its calls and its time: 10 ns a launch by events, 1 ns between two looks at the host's clock.
    const ORDERS: [(Run, &str, f64); 9] = [
        (|t| load(t).map(|()| 0.0), "launch end wait", 0.0),
        (
            |t| events(t, 3),
            "start launch launch launch end wait elapsed",
            30.0,
        ),
        (
            |t| gated(t, 2, 8),
            "close start launch launch end open wait elapsed",
            20.0,
        ),
        (
            |t| gated(t, 3, 2),
            "close start launch launch end open wait elapsed close start launch end open wait elapsed",
            30.0,
        ),
        // The flush is outside of each window.
        (
            |t| cold(t, 2, true),
            "flush close start launch end open wait elapsed flush close start launch end open wait elapsed",
            20.0,
        ),
        (
            |t| cold(t, 1, false),
            "flush start launch end wait elapsed",
            10.0,
        ),
        (
            |t| wall(t, 2, false),
            "synchronize now launch synchronize launch synchronize now",
            1.0,
        ),
        (
            |t| wall(t, 2, true),
            "synchronize now launch launch synchronize now",
            1.0,
        ),
        // Nothing waits within a window.
        (
            |t| submit(t, 3, 2),
            "synchronize now launch launch now synchronize now launch now synchronize",
            3_002.0,
        ),
    ];

    #[test]
    fn each_sequence_has_its_order_and_its_time() {
        for (run, order, ns) in ORDERS {
            let mut t = Fake::default();
            assert_eq!(run(&mut t).unwrap(), ns, "{order}");
            assert_eq!(t.calls, said(order));
        }
    }

    #[test]
    fn an_error_at_any_step_opens_the_gate_and_leaves_the_device_idle() {
        for (run, ..) in ORDERS {
            let mut clean = Fake::default();
            run(&mut clean).unwrap();
            let fallible: Vec<usize> = (0..clean.calls.len())
                .filter(|&i| !["open", "now"].contains(&clean.calls[i]))
                .collect();
            for at in fallible {
                let mut t = Fake {
                    fail_at: Some(at),
                    ..Fake::default()
                };
                run(&mut t).unwrap_err();
                assert!(!t.gate_closed);
                assert_eq!(t.pending, 0);
                assert_eq!(&t.calls[t.calls.len() - 2..], said("open synchronize"));
                assert_eq!(
                    t.calls.len(),
                    at + 3,
                    "went on after the failure: {:?}",
                    t.calls
                );
            }
        }
    }

    #[test]
    fn a_panic_of_the_routine_opens_the_gate_and_leaves_the_device_idle() {
        let mut t = Fake {
            panic_at: Some(3),
            ..Fake::default()
        };
        let run = AssertUnwindSafe(|| gated(&mut t, 5, 5));
        assert!(catch_unwind(run).is_err());
        let before = said("close start launch launch");
        assert_eq!(t.calls, [before, said("open synchronize")].concat());
        assert!(!t.gate_closed);
        assert_eq!(t.pending, 0);
    }

    #[test]
    fn batches_are_even() {
        let sizes = |n, b| even_batches(n, b).collect::<Vec<_>>();
        assert_eq!(sizes(1000, 448), [334, 333, 333]);
        assert_eq!(sizes(448, 448), [448]);
        assert_eq!(sizes(449, 448), [225, 224]);
        assert_eq!(sizes(1, 1), [1]);
        for n in 1..2000 {
            assert_eq!(sizes(n, 7).iter().sum::<u64>(), n);
            assert!(sizes(n, 7).iter().all(|&s| (1..=7).contains(&s)));
        }
    }
}
