//! Each finding says the planted figures, in the planted direction, and is absent without
//! its benchmarks.

use std::path::Path;

use crate::assemble::{Assembled, Options, assemble};
use crate::tests::fixture::{Fixture, Planted};
use crate::tests::lessons::{findings, near};
use crate::tests::machines::{commit, full, laptop};
use crossover_results::analysis::findings::finding::Finding;
use crossover_results::model::Cost;
use crossover_words::Clock::{self, Events, EventsGated, Submit, Wall};

fn assembled(root: &Path) -> Assembled {
    assemble(root, root, &Options::default()).unwrap()
}

pub(crate) fn get<'a>(findings: &'a [Finding], id: &str) -> Option<&'a Finding> {
    findings.iter().find(|f| f.id == id)
}

fn plant(f: &Fixture, id: &str, clock: Clock, ns: f64, launches: u32) {
    let cost = Cost {
        launches: Some(launches),
        ..Cost::default()
    };
    f.plant(&Planted::new(id, clock, ns).cost(cost));
}

#[test]
fn winners_with_and_without_transfers() {
    let dir = crate::tests::folder();
    full(dir.path(), "Example GPU");
    let findings = assembled(dir.path()).findings;
    let device = get(&findings, "winner.matmul.queued").unwrap();
    let host = get(&findings, "winner.matmul.pinned").unwrap();
    assert!(device.figures["size"] < host.figures["size"]);
    assert!(
        device
            .text
            .contains("data on the device, a queue of calls: gpu/cublas-eager"),
        "{}",
        device.text
    );
    assert!(host.text.contains("gpu/transfer-pinned"), "{}", host.text);
    assert!(device.figures["speedup"] > 20.0);
    assert!(
        device
            .benchmarks
            .iter()
            .any(|b| b == "matmul/cpu/best/8192")
    );
    assert!(
        device
            .benchmarks
            .iter()
            .any(|b| b == "matmul/gpu/cublas-eager/8192")
    );
    assert!(
        get(&findings, "winner.graph_replay.queued").is_none(),
        "no CPU curve, no winner"
    );
}

#[test]
fn winner_says_always_and_never() {
    for (gpu, word) in [(10.0, "at every measured size"), (1000.0, "never beats")] {
        let findings = findings(|f| {
            for n in [64, 128] {
                plant(f, &format!("matmul/cpu/best/{n}"), Wall, 100.0, 0);
                plant(f, &format!("matmul/gpu/cublas-eager/{n}"), Events, gpu, 1);
            }
        });
        let winner = get(&findings, "winner.matmul.queued").unwrap();
        assert!(winner.text.contains(word), "{}", winner.text);
        assert!(!winner.figures.contains_key("size"));
        assert!(get(&findings, "winner.matmul.ordinary").is_none());
    }
}

/// Where two win from the same size on, the answer is the one that a user would take.
#[test]
fn of_two_that_cross_together_the_faster_is_the_winner() {
    let findings = findings(|f| {
        for n in [256, 512, 8192] {
            let large = n == 8192;
            let times = [
                ("cpu/best", if large { 500e6 } else { n as f64 * 300.0 }),
                ("cpu/best-1-thread", n as f64 * 200.0),
                ("gpu/sequence", if large { 36e6 } else { 110e3 }),
                ("gpu/overlapped", if large { 23e6 } else { 111e3 }),
            ];
            for (name, ns) in times {
                let launches = u32::from(name.starts_with("gpu"));
                plant(f, &format!("matmul/{name}/{n}"), Wall, ns, launches);
            }
        }
    });
    let winner = get(&findings, "winner.matmul.queued")
        .or_else(|| get(&findings, "winner.matmul.awaited"))
        .or_else(|| get(&findings, "winner.matmul.ordinary"))
        .unwrap();
    assert!(winner.text.contains("overlapped"), "{}", winner.text);
    near(winner.figures["speedup"], 500.0 / 23.0);
}

