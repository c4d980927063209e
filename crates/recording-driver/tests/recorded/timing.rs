//! The timing crate and Criterion: the wrong thing tried, and the sentence seen.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crossover_timing::criterion::measurement::Measurement;
use crossover_timing::criterion::{Bencher, Criterion, Throughput};
use crossover_timing::cudarc::driver::{CudaContext, CudaStream, DevicePtrMut, result};
use crossover_timing::cudarc::nvrtc::Ptx;
use crossover_timing::profiler::CudaProfiler;
use crossover_timing::{
    BoxError, Clock, CudaBencherExt, CudaError, CudaTime, GateMode, Graph, Launch, LaunchState,
    Rate, TimingError, open,
};
use crossover_words::sidecar;
use libtest_mimic::Trial;

use crate::inside;
use crate::stand_in::{TWO, mark, phases, plan, read_json, results, samples};

/// The clocks of the timing crate against cheats; on a device its own tests have them.
#[path = "../../../timing/tests/cheats/mod.rs"]
mod cheats;

/// Code that these tests share.
#[allow(dead_code, reason = "most of it opens a device")]
#[path = "../../../timing/tests/device/mod.rs"]
mod device;

/// Its known answers.
#[path = "../../../timing/tests/activity/mod.rs"]
mod activity;

/// Of the H200's description: an empty kernel, and what the host needs to launch one.
const KERNEL: f64 = 1_400.0;
const LAUNCH: f64 = 2_500.0;

/// How long the kernel on the second stream takes.
const SPUN: Duration = Duration::from_millis(1);

const NOTHING: &str = "enqueued nothing on the timed stream";
const ELSEWHERE: &str =
    "work on another stream or device is not in the time; enqueue it on CudaTime::stream";

/// A clock on the first device, and a stream beside it.
struct On {
    time: CudaTime,
    stream: Arc<CudaStream>,
    empty: Launch,
    other: Arc<CudaStream>,
    spin: Launch,
}

impl On {
    fn new() -> Result<Self, BoxError> {
        // SAFETY: no slice is used on two streams.
        let (_, stream) = unsafe { open(0) }?;
        let time = ignoring(CudaTime::on_stream(&stream, GateMode::Auto)?);
        let source = Ptx::from_src(include_str!("../../../timing/src/gate.ptx"));
        let module = stream.context().load_module(source)?;
        let spin = module.load_function("crossover_spin")?;
        Ok(Self {
            empty: time.empty_kernel().expect("opened on a device"),
            time,
            other: stream.context().new_stream()?,
            stream,
            spin: Launch::new(spin, (1, 1, 1), (1, 1, 1)).arg(SPUN.as_nanos() as u64),
        })
    }

    fn launch(&self) -> Result<(), CudaError> {
        // SAFETY: the kernel takes no arguments.
        unsafe { self.empty.launch(&self.stream) }
    }

    fn twice(&self) -> Result<(), CudaError> {
        self.launch().and_then(|()| self.launch())
    }

    fn waits(&self) -> Result<(), BoxError> {
        self.launch()?;
        Ok(self.stream.synchronize()?)
    }

    /// Work on the stream beside, too.
    fn hidden(&self) -> Result<(), CudaError> {
        self.launch()?;
        // SAFETY: the kernel takes one 64-bit number.
        unsafe { self.spin.launch(&self.other) }
    }

    fn bench(&self, name: &str, f: impl FnMut(&mut Bencher<'_, CudaTime>)) {
        criterion(&self.time).bench_function(name, f);
    }

    /// The time of launches of the empty kernel.
    fn launches(&self, time: &CudaTime, clock: Clock, n: u64) -> Result<f64, TimingError> {
        time.measure_launches(clock, n, 1, || self.launch())
    }

    fn is_known(&self, time: &CudaTime) -> Result<(), BoxError> {
        let ns = self.launches(time, Clock::EventsGated, 100)? / 100.0;
        assert!((1_000.0..2_000.0).contains(&ns), "{ns}");
        Ok(())
    }
}

/// The clock without the look at other streams, which goes by the host's clock, and a busy host is late.
fn ignoring(time: CudaTime) -> CudaTime {
    time.ignore_other_streams(true);
    time
}

fn criterion(time: &CudaTime) -> Criterion<CudaTime> {
    Criterion::default()
        .with_measurement(time.clone())
        .without_plots()
        .sample_size(10)
        .nresamples(1_001)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_millis(5))
}

