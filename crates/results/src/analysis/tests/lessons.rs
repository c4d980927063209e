//! The findings of the groups that teach, where real results do not show them: the other way
//! round, with a part missing, and none without their benchmarks.

use super::machine;
use super::{Fixture, Planted};
use crate::analysis::findings::finding::Finding;
use crate::analysis::rate::{self, Work};
use crate::model::Launches::{Fused, Graph, OneByOne};
use crate::model::{Cost, Measures, Phase, Role};
use crossover_words::Clock::{self, Events, EventsGated, Submit, Wall};

pub(crate) fn findings(plant: impl FnOnce(&mut Fixture)) -> Vec<Finding> {
    machine(plant).1
}

/// The finding, its text checked for `words`.
pub(crate) fn says<'a>(findings: &'a [Finding], id: &str, words: &[&str]) -> &'a Finding {
    let ids: Vec<&str> = findings.iter().map(|f| f.id.as_str()).collect();
    let finding = findings.iter().find(|f| f.id == id);
    let finding = finding.unwrap_or_else(|| panic!("no {id} among {ids:?}"));
    for word in words {
        assert!(finding.text.contains(word), "{word:?} in: {}", finding.text);
    }
    assert!(!finding.benchmarks.is_empty());
    finding
}

pub(crate) fn silent(findings: &[Finding], start: &str) {
    let ids: Vec<&str> = findings.iter().map(|f| f.id.as_str()).collect();
    assert!(!ids.iter().any(|id| id.starts_with(start)), "{ids:?}");
}

pub(crate) fn near(value: f64, planted: f64) {
    assert!(
        (value / planted - 1.0).abs() < 1e-9,
        "{value} is not {planted}"
    );
}

/// A result of so many launches.
pub(crate) fn plant(f: &Fixture, id: &str, clock: Clock, ns: f64, launches: u32) {
    let cost = Cost {
        launches: Some(launches),
        ..Cost::default()
    };
    f.plant(&Planted::new(id, clock, ns).cost(cost));
}

#[test]
fn a_cold_start_without_a_phase_says_what_it_knows() {
    let phases = |f: &Fixture, without: &str| {
        for (phase, ns) in [
            ("driver-init", 10e6),
            ("context", 60e6),
            ("first-stream", 0.5e6),
            ("first-alloc", 0.5e6),
            ("nvrtc-compile", 20e6),
            ("ptx-jit", 8e6),
            ("cubin-load", 0.1e6),
            ("first-launch", 1e6),
            ("warm-launch", 10e3),
            ("first-gemm", 29e6),
            ("warm-gemm", 20e3),
        ] {
            if phase != without {
                plant(f, &format!("cold_start/gpu/{phase}/1"), Wall, ns, 1);
            }
        }
    };
    // Without the JIT's time the CUBIN stands for compiling.
    let some = findings(|f| phases(f, "ptx-jit"));
    let kernel = says(&some, "cold_start.kernel", &["takes 72.1 ms"]);
    assert!(!kernel.text.contains("instead"), "{}", kernel.text);

    silent(&findings(|f| phases(f, "context")), "cold_start");
    silent(&findings(|f| phases(f, "warm-launch")), "cold_start.kernel");
}

#[test]
fn a_process_is_warm_after_some_calls_and_preparing_pays_after_some() {
    let role = |does, launches, method: &str| Role {
        does: Measures::Starts(does),
        launches: Some(launches),
        method: Some(method.to_owned()),
        ..Role::gpu()
    };
    let all = findings(|f| {
        let call = |name: &str, clock, launches, method, times: [f64; 3]| {
            for (call, ns) in [1, 2, 10].into_iter().zip(times) {
                let id = format!("warm/gpu/{name}/{call}");
                let mut planted = Planted::new(&id, clock, ns);
                planted.role = Some(role(Phase::EachCall, launches, method));
                f.plant(&planted);
            }
        };
        call("apart", Wall, OneByOne, "a chain", [500e3, 101e3, 100e3]);
        call(
            "apart-host",
            Submit,
            OneByOne,
            "a chain",
            [450e3, 91e3, 90e3],
        );
        call("graph", Wall, Graph, "its graph", [80e3, 60e3, 40e3]);
        call(
            "fused",
            Wall,
            Fused,
            "the chain fused",
            [200e3, 200e3, 200e3],
        );
        for (phase, ns) in [
            (Phase::GraphCapture, 100e3),
            (Phase::GraphInstantiate, 85e3),
            (Phase::KernelCompile, 20e6),
        ] {
            let id = format!("warm/gpu/{}/1", phase.name());
            let mut planted = Planted::new(&id, Wall, ns);
            planted.role = Some(role(phase, OneByOne, "once"));
            f.plant(&planted);
        }
    });
    let words = "Its graph: first 80.0 µs, last 40.0 µs, warm from call 10";
    let calls = says(&all, "warming_up.calls", &[words]);
    let host = ["A chain", "500 µs", "450 µs", "100 µs", "90.0 µs", "call 2"];
    assert_eq!(calls.table.as_ref().unwrap().rows[0], host);
    let words = [
        "graph takes 185 µs and is paid after 4 calls, each of which takes 60.0 µs less",
        "kernel takes 20.0 ms and is never paid",
    ];
    says(&all, "warming_up.prepared", &words);
    silent(&all, "graph.");
}

