//! The timing crate and Criterion: the wrong thing tried, and the sentence seen.

use std::collections::{BTreeMap, BTreeSet};
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

/// What the process that was started again does: the task that its argument names.
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
    println!(
        "gated {}",
        time.measure(Clock::EventsGated, 10, &mut copy)? > 0.0
    );
    let error = time.measure_graph(Clock::EventsGated, 10, &mut copy);
    println!("graph: {}", error.unwrap_err());
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
            mark("awaited");
            time.measure_awaited(3, waits)?;
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
        "more" => bench("more", &mut |b| b.iter_on(&time, Clock::Submit, 3, launch)),
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
            let mut times = Vec::new();
            for &clock in Clock::ALL {
                times.push(time.measure_launches(clock, 10, 1, hidden));
            }
            times.push(time.measure_graph(Clock::EventsGated, 10, hidden));
            for time in times {
                let error = time.expect_err("the work is elsewhere");
                let behind = matches!(error, TimingError::WorkElsewhere { .. });
                println!("{behind}: {error}");
            }
            time.ignore_other_streams(true);
            let ns = time.measure_launches(Clock::EventsGated, 100, 1, hidden)? / 100.0;
            println!("ignored {}", (1_000.0..2_000.0).contains(&ns));
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
            for &clock in Clock::ALL {
                let ns = time.measure_launches(clock, 10, 1, fork)? / 10.0;
                println!("{clock} {}", ns >= SPUN.as_nanos() as f64);
            }
            let ns = time.measure_graph(Clock::EventsGated, 10, fork)? / 10.0;
            println!("graph {}", ns >= SPUN.as_nanos() as f64);
        }
        // The values are gone when the routine has returned.
        "freed" => {
            let mut device = stream.alloc_zeros::<u8>(64)?;
            let mut copies = || stream.memcpy_htod(&vec![1u8; 64], &mut device);
            println!(
                "gated {}",
                time.measure(Clock::EventsGated, 10, &mut copies)? > 0.0
            );
            let error = time.measure_graph(Clock::EventsGated, 10, &mut copies);
            println!("graph: {}", error.unwrap_err());
            mark("counted");
            bench("k", &mut |b| b.iter_gated(&time, &mut copies));
            mark("end");
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
            let ns = time.measure_graph(Clock::EventsGated, 10, copies)?;
            println!("graph {}", ns > 0.0);
        }
        "rotating" => {
            let mut inputs = time.rotating(8 << 20, |_| stream.alloc_zeros::<u8>(8 << 20))?;
            for iterations in [40, 5] {
                let mut calls = 0;
                let set = || {
                    calls += 1;
                    stream.memset_zeros(inputs.next_copy())
                };
                time.measure_graph(Clock::EventsGated, iterations, set)?;
                println!("{calls} calls captured");
            }
        }
        "raw" => {
            let raw = stream.cu_stream().cast();
            // SAFETY: the stream outlives the clock.
            let time = unsafe { CudaTime::on_raw_stream(0, raw, GateMode::Auto) }?;
            let ns = time.measure_launches(Clock::EventsGated, 100, 1, launch)? / 100.0;
            println!("raw {}", (1_000.0..2_000.0).contains(&ns));
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

/// Does a task that is to succeed, and returns what it said.
fn well(stand_in: &StandIn, name: &str) -> String {
    expect(&mut task(stand_in, name), 0)
}

/// Does a task that is to fail with this sentence.
fn fails(command: &mut Command, sentence: &str) {
    let said = expect(command, PANICKED);
    assert!(said.contains(sentence), "{said}");
}

/// The folder of a benchmark's result.
fn result(stand_in: &StandIn, benchmark: &str) -> PathBuf {
    let root = stand_in.folder().join("criterion");
    root.join(benchmark).join("new")
}

fn clock(stand_in: &StandIn, benchmark: &str) -> Option<Clock> {
    stored_clock(&result(stand_in, benchmark))
}

/// A number of launches that is wrong is said.
pub(crate) fn launches() {
    let stand_in = StandIn::new();
    for (task, note) in [
        (
            "fewer",
            "a benchmark on events-gated declares 1 launch per iteration and makes 2",
        ),
        (
            "more",
            "a benchmark on submit declares 3 launches per iteration and makes 1",
        ),
        (
            "uncounted",
            "a benchmark on submit cannot be captured, so its launches were not counted: 4 are assumed",
        ),
    ] {
        let said = well(&stand_in, task);
        assert!(said.contains(note), "{said}");
        assert_eq!(said.matches("note: ").count(), 1, "{said}");
    }
}

/// Launches are counted, and a batch is as long as the queue holds.
pub(crate) fn counted() {
    let stand_in = StandIn::new();
    for (queue_depth, gates_of_three, longest) in
        [(256, 9, None), (1024, 3, Some(700)), (4096, 3, Some(1_000))]
    {
        let device = stand_in.h200_with("queue_depth", queue_depth);
        let mut command = stand_in.logged("timing", device.to_str().expect("a path"));
        let command = command.arg("counted").env(VARIATION, "0");
        let said = match longest {
            Some(_) => expect(command, 0),
            None => expect(command, PANICKED),
        };
        let phases: BTreeMap<_, _> = stand_in.phases().into_iter().collect();
        let is_gate = |line: &&String| line.starts_with("launch crossover_gate");
        let gates = |phase: &str| phases[phase].iter().filter(is_gate).count();
        assert_eq!(gates("three"), gates_of_three, "{queue_depth}: {said}");
        assert!(said.contains("three: 1400"), "{said}");
        assert_eq!(said.contains("long: 1400"), longest.is_some(), "{said}");
        // The longer queue is tried once.
        if longest.is_some() {
            assert_eq!(gates("long"), 1 + 2, "{said}");
        }
        assert_eq!(said.contains("1000 fit"), longest == Some(1_000), "{said}");
        let remedy = "a stream's queue holds fewer here; set CUDA_SCALE_LAUNCH_QUEUES=4x";
        assert_eq!(said.contains(remedy), longest != Some(1_000), "{said}");
    }
}

/// Work on another stream and what cannot be captured are errors.
pub(crate) fn errors() {
    let stand_in = StandIn::new();
    let nothing = "enqueued nothing on the timed stream";
    fails(&mut task(&stand_in, "elsewhere"), nothing);
    fails(&mut task(&stand_in, "nothing"), nothing);
    well(&stand_in, "awaited");
    let captured = "cannot be captured in a CUDA graph";
    fails(&mut task(&stand_in, "cannot"), captured);
}

/// Work on another stream that the timed one does not wait for is an error on every clock; a stream
/// that is joined is timed.
pub(crate) fn streams() {
    let stand_in = StandIn::new();
    let waiting = |name: &str| {
        let mut command = task(&stand_in, name);
        command.env("RECORDING_DRIVER_DEVICES", "h200,h200");
        command.env("RECORDING_DRIVER_WAITS", "1");
        command
    };
    let sentence =
        "work on another stream or device is not in the time; enqueue it on CudaTime::stream";
    for task in ["hidden", "hidden on a second device"] {
        let said = expect(&mut waiting(task), 0);
        let is_found = |line: &&str| line.starts_with("true: a device worked for");
        let found = said.lines().filter(is_found);
        let found = found.filter(|line| line.contains(sentence));
        assert_eq!(found.count(), 6, "{said}");
        assert!(said.contains("ignored true"), "{said}");
    }
    fails(&mut waiting("hidden in iter"), sentence);
    let said = expect(&mut waiting("joined"), 0);
    for name in ["events", "events-gated", "events-cold", "graph"] {
        assert!(said.contains(&format!("{name} true")), "{said}");
    }
}

/// A gate that is off is said, kept with the result, and an error where it is required.
pub(crate) fn gate() {
    let stand_in = StandIn::new();
    let said = well(&stand_in, "plain");
    assert!(!said.contains("the gate is off"), "{said}");
    assert!(!said.contains("note: a benchmark"), "{said}");
    assert_eq!(clock(&stand_in, "k"), Some(Clock::EventsGated));
    let said = well(&stand_in, "off");
    let instead = "is timed on events, launches included";
    assert_eq!(said.matches(instead).count(), 1, "{said}");
    let changed = "k: this result was timed on the clock events, the previous one on events-gated";
    assert!(said.contains(changed), "{said}");
    assert_eq!(clock(&stand_in, "k"), Some(Clock::Events));
    let mut blocking = task(&stand_in, "required");
    let needs = "the events-gated clock needs the gate";
    fails(blocking.env("CUDA_LAUNCH_BLOCKING", "1"), needs);
    well(&stand_in, "required");
}

/// A stream that the program made without cudarc.
pub(crate) fn raw() {
    let said = well(&StandIn::new(), "raw");
    assert!(said.contains("raw true"), "{said}");
}

/// Each clock is stored and reads the virtual time.
pub(crate) fn stored() {
    let stand_in = StandIn::new();
    let said = well(&stand_in, "clocks");
    let constant = "on events-cold, whose iterations have an event pair each, and 1.";
    assert_eq!(said.matches(constant).count(), 1, "{said}");
    // Of the H200's description: a launch takes 2,500 ns of the host, an empty kernel 1,400, give or
    // take 1 %. Criterion's own `iter` counts a batch from its first launch on.
    for (benchmark, clock, each, more) in [
        ("events", None, 2_500.0..=2_500.0, 1_414.0),
        ("cold", Some(Clock::EventsCold), 1_386.0..=1_414.0, 0.0),
    ] {
        assert_eq!(self::clock(&stand_in, benchmark), clock, "{benchmark}");
        for (n, time) in samples(&result(&stand_in, benchmark)) {
            // An elapsed time is a float of milliseconds.
            let least = each.start() * n * 0.999_99;
            let most = each.end() * n * 1.000_01 + more;
            let is_near = (least..=most).contains(&time);
            assert!(is_near, "{benchmark}: {n} in {time} ns");
        }
    }
    assert_eq!(clock(&stand_in, "rates/submit"), Some(Clock::Submit));
    assert_eq!(said.matches("thrpt").count(), 2, "{said}");
    assert_eq!(said.matches("[none none none]").count(), 1, "{said}");
}

/// A graph is timed, and takes rotating inputs in turn.
pub(crate) fn graphs() {
    let stand_in = StandIn::new();
    let said = well(&stand_in, "graph");
    assert!(!said.contains("note:"), "{said}");
    assert_eq!(clock(&stand_in, "k"), Some(Clock::EventsGated));
    let mut command = stand_in.logged("timing", "h200");
    let said = expect(command.arg("rotating"), 0);
    // As many as there are copies and replays of them, which are replayed in turn.
    assert!(
        said.contains("16 calls captured\n5 calls captured"),
        "{said}"
    );
    let (_, lines) = stand_in.phases().remove(0);
    let is_replay = |line: &&String| line.starts_with("launch graph");
    let replays: Vec<&String> = lines.iter().filter(is_replay).collect();
    assert_eq!(replays.len(), 40 + 5);
    assert_eq!(replays[..24], replays[16..40]);
    assert_eq!(BTreeSet::from_iter(&replays[..16]).len(), 16);
}

/// cudarc orders the streams of a clock's context as soon as there are two, and adds nothing to one. Slices
/// of another context with such events get a time, or a sentence.
pub(crate) fn tracked() {
    let stand_in = StandIn::new();
    expect(stand_in.logged("timing", "h200").arg("beside"), 0);
    let phases: BTreeMap<_, _> = stand_in.phases().into_iter().collect();
    let waits = |phase: &str, stream: &str| {
        let mut lines = phases[phase].iter();
        lines.position(|line| line.starts_with(&format!("{stream} waits for e")))
    };
    assert_eq!(waits("one stream", "s1"), None);
    let lines = &phases["two streams"];
    let at = |what: &str| lines.iter().position(|line| line.starts_with(what));
    assert!(waits("two streams", "s2") < at("copy D2D"), "{lines:?}");
    assert!(at("copy D2D") < waits("two streams", "s1"), "{lines:?}");
    assert!(waits("two streams", "s1") < at("free"), "{lines:?}");
    let said = well(&stand_in, "own context");
    assert!(said.contains("gated true"), "{said}");
    assert!(said.contains("event tracking"), "{said}");
}

/// A graph never replays copies of memory that its routine may have freed.
pub(crate) fn freed() {
    let stand_in = StandIn::new();
    let said = expect(stand_in.logged("timing", "h200").arg("freed"), 0);
    assert!(said.contains("gated true"), "{said}");
    assert!(
        said.contains("graph: the routine cannot be captured"),
        "{said}"
    );
    assert!(said.contains("ordinary (pageable) host memory"), "{said}");
    let phases: BTreeMap<_, _> = stand_in.phases().into_iter().collect();
    let is_replay = |line: &String| line.starts_with("launch graph");
    assert!(!phases["counted"].iter().any(is_replay), "{phases:?}");
    assert!(well(&stand_in, "kept").contains("graph true"));
}

/// Each cheat gets its sentence, and what is honest none.
pub(crate) fn guarded() {
    print!("{}", well(&StandIn::new(), "cheats"));
}

/// The clocks read the driver's virtual time, with the gate, the records and the waits in order.
pub(crate) fn known() {
    let stand_in = StandIn::new();
    let mut command = stand_in.logged("timing", "h200");
    // A host that is slow to wait would repeat a sample.
    let said = expect(command.arg("known").env(VARIATION, "0"), 0);
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
    let phases: BTreeMap<_, _> = stand_in.phases().into_iter().collect();
    let empty = "launch crossover_empty grid (1,1,1) block (1,1,1) shared 0 on s1 ()";
    let gate =
        "launch crossover_gate grid (1,1,1) block (1,1,1) shared 0 on s1 (pinned1, 5000000000)";
    let gated = |start: &str, end: &str| {
        let [start_line, end_line] = [start, end].map(|event| format!("record {event} on s1"));
        let wait = format!("wait for {end}");
        [gate, &start_line, empty, empty, &end_line, &wait].map(str::to_owned)
    };
    assert_eq!(phases["two gated"], gated("e1", "e2"));
    // Other streams are looked at outside of the window.
    let alone = &phases["alone"];
    assert_eq!(alone[..6], gated("e1", "e2"));
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
    let waits: Vec<usize> = (phases["submit"].iter().enumerate())
        .filter(|(_, line)| *line == "wait for s1")
        .map(|(at, _)| at)
        .collect();
    assert_eq!(waits, [0, 151, 302]);
    let awaited = [empty, "wait for s1"].repeat(3);
    assert_eq!(phases["wall"], [&["wait for s1"], &*awaited].concat());
    let awaited = [&["wait for s1"], &*awaited, &["wait for s1"]].concat();
    assert_eq!(phases["awaited"], awaited);
    let is_left = |line: &String| line.contains("the context ends with");
    assert!(!phases["drop"].iter().any(is_left), "{:?}", phases["drop"]);
}
