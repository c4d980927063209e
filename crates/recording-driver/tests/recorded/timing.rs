//! The timing crate and Criterion: the wrong thing tried, and the sentence seen.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use crossover_timing::criterion::{Bencher, Criterion, Throughput};
use crossover_timing::cudarc::driver::{CudaContext, DevicePtrMut, result};
use crossover_timing::cudarc::nvrtc::Ptx;
use crossover_timing::{
    BoxError, Clock, CudaBencherExt, CudaTime, GateMode, Launch, TimingError, bind, open,
};
use crossover_words::sidecar::stored_clock;

use crate::stand_in::{StandIn, VARIATION, expect, mark, samples};

/// The clocks of the timing crate against cheats; on a device its own tests have them.
#[path = "../../../timing/tests/cheats/mod.rs"]
mod cheats;

/// Of the H200's description: an empty kernel, and what the host needs to launch one.
const KERNEL: f64 = 1_400.0;
const LAUNCH: f64 = 2_500.0;

/// How long the kernel on the second stream takes.
const SPUN: Duration = Duration::from_millis(1);

/// How a process ends that has panicked.
const PANICKED: i32 = 101;

const NOTHING: &str = "enqueued nothing on the timed stream";
const ELSEWHERE: &str =
    "work on another stream or device is not in the time; enqueue it on CudaTime::stream";

/// Tasks that a process of its own does: how it ends, and a part of what it prints.
pub(crate) const TASKS: &[Task] = &[
    (
        "fewer",
        0,
        "note: a benchmark on events-gated declares 1 launch per iteration and makes 2",
    ),
    ("uncounted", 0, "launches were not counted: 4 are assumed"),
    ("elsewhere", PANICKED, NOTHING),
    ("nothing", PANICKED, NOTHING),
    ("awaited", 0, ""),
    ("cannot", PANICKED, "cannot be captured in a CUDA graph"),
    ("hidden", 0, ""),
    ("hidden on a second device", 0, ""),
    ("hidden in iter", PANICKED, ELSEWHERE),
    ("joined", 0, ""),
    ("own context", 0, ""),
    ("freed", 0, ""),
    ("kept", 0, ""),
    ("rotating", 0, ""),
    ("raw", 0, ""),
    ("cheats", 0, ""),
];

pub(crate) type Task = (&'static str, i32, &'static str);

pub(crate) fn ends(&(name, code, sentence): &Task) {
    let stand_in = StandIn::new();
    let mut command = task(&stand_in, name);
    // Work beside the clock shows in the time of a wait.
    command.env("RECORDING_DRIVER_DEVICES", "h200,h200");
    let said = expect(command.env("RECORDING_DRIVER_WAITS", "1"), code);
    assert!(said.contains(sentence), "{said}");
}

/// The task of the process that was started again: the task that its argument names.
pub(crate) fn run() -> ExitCode {
    let task = std::env::args().nth(1).expect("the name of a task");
    task_of(&task).unwrap_or_else(|error| panic!("{error}"));
    ExitCode::SUCCESS
}

/// A second stream in the context of a clock, and slices that both use.
fn beside() -> Result<(), BoxError> {
    let time = CudaTime::new(0)?;
    let stream = time.stream().expect("opened on a device");
    let mut alone = stream.alloc_zeros::<u8>(64)?;
    mark("one stream");
    time.measure(Clock::EventsGated, 2, || stream.memset_zeros(&mut alone))?;
    time.measure_graph(Clock::EventsGated, 2, || stream.memset_zeros(&mut alone))?;
    let other = stream.context().new_stream()?;
    let from = stream.alloc_zeros::<u8>(64)?;
    let mut to = other.alloc_zeros::<u8>(64)?;
    mark("two streams");
    other.memcpy_dtod(&from, &mut to)?;
    drop(from);
    mark("end");
    Ok(())
}

/// A context with two streams and event tracking, whose slices a clock of the same device uses.
fn own_context() -> Result<(), BoxError> {
    let context = CudaContext::new(0)?;
    let streams = [context.new_stream()?, context.new_stream()?];
    let from = streams[0].alloc_zeros::<u8>(64)?;
    let mut to = streams[1].alloc_zeros::<u8>(64)?;
    let time = CudaTime::new(0)?;
    let stream = time.stream().expect("opened on a device");
    let mut copy = || stream.memcpy_dtod(&from, &mut to);
    assert!(time.measure(Clock::EventsGated, 10, &mut copy)? > 0.0);
    let error = time.measure_graph(Clock::EventsGated, 10, &mut copy);
    let error = error.expect_err("events of another capture").to_string();
    assert!(error.contains("event tracking"), "{error}");
    Ok(())
}

