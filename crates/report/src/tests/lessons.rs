//! The findings of the groups that teach: the planted figures, in the planted direction, and
//! none without their benchmarks.

use std::collections::BTreeMap;

use crate::assemble::{Options, assemble};
use crate::tests::fixture::{Fixture, Planted};
use crossover_results::analysis::findings::finding::Finding;
use crossover_results::analysis::rate::{self, Work};
use crossover_results::model::Launches::{Fused, Graph, OneByOne};
use crossover_results::model::{Cost, Does, LinkBytes, Phase, Role};
use crossover_results::store::machine::MachineResults;
use crossover_words::Clock::{self, EventsGated, Submit, Wall};

pub(crate) fn machine(plant: impl FnOnce(&mut Fixture)) -> (MachineResults, Vec<Finding>) {
    let dir = crate::tests::folder();
    let mut f = Fixture::new(dir.path(), Some("Example GPU"));
    // Something is always there, so that a report exists.
    f.plant(&Planted::new("other/cpu/any/1", Wall, 1.0));
    plant(&mut f);
    let report = assemble(dir.path(), dir.path(), &Options::default()).unwrap();
    (report.machine, report.findings)
}

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

fn plant(f: &Fixture, id: &str, clock: Clock, ns: f64) {
    f.plant(&Planted::new(id, clock, ns));
}

fn launches(f: &Fixture, id: &str, ns: f64, launches: u32) {
    let cost = Cost {
        launches: Some(launches),
        ..Cost::default()
    };
    f.plant(&Planted::new(id, Wall, ns).cost(cost));
}

fn moved(f: &Fixture, id: &str, ns: f64, bytes: f64) {
    let cost = Cost {
        link_bytes: Some(LinkBytes::new(bytes / 2.0, bytes / 2.0)),
        ..Cost::default()
    };
    f.plant(&Planted::new(id, Wall, ns).cost(cost));
}

fn link(f: &mut Fixture) {
    f.ceiling("h2d_pinned", 50e9, "B/s");
    f.ceiling("d2h_pinned", 40e9, "B/s");
}

#[test]
fn cold_start_is_put_together_from_its_phases() {
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
                plant(f, &format!("cold_start/gpu/{phase}/1"), Wall, ns);
            }
        }
    };
    let all = findings(|f| phases(f, ""));
    let kernel = says(
        &all,
        "cold_start.kernel",
        &[
            "takes 100 ms, 10,000× as long as a warm one (10.0 µs)",
            "the context 60 %, NVRTC 20 %",
            "loads in 100 µs instead of 28.0 ms",
        ],
    );
    near(kernel.figures["total_ns"], 100e6);
    near(kernel.figures["ratio"], 1e4);
    near(kernel.figures["share_context"], 0.6);
    assert!(!kernel.text.contains("stream"), "{}", kernel.text);
    assert_eq!(kernel.benchmarks.len(), 9);
    let product = says(
        &all,
        "cold_start.product",
        &["5,000× as long as a warm one"],
    );
    near(product.figures["total_ns"], 100e6);

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
        does: Does::Starts(does),
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
    let words = [
        "a chain takes 500 µs in call 1 and 100 µs in call 10, and is warm from call 2 on",
        "its graph takes 80.0 µs in call 1 and 40.0 µs in call 10, and is warm from call 10 on",
    ];
    let calls = says(&all, "warming_up.calls", &words);
    let host = ["A chain", "500 µs", "450 µs", "100 µs", "90.0 µs", "call 2"];
    assert_eq!(calls.table.as_ref().unwrap().rows[0], host);
    let words = [
        "graph takes 185 µs and is paid after 4 calls, each of which takes 60.0 µs less",
        "kernel takes 20.0 ms and is never paid",
    ];
    says(&all, "warming_up.prepared", &words);
    silent(&all, "graph.");
}

