//! How the two sides of a comparison are run.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::bail;

use crate::ab::arguments::Args;
use crate::ab::child;
use crate::ab::criterion_options::{self, BenchArgs, Harness, Kind};
use crate::ab::executable::Executable;
use crate::ab::processes::Processes;
use crate::ab::subject::Prepared;
use crate::ab::worktree::Place;
use crossover_words::text::with_causes;
use crossover_words::units;

/// How the sides are run.
pub(super) enum Sampling {
    /// Sample by sample in turns, two processes at a time.
    Turns([Vec<Executable>; 2]),
    /// Benchmark by benchmark, one short process after the other.
    Processes(Processes),
}

/// Starts each executable to learn what it can. What a reader must know of them goes to `remarks`.
///
/// # Errors
/// An interrupt, or that the sides have no benchmark in common.
pub(super) fn choose(
    args: &Args,
    place: &Place,
    subjects: &[Prepared; 2],
    remarks: &mut Vec<String>,
) -> anyhow::Result<Sampling> {
    let mut found = Found::probe(args, place, subjects, true)?;
    remarks.extend(found.empty.iter().map(|why| format!("left out: {why}")));
    if found.takers.iter().all(|takers| !takers.is_empty()) && !found.has_others() {
        place.bring(None)?;
        let moved = |side: usize| {
            let takers = found.takers[side].iter();
            takers
                .map(|taker| taker.moved(&place.tree(), &place.aside(side)))
                .collect()
        };
        return Ok(Sampling::Turns([moved(0), moved(1)]));
    }
    if found.takers.iter().any(|takers| !takers.is_empty()) {
        // Where one cannot take turns, short processes serve all.
        found = Found::probe(args, place, subjects, false)?;
    }
    for harness in found.harnesses.iter().flatten() {
        remarks.extend(remark(harness));
    }
    remarks.sort();
    remarks.dedup();
    let processes = Processes::new(found.harnesses);
    if processes.shared().next().is_none() {
        let side = |side: usize| {
            let what = match processes.is_empty(side) {
                true => "no benchmark",
                false => "others",
            };
            format!("{} has {what}", subjects[side].label)
        };
        let left_out = found
            .left_out
            .iter()
            .chain(&found.empty)
            .map(|why| format!("; {why}"))
            .collect::<String>();
        bail!(
            "nothing to compare: {}, {}{left_out}. A filter after `--`, `-p` and `--bench` choose \
             benchmarks of Criterion",
            side(0),
            side(1)
        );
    }
    remarks.extend(
        found
            .left_out
            .into_iter()
            .map(|why| format!("left out: {why}")),
    );
    Ok(Sampling::Processes(processes))
}

/// What an executable cannot do.
fn remark(harness: &Harness) -> Vec<String> {
    let name = &harness.executable.name;
    let mut remarks = Vec::new();
    if let Some(first) = harness.never_alone.first() {
        remarks.push(format!(
            "left out: {} of {name} that cannot be run alone, since a name is used twice or longer \
             than 100 bytes, such as {first}",
            units::counted(harness.never_alone.len(), "benchmark")
        ));
    }
    if let Some(first) = harness.ignored.first() {
        remarks.push(format!(
            "ignored: {} that {name} prints and does not list when selected by name, such as \
             `{first}`",
            units::counted(harness.ignored.len(), "line")
        ));
    }
    if !harness.takes_fractions {
        remarks.push(format!(
            "the Criterion of {name} takes whole seconds alone: each process warms up and measures \
             for a second; 0.4 and later take less"
        ));
    }
    remarks
}

/// What the executables of both sides turned out to be.
#[derive(Default)]
struct Found {
    takers: [Vec<Executable>; 2],
    harnesses: [Vec<Harness>; 2],
    /// Executables that are not used, and why.
    left_out: Vec<String>,
    /// Executables without a benchmark, and why.
    empty: BTreeSet<String>,
}

impl Found {
    fn probe(
        args: &Args,
        place: &Place,
        subjects: &[Prepared; 2],
        offers_turns: bool,
    ) -> anyhow::Result<Self> {
        let user = BenchArgs::parse(&args.bench_args)?;
        let limit = Duration::from_secs(args.turn_limit.into());
        let mut found = Self::default();
        for (side, subject) in subjects.iter().enumerate() {
            for executable in &subject.executables {
                place.bring(Some(side))?;
                match criterion_options::probe(executable, &user, limit, offers_turns) {
                    Ok(Kind::TakesTurns) => found.takers[side].push(executable.clone()),
                    Ok(Kind::Criterion(harness)) => found.harnesses[side].push(harness),
                    Ok(Kind::Empty(why)) => {
                        let why = why.map(|why| format!("{}: {why}", executable.name));
                        found.empty.extend(why);
                    }
                    Err(error) if child::interrupted() => return Err(error),
                    Err(error) => {
                        let why = with_causes(error.as_ref());
                        found.left_out.push(format!("{}: {why}", subject.label));
                    }
                }
            }
        }
        Ok(found)
    }

    fn has_others(&self) -> bool {
        !self.left_out.is_empty() || self.harnesses.iter().any(|harnesses| !harnesses.is_empty())
    }
}
