//! Findings where real results do not show them: the other way round, with a part missing, of other
//! machines, of roles alone, and none without their benchmarks.

use super::{Fixture, Planted, check, check_with, machine, near};
use crate::analysis::answer::crossover_answer;
use crate::analysis::rate::{self, Work};
use crate::analysis::reuse;
use crate::model::Launches::{Fused, Graph, OneByOne};
use crate::model::role::Residency;
use crate::model::{
    Energy, Format, GroupInfo, Launches, Library, Measures, Phase, Role, Telemetry,
};
use crossover_words::Clock::{self, Events, EventsGated, Submit, Wall};

const PHASES: &str = "
    cold_start/gpu/driver-init/1 wall 10e6
    cold_start/gpu/context/1 wall 60e6
    cold_start/gpu/first-stream/1 wall 0.5e6
    cold_start/gpu/first-alloc/1 wall 0.5e6
    cold_start/gpu/nvrtc-compile/1 wall 20e6
    cold_start/gpu/ptx-jit/1 wall 8e6
    cold_start/gpu/cubin-load/1 wall 0.1e6
    cold_start/gpu/first-launch/1 wall 1e6
    cold_start/gpu/warm-launch/1 wall 10e3
    cold_start/gpu/first-gemm/1 wall 29e6
    cold_start/gpu/warm-gemm/1 wall 20e3
    ";

/// Without the JIT's time the CUBIN stands for compiling.
#[test]
fn a_cold_start_without_a_phase_tells_the_rest() {
    let without = |phase: &str, expected: &str| {
        let line = |line: &&str| !line.contains(phase);
        let lines: Vec<&str> = PHASES
            .lines()
            .filter(line)
            .chain(expected.lines())
            .collect();
        check(&lines.join("\n"));
    };
    without(
        "ptx-jit",
        "says cold_start.kernel: takes 72.1 ms\nomits cold_start.kernel: instead",
    );
    without("context", "silent cold_start");
    without("warm-launch", "silent cold_start.kernel");
}

#[test]
fn a_cold_start_pays_after_some_calls() {
    let mut f = Fixture::new();
    f.lines(
        "
        cold_start/gpu/driver-init/1 wall 1e7
        cold_start/gpu/context/1 wall 9e7
        cold_start/gpu/first-stream/1 wall 1e4
        cold_start/gpu/first-alloc/1 wall 9e4
        cold_start/gpu/first-gemm/1 wall 1.999e8
        cold_start/gpu/nvrtc-compile/1 wall 5e7
        cold_start/gpu/warm-gemm/1 wall 2e4
        matmul/gpu/transfer/1024 wall 1e6 launches=1
        matmul/gpu/cublas-eager/1024 events 1e5 launches=1
        matmul/cpu/best/1024 wall 4e5
        ",
    );
    let machine = f.machine();
    let reuse = reuse::find(&machine, &crossover_answer::find(&machine, &[]));
    // Compiling is not on the way to a product.
    near(reuse[0].rows[0].calls.unwrap(), 1000.0);
}

#[test]
fn a_process_is_warm_after_some_calls_and_preparing_pays_after_some() {
    let plant = |f: &Fixture, id: String, clock, ns, does, launches, method: &str| {
        let mut planted = Planted::new(&id, clock, ns);
        planted.role = Some(Role {
            does: Measures::Starts(does),
            launches: Some(launches),
            method: Some(method.to_owned()),
            ..Role::gpu()
        });
        f.plant(&planted);
    };
    let (_, all) = machine(|f| {
        for (name, clock, launches, method, times) in [
            ("apart", Wall, OneByOne, "a chain", [500e3, 101e3, 100e3]),
            (
                "apart-host",
                Submit,
                OneByOne,
                "a chain",
                [450e3, 91e3, 90e3],
            ),
            ("graph", Wall, Graph, "its graph", [80e3, 60e3, 40e3]),
            (
                "fused",
                Wall,
                Fused,
                "the chain fused",
                [200e3, 200e3, 200e3],
            ),
        ] {
            for (call, ns) in [1, 2, 10].into_iter().zip(times) {
                let id = format!("warm/gpu/{name}/{call}");
                plant(f, id, clock, ns, Phase::EachCall, launches, method);
            }
        }
        for (phase, ns) in [
            (Phase::GraphCapture, 100e3),
            (Phase::GraphInstantiate, 85e3),
            (Phase::KernelCompile, 20e6),
        ] {
            let id = format!("warm/gpu/{}/1", phase.name());
            plant(f, id, Wall, ns, phase, OneByOne, "once");
        }
    });
    let text = |id: &str| all.iter().find(|f| f.id == id).unwrap();
    let calls = text("warming_up.calls");
    let words = "Its graph: first 80.0 µs, last 40.0 µs, warm from call 10";
    assert!(calls.text.contains(words), "{}", calls.text);
    let host = ["A chain", "500 µs", "450 µs", "100 µs", "90.0 µs", "call 2"];
    assert_eq!(calls.table.as_ref().unwrap().rows[0], host);
    let prepared = &text("warming_up.prepared").text;
    for words in [
        "graph takes 185 µs and is paid after 4 calls, each of which takes 60.0 µs less",
        "kernel takes 20.0 ms and is never paid",
    ] {
        assert!(prepared.contains(words), "{prepared}");
    }
    assert!(!all.iter().any(|f| f.id.starts_with("graph.")));
}

