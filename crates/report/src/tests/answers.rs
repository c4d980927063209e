//! Answers that rest on several processes.

use serde_json::Value;

use crate::tests::fixture::{Fixture, Planted};
use crate::tests::holds;
use crate::tests::machines::full;
use crate::tests::refreshed;
use crossover_results::model::record::{Confirmation, PairedTimes};
use crossover_results::model::role::Residency;
use crossover_words::Clock;

/// Five processes, whose CPU is so many percent slower than it should be: the crossing is at 96 and
/// the GPU 16 times faster at 1,536.
pub(super) fn confirmation(question: Residency, gpu: &str, percent: [f64; 5]) -> Confirmation {
    let process = |percent: f64| {
        let duel = |size: u64| PairedTimes {
            size,
            cpu: "best".into(),
            cpu_ns: 1e4 * (size as f64 / 96.0) * (1.0 + percent / 100.0),
            gpu_ns: 1e4,
        };
        [80, 96, 112, 128, 1536].map(duel).into()
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
pub(super) fn planted(f: &Fixture) {
    for n in [8, 48, 96, 192, 1536] {
        let ns = 1e4 * (f64::from(n) / 48.0);
        f.row(&format!("matmul/cpu/best/{n}"), Clock::Wall, ns);
        let eager = format!("matmul/gpu/cublas-eager/{n}");
        f.row(&eager, Clock::Events, 1e4);
    }
}

#[test]
fn the_answer_is_that_of_the_processes_with_an_interval() {
    let (dir, root) = crate::tests::folders();
    let mut f = Fixture::new(&root, Some("Example GPU"));
    planted(&f);
    let said = || {
        let (page, _, record) = refreshed(&root, dir.path());
        (record["answers"][0].clone(), page)
    };
    let (alone, page) = said();
    assert_eq!(alone["processes"], Value::Null);
    assert!((alone["size"].as_f64().unwrap() - 48.0).abs() < 1e-6);
    assert!(page.contains("on (interpolated); another run would find"));

    f.confirm(confirmation(
        Residency::Queued,
        "cublas-eager",
        [-4.0, -2.0, 0.0, 2.0, 4.0],
    ));
    let (confirmed, page) = said();
    assert_eq!(confirmed["processes"], 5);
    let number = |name: &str| confirmed[name].as_f64().unwrap();
    assert!((number("size") - 96.0).abs() < 1e-6);
    assert!((number("speedup") - 16.0).abs() < 1e-6);
    // Processes 4 % apart, and what is assumed of a run.
    for (name, least, most) in [
        ("size_low", 75.0, 90.0),
        ("size_high", 102.0, 125.0),
        ("speedup_low", 12.5, 15.0),
        ("speedup_high", 17.0, 20.5),
    ] {
        let end = number(name);
        assert!((least..most).contains(&end), "{name} is {end}");
    }
    holds(
        &page,
        &[
            "from N = 96 on; another run would find ",
            "; the median of 5 processes",
            "16× faster at N = 1,536; another run would find ",
        ],
    );
}

/// Where the run's own process was unsteady at everything that an answer would rest on, the processes
/// still have one.
#[test]
fn processes_answer_where_the_run_itself_was_unsteady() {
    let (dir, root) = crate::tests::folders();
    let mut f = Fixture::new(&root, Some("Example GPU"));
    planted(&f);
    for n in [8, 48, 96, 192, 1536] {
        let ns = 1e4 * (f64::from(n) / 48.0);
        let id = format!("matmul/cpu/best/{n}");
        let mut unsteady = Planted::new(&id, Clock::Wall, ns);
        unsteady.unsteady = Some("two modes".to_owned());
        f.plant(&unsteady);
    }
    let answers = || {
        let (_, _, record) = refreshed(&root, dir.path());
        record["answers"].as_array().unwrap().clone()
    };
    assert!(answers().is_empty());
    f.confirm(confirmation(Residency::Queued, "cublas-eager", [0.0; 5]));
    let [answer] = &answers()[..] else {
        panic!("{:?}", answers())
    };
    assert_eq!(
        (&answer["headline"], &answer["processes"]),
        (&true.into(), &5.into())
    );
    assert_eq!(answer["range"], serde_json::json!([8.0, 1536.0]));
    assert!((answer["size"].as_f64().unwrap() - 96.0).abs() < 1e-6);
}

/// The GPU's code can end between two sizes of the CPU's: the processes time both there.
#[test]
fn processes_answer_at_a_size_that_only_the_gpu_was_measured_at() {
    let (dir, root) = crate::tests::folders();
    let mut f = Fixture::new(&root, Some("Example GPU"));
    for n in [8, 48, 96, 192, 1536] {
        f.row(&format!("matmul/gpu/cublas-eager/{n}"), Clock::Events, 1e4);
        let on_cpu = if n == 1536 { 3072 } else { n };
        let ns = 1e4 * f64::from(on_cpu) / 48.0;
        f.row(&format!("matmul/cpu/best/{on_cpu}"), Clock::Wall, ns);
    }
    f.confirm(confirmation(Residency::Queued, "cublas-eager", [0.0; 5]));
    let (_, _, record) = refreshed(&root, dir.path());
    let answer = &record["answers"][0];
    assert_eq!(
        (&answer["processes"], &answer["speedup_size"]),
        (&5.into(), &1536.0.into())
    );
}

#[test]
fn results_of_a_later_run_are_not_those_that_were_confirmed() {
    let (dir, root) = crate::tests::folders();
    let mut f = full(&root, "Example GPU");
    f.confirm(confirmation(Residency::Queued, "cublas-eager", [0.0; 5]));
    planted(&f);
    let processes = || {
        let (_, _, record) = refreshed(&root, dir.path());
        let answers = record["answers"].as_array().unwrap().clone();
        let ours = |c: &&Value| c["group"] == "matmul" && c["gpu"] == "cublas-eager";
        answers.iter().find(ours).unwrap()["processes"].clone()
    };
    assert_eq!(processes(), 5);
    f.next_run(45);
    f.row("matmul/gpu/cublas-eager/1536", Clock::Events, 9e3);
    assert_eq!(processes(), Value::Null);
}

/// A run that confirms its answers may follow one that measured sizes between its own.
#[test]
fn results_of_an_earlier_run_take_nothing_from_an_answer() {
    let (dir, root) = crate::tests::folders();
    let mut f = Fixture::new(&root, Some("Example GPU"));
    // The processes measure this size too.
    f.row("matmul/cpu/best/112", Clock::Wall, 2.3e4);
    f.next_run(45);
    planted(&f);
    f.confirm(confirmation(Residency::Queued, "cublas-eager", [0.0; 5]));
    let (_, _, record) = refreshed(&root, dir.path());
    assert_eq!(record["answers"][0]["processes"], 5);
}

/// A larger size that a later run added is no part of the answer, nor are its clock and power.
#[test]
fn a_confirmed_answer_rests_on_the_sizes_that_it_is_about() {
    let (dir, root) = crate::tests::folders();
    let mut f = Fixture::new(&root, Some("Example GPU"));
    planted(&f);
    f.confirm(confirmation(Residency::Queued, "cublas-eager", [0.0; 5]));
    f.next_run(45);
    for (id, clock) in [
        ("matmul/cpu/best/12288", Clock::Wall),
        ("matmul/gpu/cublas-eager/12288", Clock::Events),
    ] {
        f.row(id, clock, 1e6);
    }
    let (_, _, record) = refreshed(&root, dir.path());
    let findings = record["findings"].as_array().unwrap();
    let winner = |finding: &&Value| finding["id"] == "winner.matmul.queued";
    let winner = findings.iter().find(winner).unwrap();
    assert_eq!(winner["figures"]["speedup_size"], 1536.0);
    let ids = ["cpu/best/", "gpu/cublas-eager/"]
        .into_iter()
        .flat_map(|function| [1536, 192, 48, 96].map(|n| format!("matmul/{function}{n}")));
    let ids: Vec<String> = ids.collect();
    assert_eq!(winner["benchmarks"], serde_json::json!(ids));
}
