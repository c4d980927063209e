//! Answers that rest on several processes.

use super::{Fixture, machine, near};
use crate::analysis::answer::crossover_answer::{self, CrossoverAnswer, headlines, of_runs};
use crate::analysis::answer::speedup_curve::along;
use crate::analysis::trust::{self, Grade};
use crate::model::id::Device;
use crate::model::record::{Confirmation, PairedTimes};
use crate::model::role::Residency;
use crossover_words::Clock;

/// Five processes, whose CPU is so many percent slower than it should be: the crossing is at 96 and
/// the GPU 16 times faster at 1,536.
fn confirmation(question: Residency, gpu: &str, percent: [f64; 5]) -> Confirmation {
    let process = |percent: f64| {
        let pair = |size: u64| PairedTimes {
            size,
            cpu: "best".into(),
            cpu_ns: 1e4 * (size as f64 / 96.0) * (1.0 + percent / 100.0),
            gpu_ns: 1e4,
        };
        [80, 96, 112, 128, 1536].map(pair).into()
    };
    Confirmation {
        group: "matmul".into(),
        question,
        gpu: gpu.into(),
        clock: match question {
            Residency::Queued => Clock::Events,
            _ => Clock::Wall,
        },
        gpu_machine: None,
        gpu_run: None,
        range: (8, 1536),
        processes: percent.map(process).into(),
    }
}

/// The run's own process sees the crossing at 48.
fn planted(f: &Fixture) {
    for n in [8, 48, 96, 192, 1536] {
        let ns = 1e4 * (f64::from(n) / 48.0);
        f.row(&format!("matmul/cpu/best/{n}"), Clock::Wall, ns);
        let eager = format!("matmul/gpu/cublas-eager/{n}");
        f.row(&eager, Clock::Events, 1e4);
    }
}

fn found(f: &Fixture) -> Vec<CrossoverAnswer> {
    crossover_answer::find(&f.machine(), &[])
}

fn processes(f: &Fixture) -> usize {
    found(f)[0].crossing.processes
}

const AGREE: [f64; 5] = [0.0; 5];
const APART: [f64; 5] = [-4.0, -2.0, 0.0, 2.0, 4.0];

fn queued(percent: [f64; 5]) -> Confirmation {
    confirmation(Residency::Queued, "cublas-eager", percent)
}

#[test]
fn the_answer_is_that_of_the_processes_and_so_is_its_curve() {
    let mut f = Fixture::new();
    planted(&f);
    assert_eq!(processes(&f), 1);
    f.confirm(queued(APART));
    assert_eq!(processes(&f), 5);
    let machine = f.machine();
    let confirmed = &found(&f)[0];
    near(confirmed.crossing.for_good().unwrap().size, 96.0);
    near(confirmed.crossing.speedup, 16.0);
    let group = machine.group("matmul").unwrap();
    let along = along(confirmed, group, group.on(Device::Gpu).next().unwrap());
    let sizes: Vec<f64> = along.iter().map(|at| at.size).collect();
    // Of the run's own sizes those outside what the processes were asked about.
    assert_eq!(sizes, [8.0, 48.0, 80.0, 96.0, 112.0, 128.0, 192.0, 1536.0]);
    let crossing = along[3];
    near(crossing.ratio, 1.0);
    assert_eq!(crossing.processes, 5);
    assert!((0.8..0.99).contains(&crossing.low) && (1.01..1.25).contains(&crossing.high));
}

#[test]
fn an_answer_is_trusted_by_what_it_rests_on() {
    let mut f = Fixture::new();
    planted(&f);
    let grade = |f: &Fixture| {
        let (machine, found) = (f.machine(), found(f));
        let found = headlines(&found).next().unwrap();
        trust::of(found, &machine, &machine, &of_runs(&machine)).grade()
    };
    assert_eq!(grade(&f), Grade::Thin);
    f.confirm(queued(AGREE));
    assert_eq!(grade(&f), Grade::Firm);
}

/// Where the run's own process was unsteady at everything that an answer would rest on, the processes
/// still have one.
#[test]
fn processes_answer_where_the_run_itself_was_unsteady() {
    let mut f = Fixture::new();
    planted(&f);
    for n in [8, 48, 96, 192, 1536] {
        let id = format!("matmul/cpu/best/{n}");
        let mut unsteady = f.benchmark(&id, Clock::Wall, 1e4 * (f64::from(n) / 48.0));
        unsteady.unsteady = Some("two modes".to_owned());
        f.plant(unsteady);
    }
    assert!(found(&f).is_empty());
    f.confirm(queued(AGREE));
    let [answer] = &found(&f)[..] else {
        panic!("{:?}", found(&f))
    };
    assert!(answer.headline);
    assert_eq!(answer.crossing.range, (8.0, 1536.0));
    near(answer.crossing.for_good().unwrap().size, 96.0);
}

/// The GPU's code can end between two sizes of the CPU's: the processes time both there.
#[test]
fn processes_answer_at_a_size_that_only_the_gpu_was_measured_at() {
    let mut f = Fixture::new();
    for n in [8, 48, 96, 192, 1536] {
        f.row(&format!("matmul/gpu/cublas-eager/{n}"), Clock::Events, 1e4);
        let on_cpu = if n == 1536 { 3072 } else { n };
        let ns = 1e4 * f64::from(on_cpu) / 48.0;
        f.row(&format!("matmul/cpu/best/{on_cpu}"), Clock::Wall, ns);
    }
    f.confirm(queued(AGREE));
    assert_eq!(processes(&f), 5);
    assert_eq!(found(&f)[0].crossing.largest, 1536.0);
}

#[test]
fn an_answer_is_of_the_run_that_was_confirmed() {
    let mut f = Fixture::new();
    // A run that confirms its answers may follow one that measured sizes between its own.
    f.row("matmul/cpu/best/112", Clock::Wall, 2.3e4);
    f.next_run(10);
    planted(&f);
    f.confirm(queued(AGREE));
    assert_eq!(processes(&f), 5);
    // A larger size that a later run added is no part of it.
    f.next_run(20);
    f.row("matmul/cpu/best/12288", Clock::Wall, 1e6);
    f.row("matmul/gpu/cublas-eager/12288", Clock::Events, 1e6);
    assert_eq!(found(&f)[0].crossing.largest, 1536.0);
    // Results of a later run are not those that were confirmed.
    f.next_run(30);
    f.row("matmul/gpu/cublas-eager/1536", Clock::Events, 9e3);
    assert_eq!(processes(&f), 1);
}

/// What is unsteady decides nothing, and nothing slower takes its place.
#[test]
fn no_answer_and_no_finding_rests_on_an_unsteady_result() {
    let ids = ["matmul/cpu/best/1536", "matmul/gpu/cublas-eager/192"];
    let (machine, findings) = machine(|f| {
        planted(f);
        for (id, clock) in ids.into_iter().zip([Clock::Wall, Clock::Events]) {
            let mut unsteady = f.benchmark(id, clock, 1.0);
            unsteady.unsteady = Some("two modes".to_owned());
            f.plant(unsteady);
        }
    });
    let found = crossover_answer::find(&machine, &[]);
    assert_eq!(found[0].crossing.range, (8.0, 192.0));
    assert!(!findings.is_empty());
    let rests = |benchmarks: &[String]| benchmarks.iter().any(|id| ids.contains(&&**id));
    assert!(!findings.iter().any(|finding| rests(&finding.benchmarks)));
    assert!(!rests(&found[0].benchmarks));
}
