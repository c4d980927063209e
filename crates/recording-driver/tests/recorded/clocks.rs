//! The clocks of the timing crate against the driver's virtual one, whose times are known.

use std::collections::BTreeMap;
use std::process::ExitCode;

use crossover::timing::{Clock, CudaTime, GateMode, Launch, TimingError, open};

use crate::stand_in::{StandIn, VARIATION, expect, mark};

/// Of the H200's description: an empty kernel, and what the host needs to launch one.
const KERNEL: f64 = 1_400.0;
const LAUNCH: f64 = 2_500.0;

/// What the process that was started again does: measures on each clock, and prints what it got.
pub(crate) fn measure() -> ExitCode {
    let (_, stream) = open(0).expect("the recording driver opens");
    let time = CudaTime::on_stream(&stream, GateMode::Auto).expect("the gate is tried");
    assert_eq!(time.gate_off_reason(), None, "the gate works");
    // A host that is slow to wait would repeat a sample.
    time.ignore_other_streams(true);
    let empty = time.empty_kernel().expect("there is a device");
    let run = |time: &CudaTime, clock, iterations, empty: &Launch| {
        // SAFETY: the kernel takes no arguments.
        time.measure(clock, iterations, 1, || unsafe { empty.launch(&stream) })
            .expect("nothing fails here")
    };
    mark("load");
    run(&time, Clock::EventsGated, 1, &empty);
    for (name, clock, iterations) in [
        ("events", Clock::Events, 1_000),
        ("gated", Clock::EventsGated, 1_000),
        ("cold", Clock::EventsCold, 10),
        ("two gated", Clock::EventsGated, 2),
        ("submit", Clock::Submit, 300),
        ("wall", Clock::Wall, 3),
    ] {
        mark(name);
        println!("{name}: {}", run(&time, clock, iterations, &empty));
    }
    mark("alone");
    time.ignore_other_streams(false);
    run(&time, Clock::EventsGated, 2, &empty);
    time.ignore_other_streams(true);
    mark("waits");
    let error = time
        .measure(Clock::EventsGated, 2, 1, || stream.synchronize())
        .expect_err("the routine waits for the gate, which waits for it");
    assert!(matches!(error, TimingError::GateTimeout { .. }), "{error}");
    mark("after");
    println!("after: {}", run(&time, Clock::EventsGated, 10, &empty));
    mark("without a gate");
    let ungated = CudaTime::on_stream(&stream, GateMode::Off).expect("nothing is tried");
    assert_eq!(ungated.effective_clock(Clock::EventsGated), Clock::Events);
    println!(
        "without a gate: {}",
        run(&ungated, Clock::EventsGated, 10, &empty)
    );
    mark("drop");
    ExitCode::SUCCESS
}

fn measured(stand_in: &StandIn) -> String {
    let mut command = stand_in.logged("clocks", "h200");
    expect(command.env(VARIATION, "0"), 0)
}

pub(crate) fn exact() {
    let said = measured(&StandIn::new());
    let read = |name: &str| -> f64 {
        let line = said
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}: ")));
        let line = line.unwrap_or_else(|| panic!("no {name} in {said}"));
        line.parse().expect("a number")
    };
    for (name, nanoseconds) in [
        ("events", 1_000.0 * LAUNCH + KERNEL),
        ("gated", 1_000.0 * KERNEL),
        ("cold", 10.0 * KERNEL),
        ("two gated", 2.0 * KERNEL),
        ("after", 10.0 * KERNEL),
        ("without a gate", 10.0 * LAUNCH + KERNEL),
    ] {
        // An elapsed time is a float of milliseconds.
        let error = (read(name) / nanoseconds - 1.0).abs();
        assert!(
            error < 1e-6,
            "{name}: {} ns and not {nanoseconds}",
            read(name)
        );
    }
}

pub(crate) fn order() {
    let stand_in = StandIn::new();
    measured(&stand_in);
    let phases: BTreeMap<_, _> = stand_in.phases().into_iter().collect();
    let empty = "launch crossover_empty grid (1,1,1) block (1,1,1) shared 0 on s1 ()";
    let gate =
        "launch crossover_gate grid (1,1,1) block (1,1,1) shared 0 on s1 (pinned1, 5000000000)";
    let gated = |start, end| {
        let record = |event| format!("record {event} on s1");
        let launches = [empty.to_owned(), empty.to_owned()];
        let [first, second] = launches;
        [
            gate.to_owned(),
            record(start),
            first,
            second,
            record(end),
            format!("wait for {end}"),
        ]
    };
    assert_eq!(phases["two gated"], gated("e1", "e2"));
    // Other streams are looked at outside of the window.
    let alone = &phases["alone"];
    assert_eq!(alone[..6], gated("e2", "e1"));
    assert_eq!(alone[6], "wait for the context");
    // The pool of events gives them out in turns.
    let cold = [
        "set 125829120 B of d1 to 0x00 on s1",
        gate,
        "record e2 on s1",
        empty,
        "record e1 on s1",
        "wait for e1",
    ];
    let flushed = phases["cold"]
        .iter()
        .filter(|line| line.starts_with("set "))
        .count();
    assert_eq!(flushed, 10);
    assert_eq!(phases["cold"][phases["cold"].len() - 6..], cold);
    // The queue is emptied before each of two even batches and after the last, and not in between.
    let waits: Vec<usize> = (phases["submit"].iter().enumerate())
        .filter(|(_, line)| *line == "wait for s1")
        .map(|(at, _)| at)
        .collect();
    assert_eq!(waits, [0, 151, 302]);
    assert_eq!(
        phases["wall"],
        ["wait for s1", empty, empty, empty, "wait for s1"]
    );
    let left: Vec<&String> = phases["drop"]
        .iter()
        .filter(|line| line.contains("the context ends with"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
