//! How often decisions are right: every measured size is left out in turn and predicted from the
//! others. The tables are those of docs/method.md.

use std::fs;
use std::path::Path;

use crossover_advice::thresholds::{Operation, Place, Point, Thresholds};
use crossover_advice::{Advice, Answer, Choice, Question, Size};

use super::breakpoints::of_place;
use super::thresholds;
use crate::report::{Options, Report, read};
use crate::tests::committed;
use crossover_words::units;

const BEGIN: &str = "<!-- backtest:begin -->\n";
const END: &str = "<!-- backtest:end -->\n";

/// The outcome of predictions.
#[derive(Clone, Default)]
struct Tally {
    right: usize,
    wrong: usize,
    unsure: usize,
    /// Measured speedups inside the predicted interval.
    inside: usize,
    /// Logarithms of predicted over measured speedup, without their signs.
    off: Vec<f64>,
}

impl Tally {
    fn add(&mut self, predicted: Choice, measured: Choice) {
        match predicted {
            // Without a winner there is nothing to predict.
            _ if measured == Choice::Unsure => {}
            Choice::Unsure => self.unsure += 1,
            _ if predicted == measured => self.right += 1,
            _ => self.wrong += 1,
        }
    }

    /// The prediction for a measured size.
    fn hold(&mut self, answer: &Answer, point: &Point) {
        self.add(answer.choice, point.choice());
        if let Some(estimate) = answer.estimate {
            let speedup = point.cpu_ns / point.gpu_ns;
            self.inside += usize::from((estimate.low..=estimate.high).contains(&speedup));
            self.off.push((estimate.speedup / speedup).ln().abs());
        }
    }

    fn all(&self) -> usize {
        self.right + self.wrong + self.unsure
    }

    fn merge(&mut self, other: &Tally) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.unsure += other.unsure;
        self.inside += other.inside;
        self.off.extend(&other.off);
    }

    fn row(&self, name: &str) -> String {
        let mut off = self.off.clone();
        off.sort_unstable_by(f64::total_cmp);
        // The smallest value that this share of the values does not exceed.
        let factor = |share: f64| {
            let rank = (share * off.len() as f64).ceil() as usize;
            let log = off.get(rank.max(1) - 1);
            log.map_or("-".into(), |log| units::factor_fine(log.exp()))
        };
        format!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} |\n",
            self.all(),
            self.right,
            self.wrong,
            self.unsure,
            share(self.inside, self.off.len()),
            factor(0.5),
            factor(0.9)
        )
    }
}

const HEADER: &str = "sizes with a winner | right | wrong | `Unsure` | speedup in the interval | off by, median | 90 % |\n\
                      | --- | --- | --- | --- | --- | --- | --- | --- |\n";

fn share(part: usize, of: usize) -> String {
    format!(
        "{part} of {of} ({})",
        units::percent(part as f64 / of as f64)
    )
}

/// A committed record.
struct Tested {
    profile: &'static str,
    file: &'static str,
    /// Percent of the sizes that may have no winner. The aim is a fifth; CPU code varies most on the host of the newest record.
    unsure: usize,
    /// Whether docs/method.md shows it.
    documented: bool,
}

const RECORDS: [Tested; 3] = [
    Tested {
        profile: "default",
        file: "nvidia-h100-80gb-hbm3--intel-xeon-processor/20261127T135608Z--23cdf577788c.json.gz",
        unsure: 31,
        documented: true,
    },
    Tested {
        profile: "default",
        file: "nvidia-h200--intel-xeon-processor/20261127T071356Z--814a689129d8.json.gz",
        unsure: 26,
        documented: false,
    },
    Tested {
        profile: "full",
        file: "nvidia-h200--intel-xeon-processor/20261123T090724Z--be65bd251762.json.gz",
        unsure: 6,
        documented: true,
    },
];

fn record(file: &str) -> Report {
    let none = Path::new("no such folder");
    let options = Options {
        with: vec![committed::machines().join(file)],
        no_reference: true,
    };
    read(none, none, &options).unwrap()
}

/// A place without one of its points.
fn without(place: &Place, left_out: usize) -> Option<Advice> {
    let mut place = place.clone();
    place.points.remove(left_out);
    place.find_ends([]);
    of_place(place).ok()
}

