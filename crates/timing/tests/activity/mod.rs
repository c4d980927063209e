//! Known answers of the clock `activity` and of the look by its records: kernels that spin for an exact time, on
//! streams that no clock is told of.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossover_timing::criterion::{Bencher, Criterion};
use crossover_timing::cudarc::driver::{
    CudaContext, CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use crossover_timing::cudarc::nvrtc::Ptx;
use crossover_timing::profile::Activity;
use crossover_timing::{BoxError, Clock, CudaBencherExt, CudaTime, bind};

use super::device::{is_virtual, spins};

/// A stream, and a kernel that spins.
#[derive(Clone)]
struct Spinner {
    stream: Arc<CudaStream>,
    spin: CudaFunction,
}

impl Spinner {
    fn new(stream: Arc<CudaStream>) -> Result<Self, BoxError> {
        let ptx = Ptx::from_src(include_str!("../../src/gate.ptx"));
        let spin = stream
            .context()
            .load_module(ptx)?
            .load_function("crossover_spin")?;
        Ok(Self { stream, spin })
    }

    fn spin(&self, ns: u64) -> Result<(), DriverError> {
        let mut builder = self.stream.launch_builder(&self.spin);
        builder.arg(&ns);
        // SAFETY: the kernel takes one 64-bit number.
        unsafe { builder.launch(LaunchConfig::for_num_elems(1)) }.map(drop)
    }
}

/// The clock finds what kernels take, in nanoseconds, within the larger of 1 % and 1 µs of each: its time and the
/// overlap add up to `known`, in `streams` of so many devices.
fn finds(case: &str, known: f64, places: [usize; 2], found: &Activity) {
    let each = |total: u64| total as f64 / found.iterations as f64;
    let (busy, overlap) = (each(found.busy_ns), each(found.overlap_ns));
    println!(
        "{case}: {known:.0} ns known, {busy:.0} ns busy, {overlap:.0} ns of them in two streams"
    );
    let tolerance = (0.01 * known).max(1_000.0 * each(found.kernels));
    let is_found = (busy + overlap - known).abs() <= tolerance && found.is_steady;
    assert!(is_found, "{case}: {found:?}");
    assert_eq!([found.streams.len(), found.devices()], places, "{case}");
}

pub(crate) fn all(time: &CudaTime) -> Result<(), BoxError> {
    let own = time.stream().expect("opened on a device");
    let stream = || own.context().new_stream();
    let (first, second) = (Spinner::new(stream()?)?, Spinner::new(stream()?)?);
    let timed = Spinner::new(own.clone())?;
    let second_device = CudaContext::new(1).ok();
    let elsewhere = second_device.map(|context| Spinner::new(context.new_stream()?));
    bind(own.context())?;
    let empty = time.empty_kernel().expect("opened on a device");
    // SAFETY: the kernel takes no arguments.
    let empty = time.measure_activity(100, || unsafe { empty.launch(own) })?;
    let constant = empty.busy_ns as f64 / 100.0;
    for ns in [10_000, 100_000, 1_000_000, 10_000_000] {
        let (n, known) = ((20_000_000 / ns).clamp(2, 100), ns as f64 + constant);
        let one = time.measure_activity(n, || first.spin(ns))?;
        finds("one stream", known, [1, 1], &one);
        // The second stream waits for a kernel on the first one.
        let two = |before: u64, is_beside: bool| {
            time.measure_activity(n, || {
                first.stream.join(&second.stream)?;
                first.spin(before)?;
                second.stream.join(&first.stream)?;
                (0..u32::from(is_beside)).try_for_each(|_| first.spin(ns))?;
                second.spin(ns)
            })
        };
        let in_turn = two(ns, false)?;
        finds("two streams in turn", 2.0 * known, [2, 1], &in_turn);
        assert_eq!(in_turn.overlap_ns, 0);
        let beside = two(50_000, true)?;
        let before = 50_000.0 + constant;
        finds("two streams at once", before + 2.0 * known, [2, 1], &beside);
        // The second kernel starts some microseconds after the first one; their clocks need not agree on 10 ms.
        let overlap_ns = known - (0.01 * known).max(5_000.0);
        assert!(
            beside.overlap_ns as f64 >= n as f64 * overlap_ns,
            "{beside:?}"
        );
        let both = || timed.spin(ns).and_then(|()| timed.spin(ns));
        let graph = time.measure_graph(Clock::Activity, n, both)? / n as f64;
        println!(
            "a graph of two: {:.0} ns known, {graph:.0} ns busy",
            2.0 * known
        );
        assert!(
            (graph - 2.0 * known).abs() <= (0.02 * known).max(2_000.0),
            "{graph}"
        );
        if let Some(Ok(elsewhere)) = &elsewhere {
            let both = || first.spin(ns).and_then(|()| elsewhere.spin(ns));
            finds(
                "two devices",
                2.0 * known,
                [2, 2],
                &time.measure_activity(n, both)?,
            );
        }
    }
    // Launched by another thread a millisecond later.
    let threads: Rc<RefCell<Vec<JoinHandle<_>>>> = Rc::default();
    let (started, stream) = (threads.clone(), first.stream.clone());
    time.wait_by(move || {
        let mut threads = started.take().into_iter();
        threads.try_for_each(|thread| thread.join().expect("it does not panic"))?;
        stream.synchronize()
    });
    let later = time.measure_activity(20, || {
        let first = first.clone();
        threads.borrow_mut().push(thread::spawn(move || {
            thread::sleep(Duration::from_millis(1));
            first.spin(100_000)
        }));
        Ok::<(), BoxError>(())
    })?;
    finds("another thread", 100_000.0 + constant, [1, 1], &later);
    Ok(())
}

/// The error of a benchmark, if it ends with one.
fn error_of(time: &CudaTime, benchmark: impl FnMut(&mut Bencher<'_, CudaTime>)) -> Option<String> {
    let root = tempfile::tempdir().expect("a folder of its own");
    let run = AssertUnwindSafe(|| {
        Criterion::default()
            .with_measurement(time.clone())
            .output_directory(root.path())
            .without_plots()
            .sample_size(10)
            .nresamples(1_001)
            .warm_up_time(Duration::from_millis(1))
            .measurement_time(Duration::from_millis(5))
            .bench_function("known", benchmark);
    });
    let panic = catch_unwind(run).err()?;
    let error = *panic.downcast::<String>().expect("a sentence");
    // The recording driver's host is busy, and may be late after any sample.
    Some(error).filter(|error| !is_virtual() || !error.starts_with("a device worked"))
}

/// Under `--test`, CUPTI's records name work outside of the timed window, also work that no wait shows. Work that joins
/// is within the window.
pub(crate) fn within(time: &CudaTime) -> Result<(), BoxError> {
    let own = time.stream().expect("opened on a device");
    let other = own.context().new_stream()?;
    let (short, before) = (spins(&other, 3_000)?, spins(own, 30_000)?);
    let long = spins(&other, 1_000_000)?;
    let second_device = CudaContext::new(1).ok();
    let elsewhere = second_device.map(|context| Spinner::new(context.new_stream()?));
    let elsewhere = elsewhere.transpose()?;
    bind(own.context())?;
    for &clock in Clock::OF_STREAM {
        let error = |routine: &dyn Fn() -> Result<(), BoxError>| {
            error_of(time, |b| b.iter_on(time, clock, 16, routine))
        };
        let joined = || -> Result<(), BoxError> {
            other.join(own)?;
            short()?;
            Ok(own.join(&other)?)
        };
        assert_eq!(error(&joined), None, "{clock}");
        let named = |routine: &dyn Fn() -> Result<(), BoxError>| {
            let error = error(routine).unwrap_or_default();
            error.starts_with("crossover_spin of one iteration by itself began before")
        };
        assert!(named(&|| Ok(before().and_then(|()| long())?)), "{clock}");
        if let Some(elsewhere) = &elsewhere {
            let there = || -> Result<(), BoxError> {
                before()?;
                elsewhere.spin(1_000_000)?;
                Ok(bind(own.context())?)
            };
            assert!(named(&there), "{clock} with a second device");
        }
        // It ends within the window, but begins before the gate opens.
        let is_held = matches!(clock, Clock::EventsGated | Clock::EventsCold);
        let beside = || Ok(short().and_then(|()| before())?);
        assert_eq!(named(&beside), is_held, "{clock}");
        time.ignore_other_streams(true);
        assert_eq!(error(&beside), None, "{clock}");
        time.ignore_other_streams(false);
    }
    let awaited = || -> Result<(), BoxError> {
        short().and_then(|()| before())?;
        other.synchronize()?;
        Ok(own.synchronize()?)
    };
    assert_eq!(error_of(time, |b| b.iter_awaited(time, awaited)), None);
    let twice = || before().and_then(|()| before());
    assert_eq!(error_of(time, |b| b.iter_graph(time, twice)), None);
    Ok(())
}