#[test]
fn timing_methods_are_set_against_the_truth() {
    let all = findings(|f| {
        for (t, submit, wall, gated) in [
            (1_000, 2_000.0, 8_000.0, 2_400.0),
            (100_000, 2_000.0, 107_000.0, 101_000.0),
            (10_000_000, 2_000.0, 10_020_000.0, 10_010_000.0),
        ] {
            let id = |way| format!("timing_methods/gpu/spin-{way}/{t}");
            plant(f, &id("submit"), Submit, submit);
            plant(f, &id("wall"), Wall, wall);
            plant(f, &id("events-gated"), EventsGated, gated);
        }
        for (n, wall, gated) in [(64, 12_000.0, 4_000.0), (1024, 50_500.0, 50_000.0)] {
            let id = |way| format!("timing_methods_matmul/gpu/{way}/{n}");
            plant(f, &id("wall"), Wall, wall);
            plant(f, &id("events-gated"), EventsGated, gated);
        }
    });
    let spin = says(
        &all,
        "timing.timing_methods",
        &[
            "At t = 1.00 µs: wall 8×, events-gated 2.4×, submit 2×.",
            "At t = 10.0 ms: submit 1/5,000, wall and events-gated within 0.20 %.",
            "events-gated from t = 100 µs on; wall from t = 10.0 ms on; submit at no size",
        ],
    );
    near(spin.figures["wall_ratio_smallest"], 8.0);
    near(spin.figures["submit_ratio_largest"], 2e-4);
    let product = says(
        &all,
        "timing.timing_methods_matmul",
        &["At N = 64: wall 3×.", "At N = 1,024: wall within 1.0 %."],
    );
    assert!(
        product
            .benchmarks
            .iter()
            .any(|b| b == "timing_methods_matmul/gpu/events-gated/64")
    );
    silent(&all, "submit");

    // The truth is missing.
    let none = findings(|f| plant(f, "timing_methods_matmul/gpu/wall/64", Wall, 1e4));
    silent(&none, "timing");
}

#[test]
fn pinning_pays_from_a_size_on() {
    let all = findings(|f| {
        link(f);
        // GB/s are bytes a nanosecond.
        for (size, pageable, pinned) in [
            (1 << 10, 5e3, 5e3),
            (1 << 20, 80e3, 40e3),
            (1 << 28, (1 << 28) as f64 / 12.0, (1 << 28) as f64 / 48.0),
        ] {
            let bytes = f64::from(size);
            let id = |way| format!("transfer/gpu/h2d-{way}/{size}");
            moved(f, &id("pageable"), pageable, bytes);
            moved(f, &id("pinned"), pinned, bytes);
        }
        for (size, many) in [(1 << 10, 131e3), (1 << 28, (1 << 28) as f64 / 48.0)] {
            let id = format!("transfer/gpu/h2d-many/{size}");
            moved(f, &id, many, f64::from(size));
        }
    });
    let pinned = says(
        &all,
        "copies.pinned.h2d",
        &[
            "4× as fast",
            "at 256 MiB (48.0 GB/s, 96 % of the measured PCIe rate, against 12.0 GB/s)",
            "pays from 1 MiB on",
        ],
    );
    near(pinned.figures["ratio"], 4.0);
    near(pinned.figures["pays_from_size"], f64::from(1 << 20));
    let fixed = says(&all, "copies.fixed", &["costs 5.00 µs", "carries 250 kB"]);
    near(fixed.figures["fixed_ns"], 5e3);
    let many = says(
        &all,
        "copies.many",
        &["26× as long", "2.00 µs for each further copy", "1.00×"],
    );
    near(many.figures["each_ns"], 2e3);
    silent(&all, "copies.pinned.d2h");

    // The other direction, and a smallest size that is not small.
    let odd = findings(|f| {
        plant(f, "transfer/gpu/d2h-pageable/1048576", Wall, 10e3);
        plant(f, "transfer/gpu/d2h-pinned/1048576", Wall, 20e3);
        plant(f, "transfer/gpu/h2d-pinned/1048576", Wall, 20e3);
    });
    let slower = says(
        &odd,
        "copies.pinned.d2h",
        &[
            "2× slower than",
            "pinning pays at none of the measured sizes",
        ],
    );
    assert!(!slower.figures.contains_key("pays_from_size"));
    silent(&odd, "copies.fixed");
    silent(&odd, "copies.many");
}

