//! `crossover thresholds`: from the times of any two programs to a file that programs ask.

mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use crossover_advice::thresholds::{CrossingKind, Place, Thresholds};
use crossover_report::thresholds::{decision_in_words, of_table, write};
use crossover_results::analysis::answer::answer_in_words::{largest, wins};
use crossover_results::analysis::answer::estimate::FEWEST_PROCESSES;
use crossover_results::analysis::answer::time_table::{TableAnswer, of_times};
use crossover_words::text::{visible, visible_lines};
use crossover_words::units;

/// Find from which size on one of two programs is faster, and write the file that programs ask
///
/// TIMES.csv has the columns operation, size, place, side, process and ns. Each line is a sample.
/// `place` is where the data start and end: queued, awaited, pinned or ordinary. `side` is a, b or
/// its name. Three or more processes make a firm answer.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Table of times
    #[arg(value_name = "TIMES.csv")]
    times: PathBuf,
    /// Names of the sides a and b of the table
    #[arg(long, num_args = 2, value_names = ["A", "B"], default_values = of_table::CPU_AND_GPU)]
    sides: Vec<String>,
    /// Write the thresholds to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Args) -> anyhow::Result<ExitCode> {
    let sides = [arguments.sides[0].clone(), arguments.sides[1].clone()];
    let times = table::read(&arguments.times, &sides)?;
    let (times, once) = table::without_single_samples(times);
    for size in once {
        eprintln!("note: {}", visible(&size));
    }
    let answers = of_times(&times);
    if let Some(answer) = answers.iter().find(|answer| answer.crossing.is_none()) {
        bail!("{}", without_answer(answer, &sides));
    }
    for answer in &answers {
        for size in answer.left_out() {
            let (of, size) = (question(answer), units::size(size));
            let of = visible(&of);
            eprintln!(
                "note: {of}: fewer than three processes measured size {size}, which is left out"
            );
        }
    }
    let thresholds = of_table::thresholds(&answers, &sides).filter(|t| !t.operations.is_empty());
    let Some(thresholds) = thresholds else {
        bail!("the table has no size that was measured more than once on both sides");
    };
    // First, since the process ends where its output cannot be printed.
    let written = (arguments.output.as_ref()).map(|file| write(&thresholds, file).map(|()| file));
    println!("{}", visible_lines(&in_words(&thresholds)));
    if let Some(file) = written {
        println!("thresholds: {}", visible(&file?.to_string_lossy()));
    }
    Ok(ExitCode::SUCCESS)
}

fn question(answer: &TableAnswer) -> String {
    format!("{}, {}", answer.operation, answer.place.words())
}

/// Why a question has no answer.
fn without_answer(answer: &TableAnswer, sides: &[String; 2]) -> String {
    let of = question(answer);
    let without = answer
        .curves
        .iter()
        .position(|curve| curve.points().is_empty());
    match without {
        Some(side) => format!(
            "{of}: there are no times of {}; measure both sides",
            sides[side]
        ),
        None => format!(
            "{of}: {} and {} have no size in common; measure both at the same sizes",
            sides[0], sides[1]
        ),
    }
}

/// A line for each question.
fn in_words(thresholds: &Thresholds) -> String {
    let operations = thresholds.operations.iter();
    let lines = operations.flat_map(|operation| {
        operation.places.iter().map(move |place| {
            let (topic, crossing) = decision_in_words::answer(operation, place);
            format!(
                "{}, {}: {} wins: {}; {}{}",
                operation.name,
                place.data.words(),
                place.gpu,
                wins(&topic, &crossing),
                largest(&topic, &crossing),
                reservation(place)
            )
        })
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The reservation about an answer.
fn reservation(place: &Place) -> &'static str {
    match place.crossing.kind {
        _ if place.crossing.processes < FEWEST_PROCESSES => {
            "; not firm: measure in three or more processes"
        }
        CrossingKind::Always => "; a crossing would lie below the measured sizes",
        CrossingKind::Never => "; a crossing would lie above the measured sizes",
        CrossingKind::From | CrossingKind::BothWays | CrossingKind::Undecided => "",
    }
}
