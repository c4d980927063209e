//! Answers of several processes.

use super::{Fixture, NEWEST, findings, machines};
use crate::analysis::answer::confirmations::of_runs;
use crate::analysis::answer::crossover_answer::{best_cpu, find, headlines};
use crate::analysis::answer::tests::{asked, pair};
use crate::analysis::trust;
use crate::model::id::Device;
use crate::model::record::Confirmation;
use crate::store::machine_results::MachineResults;

/// Processes, whose CPU is so many percent slower than it should be: the crossing is at 96 and the
/// GPU 16 times faster at 1,536.
pub(super) fn queued(percent: Vec<f64>) -> Confirmation {
    let process = |percent: f64| {
        let slower = 1.0 + percent / 100.0;
        let pair = |size: u64| pair(size, 1e4 * (size as f64 / 96.0) * slower, 1e4);
        [80, 96, 112, 128, 1536].map(pair).into()
    };
    Confirmation {
        group: "matmul".into(),
        gpu: "cublas-eager".into(),
        range: (8, 1536),
        ..asked(percent.into_iter().map(process).collect())
    }
}

/// The first answer of a machine, and how far it is trusted.
pub(super) fn words(machine: &MachineResults) -> String {
    let found = find(machine, &[]);
    let Some(answer) = headlines(&found).next() else {
        return "none".into();
    };
    let crossing = &answer.crossing;
    let grade = trust::of(answer, machine, machine, &of_runs(machine)).grade();
    format!(
        "{:?} {:.3} in {} to {}, {:.3}× at {}, {} processes, {grade:?}",
        crossing.answer,
        crossing.for_good().map_or(0.0, |change| change.size),
        crossing.range.0,
        crossing.range.1,
        crossing.speedup,
        crossing.largest,
        crossing.processes,
    )
}

#[test]
fn the_curve_of_an_answer_is_that_of_its_processes() {
    let machine = Fixture::of(
        "matmul/cpu/best wall 8:1666.667 48:1e4 96:2e4 192:4e4 1536:32e4
        matmul/gpu/cublas-eager events 8:1e4 48:1e4 96:1e4 192:1e4 1536:1e4
        confirm -4 0 4",
    )
    .machine();
    let group = machine.group("matmul").unwrap();
    let of = &find(&machine, &[])[0];
    let gpu = group.on(Device::Gpu).next().unwrap();
    let along = of.speedups(&best_cpu(group).0, gpu);
    let sizes: Vec<f64> = along.iter().map(|at| at.size).collect();
    // Of the run's own sizes those outside what the processes were asked about.
    assert_eq!(sizes, [8.0, 48.0, 80.0, 96.0, 112.0, 128.0, 192.0, 1536.0]);
    let crossing = along[3];
    assert!((crossing.ratio - 1.0).abs() < 1e-9 && crossing.processes == 3);
    assert!((0.8..0.99).contains(&crossing.low) && (1.01..1.25).contains(&crossing.high));
}

/// The largest size of another machine's GPU may lie between two sizes of the CPU.
#[test]
fn processes_answer_where_the_cpu_was_not_measured_at_the_largest_size() {
    let there = Fixture::of("matmul/gpu/cublas-eager events 8:1e4 48:1e4 96:1e4 192:1e4 1536:1e4");
    let there = there.machine();
    let mut here = Fixture::of("matmul/cpu/best wall 8:1666.667 48:1e4 192:4e4 6144:128e4");
    here.lines("confirm -4 0 4");
    here.run().confirmations[0].gpu_machine = Some(there.hardware());
    let answered = |machine: &MachineResults| {
        let found = find(machine, std::slice::from_ref(&there));
        headlines(&found).next().unwrap().processes.len()
    };
    assert_eq!(answered(&here.machine()), 3);
    here.lines("run\nmatmul/cpu/best wall 6144:128e4");
    assert_eq!(
        answered(&here.machine()),
        0,
        "a later run measured it again"
    );
}

/// The findings of a few groups of a committed record, word by word. `CROSSOVER_GOLDEN=write` accepts a change.
#[test]
fn the_findings_of_a_committed_record_stay() {
    let groups = "matmul nested_sine precision graph_replay host_sync memory streams transfer loader \
                  timing_methods cold_start warming_up";
    let groups: Vec<&str> = groups.split(' ').collect();
    let machine = MachineResults::read_other(&machines().join(NEWEST)).unwrap();
    let found = findings(&machine);
    let of_groups = found.iter().filter(|f| groups.contains(&&*f.group));
    let lines = of_groups.map(|f| format!("{}: {}\n", f.id, f.text));
    let text: String = lines.collect();
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/analysis/tests/findings.txt"
    );
    if std::env::var_os("CROSSOVER_GOLDEN").is_some_and(|v| v == "write") {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(path).unwrap());
}

/// Without the JIT's time the CUBIN stands for compiling.
#[test]
fn a_cold_start_without_a_phase_tells_the_rest() {
    for (phase, texts) in [
        ("", [true, true, true]),
        ("ptx-jit", [true, true, false]),
        ("context", [false, false, false]),
        ("warm-launch", [false, true, false]),
    ] {
        let record = &super::RECORD;
        let of_others =
            |id: &str| id.starts_with("cold_start") && !id.contains(&format!("/{phase}/"));
        let kept = record.benchmarks.iter().filter(|b| of_others(&b.id));
        let benchmarks = kept.cloned().collect();
        let machine = MachineResults::of(record.runs.clone(), benchmarks, "here", false);
        let findings = findings(&machine);
        let text = |id: &str| findings.iter().find(|f| f.id == id).map(|f| &f.text);
        let kernel = text("cold_start.kernel");
        let compares = kernel.is_some_and(|text| text.contains("instead of"));
        let product = text("cold_start.product").is_some();
        assert_eq!([kernel.is_some(), product, compares], texts, "{phase}");
    }
}