#[test]
fn overlapping_saves_and_synchronising_hides_nothing() {
    let all = findings(|f| {
        link(f);
        for (size, sequence, two, eight) in
            [(1 << 16, 30e3, 35e3, 60e3), (1 << 28, 45e6, 36e6, 30e6)]
        {
            let bytes = 8.0 * f64::from(size);
            let id = |how| format!("streams/gpu/{how}/{size}");
            moved(f, &id("sequence"), sequence, bytes);
            moved(f, &id("chunks-2"), two, bytes);
            moved(f, &id("chunks-8"), eight, bytes);
            moved(f, &id("synced"), 1.01 * sequence, bytes);
        }
    });
    // 2^30 bytes one way at 40 GB/s.
    let pieces = says(
        &all,
        "overlap.pieces",
        &[
            "in 8 pieces",
            "1.5× faster than in sequence",
            "1.12× the time of the copy one way alone, 26.8 ms",
            "1 at n = 2¹⁶, 8 at n = 2²⁸",
        ],
    );
    near(pieces.figures["ratio"], 1.5);
    near(pieces.figures["pieces"], 8.0);
    near(pieces.figures["one_way_ns"], f64::from(1 << 30) / 40.0);
    says(&all, "overlap.synced", &["hides nothing"]);

    let odd = findings(|f| {
        plant(f, "streams/gpu/sequence/65536", Wall, 30e3);
        plant(f, "streams/gpu/chunks-2/65536", Wall, 60e3);
        plant(f, "streams/gpu/synced/65536", Wall, 15e3);
    });
    let slower = says(&odd, "overlap.pieces", &["2× slower than in sequence"]);
    assert!(!slower.figures.contains_key("to_limit"));
    says(&odd, "overlap.synced", &["hides something"]);
    silent(
        &findings(|f| plant(f, "streams/gpu/sequence/65536", Wall, 1.0)),
        "overlap",
    );
}

#[test]
fn waiting_costs_and_a_graph_saves() {
    let all = findings(|f| {
        for (n, steps, waits, reads, hybrid, graph) in [
            (1 << 10, 160e3, 480e3, 640e3, 240e3, 80e3),
            (1 << 20, 300e3, 640e3, 900e3, 9e6, 200e3),
        ] {
            let id = |how| format!("host_sync/gpu/{how}/{n}");
            launches(f, &id("async"), steps, 64);
            launches(f, &id("sync-each"), waits, 64);
            launches(f, &id("read-each"), reads, 64);
            launches(f, &id("hybrid"), hybrid, 56);
            launches(f, &id("graph"), graph, 64);
        }
    });
    let sync = says(
        &all,
        "synchronising.host_sync",
        &[
            "synchronising after each step makes the pipeline 3× slower",
            "each wait costs 5.08 µs",
        ],
    );
    // The host waits at the end as well, in either case: 63 waits more.
    near(sync.figures["each_ns"], 320e3 / 63.0);
    let read = says(
        &all,
        "reading.host_sync",
        &["reading one value back after each step makes the pipeline 4× slower"],
    );
    near(read.figures["each_ns"], 480e3 / 63.0);
    let hybrid = says(
        &all,
        "host_sync.hybrid",
        &[
            "With 8 of the 64 steps",
            "1.5× slower at n = 2¹⁰ (10.0 µs for each step moved)",
            "30× slower at n = 2²⁰",
        ],
    );
    near(hybrid.figures["each_ns"], 10e3);
    let graph = says(
        &all,
        "graph.host_sync",
        &["2× faster than launching", "1.25 µs less per kernel"],
    );
    near(graph.figures["ratio"], 2.0);
    silent(&all, "transfers.host_sync");

    let odd = findings(|f| {
        launches(f, "host_sync/gpu/async/1024", 128e3, 64);
        launches(f, "host_sync/gpu/sync-each/1024", 64e3, 64);
        launches(f, "host_sync/gpu/graph/1024", 256e3, 64);
    });
    let sync = says(&odd, "synchronising.host_sync", &["2× faster"]);
    assert!(!sync.text.contains("each wait"), "{}", sync.text);
    says(&odd, "graph.host_sync", &["2× slower than launching"]);
    silent(&odd, "reading");
    silent(&odd, "host_sync.hybrid");
}