fn task_of(task: &str) -> Result<(), BoxError> {
    match task {
        "beside" => return beside(),
        "own context" => return own_context(),
        _ => {}
    }
    // SAFETY: no slice is used on two streams.
    let (_, stream) = unsafe { open(0) }?;
    let mode = match task {
        "off" => GateMode::Off,
        "required" => GateMode::Required,
        _ => GateMode::Auto,
    };
    let time = CudaTime::on_stream(&stream, mode)?;
    let empty = time.empty_kernel().expect("opened on a device");
    let elsewhere = match task {
        "hidden on a second device" => CudaContext::new(1)?,
        _ => stream.context().clone(),
    };
    let other = elsewhere.new_stream()?;
    let looks = task.starts_with("hidden") || task == "joined";
    time.ignore_other_streams(!looks);
    let module =
        elsewhere.load_module(Ptx::from_src(include_str!("../../../timing/src/gate.ptx")))?;
    let spin = Launch::new(
        module.load_function("crossover_spin")?,
        (1, 1, 1),
        (1, 1, 1),
    );
    let spin = spin.arg(SPUN.as_nanos() as u64);
    // SAFETY: the kernel takes no arguments.
    let launch = || unsafe { empty.launch(&stream) };
    let twice = || launch().and_then(|()| launch());
    let hidden = || {
        launch()?;
        bind(&elsewhere)?;
        // SAFETY: the kernel takes one 64-bit number.
        unsafe { spin.launch(&other) }?;
        bind(stream.context())
    };
    let waits = || -> Result<(), BoxError> {
        launch()?;
        Ok(stream.synchronize()?)
    };
    let waits_or_panics = || -> Result<(), BoxError> {
        launch()?;
        stream.synchronize().expect("the stream can be awaited");
        Ok(())
    };
    let nothing = || Ok::<(), BoxError>(());
    let criterion = || {
        Criterion::default()
            .with_measurement(time.clone())
            .without_plots()
            .sample_size(10)
            .warm_up_time(Duration::from_millis(1))
            .measurement_time(Duration::from_millis(5))
    };
    let bench = |name: &str, f: &mut dyn FnMut(&mut Bencher<'_, CudaTime>)| {
        criterion().bench_function(name, f);
    };
    let measured = |name: &str, time: &CudaTime, clock, iterations| -> Result<(), TimingError> {
        mark(name);
        println!(
            "{name}: {}",
            time.measure_launches(clock, iterations, 1, launch)?
        );
        Ok(())
    };
    match task {
        "known" => {
            measured("load", &time, Clock::EventsGated, 1)?;
            measured("events", &time, Clock::Events, 1_000)?;
            measured("gated", &time, Clock::EventsGated, 1_000)?;
            measured("cold", &time, Clock::EventsCold, 10)?;
            measured("two gated", &time, Clock::EventsGated, 2)?;
            measured("submit", &time, Clock::Submit, 300)?;
            measured("wall", &time, Clock::Wall, 3)?;
            time.ignore_other_streams(false);
            measured("alone", &time, Clock::EventsGated, 2)?;
            time.ignore_other_streams(true);
            mark("the gate waits for the routine");
            let error = time.measure_launches(Clock::EventsGated, 2, 1, waits);
            assert!(matches!(error, Err(TimingError::GateTimeout)));
            measured("after", &time, Clock::EventsGated, 10)?;
            let ungated = CudaTime::on_stream(&stream, GateMode::Off)?;
            measured("without a gate", &ungated, Clock::EventsGated, 10)?;
            mark("drop");
        }
        "plain" | "off" | "required" => bench("k", &mut |b| b.iter_gated(&time, launch)),
        "fewer" => bench("k", &mut |b| b.iter_on(&time, Clock::EventsGated, 1, twice)),
        "uncounted" => bench("uncounted", &mut |b| b.iter_submit(&time, waits)),
        "counted" => {
            for (name, launches, iterations) in [("three", 3, 300), ("long", 700, 2)] {
                mark(name);
                let routine = || (0..launches).try_for_each(|_| launch());
                let ns = time.measure(Clock::EventsGated, iterations, routine)?;
                println!(
                    "{name}: {:.1}",
                    ns / iterations as f64 / f64::from(launches)
                );
            }
            mark("longer");
            let routine = || (0..1_000).try_for_each(|_| launch());
            match time.measure(Clock::EventsGated, 2, routine) {
                Ok(_) => println!("1000 fit"),
                Err(error) => println!("{error}"),
            }
        }
        "nothing" => {
            for &clock in Clock::ALL {
                let error = time.measure(clock, 10, nothing);
                assert!(
                    matches!(error, Err(TimingError::NothingEnqueued)),
                    "{clock}"
                );
                let error = time.measure(clock, 0, launch);
                assert!(matches!(error, Err(TimingError::NoIterations)), "{clock}");
            }
            bench("k", &mut |b| b.iter_wall(&time, nothing));
        }
        "awaited" => {
            bench("wall", &mut |b| b.iter_wall(&time, waits_or_panics));
            bench("awaited", &mut |b| b.iter_awaited(&time, waits_or_panics));
        }
        "elsewhere" => bench("k", &mut |b| {
            // SAFETY: the kernel has no arguments.
            b.iter_gated(&time, || unsafe { empty.launch(&other) });
        }),
        "graph" => bench("k", &mut |b| b.iter_graph(&time, twice)),
        "clocks" => {
            bench("events", &mut |b| b.iter(|| launch().unwrap()));
            bench("cold", &mut |b| b.iter_cold(&time, launch));
            let mut criterion = criterion();
            let mut group = criterion.benchmark_group("rates");
            group.throughput(Throughput::Bytes(5));
            group.bench_function("submit", |b| b.iter_submit(&time, launch));
            group.bench_function("cpu", |b| b.iter_cpu(|| std::hint::black_box(1)));
        }
        "cannot" => bench("k", &mut |b| b.iter_graph(&time, waits)),
        "hidden" | "hidden on a second device" => {
            let mut times: Vec<_> = (Clock::ALL.iter())
                .map(|&clock| time.measure_launches(clock, 10, 1, hidden))
                .collect();
            times.push(time.measure_graph(Clock::EventsGated, 10, hidden));
            for time in times {
                let error = time.expect_err("the work is elsewhere");
                let is_found = matches!(error, TimingError::WorkElsewhere { .. });
                assert!(is_found && error.to_string().contains(ELSEWHERE), "{error}");
            }
            time.ignore_other_streams(true);
            let ns = time.measure_launches(Clock::EventsGated, 100, 1, hidden)? / 100.0;
            assert!((1_000.0..2_000.0).contains(&ns), "{ns}");
        }
        "hidden in iter" => bench("k", &mut |b| b.iter(|| hidden().unwrap())),
        "joined" => {
            let (forked, joined) = (stream.record_event(None)?, other.record_event(None)?);
            let fork = || -> Result<(), BoxError> {
                forked.record(&stream)?;
                other.wait(&forked)?;
                // SAFETY: the kernel's arguments are values that the launch copies.
                unsafe { spin.launch(&other) }?;
                joined.record(&other)?;
                Ok(stream.wait(&joined)?)
            };
            let spun = 10.0 * SPUN.as_nanos() as f64;
            for &clock in Clock::ALL {
                let ns = time.measure_launches(clock, 10, 1, fork)?;
                let is_of_host = [Clock::Wall, Clock::Submit].contains(&clock);
                assert!(is_of_host || ns >= spun, "{clock}: {ns}");
            }
            assert!(time.measure_graph(Clock::EventsGated, 10, fork)? >= spun);
        }
        // The values are gone when the routine has returned.
        "freed" => {
            let mut device = stream.alloc_zeros::<u8>(64)?;
            let mut copies = || stream.memcpy_htod(&vec![1u8; 64], &mut device);
            assert!(time.measure(Clock::EventsGated, 10, &mut copies)? > 0.0);
            let error = time.measure_graph(Clock::EventsGated, 10, &mut copies);
            let error = error
                .expect_err("a graph would copy freed memory")
                .to_string();
            assert!(error.contains("ordinary (pageable) host memory"), "{error}");
        }
        // Pinned values that the routine borrows.
        "kept" => {
            let mut device = stream.alloc_zeros::<u8>(64)?;
            // SAFETY: written before they are read.
            let mut values = unsafe { stream.context().alloc_pinned::<u8>(64) }?;
            values.as_mut_slice()?.fill(1);
            let values = values.as_slice()?;
            let (to, _written) = device.device_ptr_mut(&stream);
            // SAFETY: both have 64 bytes, and live longer than the graph.
            let copies = || unsafe { result::memcpy_htod_async(to, values, stream.cu_stream()) };
            assert!(time.measure_graph(Clock::EventsGated, 10, copies)? > 0.0);
        }
        "rotating" => {
            let mut inputs = time.rotating(8 << 20, |_| stream.alloc_zeros::<u8>(8 << 20))?;
            // As many as there are copies and replays of them.
            for (iterations, captured) in [(40, 16), (5, 5)] {
                let mut calls = 0;
                let set = || {
                    calls += 1;
                    stream.memset_zeros(inputs.next_copy())
                };
                time.measure_graph(Clock::EventsGated, iterations, set)?;
                assert_eq!(calls, captured);
            }
        }
        "raw" => {
            let raw = stream.cu_stream().cast();
            // SAFETY: the stream outlives the clock.
            let time = unsafe { CudaTime::on_raw_stream(0, raw, GateMode::Auto) }?;
            let ns = time.measure_launches(Clock::EventsGated, 100, 1, launch)? / 100.0;
            assert!((1_000.0..2_000.0).contains(&ns), "{ns}");
        }
        "cheats" => cheats::all(&time)?,
        other => return Err(format!("no task is called {other}").into()),
    }
    Ok(())
}

