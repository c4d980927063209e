//! Times two commands in turns, more often near the size from which on the second is faster.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use crossover_advice::Residency;
use crossover_results::analysis::answer::confirmations::next_sizes;
use crossover_results::analysis::answer::estimate::FEWEST_PROCESSES;
use crossover_results::analysis::answer::kind::Answer;
use crossover_results::analysis::answer::time_table::{Side, Time, of_times};
use crossover_results::model::record::PairedTimes;
use crossover_results::statistics::median::median;

/// The crossing is known well enough if its interval lies within this factor of it.
const NEAR: f64 = 1.2;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default = "cpu_and_gpu")]
    sides: [String; 2],
    #[serde(default = "five_minutes")]
    budget_s: f64,
    operations: Vec<Operation>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Operation {
    name: String,
    #[serde(default)]
    place: Residency,
    /// The smallest and the largest.
    sizes: (u64, u64),
    a: Vec<String>,
    b: Vec<String>,
}

fn cpu_and_gpu() -> [String; 2] {
    ["cpu", "gpu"].map(str::to_owned)
}

fn five_minutes() -> f64 {
    300.0
}

/// Times the commands of a configuration. Returns the samples and the names of the sides.
pub(super) fn measure(path: &Path) -> anyhow::Result<(Vec<Time>, [String; 2])> {
    let named = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(named)?;
    let config: Config = toml::from_str(&text).with_context(named)?;
    let budget = Duration::try_from_secs_f64(config.budget_s)
        .context("budget_s must be a number of seconds, zero or more")?;
    let mut times = Vec::new();
    for operation in &config.operations {
        let (first, last) = operation.sizes;
        ensure!(
            0 < first && first < last,
            "{}: sizes are the smallest and the largest, above zero",
            operation.name
        );
        for command in [&operation.a, &operation.b] {
            ensure!(
                command.iter().any(|word| word.contains("{size}")),
                "{}: a command has no {{size}}",
                operation.name
            );
        }
        times.extend(in_turns(operation, Instant::now() + budget)?);
    }
    Ok((times, config.sides))
}

/// Rounds over all sizes, then rounds over the sizes near the crossing, until it is known well enough
/// or the time is over. A round counts as a process.
fn in_turns(operation: &Operation, end: Instant) -> anyhow::Result<Vec<Time>> {
    let range = operation.sizes;
    let mut times: Vec<Time> = Vec::new();
    let mut rounds: Vec<Vec<PairedTimes>> = Vec::new();
    let mut pairs = 0;
    loop {
        let near_crossing = rounds.len() >= FEWEST_PROCESSES;
        if near_crossing && is_known(&times) {
            return Ok(times);
        }
        let sizes = match near_crossing {
            true => next_sizes(range.1 as f64, range, &rounds),
            false => powers_of_two(range),
        };
        eprintln!(
            "{}: round {}, sizes {} to {}",
            operation.name,
            rounds.len() + 1,
            sizes[0],
            range.1
        );
        let (mut samples, mut round) = (Vec::new(), Vec::new());
        for size in sizes {
            if Instant::now() >= end {
                // An incomplete round does not count.
                return Ok(times);
            }
            // A B B A: drift during two pairs affects both sides alike.
            let mut order = [(Side::A, &operation.a), (Side::B, &operation.b)];
            if pairs % 2 == 1 {
                order.reverse();
            }
            pairs += 1;
            let mut medians = [0.0; 2];
            for (side, command) in order {
                let measured = time(command, size)?;
                medians[side as usize] = median(measured.iter().copied()).unwrap_or_default();
                samples.extend(measured.into_iter().map(|ns| Time {
                    operation: operation.name.clone(),
                    place: operation.place,
                    size,
                    side,
                    process: rounds.len().to_string(),
                    ns,
                }));
            }
            round.push(PairedTimes {
                size,
                cpu: String::new(),
                cpu_ns: medians[0],
                gpu_ns: medians[1],
            });
        }
        rounds.push(round);
        times.append(&mut samples);
    }
}

/// Whether more rounds would add nothing.
fn is_known(times: &[Time]) -> bool {
    let answers = of_times(times);
    let Some(crossing) = answers.first().and_then(|answer| answer.crossing.as_ref()) else {
        return false;
    };
    match (crossing.answer, crossing.for_good()) {
        (Answer::At, Some(c)) => c.high <= NEAR * c.size && c.size <= NEAR * c.low,
        (Answer::Always | Answer::Never, _) => true,
        _ => false,
    }
}

/// The ends of the range and the powers of two between them.
fn powers_of_two((first, last): (u64, u64)) -> Vec<u64> {
    let powers = (0..64).map(|exponent| 1 << exponent);
    let inside = powers.filter(|size| (first + 1..last).contains(size));
    [first].into_iter().chain(inside).chain([last]).collect()
}

/// The times that a command prints, or that of its process, ns.
fn time(command: &[String], size: u64) -> anyhow::Result<Vec<f64>> {
    let words = command
        .iter()
        .map(|word| word.replace("{size}", &size.to_string()));
    let words: Vec<String> = words.collect();
    let shown = words.join(" ");
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    let begun = Instant::now();
    let output = command
        .output()
        .with_context(|| format!("`{shown}` could not be started"))?;
    let whole = begun.elapsed();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().last().unwrap_or("it printed no error");
        bail!("`{shown}` failed ({}): {last}", output.status);
    }
    let said = String::from_utf8_lossy(&output.stdout);
    if said.trim().is_empty() {
        return Ok(vec![whole.as_nanos() as f64]);
    }
    let parsed = said.trim().lines().map(|line| {
        nanoseconds(line).with_context(|| {
            format!(
                "`{shown}` printed {line:?}; print times such as `1250 ns` or `0.3 s`, or nothing"
            )
        })
    });
    parsed.collect()
}

/// `1250 ns` or `0.3 s`.
fn nanoseconds(line: &str) -> Option<f64> {
    let (number, unit) = line.trim().rsplit_once(' ')?;
    let unit = match unit {
        "ns" => 1.0,
        "s" => 1e9,
        _ => return None,
    };
    let ns = unit * number.trim().parse::<f64>().ok()?;
    (ns.is_finite() && ns > 0.0).then_some(ns)
}