#[test]
fn an_allocation_in_the_loop() {
    let curves = |f: &Fixture, kept: f64| {
        for (size, scale) in [(1u64 << 12, 0.1), (1 << 26, 1.0), (1 << 32, 100.0)] {
            let id = |how| format!("memory/gpu/{how}/{size}");
            plant(f, &id("reuse"), Wall, 8e3);
            plant(f, &id("malloc"), Wall, 8e3 + 80e3 * scale);
            plant(f, &id("malloc-async"), Wall, 8e3 + 120e3 * scale);
            plant(f, &id("malloc-async-kept"), Wall, 8e3 + kept);
        }
    };
    let all = findings(|f| {
        curves(f, 2e3);
        let id = "memory/gpu/malloc-async-kept/67108864";
        let mut kept = Planted::new(id, Wall, 10e3);
        kept.extra = [("pool_peak_bytes".into(), f64::from(96 << 20))].into();
        f.plant(&kept);
    });
    let allocation = says(
        &all,
        "allocation.memory",
        &[
            "An allocation of 64 MiB",
            "80.0 µs with cuMemAlloc",
            "120 µs with cuMemAllocAsync",
            "2.00 µs with cuMemAllocAsync from a pool told to keep its memory",
            "40× cheaper than cuMemAlloc. That pool held 96 MiB at most.",
        ],
    );
    near(allocation.figures["ratio"], 40.0);
    assert_eq!(allocation.benchmarks.len(), 4);

    let free = findings(|f| curves(f, -1e3));
    let allocation = says(
        &free,
        "allocation.memory",
        &["nothing measurable with cuMemAllocAsync from a pool told"],
    );
    assert!(!allocation.figures.contains_key("ratio"));
    assert!(!allocation.text.contains("held"), "{}", allocation.text);
    let dear = findings(|f| curves(f, 160e3));
    says(&dear, "allocation.memory", &["2× more expensive"]);
    silent(
        &findings(|f| plant(f, "memory/gpu/malloc/4096", Wall, 1.0)),
        "allocation",
    );
}

#[test]
fn a_loader_keeps_the_device_busy() {
    let epoch = |f: &Fixture, how: &str, ns: f64, busy: Option<f64>| {
        let id = format!("loader/gpu/{how}/1048576");
        let cost = Cost {
            launches: Some(32),
            ..Cost::default()
        };
        let mut planted = Planted::new(&id, Wall, ns).cost(cost);
        planted.extra = BTreeMap::from_iter(busy.map(|busy| ("device_busy".into(), busy)));
        f.plant(&planted);
    };
    let all = findings(|f| {
        epoch(f, "pageable", 32e6, Some(0.2));
        epoch(f, "pinned", 16e6, None);
        epoch(f, "threads-4", 8e6, Some(0.8));
    });
    let loader = says(
        &all,
        "loading.loader",
        &[
            "Batches of 1 MiB",
            "1,000 per second, at best 4,000 per second (gpu/threads-4)",
            "2× with a pinned buffer and 4× with 4 threads that prefetch",
            "busy 20 % of the time, and 80 % with gpu/threads-4",
        ],
    );
    near(loader.figures["batches_a_second"], 1e3);
    near(loader.figures["best_busy"], 0.8);

    let quiet = findings(|f| {
        epoch(f, "pageable", 32e6, None);
        epoch(f, "pinned", 64e6, None);
    });
    let loader = says(&quiet, "loading.loader", &["0.5× with a pinned buffer"]);
    assert!(!loader.text.contains("busy"), "{}", loader.text);
    silent(&findings(|f| epoch(f, "pageable", 32e6, None)), "loading");
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