fn task(stand_in: &StandIn, name: &str) -> Command {
    let mut command = stand_in.command("timing", "h200");
    command.arg(name).env_remove("CUDA_LAUNCH_BLOCKING");
    command
}

/// Does a task and returns the calls that it makes after each mark.
fn logged(stand_in: &StandIn, name: &str) -> (String, BTreeMap<String, Vec<String>>) {
    let mut command = stand_in.logged("timing", "h200");
    // A host that is slow to wait would repeat a sample.
    let said = expect(command.arg(name).env(VARIATION, "0"), 0);
    (said, stand_in.phases().into_iter().collect())
}

/// The folder of a benchmark's result.
fn result(stand_in: &StandIn, benchmark: &str) -> PathBuf {
    let root = stand_in.folder().join("criterion");
    root.join(benchmark).join("new")
}

fn clock(stand_in: &StandIn, benchmark: &str) -> Option<Clock> {
    stored_clock(&result(stand_in, benchmark))
}

/// Launches are counted, and a batch is as long as the queue holds.
pub(crate) fn counted() {
    let stand_in = StandIn::new();
    for (queue_depth, gates_of_three, longest) in [(256, 9, 3), (1024, 3, 700), (4096, 3, 1_000)] {
        let device = stand_in.h200_with("queue_depth", queue_depth);
        let mut command = stand_in.logged("timing", device.to_str().expect("a path"));
        command.arg("counted").env(VARIATION, "0");
        let said = expect(&mut command, if longest < 700 { PANICKED } else { 0 });
        let phases: BTreeMap<_, _> = stand_in.phases().into_iter().collect();
        let is_gate = |line: &&String| line.starts_with("launch crossover_gate");
        let gates = |phase: &str| phases[phase].iter().filter(is_gate).count();
        assert_eq!(gates("three"), gates_of_three, "{queue_depth}: {said}");
        for (launches, name) in [(3, "three: 1400"), (700, "long: 1400"), (1_000, "1000 fit")] {
            assert_eq!(said.contains(name), launches <= longest, "{name}: {said}");
        }
        // The longer queue is tried once.
        assert!(longest < 700 || gates("long") == 1 + 2, "{said}");
        let remedy = "a stream's queue holds fewer here; set CUDA_SCALE_LAUNCH_QUEUES=4x";
        assert_eq!(said.contains(remedy), longest < 1_000, "{said}");
    }
}