#[test]
fn submit_never_wins_and_its_error_is_told() {
    let findings = findings(|f| {
        for (n, real) in [(8, 6e3), (4096, 3e6)] {
            plant(f, &format!("matmul/gpu/submit/{n}"), Submit, 3e3, 1);
            plant(f, &format!("matmul/gpu/cublas-eager/{n}"), Events, real, 1);
            plant(f, &format!("matmul/cpu/best/{n}"), Wall, 5e3, 0);
        }
    });
    let submit = get(&findings, "submit.matmul.submit").unwrap();
    near(submit.figures["factor"], 1000.0);
    assert!(
        submit
            .text
            .contains("seems to take 3.00 µs and takes 3.00 ms"),
        "{}",
        submit.text
    );
    assert!(
        submit.text.contains("At N = 8 the factor is 2×"),
        "{}",
        submit.text
    );
    let winner = get(&findings, "winner.matmul.queued").unwrap();
    assert!(winner.text.contains("never"), "{}", winner.text);
    assert!(
        get(&findings, "winner.matmul.queued")
            .unwrap()
            .text
            .contains("cublas-eager")
    );
}

#[test]
fn submit_is_absent_without_the_truth() {
    let findings = findings(|f| plant(f, "matmul/gpu/submit/8", Submit, 3e3, 1));
    assert!(get(&findings, "submit.matmul.submit").is_none());
}

#[test]
fn share_of_transfers() {
    let findings = findings(|f| {
        plant(f, "matmul/gpu/transfer/1024", Wall, 1e6, 1);
        plant(f, "matmul/gpu/cublas/1024", EventsGated, 6e4, 1);
        plant(f, "matmul/gpu/transfer-pinned/2048", Wall, 1e6, 1);
    });
    let share = get(&findings, "transfers.matmul.transfer").unwrap();
    near(share.figures["share"], 0.94);
    assert!(share.text.contains("takes 94 %"), "{}", share.text);
    assert_eq!(
        share.benchmarks,
        ["matmul/gpu/cublas/1024", "matmul/gpu/transfer/1024"]
    );
    assert!(
        get(&findings, "transfers.matmul.transfer-pinned").is_none(),
        "no size in common"
    );
}

#[test]
fn break_even_counts_operations() {
    let findings = findings(|f| {
        for n in [512, 1024] {
            plant(f, &format!("matmul/gpu/transfer/{n}"), Wall, 1e6, 1);
            plant(f, &format!("matmul/gpu/cublas-eager/{n}"), Events, 1e5, 1);
            plant(f, &format!("matmul/cpu/best/{n}"), Wall, 4e5, 0);
        }
    });
    // 0.9 ms to move, 0.3 ms saved an operation.
    let reuse = get(&findings, "break_even.matmul.transfer").unwrap();
    near(reuse.figures["operations"], 3.0);
    assert!(reuse.text.contains("once 3 operations"), "{}", reuse.text);
}

#[test]
fn cold_start_pays_after_some_calls() {
    let dir = crate::tests::folder();
    let f = Fixture::new(dir.path(), Some("Example GPU"));
    for (phase, ns) in [
        ("driver-init", 1e7),
        ("context", 9e7),
        ("first-stream", 1e4),
        ("first-alloc", 9e4),
        ("first-gemm", 1.999e8),
        // Not on the way to a product.
        ("nvrtc-compile", 5e7),
        ("warm-gemm", 2e4),
    ] {
        plant(&f, &format!("cold_start/gpu/{phase}/1"), Wall, ns, 0);
    }
    plant(&f, "matmul/gpu/transfer/1024", Wall, 1e6, 1);
    plant(&f, "matmul/gpu/cublas-eager/1024", Events, 1e5, 1);
    plant(&f, "matmul/cpu/best/1024", Wall, 4e5, 0);
    let reuse = assembled(dir.path()).reuse;
    near(reuse[0].rows[0].calls.unwrap(), 1000.0);
}

#[test]
fn fusing_saves_launches_and_traffic() {
    let all = |f: &mut Fixture| {
        f.ceiling("launch_latency", 2450.0, "ns");
        for (n, apart, fused) in [(1024, 10e3, 2.5e3), (1 << 28, 2e6, 5e5)] {
            plant(
                f,
                &format!("nested_sine/gpu/per-kernel/{n}"),
                Events,
                apart,
                4,
            );
            plant(f, &format!("nested_sine/gpu/fused/{n}"), Events, fused, 1);
        }
    };
    let found = findings(all);
    let launches = get(&found, "fusing.launches").unwrap();
    near(launches.figures["saved_ns"], 7.5e3);
    near(launches.figures["saved_each_ns"], 2.5e3);
    near(launches.figures["launch_latency_ns"], 2450.0);
    assert!(launches.text.contains("saves 7.50 µs"), "{}", launches.text);
    let traffic = get(&found, "fusing.traffic").unwrap();
    near(traffic.figures["ratio"], 4.0);
    assert!(traffic.text.contains("4× faster"), "{}", traffic.text);

    let found = findings(|f| plant(f, "nested_sine/gpu/fused/1024", Events, 1e3, 1));
    assert!(found.iter().all(|f| !f.id.starts_with("fusing")));
    // The other direction is said as it is.
    let found = findings(|f| {
        plant(f, "nested_sine/gpu/per-kernel/1024", Events, 1e3, 4);
        plant(f, "nested_sine/gpu/fused/1024", Events, 2e3, 1);
    });
    let launches = get(&found, "fusing.launches").unwrap();
    assert!(launches.text.contains("costs 1.00 µs"), "{}", launches.text);
    assert!(get(&found, "fusing.traffic").is_none(), "one size alone");
}