/// Inside the measured range, and at its ends.
fn each_size_left_out(operation: &Operation) -> (Tally, Tally) {
    let (mut inside, mut ends) = (Tally::default(), Tally::default());
    for place in &operation.places {
        let mut place = place.clone();
        // Those that rest on their neighbours would tell what was left out.
        place.points.retain(|point| point.processes > 0);
        for (i, point) in place.points.iter().enumerate() {
            let Some(advice) = without(&place, i) else {
                continue;
            };
            let answer = advice.decide(&Question::new("", point.size).data(place.data));
            let is_end = i == 0 || i + 1 == place.points.len();
            let tally = if is_end { &mut ends } else { &mut inside };
            tally.hold(&answer, point);
        }
    }
    (inside, ends)
}

/// `matmul_skinny`, M rows times a square matrix, as the square products of `matmul` predict it.
fn skinny_from_square(thresholds: &Thresholds) -> Tally {
    let advice = Advice::new(thresholds.clone()).unwrap();
    let mut operations = thresholds.operations.iter();
    let skinny = operations.find(|o| o.name == "matmul_skinny").unwrap();
    let mut tally = Tally::default();
    for place in &skinny.places {
        for point in place.points.iter().filter(|point| point.processes > 0) {
            let size = Size::Product {
                m: point.size as u64,
                n: 4096,
                k: 4096,
            };
            let answer = advice.decide(&Question::new("matmul", size).data(place.data));
            tally.hold(&answer, point);
        }
    }
    tally
}

/// The table of a record, after its requirements are checked.
fn tables(of: &Tested) -> String {
    let profile = of.profile;
    let report = &record(of.file);
    let thresholds = thresholds(report).unwrap();
    let run = report.machine.run.as_ref().unwrap();
    let commit = thresholds
        .commit
        .as_deref()
        .and_then(|commit| commit.get(..8))
        .unwrap_or("?");
    let mut text = format!(
        "**Size set `{profile}`** ({}, commit {commit}, {}). Each size left out:\n\n",
        thresholds.machine.gpu,
        &run.started[..10]
    );
    text += &format!("| sizes | {HEADER}");
    let (mut inside, mut ends) = (Tally::default(), Tally::default());
    for operation in &thresholds.operations {
        let (here, at_ends) = each_size_left_out(operation);
        inside.merge(&here);
        ends.merge(&at_ends);
    }
    text += &inside.row("inside the measured range");
    text += &ends.row("the smallest or largest size");
    let skinny = skinny_from_square(&thresholds);
    text += &skinny.row("of `matmul_skinny`, from the square products");
    assert_eq!(skinny.wrong, 0, "{text}");
    assert!(inside.wrong * 100 <= 3 * inside.all(), "{text}");
    assert!(inside.unsure * 100 <= of.unsure * inside.all(), "{text}");
    text
}

#[test]
fn the_documented_back_test_is_that_of_the_committed_records() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/method.md");
    let tables = RECORDS.each_ref().map(|of| (of, tables(of)));
    let documented = tables.iter().filter(|(of, _)| of.documented);
    let documented: Vec<&str> = documented.map(|(_, text)| &**text).collect();
    let tables = documented.join("\n");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (documented, after) = rest.split_once(END).unwrap();
    if std::env::var_os("CROSSOVER_GOLDEN").is_some_and(|v| v == "write") {
        fs::write(&path, format!("{before}{BEGIN}{tables}{END}{after}")).unwrap();
        return;
    }
    let hint = "CROSSOVER_GOLDEN=write cargo test --lib back_test writes it";
    assert_eq!(documented, tables, "{hint}");
}

#[test]
fn the_artefacts_of_the_committed_records_are_small_and_can_be_asked() {
    for Tested { profile, file, .. } in &RECORDS {
        let thresholds = thresholds(&record(file)).unwrap();
        let text = serde_json::to_string(&thresholds).unwrap();
        assert!(text.len() <= 60_000, "{profile}: {} bytes", text.len());
        assert!(
            !text.contains("GPU-") && !text.contains('/'),
            "a serial number or a path"
        );
        Advice::parse(text.as_bytes()).unwrap();
    }
}
