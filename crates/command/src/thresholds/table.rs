//! Reads a table of times.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use crossover_advice::Residency;
use crossover_results::analysis::answer::time_table::Time;
use crossover_words::units;

#[derive(serde::Deserialize)]
struct Line {
    operation: String,
    size: u64,
    place: Residency,
    side: String,
    process: String,
    ns: f64,
}

/// The samples of a table. A side is `a`, `b` or one of these names.
pub(super) fn read(path: &Path, sides: &[String; 2]) -> anyhow::Result<Vec<Time>> {
    let named = || path.display().to_string();
    let text = std::fs::read(path).with_context(named)?;
    let mut table = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(&*text);
    let lines = table.deserialize().enumerate();
    let times = lines.map(|(at, line)| {
        let line: Line = line.context(
            "the columns are operation, size, place (queued, awaited, pinned or ordinary), side, process and ns",
        )?;
        let [a, b] = sides;
        let is_named = |names: &[&str]| names.contains(&&*line.side);
        let side = match (is_named(&["a", a]), is_named(&["b", b])) {
            (true, _) => 0,
            (_, true) => 1,
            _ => bail!(
                "sample {}: the side {:?} is neither a, b, {a} nor {b}",
                at + 1,
                line.side
            ),
        };
        let sound = line.size > 0 && line.ns.is_finite() && line.ns > 0.0;
        ensure!(sound, "sample {}: size and ns are numbers above zero", at + 1);
        Ok(Time {
            operation: line.operation,
            place: line.place,
            size: line.size,
            side,
            process: line.process,
            ns: line.ns,
        })
    });
    let times = times
        .collect::<anyhow::Result<Vec<Time>>>()
        .with_context(named)?;
    ensure!(!times.is_empty(), "{} has no samples", named());
    Ok(times)
}

/// Leaves out sizes that one side measured once, which have no interval; and a sentence for each.
pub(super) fn without_single_samples(mut times: Vec<Time>) -> (Vec<Time>, Vec<String>) {
    let mut counts: HashMap<_, [usize; 2]> = HashMap::new();
    let key = |time: &Time| (time.operation.clone(), time.place, time.size);
    for time in &times {
        counts.entry(key(time)).or_default()[time.side] += 1;
    }
    times.retain(|time| !counts[&key(time)].contains(&1));
    let mut once: Vec<_> = counts
        .into_iter()
        .filter(|(_, counts)| counts.contains(&1))
        .collect();
    once.sort_unstable();
    let sentence = |((operation, place, size), _): ((String, Residency, u64), _)| {
        format!(
            "{operation}, {}: size {} was measured once and is left out; measure it again",
            place.words(),
            units::size(size)
        )
    };
    (times, once.into_iter().map(sentence).collect())
}