#[test]
fn graphs_save_and_synchronising_costs() {
    let found = findings(|f| {
        plant(f, "graph_replay/gpu/eager/1024", Wall, 80e3, 32);
        plant(f, "graph_replay/gpu/graph/1024", Wall, 48e3, 1);
        plant(f, "graph_replay/gpu/sync-each/1024", Wall, 390e3, 32);
    });
    let graph = get(&found, "graph.graph_replay").unwrap();
    near(graph.figures["saved_each_ns"], 1e3);
    assert!(graph.text.contains("1.7× faster"), "{}", graph.text);
    let sync = get(&found, "synchronising.graph_replay").unwrap();
    near(sync.figures["each_ns"], 10e3);
    assert!(sync.text.contains("4.9× slower"), "{}", sync.text);
    assert!(
        sync.text.contains("each wait costs 10.0 µs"),
        "{}",
        sync.text
    );

    let found = findings(|f| {
        plant(f, "graph_replay/gpu/eager/1024", Wall, 40e3, 32);
        plant(f, "graph_replay/gpu/graph/1024", Wall, 80e3, 1);
    });
    let graph = get(&found, "graph.graph_replay").unwrap();
    assert!(graph.text.contains("2× slower"), "{}", graph.text);
    assert!(get(&found, "synchronising.graph_replay").is_none());
}

#[test]
fn a_laptop_is_answered_with_the_reference() {
    let dir = crate::tests::folder();
    let root = dir.path().join("criterion");
    laptop(&root);
    commit(dir.path(), |root| full(root, "Example GPU"));
    let options = Options::default();
    let report = assemble(&root, dir.path(), &options).unwrap();
    assert!(!report.machine.other);
    let winner = get(&report.findings, "winner.matmul.queued.example-gpu").unwrap();
    assert!(
        winner.text.contains("another machine's figures"),
        "{}",
        winner.text
    );
    assert_eq!(report.others.len(), 1);

    let off = Options {
        no_reference: true,
        ..Options::default()
    };
    let report = assemble(&root, dir.path(), &off).unwrap();
    assert!(report.findings.iter().all(|f| !f.id.starts_with("winner")));
    assert!(report.others.is_empty());

    // Without local results the report is on the reference.
    let report = assemble(&dir.path().join("none"), dir.path(), &options).unwrap();
    assert!(report.machine.other);
    assert!(get(&report.findings, "winner.matmul.queued").is_some());
}

/// A winner, or a crossing that counts as measured, takes a time of every rival.
#[test]
fn a_rival_that_was_not_run_leaves_the_crossing_interpolated() {
    for (missing, said) in [
        (false, "process, measured, "),
        (true, "process, interpolated, "),
    ] {
        let findings = findings(|f| {
            for n in [256, 320, 384, 512] {
                let shift = n as f64 / 350.0;
                let cpu = 1e5 * shift.powi(3);
                plant(f, &format!("matmul/cpu/best/{n}"), Wall, cpu, 0);
                if n == 256 || n == 512 || !missing {
                    plant(f, &format!("matmul/cpu/rayon/{n}"), Wall, 1.5 * cpu, 0);
                }
                plant(f, &format!("matmul/gpu/cublas-eager/{n}"), Events, 1e5, 1);
            }
        });
        let winner = get(&findings, "winner.matmul.queued").unwrap();
        assert!(winner.text.contains(said), "{}", winner.text);
    }
}

