//! Findings where real results do not show them: the other way round, of other machines, of roles
//! alone.

use super::lessons::{findings, near, plant, says};
use super::{Fixture, Planted};
use crate::analysis::answer::crossover_answer;
use crate::analysis::findings::finding::Finding;
use crate::analysis::reuse;
use crate::model::Cost;
use crossover_words::Clock::{Events, EventsGated, Wall};

pub(crate) fn get<'a>(findings: &'a [Finding], id: &str) -> Option<&'a Finding> {
    findings.iter().find(|f| f.id == id)
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
fn cold_start_pays_after_some_calls() {
    let f = Fixture::new();
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
    let machine = f.machine();
    let reuse = reuse::find(&machine, &crossover_answer::find(&machine, &[]));
    near(reuse[0].rows[0].calls.unwrap(), 1000.0);
}

#[test]
fn fusing_that_costs_is_said() {
    let found = findings(|f| {
        plant(f, "nested_sine/gpu/per-kernel/1024", Events, 1e3, 4);
        plant(f, "nested_sine/gpu/fused/1024", Events, 2e3, 1);
    });
    says(
        &found,
        "fusing.launches",
        &["is 2× slower", "more for each of 3 launches"],
    );
    assert!(get(&found, "fusing.traffic").is_none(), "one size alone");
}

#[test]
fn a_graph_that_costs_is_said() {
    let found = findings(|f| {
        plant(f, "graph_replay/gpu/eager/1024", Wall, 40e3, 32);
        plant(f, "graph_replay/gpu/graph/1024", Wall, 80e3, 1);
    });
    says(&found, "graph.graph_replay", &["2× slower"]);
    assert!(get(&found, "synchronising.graph_replay").is_none());
}

/// A winner, or a crossing that counts as measured, takes a time of every rival.
#[test]
fn a_rival_that_was_not_run_leaves_the_crossing_interpolated() {
    for missing in [false, true] {
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
        let said = winner.text.contains("(interpolated)");
        assert_eq!(said, missing, "{}", winner.text);
    }
}

/// A training step: more kernels apart than fused, of which several remain, in three formats.
#[test]
fn a_step_of_several_kernels_has_findings_by_its_roles() {
    use std::collections::BTreeMap;

    use crate::model::role::Residency;
    use crate::model::{Format, Launches, Library, Role, Unit};

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
        let plant = |name: &str, clock, launches, format, kernels: u32, micros| {
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
        };
        for (name, launches, kernels, micros, gated) in [
            ("eager", Launches::OneByOne, 22, 100.0, 80.0),
            ("fused", Launches::Fused, 9, 50.0, 40.0),
            ("graph", Launches::Graph, 9, 25.0, 20.0),
        ] {
            plant(name, Events, launches, Format::F32, kernels, micros);
            let name = format!("{name}-gated");
            plant(&name, EventsGated, launches, Format::F32, kernels, gated);
        }
        for (name, format, micros) in [("tf32", Format::Tf32, 10.0), ("bf16", Format::Bf16, 8.0)] {
            let name = format!("graph-{name}-gated");
            plant(&name, EventsGated, Launches::Graph, format, 9, micros);
        }
        f.plant(&Planted {
            role: Some(Role {
                data: Residency::Pinned,
                ..role(Launches::Graph, Format::F32)
            }),
            ..Planted::new("training/gpu/transfer-pinned/256", Wall, 80e3)
        });
        let mut topic = crate::model::GroupInfo::of("training");
        topic.title = "Training step".to_owned();
        topic.work = "the training step".to_owned();
        topic.part = "kernel".to_owned();
        topic.symbol = "batch".to_owned();
        topic.unit = Unit::Count;
        f.topic(topic);
    });
    let graph = says(
        &found,
        "graph.training",
        &["Replaying the training step as one graph is 4× faster"],
    );
    assert!(!graph.text.contains("a kernel)"), "{}", graph.text);
    for (id, words) in [
        (
            "fusing.launches",
            &[
                "Fusing the kernels of the training step is 2× faster",
                "less for each of 13",
            ],
        ),
        (
            "fusing.traffic",
            &[
                "Fusing the kernels of the training step is 2× faster",
                "at batch = 256",
            ],
        ),
        (
            "precision.formats",
            &["f32: time 20.0 µs", "speed 2× faster"],
        ),
    ] {
        says(&found, id, words);
    }
    // Not against the work in fewer bits, which takes 8 us.
    let transfers = get(&found, "transfers.training.transfer-pinned").unwrap();
    near(transfers.figures["work_ns"], 20e3);
    near(transfers.figures["share"], 0.75);
    says(
        &found,
        "device_memory.training",
        &[
            "The training step at batch = 256: device memory by number format. f32: at most 85.2 MB, \
             parameters and their state 30.0 MB, activations 51.2 MB, workspace 4.00 MB; ",
            "TF32: at most 85.2 MB",
            "BF16: at most 59.6 MB",
        ],
    );
}
