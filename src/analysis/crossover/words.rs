//! An answer in words.

use crate::analysis::crossover::pairs::Found;
use crate::analysis::crossover::search::Answer;
use crate::presentation::units;

/// `from N = 181 on (measured)`.
pub(crate) fn wins(f: &Found) -> String {
    let (symbol, unit) = (&f.topic.symbol, f.topic.unit);
    if let Some(only) = only(f) {
        return match f.crossing.answer {
            Answer::Always => only,
            _ => format!("not {only}"),
        };
    }
    let range = format!(
        "{symbol} = {} to {}",
        unit.write(f.crossing.range.0 as u64),
        unit.write(f.crossing.range.1 as u64)
    );
    let from = f.crossing.for_good().map(|c| {
        let how = if c.measured {
            "measured"
        } else {
            "interpolated"
        };
        format!("from {symbol} = {} on ({how})", unit.from(c.size))
    });
    match (f.crossing.answer, from) {
        (Answer::Always, _) => format!("always ({range})"),
        (Answer::Never, _) => format!("never ({range})"),
        (Answer::At, Some(from)) => from,
        (_, Some(from)) => format!("crosses back; for good {from}"),
        (_, None) => format!("crosses back, not for good ({range})"),
    }
}

/// `at N = 1,024, the only size measured on both`, where that is all that an answer rests on.
pub(crate) fn only(f: &Found) -> Option<String> {
    let at = f.topic.at(f.crossing.only_size()? as u64);
    Some(format!("at {at}, the only size measured on both"))
}

/// `26× faster at N = 4,096`.
pub(crate) fn largest(f: &Found) -> String {
    let at = f.topic.at(f.speedup_size as u64);
    match f.speedup {
        s if s >= 1.0 => format!("{} faster at {at}", units::factor(s)),
        s => format!("{} slower at {at}", units::factor(1.0 / s)),
    }
}