/// The clock is stored with a result. A gate that is off is said, and an error where it is required.
pub(crate) fn stored() {
    let stand_in = StandIn::new();
    let well = |name: &str| expect(&mut task(&stand_in, name), 0);
    let said = well("plain");
    assert!(
        !said.contains("the gate is off") && !said.contains("note: a benchmark"),
        "{said}"
    );
    assert_eq!(clock(&stand_in, "k"), Some(Clock::EventsGated));
    let said = well("off");
    for sentence in [
        "is timed on events, launches included",
        "k: this result was timed on the clock events, the previous one on events-gated",
    ] {
        assert_eq!(said.matches(sentence).count(), 1, "{said}");
    }
    assert_eq!(clock(&stand_in, "k"), Some(Clock::Events));
    well("required");
    let mut blocking = task(&stand_in, "required");
    let said = expect(blocking.env("CUDA_LAUNCH_BLOCKING", "1"), PANICKED);
    assert!(
        said.contains("the events-gated clock needs the gate"),
        "{said}"
    );
    let said = well("clocks");
    let constant = "on events-cold, whose iterations have an event pair each, and 1.";
    assert_eq!(said.matches(constant).count(), 1, "{said}");
    assert_eq!(clock(&stand_in, "events"), None);
    for (n, time) in samples(&result(&stand_in, "events")) {
        // Criterion's own `iter` counts a batch from its first launch on. An elapsed time is a float of
        // milliseconds.
        let launches = n * LAUNCH;
        let is_near = (launches * 0.999_99..=launches * 1.000_01 + 1.01 * KERNEL).contains(&time);
        assert!(is_near, "{n} in {time} ns");
    }
    assert_eq!(clock(&stand_in, "cold"), Some(Clock::EventsCold));
    assert_eq!(clock(&stand_in, "rates/submit"), Some(Clock::Submit));
    assert_eq!(said.matches("thrpt").count(), 2, "{said}");
    assert_eq!(said.matches("[none none none]").count(), 1, "{said}");
    assert!(!well("graph").contains("note:"));
    assert_eq!(clock(&stand_in, "k"), Some(Clock::EventsGated));
}

