//! How many results of a finding were measured under the power cap, and at which clocks: a rate at
//! 1,365 MHz is not the rate at 1,980.

use std::collections::BTreeMap;

use crate::analysis::findings::finding::{Context, Finding};
use crate::analysis::telemetry::{Capped, cap_words, capped};
use crossover_words::units;

/// Adds a sentence to each finding that rests on results under the power cap.
pub(super) fn add(context: &Context, findings: &mut [Finding]) {
    let environment = context.machine.environment.as_ref();
    let benchmarks = context.machine.benchmarks();
    let known: BTreeMap<&str, Capped> = benchmarks
        .filter_map(|b| Some((&*b.id, capped(b, environment)?)))
        .collect();
    for finding in findings {
        let rests_on = finding.benchmarks.iter();
        let held: Vec<&Capped> = rests_on.filter_map(|id| known.get(&**id)).collect();
        let Some(first) = held.first() else {
            continue;
        };
        let clocks = || held.iter().filter_map(|capped| capped.sm_clock_mhz);
        let ends = [clocks().reduce(f64::min), clocks().reduce(f64::max)];
        let at = match ends.map(|end| end.map(units::megahertz)) {
            [Some(low), Some(high)] if low == high => format!(", at a median SM clock of {low}"),
            [Some(low), Some(high)] => format!(", at median SM clocks from {low} to {high}"),
            _ => String::new(),
        };
        let (count, cap) = (held.len(), cap_words(first.cap_w));
        let sentence = format!("Of these results, {count} ran under {cap}{at}.");
        finding.text += &format!(" {sentence}");
        if let Some(table) = &mut finding.table {
            table.notes.push(sentence);
        }
    }
}
