//! How often decisions are right: every measured size is left out in turn and predicted from the others.
//! docs/method.md has the figures; the bounds here lie beside them.

use std::path::Path;

use crossover_advice::thresholds::{Operation, Point, Thresholds};
use crossover_advice::{Advice, Answer, Choice, Question, Size};
use crossover_results::statistics::median::median;

use super::breakpoints::of_place;
use super::thresholds;
use crate::report::read;
use crate::tests::committed;

/// Committed records, each with the largest share of sizes inside the measured range whose winner may stay unknown, and
/// the least share of speedups in their intervals.
/// The aim is a fifth; CPU code varies most on the host of the first record.
const RECORDS: [(&str, f64, f64); 3] = [
    (
        "nvidia-h100-80gb-hbm3--intel-xeon-processor/20261127T135608Z--23cdf577788c.json.gz",
        0.31,
        0.91,
    ),
    (
        "nvidia-h200--intel-xeon-processor/20261129T104025Z--55c5f5b6aadc.json.gz",
        0.2,
        0.92,
    ),
    // Of the size set `full`.
    (
        "nvidia-h200--intel-xeon-processor/20261123T090724Z--be65bd251762.json.gz",
        0.06,
        0.96,
    ),
];

/// The outcome of predictions.
#[derive(Debug, Default)]
struct Tally {
    right: usize,
    wrong: usize,
    unsure: usize,
    /// For each measured speedup, whether it lies in the predicted interval.
    held: Vec<bool>,
    /// Logarithms of predicted over measured speedup, without their signs.
    off: Vec<f64>,
}

impl Tally {
    /// Adds the prediction for a measured size.
    fn add(&mut self, answer: &Answer, point: &Point) {
        match answer.choice {
            // Without a winner there is nothing to predict.
            _ if point.choice() == Choice::Unsure => {}
            Choice::Unsure => self.unsure += 1,
            predicted if predicted == point.choice() => self.right += 1,
            _ => self.wrong += 1,
        }
        if let Some(estimate) = answer.estimate {
            let speedup = point.cpu_ns / point.gpu_ns;
            self.held
                .push((estimate.low..=estimate.high).contains(&speedup));
            self.off.push((estimate.speedup / speedup).ln().abs());
        }
    }

    /// The shares of sizes with a winner that were wrong and unsure, and of speedups in their intervals.
    fn shares(&self) -> [f64; 3] {
        let winners = (self.right + self.wrong + self.unsure) as f64;
        let held = self.held.iter().filter(|is_held| **is_held).count();
        let held = held as f64 / self.held.len() as f64;
        [
            self.wrong as f64 / winners,
            self.unsure as f64 / winners,
            held,
        ]
    }
}

/// The thresholds of a committed record.
fn of_record(file: &str) -> Thresholds {
    let none = Path::new("no such folder");
    let options = committed::alone(committed::machines().join(file));
    thresholds(&read(none, none, &options).unwrap()).unwrap()
}

/// Leaves out each size of an operation: inside the measured range, and the smallest and the largest.
fn leave_each_out(operation: &Operation, inside: &mut Tally, ends: &mut Tally) {
    for place in &operation.places {
        let mut place = place.clone();
        // Those that rest on their neighbours would tell what was left out.
        place.points.retain(|point| point.processes > 0);
        let last = place.points.len().saturating_sub(1);
        for (i, point) in place.points.iter().enumerate() {
            let is_end = i == 0 || i == last;
            let tally = if is_end { &mut *ends } else { &mut *inside };
            let mut without = place.clone();
            without.points.remove(i);
            without.find_ends([]);
            if let Ok(advice) = of_place(without) {
                let question = Question::new("", point.size).data(place.data);
                tally.add(&advice.decide(&question), point);
            }
        }
    }
}

/// `matmul_skinny`, M rows times a square matrix, as the square products of `matmul` predict it.
fn skinny_from_square(thresholds: &Thresholds) -> Tally {
    let advice = Advice::new(thresholds.clone()).unwrap();
    let mut operations = thresholds.operations.iter();
    let skinny = operations.find(|o| o.name == "matmul_skinny").unwrap();
    let mut tally = Tally::default();
    for place in &skinny.places {
        for point in place.points.iter().filter(|point| point.processes > 0) {
            let (m, n, k) = (point.size as u64, 4096, 4096);
            let question = Question::new("matmul", Size::Product { m, n, k });
            tally.add(&advice.decide(&question.data(place.data)), point);
        }
    }
    tally
}

/// The file is small, tells nothing of whoever measured, and can be asked.
fn can_be_passed_on(thresholds: &Thresholds) {
    let text = serde_json::to_string(thresholds).unwrap();
    assert!(text.len() <= 60_000, "{} bytes", text.len());
    let is_private = text.contains("GPU-") || text.contains('/');
    assert!(!is_private, "a serial number or a path: {text}");
    Advice::parse(text.as_bytes()).unwrap();
}

#[test]
fn decisions_about_sizes_that_were_left_out_are_rarely_wrong() {
    for (file, most_unsure, least_held) in RECORDS {
        let thresholds = of_record(file);
        can_be_passed_on(&thresholds);
        let [mut inside, mut ends] = [Tally::default(), Tally::default()];
        for operation in &thresholds.operations {
            leave_each_out(operation, &mut inside, &mut ends);
        }
        let [wrong, unsure, held] = inside.shares();
        let off = median(inside.off.iter().copied()).unwrap().exp();
        println!("{file}: wrong {wrong}, unsure {unsure}, held {held}, off by {off}");
        assert!(wrong <= 0.03 && unsure <= most_unsure, "{inside:?}");
        assert!(held >= least_held && off <= 1.2, "{inside:?}");
        println!("at the ends: {:?}", ends.shares());
        assert_eq!(ends.wrong, 0, "{ends:?}");
        let skinny = skinny_from_square(&thresholds);
        let [wrong, _, held] = skinny.shares();
        assert!(wrong == 0.0 && held >= 0.9, "{skinny:?}");
    }
}