#[test]
fn one_row_alone_is_no_finding() {
    for (row, finding) in [
        ("matmul/gpu/submit/8 submit", "submit"),
        ("nested_sine/gpu/fused/1024 events", "fusing"),
        ("streams/gpu/sequence/65536 wall", "overlap"),
        ("memory/gpu/malloc/4096 wall", "allocation"),
        ("loader/gpu/pageable/1048576 wall", "loading"),
        ("precision/gpu/f32/64 events-gated", "precision"),
        ("precision/gpu/fp16/64 events-gated", "precision"),
    ] {
        check(&format!("{row} 1e4 launches=1\nsilent {finding}"));
    }
}

/// Also without the kernels' time of a loader, and of copies without a small size.
#[test]
fn techniques_that_cost_time_are_said_to() {
    check(
        "
        transfer/gpu/d2h-pageable/1048576 wall 10e3 launches=1
        transfer/gpu/d2h-pinned/1048576 wall 20e3 launches=1
        transfer/gpu/h2d-pinned/1048576 wall 20e3 launches=1
        says copies.pinned.d2h: Pinning the host memory of copies to the host is 2× slower
        silent copies.fixed
        silent copies.many
        streams/gpu/sequence/65536 wall 30e3 launches=1
        streams/gpu/chunks-2/65536 wall 60e3 launches=1
        streams/gpu/synced/65536 wall 15e3 launches=1
        says overlap.pieces: is 2× slower
        says overlap.synced: is 2× faster
        host_sync/gpu/async/1024 wall 128e3 launches=64
        host_sync/gpu/sync-each/1024 wall 64e3 launches=64
        host_sync/gpu/graph/1024 wall 256e3 launches=64
        says synchronising.host_sync: is 2× slower | more for each of 63
        says graph.host_sync: is 2× slower
        silent reading
        silent host_sync.hybrid
        nested_sine/gpu/per-kernel/1024 events 1e3 launches=4
        nested_sine/gpu/fused/1024 events 2e3 launches=1
        says fusing.launches: is 2× slower | more for each of 3 launches
        silent fusing.traffic
        graph_replay/gpu/eager/1024 wall 40e3 launches=32
        graph_replay/gpu/graph/1024 wall 80e3 launches=1
        says graph.graph_replay: 2× slower
        silent synchronising.graph_replay
        loader/gpu/pageable/1048576 wall 32e6 launches=32
        loader/gpu/pinned/1048576 wall 64e6 launches=32
        says loading.loader: pinned buffer | 0.5×
        omits loading.loader: kernel
        precision/gpu/f32/64 events 1e6
        precision/gpu/fp16/64 events 2e6
        says precision.formats: FP16: time 2.00 ms, speed 2× slower
        ",
    );
}

#[test]
fn an_allocation_that_costs_nothing_or_more_than_another() {
    let text = |kept: f64| {
        let sizes = [(1u64 << 12, 0.1), (1 << 26, 1.0), (1 << 32, 100.0)];
        let of_size = sizes.map(|(size, scale)| {
            format!(
                "memory/gpu/reuse/{size} wall 8e3 launches=1
                memory/gpu/malloc/{size} wall {} launches=1
                memory/gpu/malloc-async/{size} wall {} launches=1
                memory/gpu/malloc-async-kept/{size} wall {} launches=1\n",
                8e3 + 80e3 * scale,
                8e3 + 120e3 * scale,
                8e3 + kept
            )
        });
        of_size.concat()
    };
    check(
        &(text(-1e3)
            + "says allocation.memory: is 1,140× faster | at size = 4 GiB | at size = 4 KiB"),
    );
    check(&(text(160e5) + "says allocation.memory: is 2× slower"));
}

