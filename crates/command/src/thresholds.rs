//! `crossover thresholds`: from the times of any two programs to a file that programs ask. The times are a
//! table, or the results of hyperfine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, bail, ensure};

use crossover_advice::thresholds::{CrossingKind, Operation, Place, SCHEMA, Thresholds};
use crossover_advice::{HostInfo, Residency};
use crossover_report::thresholds::{decided, decision_in_words, measured, stored, write};
use crossover_results::analysis::answer::answer_in_words::{largest, wins};
use crossover_results::analysis::answer::estimate::FEWEST_PROCESSES;
use crossover_results::analysis::answer::time_table::{LeftOut, TableAnswer, Time, of_times};
use crossover_results::store::runs;
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
    let (times, sides) = read(&arguments.times, arguments.sides.as_deref())?;
    let answers = of_times(&times);
    for answer in &answers {
        for note in left_out(answer, &sides) {
            eprintln!("note: {}", visible(&note));
        }
    }
    if let Some(answer) = answers.iter().find(|answer| answer.crossing.is_none()) {
        bail!("{}", without_answer(answer, &sides));
    }
    let thresholds = thresholds(&answers, &sides).filter(|t| !t.operations.is_empty());
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

/// The names of a CPU and a GPU in a table.
const CPU_AND_GPU: [&str; 2] = ["cpu", "gpu"];

/// A sample, with the name of its side.
#[derive(serde::Deserialize)]
struct Line {
    operation: String,
    size: u64,
    place: Residency,
    side: String,
    process: String,
    ns: f64,
}

/// The file that `hyperfine --export-json` writes.
#[derive(serde::Deserialize)]
struct Hyperfine {
    results: Vec<Command>,
}

/// A command line at one size, with the time of each process.
#[derive(serde::Deserialize)]
struct Command {
    command: String,
    /// Seconds.
    times: Vec<f64>,
    /// Of each run; `None` after a signal.
    #[serde(default)]
    exit_codes: Vec<Option<i32>>,
    #[serde(default)]
    parameters: std::collections::BTreeMap<String, String>,
}

/// The samples of a file, and the names of its sides: the given ones, or else those in the file.
fn read(path: &Path, sides: Option<&[String]>) -> anyhow::Result<(Vec<Time>, [String; 2])> {
    let named = || path.display().to_string();
    let text = std::fs::read(path).with_context(named)?;
    let is_json = text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let lines = if is_json {
        from_hyperfine(&text, path)
    } else {
        from_csv(&text)
    };
    let lines = lines.with_context(named)?;
    ensure!(!lines.is_empty(), "{} has no samples", named());
    let sides = names(&lines, sides).with_context(named)?;
    let time = |(at, line): (usize, Line)| {
        let [a, b] = &sides;
        // A name comes before a letter, which may be the name of the other side.
        let position = |names: [&str; 2]| names.iter().position(|name| *name == line.side);
        let side = position([a, b]).or_else(|| position(["a", "b"]));
        let side = side.with_context(|| {
            format!(
                "sample {}: the side {:?} is neither a, b, {a} nor {b}",
                at + 1,
                line.side
            )
        })?;
        // A thousandth of a nanosecond to thirty years.
        let sound = line.size > 0 && (1e-3..=1e18).contains(&line.ns);
        ensure!(
            sound,
            "sample {}: a size is above zero, and a time between 0.001 and 1e18 ns",
            at + 1
        );
        Ok(Time {
            operation: line.operation,
            place: line.place,
            size: line.size,
            side,
            process: line.process,
            ns: line.ns,
        })
    };
    let times = lines.into_iter().enumerate().map(time);
    let times = times.collect::<anyhow::Result<_>>().with_context(named)?;
    Ok((times, sides))
}

fn from_csv(text: &[u8]) -> anyhow::Result<Vec<Line>> {
    let mut table = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text);
    table.deserialize().collect::<Result<_, _>>().context(
        "the columns are operation, size, place (queued, awaited, pinned or ordinary), side, process and ns",
    )
}