fn clock(benchmark: &str) -> Option<Clock> {
    sidecar::read(&results().join(benchmark).join("new"), &[])?.clock()
}

type Body = fn(On) -> Result<(), BoxError>;

fn test(name: &str, devices: &'static str, body: Body) -> Trial {
    test_with(name, devices, &[], body)
}

/// The process says each of `sentences` once.
fn test_with(
    name: &str,
    devices: &'static str,
    sentences: &'static [&'static str],
    body: Body,
) -> Trial {
    inside(&format!("timing::{name}"), devices, sentences, move || {
        body(On::new().unwrap()).unwrap_or_else(|error| panic!("{error}"));
    })
}

pub(crate) fn tests() -> Vec<Trial> {
    // Every kernel takes exactly its time.
    let exact = "h200:variation_ppm=0";
    let full = "h200:memory_bytes=1000000000";
    let persisting = "h200:variation_ppm=0:persisting_bytes=1048576";
    let short = "h200:variation_ppm=0:queue_depth=256";
    let long = "h200:variation_ppm=0:queue_depth=4096";
    vec![
        test("known", exact, known),
        test("step", "h200:event_tick_ns=512", step),
        test("share of a peak", TWO, shares),
        test("launch state", exact, launch_state),
        test("launch state in full memory", full, |on| {
            let error = on.time.shorten_launches().unwrap_err().to_string();
            assert!(
                error.starts_with("cuCtxCreate_v2 failed: CUDA_ERROR_OUT_OF_MEMORY"),
                "{error}"
            );
            on.is_known(&on.time)
        }),
        test_with("persisting", persisting, &[SETS_ASIDE], persists),
        test("counted in a short queue", short, |on| counted(&on, 9, 3)),
        test("counted", exact, |on| counted(&on, 3, 700)),
        test("counted in a long queue", long, |on| counted(&on, 3, 1_000)),
        test_with("noted", TWO, &NOTES, noted),
        test("panics", TWO, panics),
        test("kept", exact, kept),
        test("graphs", TWO, graphs),
        test("raw", TWO, |on| {
            let raw = on.stream.cu_stream().cast();
            // SAFETY: the stream outlives the clock.
            let time = unsafe { CudaTime::on_raw_stream(0, raw, GateMode::Auto) }?;
            on.is_known(&ignoring(time))
        }),
        test("cheats", TWO, |on| {
            cheats::all(&on.time)?;
            on.is_known(&on.time)
        }),
        test("activity", TWO, |on| activity::all(&on.time)),
        test("activity times", exact, activity_times),
        test("activity refused", TWO, activity_refused),
        test("activity lost", "h200:activity_records=150", |on| {
            let lost = on.time.measure_activity(90, || on.twice());
            let lost = lost.unwrap_err().to_string();
            assert!(lost.starts_with("CUPTI lost 30 records"), "{lost}");
            // Fewer records fit.
            assert_eq!(on.time.measure_activity(70, || on.twice())?.kernels, 140);
            Ok(())
        }),
        test_with("activity on criterion", TWO, &[CHANGES], activity_stored),
        test("activity within", TWO, |on| {
            // SAFETY: no other thread of this process reads or writes the environment.
            unsafe { std::env::remove_var("RECORDING_DRIVER_WAITS") };
            on.time.ignore_other_streams(false);
            activity::within(&on.time)?;
            on.is_known(&ignoring(on.time.clone()))
        }),
    ]
}