/// A training step: more kernels apart than fused, of which several remain, in three formats.
#[test]
fn a_step_of_several_kernels_has_findings_by_its_roles() {
    use std::collections::BTreeMap;

    use crossover_results::model::role::Data;
    use crossover_results::model::{Format, Launches, Library, Role, Unit};

    let found = findings(|f| {
        let role = |launches, format| Role {
            launches: Some(launches),
            library: Some(Library::Cublas),
            answers: format == Format::F32,
            format,
            ..Role::gpu()
        };
        // Bytes that a batch keeps: twice as many of activations in f32 as in BF16.
        let kept = |format, size: u64| {
            let of_activations = if format == Format::Bf16 { 1e5 } else { 2e5 } * size as f64;
            BTreeMap::from([
                ("parameters_bytes".to_owned(), 30e6),
                ("activations_bytes".to_owned(), of_activations),
                ("workspace_bytes".to_owned(), 4e6),
                ("peak_bytes".to_owned(), 34e6 + of_activations),
            ])
        };
        let rows = [
            ("eager", Events, Launches::OneByOne, Format::F32, 22, 100.0),
            ("fused", Events, Launches::Fused, Format::F32, 9, 50.0),
            ("graph", Events, Launches::Graph, Format::F32, 9, 25.0),
            (
                "eager-gated",
                EventsGated,
                Launches::OneByOne,
                Format::F32,
                22,
                80.0,
            ),
            (
                "fused-gated",
                EventsGated,
                Launches::Fused,
                Format::F32,
                9,
                40.0,
            ),
            (
                "graph-gated",
                EventsGated,
                Launches::Graph,
                Format::F32,
                9,
                20.0,
            ),
            (
                "graph-tf32-gated",
                EventsGated,
                Launches::Graph,
                Format::Tf32,
                9,
                10.0,
            ),
            (
                "graph-bf16-gated",
                EventsGated,
                Launches::Graph,
                Format::Bf16,
                9,
                8.0,
            ),
        ];
        for (name, clock, launches, format, kernels, micros) in rows {
            for size in [16, 256] {
                let id = format!("training/gpu/{name}/{size}");
                f.plant(&Planted {
                    cost: Cost {
                        bytes: Some(1e6 * f64::from(kernels)),
                        launches: Some(kernels),
                        ..Cost::default()
                    },
                    role: Some(role(launches, format)),
                    extra: kept(format, size),
                    ..Planted::new(&id, clock, 1e3 * micros)
                });
            }
        }
        f.plant(&Planted {
            role: Some(Role {
                data: Data::Pinned,
                ..role(Launches::Graph, Format::F32)
            }),
            ..Planted::new("training/gpu/transfer-pinned/256", Wall, 80e3)
        });
        let mut topic = crossover_results::model::GroupInfo::of("training");
        topic.title = "Training step".to_owned();
        topic.work = "the training step".to_owned();
        topic.part = "kernel".to_owned();
        topic.symbol = "batch".to_owned();
        topic.unit = Unit::Count;
        f.topic(topic);
    });
    let text = |id: &str| &get(&found, id).unwrap_or_else(|| panic!("no {id}")).text;
    let graph = text("graph.training");
    assert!(
        graph.contains("replaying 9 fused kernels as one graph is 4× faster"),
        "{graph}"
    );
    assert!(
        graph.contains("launching the 22 that they are fused from"),
        "{graph}"
    );
    assert!(!graph.contains("a kernel)"), "{graph}");
    let launches = text("fusing.launches");
    assert!(
        launches.starts_with("Fusing 22 kernels into 9 saves"),
        "{launches}"
    );
    assert!(
        launches.contains("for each of the 13 launches that it avoids"),
        "{launches}"
    );
    let traffic = text("fusing.traffic");
    assert!(
        traffic.contains("the fused training step is 2× faster")
            && traffic.contains("it moves 9.00 MB in place of 22.0 MB"),
        "{traffic}"
    );
    let formats = text("precision.formats");
    assert!(
        formats.contains("against f32 (") && formats.contains("TF32 2× faster"),
        "{formats}"
    );
    // Not against the work in fewer bits, which takes 8 us.
    let transfers = text("transfers.training.transfer-pinned");
    assert!(
        transfers.contains("takes 75 %") && transfers.contains("the work alone takes 20.0 µs"),
        "{transfers}"
    );
    assert_eq!(
        text("device_memory.training"),
        "The training step at batch = 256 takes 85.2 MB of device memory in f32: 30.0 MB of \
         parameters and what belongs to them, 51.2 MB of activations, 4.00 MB of workspace for the \
         library; in TF32 85.2 MB; in BF16 59.6 MB."
    );
}