/// cudarc orders the streams of a clock's context as soon as there are two, and adds nothing to one.
pub(crate) fn tracked() {
    let (_, phases) = logged(&StandIn::new(), "beside");
    let is_wait = |line: &&String| line.contains(" waits for e");
    assert!(!phases["one stream"].iter().any(|line| is_wait(&line)));
    let lines = &phases["two streams"];
    let order = ["s2 waits for e", "copy D2D", "s1 waits for e", "free"];
    let first = order.map(|call| lines.iter().position(|line| line.starts_with(call)));
    assert!(first.is_sorted() && first[0].is_some(), "{lines:?}");
}

/// The clocks read the driver's virtual time, with the gate, the records and the waits in order.
pub(crate) fn known() {
    let (said, phases) = logged(&StandIn::new(), "known");
    for (name, nanoseconds) in [
        ("events", 1_000.0 * LAUNCH + KERNEL),
        ("gated", 1_000.0 * KERNEL),
        ("cold", 10.0 * KERNEL),
        ("two gated", 2.0 * KERNEL),
        ("after", 10.0 * KERNEL),
        ("without a gate", 10.0 * LAUNCH + KERNEL),
    ] {
        let mut lines = said.lines();
        let read = lines.find_map(|line| line.strip_prefix(&format!("{name}: ")));
        let read: f64 = read.unwrap().parse().unwrap();
        // An elapsed time is a float of milliseconds.
        let error = (read / nanoseconds - 1.0).abs();
        assert!(error < 1e-6, "{name}: {read} ns and not {nanoseconds}");
    }
    let empty = "launch crossover_empty grid (1,1,1) block (1,1,1) shared 0 on s1 ()";
    let gate =
        "launch crossover_gate grid (1,1,1) block (1,1,1) shared 0 on s1 (pinned1, 5000000000)";
    let gated = [
        gate,
        "record e1 on s1",
        empty,
        empty,
        "record e2 on s1",
        "wait for e2",
    ];
    assert_eq!(phases["two gated"], gated);
    // Other streams are looked at outside of the window.
    let alone = &phases["alone"];
    assert_eq!(alone[..6], gated);
    assert_eq!(alone[6], "wait for the context");
    let cold = [
        "reset the persisting lines of the L2 cache",
        "set 125829120 B of d1 to 0x00 on s1",
        gate,
        "record e1 on s1",
        empty,
        "record e2 on s1",
        "wait for e2",
    ];
    let lines = &phases["cold"];
    assert_eq!(lines.iter().filter(|line| *line == cold[1]).count(), 10);
    assert_eq!(lines[lines.len() - cold.len()..], cold);
    // The queue is emptied before each of two even batches and after the last, and not in between.
    let is_wait = |at: &usize| phases["submit"][*at] == "wait for s1";
    let waits = (0..phases["submit"].len()).filter(is_wait);
    assert_eq!(waits.collect::<Vec<_>>(), [0, 151, 302]);
    let awaited = [empty, "wait for s1"].repeat(3);
    assert_eq!(phases["wall"], [&["wait for s1"], &*awaited].concat());
    let is_left = |line: &String| line.contains("the context ends with");
    assert!(!phases["drop"].iter().any(is_left), "{:?}", phases["drop"]);
}