/// Times of the driver's virtual clock, and the activity that the clock makes of them.
fn activity_times(on: On) -> Result<(), BoxError> {
    // Its own stream is not in the way.
    let process = ignoring(CudaTime::of_process(0)?);
    let activity = process.measure_activity(10, || on.launch())?;
    assert_eq!(
        (activity.kernels, activity.busy_ns as f64),
        (10, 10.0 * KERNEL)
    );
    // The host launches more slowly than the kernels run.
    assert_eq!(activity.span_ns as f64, 9.0 * LAUNCH + KERNEL);
    let mut memory = on.stream.alloc_zeros::<u8>(4_800)?;
    let set = on.time.measure_activity(10, || -> Result<(), BoxError> {
        on.launch()?;
        Ok(on.stream.memset_zeros(&mut memory)?)
    })?;
    assert_eq!((set.kernels, set.copies), (10, 10));
    assert!(set.busy_ns as f64 > 10.0 * KERNEL, "{set:?}");
    // The other clocks work while the records are made.
    on.time.measure_activity(1, || on.is_known(&on.time))?;
    on.is_known(&on.time)
}

/// What keeps the clock from recording is an error with its remedy, after which it works.
fn activity_refused(on: On) -> Result<(), BoxError> {
    let record = || on.time.measure_activity(3, || on.launch());
    for (fault, sentence) in [
        ("cuptiSubscribe:1:39", "another profiler, debugger"),
        ("cuptiSubscribe:1:12", "another profiler, debugger"),
        ("cuptiActivityEnable:2:35", "run as root"),
        ("cuptiActivityEnable:2:14", "CUPTI 13.0 does not work with"),
        ("cuptiActivityEnable:2:12", "cuptiActivityEnable failed"),
        ("cuptiActivityFlushAll:2:999", "FlushAll failed"),
        ("cuptiActivityGetNextRecord:1:999", "Record failed"),
    ] {
        plan(fault);
        let error = record().unwrap_err().to_string();
        let begins = error.starts_with("the activity clock cannot record");
        assert!(begins && error.contains(sentence), "{error}");
        plan("");
        assert_eq!(record()?.kernels, 3, "after {fault}");
    }
    let around = on.time.measure_activity(3, || -> Result<(), BoxError> {
        let error = record().unwrap_err().to_string();
        assert!(
            error.contains("or another thread of this program records"),
            "{error}"
        );
        Ok(on.launch()?)
    })?;
    assert_eq!(around.kernels, 3);
    let none = on.time.measure_activity(3, || Ok::<(), BoxError>(()));
    assert!(matches!(none, Err(TimingError::NoKernel)), "{none:?}");
    let none = on.time.measure_activity(0, || on.launch());
    assert!(matches!(none, Err(TimingError::NoIterations)), "{none:?}");
    on.is_known(&on.time)
}

const CHANGES: &str = "note: the kernels of an iteration do not become constant";

/// Criterion, with the figures beside a result.
fn activity_stored(on: On) -> Result<(), BoxError> {
    on.bench("k", |b| b.iter_activity(&on.time, || on.twice()));
    let mut n = 0;
    on.bench("changes", |b| {
        b.iter_activity(&on.time, || {
            n += 1;
            if n % 3 == 0 { on.twice() } else { on.launch() }
        })
    });
    let profile = || {
        let mut criterion = criterion(&on.time)
            .with_profiler(CudaProfiler::new(&on.time).quiet())
            .profile_time(Some(Duration::from_millis(1)));
        criterion.bench_function("profiled", |b| b.iter_gated(&on.time, || on.launch()));
    };
    profile();
    let folder = results().join("profiled/profile");
    let written = read_json(&folder.join("profile.json"));
    assert_eq!(written["clock"], "events-gated", "{written}");
    assert_eq!(written["records"], written["iterations"], "{written}");
    let note = written["notes"][0].to_string();
    assert!(note.contains("gate is off"), "{note}");
    assert!(folder.join("trace.json").is_file());
    // A profile waits as the clock does.
    on.time.wait_by(|| Err::<(), _>("no wait"));
    let panic = catch_unwind(AssertUnwindSafe(profile)).expect_err("the wait fails");
    let panic = panic.downcast::<String>().expect("a sentence");
    assert!(panic.contains("no wait"), "{panic}");
    drop(on);
    assert_eq!(clock("k"), Some(Clock::Activity));
    let file = sidecar::read(&results().join("k/new"), &[]).expect("a sidecar");
    let fields = file.fields?;
    let [kernels, span, overlap, streams, devices] =
        sidecar::ACTIVITY.map(|key| fields["extra"][key].as_f64());
    assert_eq!([kernels, overlap], [Some(2.0), Some(0.0)]);
    assert_eq!([streams, devices], [Some(1.0); 2]);
    assert!(span.is_some_and(|span| span > 2.0 * KERNEL), "{span:?}");
    for (n, time) in samples(&results().join("k/new")) {
        assert!(
            (time / (n * 2.0 * KERNEL) - 1.0).abs() < 0.02,
            "{n} in {time} ns"
        );
    }
    Ok(())
}