/// Known where the pool was asked before and after a release, and not before.
#[test]
fn a_pool_that_keeps_its_memory_has_it_after_a_release() {
    let text = |how: &str, released: &str| {
        format!(
            "memory/gpu/{how}/67108864 wall 1e4 pool_used_allocated_bytes=67108864 \
             pool_reserved_allocated_bytes=67108864 pool_used_released_bytes=0 \
             pool_reserved_released_bytes={released} pool_used_trimmed_bytes=0 \
             pool_reserved_trimmed_bytes=0\n"
        )
    };
    let both = text("malloc-async", "0") + &text("malloc-async-kept", "67108864");
    check(
        &(both
            + "says allocation.memory.held: told to keep its memory, after its release and a \
               synchronisation: in use 0 B, reserved 64 MiB"),
    );
    check("memory/gpu/malloc-async/67108864 wall 1e4\nsilent allocation.memory.held");
}

/// At the largest size an earlier benchmark had chosen.
#[test]
fn choosing_among_ways_is_paid_after_some_calls() {
    check(
        "
        ways/cpu/best/64 wall 1e4 calibration_ns=5e6 calibration_saves_ns=10
        ways/cpu/best/256 wall 1e4 calibration_ns=8e6 calibration_saves_ns=2e3
        ways/cpu/best/1024 wall 1e4 calibration_ns=9e6
        says calibration.ways: ways/cpu/best/256: choosing takes 8.00 ms, a call takes less by 2.00 µs | paid 4,000
        ",
    );
    check("ways/cpu/best/64 wall 1e4 calibration_ns=5e6\nsilent calibration");
}

#[test]
fn a_group_has_the_rate_that_all_its_curves_have() {
    let work = |gpu_flop: &str| {
        let (machine, _) = machine(|f| {
            f.line("nested_sine/cpu/simd/1000 wall 1e3 bytes=8e3 flop=80e3");
            f.line(&format!(
                "nested_sine/gpu/fused/1000 wall 1e3 bytes=8e3 {gpu_flop}"
            ));
        });
        rate::work(&[machine.group("nested_sine").unwrap()])
    };
    assert_eq!(work(""), Some(Work::Bytes));
    assert_eq!(work("flop=80e3"), Some(Work::Flop));
}

/// Where two win from the same size on, the answer is the one that a user would take.
#[test]
fn of_two_that_cross_together_the_faster_is_the_winner() {
    let small = |n: u32| {
        format!(
            "matmul/cpu/best/{n} wall {}
            matmul/cpu/best-1-thread/{n} wall {}
            matmul/gpu/sequence/{n} wall 110e3 launches=1
            matmul/gpu/overlapped/{n} wall 111e3 launches=1\n",
            300 * n,
            200 * n
        )
    };
    let large = "matmul/cpu/best/8192 wall 500e6
        matmul/cpu/best-1-thread/8192 wall 1638400
        matmul/gpu/sequence/8192 wall 36e6 launches=1
        matmul/gpu/overlapped/8192 wall 23e6 launches=1
        says winner.matmul.queued: overlapped";
    check(&(small(256) + &small(512) + large));
}

/// A winner, or a crossing that counts as measured, takes a time of every rival.
#[test]
fn a_rival_that_was_not_run_leaves_the_crossing_interpolated() {
    for (rival, expected) in [(true, "omits"), (false, "says")] {
        let row = |n: u32| {
            let cpu = 1e5 * (f64::from(n) / 350.0).powi(3);
            let rayon = (rival || n == 256 || n == 512)
                .then(|| format!("matmul/cpu/rayon/{n} wall {}\n", 1.5 * cpu));
            format!("matmul/cpu/best/{n} wall {cpu}\nmatmul/gpu/cublas-eager/{n} events 1e5\n")
                + &rayon.unwrap_or_default()
        };
        let rows = [256, 320, 384, 512].map(row).concat();
        check(&(rows + &format!("{expected} winner.matmul.queued: (interpolated)")));
    }
}

