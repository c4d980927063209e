//! What of a finding was measured under the power cap, and at which clock: a rate at 1,365 MHz is
//! not the rate at 1,980. Said of whatever is compared, so no kind of finding says it itself.

use std::collections::BTreeMap;

use crate::analysis::findings::finding::{Context, Finding, list};
use crate::analysis::telemetry::{Capped, cap_words, capped};
use crate::model::id::function_of;
use crate::store::curves::Benchmark;
use crossover_words::units;

/// More results than these, of one size or of several, are told by the range of their clocks.
const NAMED: usize = 6;
const NAMED_WITH_SIZES: usize = 3;

/// Adds a sentence to each finding that rests on results under the power cap.
pub(super) fn add(context: &Context, findings: &mut [Finding]) {
    let machine = context.machine;
    let environment = machine.environment.as_ref();
    let known: BTreeMap<&str, (&Benchmark, Capped)> = machine
        .benchmarks()
        .filter_map(|b| Some((b.id.as_str(), (b, capped(b, environment)?))))
        .collect();
    for finding in findings {
        let rests_on = finding.benchmarks.iter();
        let mut held: Vec<_> = rests_on.filter_map(|id| known.get(id.as_str())).collect();
        // Whatever they are called: the highest clock first.
        let clock = |capped: &Capped| capped.sm_clock_mhz.unwrap_or(0.0);
        held.sort_by(|(a, of_a), (b, of_b)| {
            let by_clock = clock(of_b).total_cmp(&clock(of_a));
            by_clock.then(b.median_ns.total_cmp(&a.median_ns))
        });
        let Some((_, first)) = held.first() else {
            continue;
        };
        let sentence = sentence(context, first.cap_w, &held);
        if let Some(table) = &mut finding.table {
            table.notes.push(sentence.trim_start().to_owned());
        }
        finding.text += &sentence;
    }
}

fn sentence(context: &Context, cap_w: Option<f64>, held: &[&(&Benchmark, Capped)]) -> String {
    let cap = cap_words(cap_w);
    let clocks = held.iter().filter_map(|(_, capped)| capped.sm_clock_mhz);
    let one_size = held.iter().all(|(b, _)| b.size == held[0].0.size);
    let named = if one_size { NAMED } else { NAMED_WITH_SIZES };
    if held.len() > named {
        let range = clocks.fold(None, |range: Option<(f64, f64)>, mhz| {
            let (low, high) = range.unwrap_or((mhz, mhz));
            Some((low.min(mhz), high.max(mhz)))
        });
        let at = range.map_or(String::new(), |(low, high)| {
            let (low, high) = (units::megahertz(low), units::megahertz(high));
            format!(", at median SM clocks from {low} to {high}")
        });
        return format!(" Of these results, {} ran under {cap}{at}.", held.len());
    }
    let name = |b: &Benchmark| {
        let group = context.machine.group(&b.group).filter(|_| !one_size);
        let at = group.map_or(String::new(), |g| format!(" at {}", g.topic.at(b.size)));
        function_of(b.device, &b.implementation) + &at
    };
    if let [(b, capped)] = held {
        let at = capped.sm_clock_mhz.map_or(String::new(), |mhz| {
            format!(", at a median SM clock of {}", units::megahertz(mhz))
        });
        return format!(" {} ran under {cap}{at}.", name(b));
    }
    let named: Vec<String> = held
        .iter()
        .map(|(b, capped)| {
            let clock = capped
                .sm_clock_mhz
                .map_or(String::new(), |mhz| format!(" ({})", units::megahertz(mhz)));
            name(b) + &clock
        })
        .collect();
    let clock = match clocks.count() {
        0 => "",
        _ => ", at these median SM clocks",
    };
    format!(" Under {cap}{clock}: {}.", list(&named))
}