/// The calls since the last mark.
fn marked() -> Vec<String> {
    phases().pop().expect("a mark").1
}

/// Each line begins with its words.
fn begin(lines: &[String], words: &[&str]) {
    let mut pairs = lines.iter().zip(words);
    let are_so = pairs.all(|(line, words)| line.starts_with(words));
    assert!(
        are_so && lines.len() == words.len(),
        "{words:?}: {lines:#?}"
    );
}

/// The step of the events' clock is measured, bounds a time from below, and is stored beside a result.
fn step(on: On) -> Result<(), BoxError> {
    for &clock in Clock::ALL {
        let measured = on.time.event_step_ns(clock).map(f64::round);
        assert_eq!(measured, clock.is_of_events().then_some(512.0), "{clock}");
    }
    let nothing = || Ok::<(), BoxError>(());
    let shortest = on.time.measure_launches(Clock::Events, 1, 1, nothing)?;
    assert_eq!(shortest.round(), 512.0);
    on.bench("cold", |b| b.iter_cold(&on.time, || on.launch()));
    drop(on);
    let file = sidecar::read(&results().join("cold/new"), &[]).expect("a sidecar");
    let step = file.fields?["extra"][sidecar::EVENT_STEP].as_f64();
    assert_eq!(step.map(f64::round), Some(512.0));
    Ok(())
}

/// Beside a throughput on a clock of events: 6,144 bits at 3,201 MHz, and 132 multiprocessors at 1,980 MHz.
fn shares(on: On) -> Result<(), BoxError> {
    let prints = |rate: Rate, work, clock, expected| -> Result<(), BoxError> {
        let _rate = on.time.set_rate(rate.on(&on.time));
        on.launches(&on.time, clock, 1)?;
        let throughput = Throughput::Elements(work);
        let printed = (on.time.formatter()).format_throughput(&throughput, 1_000.0);
        assert_eq!(printed, expected);
        Ok(())
    };
    let (gated, wall) = (Clock::EventsGated, Clock::Wall);
    let bandwidth = "2.4584 TB/s, 50 % of the peak";
    prints(Rate::bytes(|n| n), 2_458_368, gated, bandwidth)?;
    let operations = "66.908 TFLOP/s, 100 % of the peak";
    prints(Rate::flop(|n| n), 66_908_160, gated, operations)?;
    prints(Rate::bytes(|n| n), 5_000, wall, "5.0000 GB/s")?;
    prints(Rate::elements(), 5_000, gated, "5.0000 Gelem/s")
}

