//! The time of a decision: `cargo bench -p crossover-advice --features bench`.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use crossover_advice::thresholds::{Operation, Place, Point, SCHEMA, Shape, Thresholds};
use crossover_advice::{Advice, Question, Residency};

/// Ten operations with their data in five places, each measured at forty sizes.
fn advice() -> Advice {
    let point = |i: i32| {
        let size = 8.0 * f64::from(i).exp2().sqrt();
        let (cpu_ns, gpu_ns) = (size.powi(3), 1e6 + size.powi(2));
        let speedup = cpu_ns / gpu_ns;
        Point {
            size,
            cpu_ns,
            gpu_ns,
            low: 0.9 * speedup,
            high: 1.1 * speedup,
            ..Point::default()
        }
    };
    let place = |data| Place {
        data,
        points: (0..40).map(point).collect(),
        ..Place::default()
    };
    let operation = |i: u32| Operation {
        name: format!("operation_{i}"),
        shape: Shape::SquareProduct,
        first_call_ns: Some(1e8),
        places: Residency::ALL.into_iter().map(place).collect(),
        ..Operation::default()
    };
    let thresholds = Thresholds {
        schema: SCHEMA,
        operations: (0..10).map(operation).collect(),
        ..Thresholds::default()
    };
    Advice::new(thresholds).expect("the points ascend")
}

fn decision(c: &mut Criterion) {
    let advice = advice();
    let plain = Question::new("operation_9", 300);
    let questions = [
        ("one call", plain),
        ("data used ten times", plain.reuse(10)),
        ("first call, data used ten times", plain.reuse(10).cold()),
        (
            "m x n x k",
            Question::new("operation_9", (300usize, 200, 400)),
        ),
    ];
    for (name, question) in questions {
        c.bench_function(name, |b| b.iter(|| advice.decide(black_box(&question))));
    }
}

/// Stored beside cargo's other files, because the suite's results have a folder of their own.
fn criterion() -> Criterion {
    Criterion::default()
        .output_directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/criterion").as_ref())
}

criterion_group! {
    name = decisions;
    config = criterion();
    targets = decision
}
criterion_main!(decisions);