/// A training step: more kernels apart than fused, of which several remain, in three formats.
#[test]
fn a_step_of_several_kernels_has_findings_by_its_roles() {
    let role = |launches, format| Role {
        launches: Some(launches),
        library: Some(Library::Cublas),
        answers: format == Format::F32,
        format,
        ..Role::gpu()
    };
    let plant =
        |f: &Fixture, name: &str, clock: Clock, launches, format, kernels: u32, micros: f64| {
            for size in [16, 256] {
                let id = format!("training/gpu/{name}/{size}");
                let mut planted = Planted::new(&id, clock, 1e3 * micros);
                planted.cost.bytes = Some(1e6 * f64::from(kernels));
                planted.cost.launches = Some(kernels);
                planted.role = Some(role(launches, format));
                // Of activations f32 keeps twice as many bytes as BF16.
                let each = if format == Format::Bf16 { 1e5 } else { 2e5 };
                let activations = each * size as f64;
                planted.extra = [
                    ("parameters_bytes", 30e6),
                    ("activations_bytes", activations),
                    ("workspace_bytes", 4e6),
                    ("peak_bytes", 34e6 + activations),
                ]
                .map(|(key, bytes)| (key.to_owned(), bytes))
                .into();
                f.plant(&planted);
            }
        };
    let (_, found) = machine(|f| {
        let f32 = Format::F32;
        for (name, launches, kernels, micros) in [
            ("eager", Launches::OneByOne, 22, 100.0),
            ("fused", Launches::Fused, 9, 50.0),
            ("graph", Launches::Graph, 9, 25.0),
        ] {
            plant(f, name, Events, launches, f32, kernels, micros);
            let gated = format!("{name}-gated");
            plant(f, &gated, EventsGated, launches, f32, kernels, 0.8 * micros);
        }
        plant(
            f,
            "tf32-gated",
            EventsGated,
            Launches::Graph,
            Format::Tf32,
            9,
            10.0,
        );
        plant(
            f,
            "bf16-gated",
            EventsGated,
            Launches::Graph,
            Format::Bf16,
            9,
            8.0,
        );
        let mut pinned = Planted::new("training/gpu/transfer-pinned/256", Wall, 80e3);
        pinned.role = Some(Role {
            data: Residency::Pinned,
            ..role(Launches::Graph, f32)
        });
        f.plant(&pinned);
        f.topic(GroupInfo {
            work: "the training step".to_owned(),
            symbol: "batch".to_owned(),
            ..GroupInfo::of("training")
        });
    });
    let text = |id: &str| &found.iter().find(|f| f.id == id).unwrap().text;
    for (id, words) in [
        (
            "graph.training",
            "Replaying the training step as one graph is 4× faster",
        ),
        (
            "fusing.launches",
            "Fusing the kernels of the training step is 2× faster",
        ),
        ("fusing.launches", "less for each of 13"),
        ("fusing.traffic", "at batch = 256"),
        // Not against the work in fewer bits, which takes 8 us.
        ("transfers.training.transfer-pinned", "share of moving 75 %"),
        ("precision.formats", "f32: time 20.0 µs"),
        ("precision.formats", "speed 2× faster"),
        (
            "device_memory.training",
            "f32: at most 85.2 MB, parameters and their state 30.0 MB, activations 51.2 MB, workspace 4.00 MB; ",
        ),
        ("device_memory.training", "BF16: at most 59.6 MB"),
    ] {
        assert!(text(id).contains(words), "{}", text(id));
    }
    assert!(!text("graph.training").contains("a kernel)"));
}

/// Half of the time of the larger f32 product was filled by something else.
#[test]
fn energy_of_a_format_is_told_where_it_is_known() {
    let counted = |f: &mut Fixture, name: &str, ns: f64, joules: f64, iterations: u64| {
        let id = format!("precision/gpu/{name}/4096");
        let mut planted = Planted::new(&id, EventsGated, ns);
        planted.telemetry = Some(Telemetry {
            energy: Some(Energy {
                joules: joules * iterations as f64,
                seconds: 0.5,
                iterations,
            }),
            ..Telemetry::default()
        });
        f.plant(&planted);
    };
    check_with(
        |f| {
            counted(f, "f32", 5e6, 1.5, 100);
            counted(f, "fp16", 0.5e6, 0.15, 1000);
        },
        "says precision.formats: energy 1.50 J | energy 150 mJ",
    );
    check_with(
        |f| {
            counted(f, "f32", 25e6, 20.0, 10);
            counted(f, "fp16", 2.5e6, 1.2, 200);
        },
        "says precision.formats: energy 1.20 J\nomits precision.formats: 20.0 J",
    );
}