/// Launches get longer with the kernels of the eighth stream beside the first, until a second context was destroyed.
fn launch_state(on: On) -> Result<(), BoxError> {
    let [create, destroy] = ["create a second context", "destroy the second context"];
    let restorations = |mark: &[String]| {
        let lines = mark
            .iter()
            .filter(|line| line.starts_with(create) || line.starts_with(destroy));
        lines.count() / 2
    };
    let expect = |state: Option<LaunchState>, is_long, restored: usize| {
        let state = state.expect("the gate works");
        let each = if is_long { 4_800.0 } else { 4_000.0 };
        assert!(
            (state.probe_ns / (32.0 * each) - 1.0).abs() < 1e-3,
            "{state:?}"
        );
        assert_eq!(
            (state.is_long, state.is_restored),
            (is_long, restored > 0),
            "{state:?}"
        );
        assert_eq!(restorations(&marked()), restored);
    };
    mark("begin");
    expect(on.time.shorten_launches()?, false, 1);
    // The first context is current again.
    on.is_known(&on.time)?;
    let streams = (0..8)
        .map(|_| on.stream.context().new_stream())
        .collect::<Result<Vec<_>, _>>()?;
    for (at, stream) in streams.iter().enumerate() {
        mark("beside");
        expect(on.time.shorten_launches()?, false, 0);
        // SAFETY: the kernel takes no arguments.
        unsafe { on.empty.launch(stream) }?;
        stream.synchronize()?;
        expect(on.time.launch_state()?, at == 7, 0);
    }
    drop(streams);
    mark("restored");
    expect(on.time.shorten_launches()?, false, 1);
    // The clock on cold data has no reset that would count as a stream.
    on.launches(&on.time, Clock::EventsCold, 10)?;
    mark("cold");
    expect(on.time.launch_state()?, false, 0);
    assert_eq!(
        CudaTime::on_stream(&on.stream, GateMode::Off)?.shorten_launches()?,
        None
    );
    Ok(())
}

const SETS_ASIDE: &str = "note: the program has set L2 memory aside for persisting lines";

/// Lines of the L2 cache that persist are reset before each flush, which is noted once.
fn persists(on: On) -> Result<(), BoxError> {
    mark("cold");
    on.launches(&on.time, Clock::EventsCold, 2)?;
    on.launches(&on.time, Clock::EventsCold, 3)?;
    let lines = marked();
    let resets = lines
        .iter()
        .filter(|line| line.starts_with("reset the persisting lines"));
    assert_eq!(resets.count(), 5);
    Ok(())
}

/// The clocks read the driver's virtual time, with the flushes, the gate, the records and the waits in order,
/// and leave nothing behind.
fn known(on: On) -> Result<(), BoxError> {
    // An elapsed time is a float of milliseconds.
    let is = |read: f64, ns: f64| assert!((read / ns - 1.0).abs() < 1e-6, "{read} and not {ns}");
    let (gated, events) = (Clock::EventsGated, Clock::Events);
    mark("constant");
    assert!(on.time.launch_constant(gated)?.is_some());
    let woken = marked();
    assert!(woken[0].starts_with("launch crossover_spin "), "{woken:?}");
    on.launches(&on.time, gated, 1)?;
    is(on.launches(&on.time, events, 10)?, 10.0 * LAUNCH + KERNEL);
    is(on.launches(&on.time, gated, 1_000)?, 1_000.0 * KERNEL);
    let empty = "launch crossover_empty ";
    let [gate, record, wait] = ["launch crossover_gate ", "record e", "wait for e"];
    mark("cold");
    is(on.launches(&on.time, Clock::EventsCold, 10)?, 10.0 * KERNEL);
    let lines = marked();
    let flush = "set 125829120 B of d";
    let flushes = lines.iter().filter(|line| line.starts_with(flush));
    assert_eq!(flushes.count(), 10);
    let window = [flush, gate, record, empty, record, wait];
    begin(&lines[lines.len() - window.len()..], &window);
    // Other streams are looked at outside of the window.
    on.time.ignore_other_streams(false);
    mark("alone");
    is(on.launches(&on.time, gated, 2)?, 2.0 * KERNEL);
    let context = "wait for the context";
    let window = [gate, record, empty, empty, record, wait, context];
    begin(&marked()[..window.len()], &window);
    on.time.ignore_other_streams(true);
    mark("wall");
    on.launches(&on.time, Clock::Wall, 2)?;
    begin(
        &marked(),
        &["wait for s", empty, "wait for s", empty, "wait for s"],
    );
    // The queue is emptied before each of two even batches and after the last, and not in between.
    mark("submit");
    on.launches(&on.time, Clock::Submit, 300)?;
    let lines = marked();
    let waits = (0..lines.len()).filter(|&at| lines[at].starts_with("wait for s"));
    assert_eq!(waits.collect::<Vec<_>>(), [0, 151, 302]);
    let error = on.time.measure_launches(gated, 2, 1, || on.waits());
    let error = error.expect_err("it waits for itself").to_string();
    assert!(error.contains("opened by itself") && error.contains("another host thread"));
    is(on.launches(&on.time, gated, 10)?, 10.0 * KERNEL);
    let time = ignoring(CudaTime::on_stream(&on.stream, GateMode::Off)?);
    is(on.launches(&time, gated, 10)?, 10.0 * LAUNCH + KERNEL);
    drop((on, time));
    let mut lines = phases().into_iter().flat_map(|(_, lines)| lines);
    assert!(!lines.any(|line| line.contains("the context ends with")));
    Ok(())
}