/// What is compared needs both sides.
#[test]
fn one_row_alone_says_nothing() {
    for (id, clock, finding) in [
        ("matmul/gpu/submit/8", Submit, "submit"),
        ("nested_sine/gpu/fused/1024", Events, "fusing"),
        ("streams/gpu/sequence/65536", Wall, "overlap"),
        ("memory/gpu/malloc/4096", Wall, "allocation"),
        ("loader/gpu/pageable/1048576", Wall, "loading"),
        ("precision/gpu/f32/64", EventsGated, "precision"),
        ("precision/gpu/fp16/64", EventsGated, "precision"),
    ] {
        silent(&findings(|f| plant(f, id, clock, 1e4, 1)), finding);
    }
}

#[test]
fn pinning_that_does_not_pay_is_said() {
    // The other direction, and a smallest size that is not small.
    let odd = findings(|f| {
        plant(f, "transfer/gpu/d2h-pageable/1048576", Wall, 10e3, 1);
        plant(f, "transfer/gpu/d2h-pinned/1048576", Wall, 20e3, 1);
        plant(f, "transfer/gpu/h2d-pinned/1048576", Wall, 20e3, 1);
    });
    let slower = says(
        &odd,
        "copies.pinned.d2h",
        &["Pinning the host memory of copies to the host is 2× slower"],
    );
    assert!(!slower.figures.contains_key("pays_from_size"));
    silent(&odd, "copies.fixed");
    silent(&odd, "copies.many");
}

#[test]
fn overlapping_that_costs_is_said() {
    let odd = findings(|f| {
        plant(f, "streams/gpu/sequence/65536", Wall, 30e3, 1);
        plant(f, "streams/gpu/chunks-2/65536", Wall, 60e3, 1);
        plant(f, "streams/gpu/synced/65536", Wall, 15e3, 1);
    });
    let slower = says(&odd, "overlap.pieces", &["is 2× slower"]);
    assert!(!slower.figures.contains_key("to_limit"));
    says(&odd, "overlap.synced", &["is 2× faster"]);
}

#[test]
fn waiting_that_saves_and_a_graph_that_costs_are_said() {
    let odd = findings(|f| {
        plant(f, "host_sync/gpu/async/1024", Wall, 128e3, 64);
        plant(f, "host_sync/gpu/sync-each/1024", Wall, 64e3, 64);
        plant(f, "host_sync/gpu/graph/1024", Wall, 256e3, 64);
    });
    let sync = says(&odd, "synchronising.host_sync", &["is 2× slower"]);
    assert!(sync.text.contains("more for each of 63"), "{}", sync.text);
    says(&odd, "graph.host_sync", &["is 2× slower"]);
    silent(&odd, "reading");
    silent(&odd, "host_sync.hybrid");
}

#[test]
fn an_allocation_that_costs_nothing_or_more_than_another() {
    let curves = |f: &Fixture, kept: f64| {
        for (size, scale) in [(1u64 << 12, 0.1), (1 << 26, 1.0), (1 << 32, 100.0)] {
            let id = |how| format!("memory/gpu/{how}/{size}");
            plant(f, &id("reuse"), Wall, 8e3, 1);
            plant(f, &id("malloc"), Wall, 8e3 + 80e3 * scale, 1);
            plant(f, &id("malloc-async"), Wall, 8e3 + 120e3 * scale, 1);
            plant(f, &id("malloc-async-kept"), Wall, 8e3 + kept, 1);
        }
    };
    let free = findings(|f| curves(f, -1e3));
    let allocation = says(
        &free,
        "allocation.memory",
        &["at size = 4 GiB", "at size = 4 KiB"],
    );
    near(allocation.figures["ratio"], 8.008e6 / 7e3);
    let dear = findings(|f| curves(f, 160e5));
    says(&dear, "allocation.memory", &["is 2× slower"]);
}

