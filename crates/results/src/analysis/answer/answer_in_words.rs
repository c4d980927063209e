//! An answer in words.

use crate::analysis::answer::crossing::Answer;
use crate::analysis::answer::crossover_answer::CrossoverAnswer;
use crate::analysis::answer::several_processes::{Confirmed, WinsFrom};
use crate::model::group_info::GroupInfo;
use crossover_words::units;

/// `from N = 181 on; another run would find 160 to 205; the median of 5 processes`.
pub fn wins(f: &CrossoverAnswer) -> String {
    format!("{}; {}", where_it_wins(f), rests_on(f))
}

/// `N ≥ 181`, or a word where nothing crosses.
pub fn size(f: &CrossoverAnswer) -> String {
    let only = only(f).is_some();
    match (f.crossing.answer, f.crossing.for_good()) {
        (Answer::Always, _) if only => "faster".to_owned(),
        (Answer::Never | Answer::CrossesBack, None) if only => "not faster".to_owned(),
        (Answer::Always, _) => "always".to_owned(),
        (Answer::Never, _) => "never".to_owned(),
        (Answer::Undecided, _) => "undecided".to_owned(),
        (_, Some(change)) => format!("{} ≥ {}", f.topic.symbol, f.topic.unit.from(change.size)),
        (_, None) => "not for good".to_owned(),
    }
}

fn where_it_wins(f: &CrossoverAnswer) -> String {
    let (symbol, unit) = (&f.topic.symbol, f.topic.unit);
    if let Some(only) = only(f) {
        return match f.crossing.answer {
            Answer::Always => only,
            Answer::Undecided => format!("undecided {only}"),
            _ => format!("not {only}"),
        };
    }
    let range = format!(
        "{symbol} = {} to {}",
        unit.write(f.crossing.range.0 as u64),
        unit.write(f.crossing.range.1 as u64)
    );
    let from = f.crossing.for_good().map(|c| {
        let from = format!("from {symbol} = {} on", unit.from(c.size));
        let interval = unit.range(c.low, c.high);
        match (f.confirmed, c.measured) {
            (Some(confirmed), _) => {
                format!("{from}; another run would find {interval}{}", or(confirmed))
            }
            (None, true) => from,
            (None, false) => format!("{from} (interpolated)"),
        }
    });
    match (f.crossing.answer, from) {
        (Answer::Always, _) => format!("always ({range})"),
        (Answer::Never, _) => format!("never ({range})"),
        (Answer::Undecided, _) => format!("undecided ({range}; {} would decide it)", open(f)),
        (Answer::At, Some(from)) => from,
        (_, Some(from)) => format!("crosses back; for good {from}"),
        (_, None) => format!("crosses back, not for good ({range})"),
    }
}

/// The sizes that would decide an answer: `N = 2,048 to 4,096`.
pub fn open(f: &CrossoverAnswer) -> String {
    let (first, last) = f.crossing.open.unwrap_or(f.crossing.range);
    let (first, last) = (
        f.topic.unit.write(first as u64),
        f.topic.unit.write(last as u64),
    );
    match first == last {
        true => format!("{} = {last}", f.topic.symbol),
        false => format!("{} = {first} to {last}", f.topic.symbol),
    }
}

/// What another run answered: `from N = 181 on, 26× faster at N = 4,096`.
pub fn of_another_run(topic: &GroupInfo, answer: Confirmed) -> String {
    let wins = match answer.from {
        Some(WinsFrom::Always) => "always".to_owned(),
        Some(WinsFrom::Never) => "never".to_owned(),
        Some(WinsFrom::Size { size, .. }) => {
            format!("from {} = {} on", topic.symbol, topic.unit.from(size))
        }
        None => "undecided".to_owned(),
    };
    let speedup = units::speedup(answer.speedup);
    format!("{wins}, {speedup} at {}", topic.at(answer.largest))
}

/// What some of the processes saw instead of a crossing.
pub fn or(confirmed: Confirmed) -> &'static str {
    match confirmed.from {
        Some(WinsFrom::Size {
            or_always,
            or_never,
            ..
        }) => match (or_always, or_never) {
            (true, true) => ", always or never",
            (true, false) => ", or always",
            (false, true) => ", or never",
            (false, false) => "",
        },
        _ => "",
    }
}

/// `the median of 5 processes`; `one process` where another one may say otherwise.
fn rests_on(f: &CrossoverAnswer) -> String {
    match f.confirmed {
        Some(Confirmed {
            processes, agree, ..
        }) if (1..processes).contains(&agree) => {
            format!("the median of {processes} processes, {agree} of which agree")
        }
        Some(confirmed) => format!("the median of {} processes", confirmed.processes),
        None => "one process".to_owned(),
    }
}

/// `at N = 1,024, the only size measured on both`, where that is all that an answer rests on.
pub fn only(f: &CrossoverAnswer) -> Option<String> {
    let at = f.topic.at(f.crossing.only_size()? as u64);
    Some(format!("at {at}, the only size measured on both"))
}

/// `26× faster at N = 4,096 (median SM clock 1,365 MHz under the 700 W power cap)`.
pub fn at_largest(f: &CrossoverAnswer) -> String {
    let capped = f
        .capped
        .map_or(String::new(), |c| format!(" ({})", c.words()));
    largest(f) + &capped
}

/// `26× faster at N = 4,096; another run would find 24× to 28×`.
pub fn largest(f: &CrossoverAnswer) -> String {
    let at = f.topic.at(f.speedup_size as u64);
    let said = format!("{} at {at}", units::speedup(f.speedup));
    match f.confirmed {
        Some(Confirmed {
            speedup_interval, ..
        }) => {
            let ends = between(f.speedup, speedup_interval);
            format!("{said}; another run would find {ends}")
        }
        None => said,
    }
}

/// The ends of a speedup's interval, in the direction of the speedup where both lie there: `24× to 28×`.
fn between(speedup: f64, (low, high): (f64, f64)) -> String {
    match (speedup >= 1.0, low >= 1.0, high >= 1.0) {
        (true, true, _) => format!("{} to {}", units::factor(low), units::factor(high)),
        (false, _, false) => format!(
            "{} to {}",
            units::factor(1.0 / high),
            units::factor(1.0 / low)
        ),
        _ => format!("{} to {}", units::speedup(low), units::speedup(high)),
    }
}

/// `26× faster (24× to 28×)`.
pub fn by_how_much(speedup: f64, interval: Option<(f64, f64)>) -> String {
    let ends = interval.map(|ends| format!(" ({})", between(speedup, ends)));
    units::speedup(speedup) + &ends.unwrap_or_default()
}
