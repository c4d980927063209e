//! `crossover ab --null`: a revision compared with itself, which shows how far to trust verdicts of these
//! benchmarks on this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crate::ab::Args;
use crate::ab::pairs::{self, Sampling};
use crossover_compare::comparison::Comparison;
use crossover_compare::verdict::{Options, Verdict};
use crossover_results::statistics::median::median;
use crossover_results::store::whole_file::write_atomic;
use crossover_words::text::visible;
use crossover_words::units;

/// Changes whose time is shown.
const CHANGES: [f64; 2] = [0.02, 0.05];

/// One comparison, and the seconds that a pair of processes of each benchmark took.
type Compared = (Comparison, BTreeMap<String, f64>);

/// Compares the code with itself so many times, each time in a folder of its own.
///
/// # Errors
/// An interrupt, or that no pair can be run.
pub(super) fn run<'a>(
    args: &Args,
    times: u32,
    results: &Path,
    label: &str,
    mut choose: impl FnMut() -> anyhow::Result<Box<dyn Sampling + 'a>>,
    options: &Options,
) -> anyhow::Result<ExitCode> {
    let mut all = Vec::new();
    for number in 1..=times {
        eprintln!("comparison {number} of {times}");
        let folder = results.join(number.to_string());
        std::fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        let labels = [label, label].map(str::to_owned);
        let sampling = choose()?;
        let (comparison, outcome) =
            pairs::judge(args, &folder, labels, sampling, Vec::new(), options.clone())?;
        args.verdict.keep(&comparison, &folder)?;
        for failure in &comparison.failures {
            eprintln!("error: {}", visible(failure));
        }
        all.push((comparison, outcome.seconds));
    }
    let summary = summary(&all);
    // First, since the process ends where its output cannot be printed.
    let kept = write_atomic(&results.join("summary.txt"), summary.as_bytes());
    eprintln!(
        "results of all comparisons, summary.txt: {}",
        results.display()
    );
    print!("{summary}");
    kept?;
    let codes = all.iter().map(|(comparison, _)| {
        let fails = !comparison.failures.is_empty() || comparison.count(Verdict::Failed) > 0;
        if fails {
            1
        } else {
            2 * u8::from(comparison.classes().next().is_none())
        }
    });
    Ok(codes.max().unwrap_or(0).into())
}

fn summary(all: &[Compared]) -> String {
    let count = |verdict| -> usize { all.iter().map(|(of, _)| of.count(verdict)).sum() };
    let [slower, faster, same, unsure] = [
        Verdict::Slower,
        Verdict::Faster,
        Verdict::Same,
        Verdict::Unsure,
    ]
    .map(count);
    let mut text = format!(
        "{}: {} of {} false ({slower} slower, {faster} faster); {same} same, {unsure} unsure.\n",
        units::counted(all.len(), "comparison"),
        slower + faster,
        units::counted(slower + faster + same + unsure, "verdict"),
    );
    let classes = all.iter().flat_map(|(of, _)| of.classes());
    let classes: BTreeMap<_, _> = classes.map(|class| (class.name(), class)).collect();
    for (name, class) in classes {
        let resolution = median(all.iter().filter_map(|(of, _)| of.resolution(class)));
        let resolution = resolution.map_or("unknown".to_owned(), units::percent_fine);
        let takes = CHANGES.map(|change| {
            let times = all
                .iter()
                .filter_map(|(of, s)| of.seconds_to_find(change, class, s));
            let seconds = median(times).filter(|seconds| seconds.is_finite());
            let seconds = seconds.map_or("unknown".to_owned(), |s| units::time(s * 1e9));
            format!("{seconds} for a change of {}", units::percent_fine(change))
        });
        text += &format!(
            "{name} ({}): resolution {resolution}; time per benchmark: {}.\n",
            units::counted(class.benchmarks, "benchmark"),
            takes.join(", "),
        );
    }
    text
}