/// Launches are counted, and a batch is as long as the queue holds.
fn counted(on: &On, gates_of_three: usize, longest: u32) -> Result<(), BoxError> {
    let remedy = "a stream's queue holds fewer here; set CUDA_SCALE_LAUNCH_QUEUES=4x";
    // The longer queue is tried once.
    for (launches, iterations, gates) in [(3, 300, gates_of_three), (700, 2, 3), (1_000, 2, 3)] {
        mark("counted");
        let routine = || (0..launches).try_for_each(|_| on.launch());
        let time = on.time.measure(Clock::EventsGated, iterations, routine);
        let is_gate = |line: &&String| line.starts_with("launch crossover_gate");
        let made = marked().iter().filter(is_gate).count();
        if launches <= longest {
            let each = time? / (iterations * u64::from(launches)) as f64;
            assert!((each / KERNEL - 1.0).abs() < 1e-4, "{each}");
            assert_eq!(made, gates, "{launches} of {longest}");
        } else {
            let error = time.expect_err("the queue is full").to_string();
            assert!(error.contains(remedy), "{error}");
        }
    }
    Ok(())
}

/// The sentences of `noted`.
const NOTES: [&str; 8] = [
    " on events-cold, whose iterations have an event pair each, and 1.",
    "is timed on events, launches included",
    "k: this result was timed on the clock events, the previous one on events-gated",
    "note: a benchmark on events-gated declares 1 launch per iteration and makes 2",
    " per iteration and makes ",
    "launches were not counted: 4 are assumed",
    "B/s]",
    "[none none none]",
];