/// The times of two command lines whose text differs only by the size.
fn from_hyperfine(text: &[u8], path: &Path) -> anyhow::Result<Vec<Line>> {
    let file: Hyperfine = serde_json::from_slice(text)
        .context("it is neither a table nor what `hyperfine --export-json` writes")?;
    let operation = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut lines = Vec::new();
    for command in &file.results {
        let size = command.parameters.get("size").map(|size| size.trim());
        let size =
            size.context("a command has no size: run hyperfine with `--parameter-list size …`")?;
        let failed = command.exit_codes.iter().find(|code| **code != Some(0));
        if let Some(code) = failed {
            let how = code.map_or_else(
                || "by a signal".to_owned(),
                |code| format!("with exit code {code}"),
            );
            bail!(
                "`{}` ended {how}, so its times may be of a part of its work; if this is its usual end, add \
                 `|| true` to the command",
                command.command
            );
        }
        // The size is a word, or the end of one such as `--n=1000`.
        let words = command.command.split_whitespace();
        let without_size = words.filter_map(|word| match word.strip_suffix(size) {
            Some("") => None,
            Some(option) if option.ends_with('=') => Some(option),
            _ => Some(word),
        });
        let side = without_size.collect::<Vec<_>>().join(" ");
        let parsed = size.parse().ok();
        let size = parsed.with_context(|| format!("the size {size:?} is not a whole number"))?;
        for (process, seconds) in command.times.iter().enumerate() {
            lines.push(Line {
                operation: operation.clone().into_owned(),
                size,
                place: Residency::Ordinary,
                side: side.clone(),
                process: process.to_string(),
                ns: seconds * 1e9,
            });
        }
    }
    Ok(lines)
}

/// The names of both sides.
fn names(lines: &[Line], given: Option<&[String]>) -> anyhow::Result<[String; 2]> {
    if let Some([a, b]) = given {
        ensure!(
            !a.is_empty() && !b.is_empty(),
            "--sides: a side needs a name"
        );
        ensure!(
            a != b,
            "--sides: the two sides need different names, not {a} twice"
        );
        return Ok([a.clone(), b.clone()]);
    }
    let mut found: Vec<&str> = Vec::new();
    for line in lines {
        if !found.contains(&&*line.side) {
            found.push(&line.side);
        }
    }
    // a is the first side, and so is the CPU.
    for known in [["a", "b"], CPU_AND_GPU] {
        if known.iter().all(|name| found.contains(name)) {
            found.sort_by_key(|name| known.iter().position(|known| known == name));
        }
    }
    match found[..] {
        [a, b] if !a.is_empty() && !b.is_empty() => Ok([a.to_owned(), b.to_owned()]),
        [only] => bail!("there are times of {only:?} alone; measure both sides"),
        _ => bail!(
            "it has the sides {found:?}, and two are compared: leave out the others, or name both with --sides"
        ),
    }
}

/// The thresholds of this machine; `None` if both sides of a question were measured at no size in common.
/// `sides` are the names of a and b.
fn thresholds(answers: &[TableAnswer], sides: &[String; 2]) -> Option<Thresholds> {
    let operations = answers.chunk_by(|a, b| a.operation == b.operation);
    Some(Thresholds {
        schema: SCHEMA,
        crossover: env!("CARGO_PKG_VERSION").to_owned(),
        date: runs::moment(SystemTime::now()),
        machine: HostInfo::detect().into(),
        operations: operations
            .map(|places| operation(places, sides))
            .collect::<Option<_>>()?,
        ..Thresholds::default()
    })
}

fn operation(answers: &[TableAnswer], [a, b]: &[String; 2]) -> Option<Operation> {
    let place = |answer: &TableAnswer| {
        let point = |at| Some(measured(at, answer.curves[1].at(at.size)?.median));
        let place = Place {
            data: answer.place,
            cpu: a.clone(),
            gpu: b.clone(),
            crossing: stored(answer.crossing.as_ref()?),
            points: answer.speedups.iter().map(point).collect::<Option<_>>()?,
            ..Place::default()
        };
        decided(place, answer.left_out.iter().map(|(size, _)| (*size, None)))
    };
    Some(Operation {
        name: answers[0].operation.clone(),
        size: "size".to_owned(),
        sides: Some([a.clone(), b.clone()]).filter(|sides| *sides != CPU_AND_GPU),
        places: answers.iter().map(place).collect::<Option<_>>()?,
        ..Operation::default()
    })
}