/// What a pool holds is said where it was asked before and after a release, and not before.
#[test]
fn a_pool_that_keeps_its_memory_holds_it_after_a_release() {
    let pools = |f: &Fixture, figures: bool| {
        for (how, released) in [("malloc-async", 0.0), ("malloc-async-kept", 67108864.0)] {
            let id = format!("memory/gpu/{how}/67108864");
            let mut planted = Planted::new(&id, Wall, 1e4);
            for (moment, used, reserved) in [
                ("allocated", 67108864.0, 67108864.0),
                ("released", 0.0, released),
                ("trimmed", 0.0, 0.0),
            ] {
                if figures {
                    planted
                        .extra
                        .insert(format!("pool_used_{moment}_bytes"), used);
                    planted
                        .extra
                        .insert(format!("pool_reserved_{moment}_bytes"), reserved);
                }
            }
            f.plant(&planted);
        }
    };
    let all = findings(|f| pools(f, true));
    let held = says(
        &all,
        "allocation.memory.held",
        &[
            "told to keep its memory, after its release and a synchronisation: in use 0 B, reserved 64 MiB",
        ],
    );
    let rows = &held.table.as_ref().unwrap().rows;
    let figures: Vec<[&str; 2]> = rows.iter().map(|row| [&*row[1], &*row[2]]).collect();
    let [alive, kept, gone] = [["64 MiB", "64 MiB"], ["0 B", "64 MiB"], ["0 B", "0 B"]];
    assert_eq!(figures, [alive, gone, gone, alive, kept, gone]);
    silent(&findings(|f| pools(f, false)), "allocation.memory.held");
}

#[test]
fn choosing_among_ways_is_paid_after_some_calls() {
    let all = findings(|f| {
        for (size, takes, saves) in [(64, 5e6, 10.0), (256, 8e6, 2e3), (1024, 9e6, 0.0)] {
            let id = format!("ways/cpu/best/{size}");
            let mut planted = Planted::new(&id, Wall, 1e4);
            planted.extra = [
                ("calibration_ns".to_owned(), takes),
                ("calibration_saves_ns".to_owned(), saves),
            ]
            .into();
            // At the largest size an earlier benchmark had chosen.
            planted.extra.retain(|_, ns| *ns > 0.0);
            f.plant(&planted);
        }
    });
    let words = "ways/cpu/best/256: choosing takes 8.00 ms, a call takes less by 2.00 µs";
    let choice = says(&all, "calibration.ways", &[words, "paid 4,000"]);
    near(choice.figures["paid_after"], 4e3);
    let none = |f: &mut Fixture| {
        let mut planted = Planted::new("ways/cpu/best/64", Wall, 1e4);
        planted.extra = [("calibration_ns".to_owned(), 5e6)].into();
        f.plant(&planted);
    };
    silent(&findings(none), "calibration");
}

#[test]
fn a_loader_that_does_not_know_how_long_kernels_ran() {
    let epoch = |f: &Fixture, how: &str, ns: f64| {
        plant(f, &format!("loader/gpu/{how}/1048576"), Wall, ns, 32);
    };
    let quiet = findings(|f| {
        epoch(f, "pageable", 32e6);
        epoch(f, "pinned", 64e6);
    });
    let loader = says(&quiet, "loading.loader", &["pinned buffer", "0.5×"]);
    assert!(!loader.text.contains("kernel"), "{}", loader.text);
}

#[test]
fn a_group_has_the_rate_that_all_its_curves_have() {
    let work = |gpu_flop: Option<f64>| {
        let (machine, _) = machine(|f| {
            let plant = |id, flop| {
                let cost = Cost {
                    bytes: Some(8e3),
                    flop,
                    ..Cost::default()
                };
                f.plant(&Planted::new(id, Wall, 1e3).cost(cost));
            };
            plant("nested_sine/cpu/simd/1000", Some(80e3));
            plant("nested_sine/gpu/fused/1000", gpu_flop);
        });
        rate::work(&[machine.group("nested_sine").unwrap()])
    };
    assert_eq!(work(None), Some(Work::Bytes));
    assert_eq!(work(Some(80e3)), Some(Work::Flop));
}