/// Criterion, with the clock that is stored with a result. A gate that is off is said, and an error where it
/// is required.
fn noted(on: On) -> Result<(), BoxError> {
    for (mode, stored) in [
        (GateMode::Auto, Clock::EventsGated),
        (GateMode::Off, Clock::Events),
    ] {
        // What was measured is stored as the clock is dropped.
        let time = ignoring(CudaTime::on_stream(&on.stream, mode)?);
        criterion(&time).bench_function("k", |b| b.iter_gated(&time, || on.launch()));
        drop(time);
        assert_eq!(clock("k"), Some(stored));
    }
    let (time, gated) = (&on.time, Clock::EventsGated);
    on.bench("fewer", |b| b.iter_on(time, gated, 1, || on.twice()));
    on.bench("as many", |b| b.iter_on(time, gated, 2, || on.twice()));
    on.bench("uncounted", |b| b.iter_submit(time, || on.waits()));
    on.bench("wall", |b| b.iter_wall(time, || on.waits()));
    on.bench("awaited", |b| b.iter_awaited(time, || on.waits()));
    on.bench("graph", |b| b.iter_graph(time, || on.twice()));
    on.bench("cold", |b| b.iter_cold(time, || on.launch()));
    on.bench("graph-cold", |b| b.iter_graph_cold(time, || on.twice()));
    on.bench("iter", |b| b.iter(|| on.launch().unwrap()));
    let mut criterion = criterion(time);
    let mut group = criterion.benchmark_group("rates");
    group.throughput(Throughput::Bytes(5));
    group.bench_function("submit", |b| b.iter_submit(time, || on.launch()));
    group.bench_function("cpu", |b| b.iter_cpu(|| std::hint::black_box(1)));
    group.finish();
    let required = ignoring(CudaTime::on_stream(&on.stream, GateMode::Required)?);
    on.launches(&required, gated, 1)?;
    // SAFETY: no other thread of this process reads or writes the environment.
    unsafe { std::env::set_var("CUDA_LAUNCH_BLOCKING", "1") };
    let blocking = CudaTime::on_stream(&on.stream, GateMode::Required)?;
    let error = on.launches(&blocking, gated, 1).expect_err("no gate");
    let needs = "the events-gated clock needs the gate";
    assert!(error.to_string().contains(needs), "{error}");
    drop((on, criterion));
    let stored = ["graph", "cold", "graph-cold", "rates/submit", "iter"].map(clock);
    let (cold, submit) = (Clock::EventsCold, Clock::Submit);
    let clocks = [Some(gated), Some(cold), Some(cold), Some(submit), None];
    assert_eq!(stored, clocks);
    for (n, time) in samples(&results().join("graph-cold/new")) {
        // Each replay has a flush before it, which is not timed.
        assert!(
            (time / (n * 2.0 * KERNEL) - 1.0).abs() < 0.02,
            "{n} in {time} ns"
        );
    }
    for (n, time) in samples(&results().join("iter/new")) {
        // Criterion's own `iter` counts a batch from its first launch on. An elapsed time is a float of
        // milliseconds.
        let launches = n * LAUNCH;
        let is_near = (launches * 0.999_99..=launches * 1.000_01 + 1.01 * KERNEL).contains(&time);
        assert!(is_near, "{n} in {time} ns");
    }
    Ok(())
}

/// A benchmark whose work is not timed ends with the sentence of its error.
fn panics(on: On) -> Result<(), BoxError> {
    let nothing = || Ok::<(), BoxError>(());
    for &clock in Clock::OF_STREAM {
        let error = on.time.measure(clock, 10, nothing);
        assert!(
            matches!(error, Err(TimingError::NothingEnqueued)),
            "{clock}"
        );
        let error = on.time.measure(clock, 0, || on.launch());
        assert!(matches!(error, Err(TimingError::NoIterations)), "{clock}");
    }
    let no_library = on.time.measure(Clock::Activity, 10, || on.launch());
    let error = no_library.unwrap_err().to_string();
    assert!(
        error.contains("(libcupti) was not found; install the CUDA toolkit"),
        "{error}"
    );
    let panics = |sentence: &str, f: &mut dyn FnMut(&mut Bencher<'_, CudaTime>)| {
        let panic = catch_unwind(AssertUnwindSafe(|| on.bench("k", f))).expect_err(sentence);
        let panic = panic.downcast::<String>().expect("a sentence");
        assert!(panic.contains(sentence), "{panic}");
    };
    panics(NOTHING, &mut |b| b.iter_wall(&on.time, nothing));
    // SAFETY: the kernel takes no arguments.
    let beside = || unsafe { on.empty.launch(&on.other) };
    panics(NOTHING, &mut |b| b.iter_gated(&on.time, beside));
    let cannot = "cannot be captured in a CUDA graph";
    panics(cannot, &mut |b| b.iter_graph(&on.time, || on.waits()));
    // Several streams, whose events let nothing be captured.
    let tracked = CudaContext::new(0)?;
    let _stream = tracked.new_stream()?;
    let time = ignoring(CudaTime::on_stream(
        &tracked.default_stream(),
        GateMode::Auto,
    )?);
    let error = time.measure(Clock::Wall, 10, || on.launch());
    assert!(
        matches!(error, Err(TimingError::DefaultStream)),
        "{error:?}"
    );
    on.time.ignore_other_streams(false);
    panics(ELSEWHERE, &mut |b| {
        (0..100).for_each(|_| b.iter(|| on.hidden().unwrap()));
    });
    Ok(())
}

fn is_gated(clock: Clock) -> bool {
    matches!(clock, Clock::EventsGated | Clock::EventsCold)
}

