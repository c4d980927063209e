//! The short table at the end of a run.

use comfy_table::{ContentArrangement, Table, presets};

use super::assemble::Assembled;
use super::crossover::{Answer, Found, headlines};
use super::topics::topic;
use super::units;

/// The headline answers as a table; empty without any.
pub fn table(report: &Assembled) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header([
            "group",
            "GPU code",
            "question",
            "GPU wins",
            "at the largest size",
        ]);
    let mut any = false;
    for f in headlines(&report.found) {
        any = true;
        table.add_row([
            f.group.clone(),
            f.gpu_label(),
            f.question.phrase().into(),
            wins(f),
            largest(f),
        ]);
    }
    match any {
        true => table.to_string(),
        false => String::new(),
    }
}

/// `from N = 181 on (measured)`.
pub fn wins(f: &Found) -> String {
    let symbol = topic(&f.group).symbol;
    let range = format!(
        "{symbol} = {} to {}",
        units::size(f.crossing.range.0 as u64),
        units::size(f.crossing.range.1 as u64)
    );
    let from = f.crossing.for_good().map(|c| {
        let how = if c.measured {
            "measured"
        } else {
            "interpolated"
        };
        format!("from {symbol} = {} on ({how})", units::from_size(c.size))
    });
    match (f.crossing.answer, from) {
        (Answer::Always, _) => format!("always ({range})"),
        (Answer::Never, _) => format!("never ({range})"),
        (Answer::At, Some(from)) => from,
        (_, Some(from)) => format!("crosses back; for good {from}"),
        (_, None) => format!("crosses back, not for good ({range})"),
    }
}

/// `26× faster at N = 4,096`.
pub fn largest(f: &Found) -> String {
    let symbol = topic(&f.group).symbol;
    let size = units::size(f.speedup_size as u64);
    match f.speedup {
        s if s >= 1.0 => format!("{} faster at {symbol} = {size}", units::factor(s)),
        s => format!("{} slower at {symbol} = {size}", units::factor(1.0 / s)),
    }
}
