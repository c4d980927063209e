//! Thresholds of a machine whose times are easy to compute by hand.

use crossover_advice::thresholds::{
    AnswerFrom, Operation, Place, Point, SCHEMA, Shape, Thresholds,
};
use crossover_advice::{Advice, Question, Residency};

/// A size with a CPU time, a GPU time and an interval of 10 % either way, to four digits.
pub(crate) fn point(size: f64, cpu_ns: f64, gpu_ns: f64) -> Point {
    let speedup = cpu_ns / gpu_ns;
    Point {
        size,
        cpu_ns,
        gpu_ns,
        low: speedup / 1.1,
        high: speedup * 1.1,
        processes: 6,
    }
}

/// N³ ns on the CPU. On the GPU 1 µs that the launch takes, and N³ / 100; from the host also N².
pub(crate) fn product() -> Operation {
    let place = |data: Residency| {
        let point = |exponent: i32| {
            let n = f64::from(exponent).exp2();
            let moved = if data.on_device() {
                0.0
            } else {
                20_000.0 + 10.0 * n * n
            };
            point(n, n.powi(3), 1000.0 + n.powi(3) / 100.0 + moved)
        };
        let mut place = Place {
            data,
            points: (2..=11).map(point).collect(),
            below: Some(crossover_advice::Choice::Cpu),
            above: Some(crossover_advice::Choice::Gpu),
            ..Place::default()
        };
        place.answers = answers(&place);
        place
    };
    Operation {
        name: "product".into(),
        size: "N, order of the matrices".into(),
        shape: Shape::SquareProduct,
        first_call_ns: Some(1e8),
        places: [Residency::Queued, Residency::Pinned, Residency::Ordinary]
            .map(place)
            .into(),
        ..Operation::default()
    }
}

/// The decision of each whole size, from where it changes on.
fn answers(place: &Place) -> Vec<AnswerFrom> {
    let operation = Operation {
        places: vec![place.clone()],
        ..Operation::default()
    };
    let advice = Advice::new(Thresholds {
        operations: vec![operation],
        ..Thresholds::default()
    });
    let advice = advice.expect("the points ascend");
    let decide = |size: u64| AnswerFrom {
        from: size as f64,
        choice: advice
            .decide(&Question::new("", size).data(place.data))
            .choice,
    };
    let mut all: Vec<AnswerFrom> = (1..=2049).map(decide).collect();
    all.dedup_by_key(|answer| answer.choice);
    all
}

pub(crate) fn thresholds() -> Thresholds {
    let mut plain = product();
    plain.name = "plain".into();
    plain.shape = Shape::Size;
    plain.first_call_ns = None;
    plain.places.remove(0);
    Thresholds {
        schema: SCHEMA,
        date: "2026-11-22T22:53:57Z".into(),
        operations: vec![product(), plain],
        ..Thresholds::default()
    }
}
