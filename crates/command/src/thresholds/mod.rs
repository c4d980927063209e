//! `crossover thresholds`: from the times of any two programs to a file that programs ask.

mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use crossover_advice::thresholds::{CrossingKind, Place, Thresholds};
use crossover_report::thresholds::{decision_in_words, write};
use crossover_results::analysis::answer::answer_in_words::{largest, wins};
use crossover_results::analysis::answer::estimate::FEWEST_PROCESSES;
use crossover_results::analysis::answer::time_table::{LeftOut, TableAnswer, of_times};
use crossover_words::text::{visible, visible_lines};
use crossover_words::units;

/// Find from which size on one of two programs is faster, and write the file that programs ask
///
/// TIMES is a table with the columns operation, size, place, side, process and ns. Each line is a sample.
/// `place` is where the data start and end: queued, awaited, pinned or ordinary. `side` is the name of the
/// program. Or it is what `hyperfine --parameter-list size … --export-json` writes of two command lines: the
/// operation is the name of the file. Three or more processes make a firm answer.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Table of times, or hyperfine's results
    #[arg(value_name = "TIMES")]
    times: PathBuf,
    /// Names of the sides, the first one in place of the CPU; a and b in the table are these sides too
    /// [default: the names in the table, in their order]
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    sides: Option<Vec<String>>,
    /// Write the thresholds to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Args) -> anyhow::Result<ExitCode> {
    if let Some(output) = &arguments.output {
        let [output, input] = [output, &arguments.times].map(|path| path.canonicalize().ok());
        ensure!(
            output.is_none() || output != input,
            "-o names the table of times, which it would replace: name another file"
        );
    }
    let (times, sides) = table::read(&arguments.times, arguments.sides.as_deref())?;
    let answers = of_times(&times);
    for answer in &answers {
        for note in left_out(answer, &sides) {
            eprintln!("note: {}", visible(&note));
        }
    }
    if let Some(answer) = answers.iter().find(|answer| answer.crossing.is_none()) {
        bail!("{}", without_answer(answer, &sides));
    }
    let thresholds = table::thresholds(&answers, &sides).filter(|t| !t.operations.is_empty());
    let thresholds = thresholds.context("the table has no answer")?;
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

/// A sentence for each reason for which sizes of a question do not count.
fn left_out(answer: &TableAnswer, sides: &[String; 2]) -> Vec<String> {
    let mut reasons: Vec<LeftOut> = Vec::new();
    for (_, why) in &answer.left_out {
        if !reasons.contains(why) {
            reasons.push(*why);
        }
    }
    let largest = answer.speedups.last().map_or(0.0, |at| at.size);
    let sentence = |why: LeftOut| {
        let sizes = answer.left_out.iter().filter(|(_, other)| *other == why);
        let sizes: Vec<u64> = sizes.map(|(size, _)| *size).collect();
        let words: Vec<String> = sizes.iter().map(|size| units::size(*size)).collect();
        let reason = match why {
            LeftOut::Lacking(side) => format!("{} was not measured there", sides[side]),
            LeftOut::Once => "one side was measured once; measure it again".to_owned(),
            LeftOut::FewProcesses => "fewer than three processes measured both sides".to_owned(),
        };
        let (question, words) = (question(answer), words.join(", "));
        let mut sentence = format!("{question}: left out size {words}: {reason}");
        if largest > 0.0 && sizes.iter().any(|size| *size as f64 > largest) {
            sentence += &format!("; nothing is decided above {}", units::size(largest as u64));
        }
        sentence
    };
    reasons.into_iter().map(sentence).collect()
}

/// Why a question has no answer.
fn without_answer(answer: &TableAnswer, sides: &[String; 2]) -> String {
    let question = question(answer);
    let [a, b] = sides;
    let reasons = || answer.left_out.iter().map(|(_, why)| *why);
    let lacking = (0..2).find(|side| reasons().all(|why| why == LeftOut::Lacking(*side)));
    match lacking {
        Some(side) => {
            let lacking = &sides[side];
            format!("{question}: there are no times of {lacking}; measure both sides")
        }
        None if reasons().any(|why| why == LeftOut::Once) => {
            format!("{question}: no size was measured more than once on both sides")
        }
        None => {
            format!(
                "{question}: {a} and {b} have no size in common; measure both at the same sizes"
            )
        }
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
