//! Sizes that a filter selects, of the profile that leaves out what takes too long.

use std::rc::Rc;
use std::time::Duration;

use crossover::model::Cost;
use crossover::suite::{Group, Implementation, Sizes};
use crossover::workload::simple::{compare, on_cpu};
use crossover::workload::{Routine, RoutineError};

use crate::faults::ones::Ones;
use crate::faults::run::{bench, expect};

pub(crate) fn group() -> Group<Ones> {
    let sizes = Sizes::new([4], [4], [4, 8, 16, 32, 64, 128, 256, 512]);
    Group::new("long", sizes, None, cubic)
        .with(Implementation::cpu("launches", launches))
        .with(Implementation::cpu("arithmetic", arithmetic))
}

/// FLOP of a product.
fn cubic(n: u64) -> Cost {
    Cost {
        flop: Some(2.0 * (n as f64).powi(3)),
        ..Cost::default()
    }
}

/// Takes 1 ms at every size.
fn launches(problem: &Rc<Ones>) -> Result<Box<dyn Routine>, RoutineError> {
    Ok(sleeps(problem.0, Duration::from_millis(1)))
}

/// Takes a time in proportion to its FLOP: 3.4 s at order 256, 27 s at 512.
fn arithmetic(problem: &Rc<Ones>) -> Result<Box<dyn Routine>, RoutineError> {
    let flop = cubic(problem.0 as u64).flop.unwrap_or_default();
    Ok(sleeps(problem.0, Duration::from_secs_f64(flop * 1e-7)))
}

fn sleeps(n: usize, time: Duration) -> Box<dyn Routine> {
    let fill = move |y: &mut [f32]| {
        std::thread::sleep(time);
        y.fill(1.0);
    };
    on_cpu(n, fill, move |y: &[f32]| compare(y, vec![1.0; n], 1.0, 0.0))
}

/// By the smallest size, 1 ms would grow to half an hour.
pub(crate) fn left_out() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    let mut run = bench(&root, &["--test", "^long/cpu/[a-z]+/(4|512)$"]);
    let words = "skipped long/cpu/arithmetic/512: one iteration would take about";
    let said = expect(run.env("CROSSOVER_PROFILE", "full"), 0, words);
    assert!(said.contains("Testing long/cpu/launches/512"), "{said}");
    assert!(!said.contains("Testing long/cpu/arithmetic/512"), "{said}");
}