/// A routine may keep what it allocates, in each call or in place of what it had: that memory exists, or the
/// measurement is an error.
fn kept(on: On) -> Result<(), BoxError> {
    for &clock in Clock::OF_STREAM {
        for keeps_all in [false, true] {
            let mut kept = Vec::new();
            let measured = on.time.measure(clock, 10, || -> Result<(), BoxError> {
                let memory = on.stream.alloc_zeros::<u8>(64)?;
                kept.truncate(if keeps_all { usize::MAX } else { 0 });
                kept.push(memory);
                Ok(on.stream.synchronize()?)
            });
            let is_counted = is_gated(clock) || clock == Clock::Submit;
            match measured {
                Ok(ns) => assert!(ns > 0.0 && !is_counted, "{clock}"),
                Err(TimingError::NotCounted { .. }) => {
                    assert!(is_counted, "{clock}");
                    kept.into_iter().for_each(std::mem::forget);
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            for memory in &mut kept {
                on.stream.memset_zeros(memory)?;
            }
            on.stream.synchronize()?;
        }
    }
    // An allocation that is freed in the same iteration does not prevent a count.
    let routine = || on.stream.alloc_zeros::<u8>(64).map(drop);
    let ns = on.time.measure(Clock::EventsGated, 10, routine)?;
    assert!(ns > 0.0);
    on.is_known(&on.time)
}

/// Graphs have as many copies of an input as are replayed, and copies from pinned memory alone.
fn graphs(on: On) -> Result<(), BoxError> {
    let zeros = |_| on.stream.alloc_zeros::<u8>(8 << 20);
    let mut inputs = on.time.rotating(8 << 20, zeros)?;
    for (iterations, captured) in [(40, 16), (5, 5)] {
        let mut calls = 0;
        on.time.measure_graph(Clock::EventsGated, iterations, || {
            calls += 1;
            on.stream.memset_zeros(inputs.next_copy())
        })?;
        assert_eq!(calls, captured);
    }
    let mut device = on.stream.alloc_zeros::<u8>(64)?;
    let panics = || -> Result<(), CudaError> { panic!("in a capture") };
    let capture = || Graph::capture(&on.stream, panics);
    assert!(catch_unwind(AssertUnwindSafe(capture)).is_err());
    // A stream that was still capturing would refuse this.
    on.waits()?;
    // The values are gone when the routine has returned.
    let copies = || on.stream.memcpy_htod(&vec![1u8; 64], &mut device);
    refused_in_graph(&on.time, copies, "ordinary (pageable) host memory")?;
    // SAFETY: written before they are read.
    let mut values = unsafe { on.stream.context().alloc_pinned::<u8>(64) }?;
    values.as_mut_slice()?.fill(1);
    let values = values.as_slice()?;
    let (to, _written) = device.device_ptr_mut(&on.stream);
    // SAFETY: both have 64 bytes, and live longer than the graph.
    let copies = || unsafe { result::memcpy_htod_async(to, values, on.stream.cu_stream()) };
    assert!(on.time.measure_graph(Clock::EventsGated, 10, copies)? > 0.0);
    // A context with two streams and event tracking, whose slices a clock of the same device uses.
    let context = CudaContext::new(0)?;
    let streams = [context.new_stream()?, context.new_stream()?];
    let from = streams[0].alloc_zeros::<u8>(64)?;
    let mut to = streams[1].alloc_zeros::<u8>(64)?;
    let copy = || on.stream.memcpy_dtod(&from, &mut to);
    refused_in_graph(&on.time, copy, "event tracking")
}

fn refused_in_graph<E: Into<BoxError>>(
    time: &CudaTime,
    mut copies: impl FnMut() -> Result<(), E>,
    sentence: &str,
) -> Result<(), BoxError> {
    assert!(time.measure(Clock::EventsGated, 10, &mut copies)? > 0.0);
    let error = time.measure_graph(Clock::EventsGated, 10, &mut copies);
    let error = error.expect_err("it cannot be replayed").to_string();
    assert!(error.contains(sentence), "{error}");
    Ok(())
}
