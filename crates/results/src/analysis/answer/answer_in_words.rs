//! An answer in words.

use crate::analysis::answer::crossover_answer::CrossoverAnswer;
use crate::analysis::answer::estimate::Crossing;
use crate::analysis::answer::kind::Answer;
use crate::model::group_info::GroupInfo;
use crossover_words::units;

/// `from N = 181 on; another run would find 160 to 205; the median of 5 processes`.
pub fn wins(f: &CrossoverAnswer) -> String {
    let processes = f.crossing.processes;
    let rests_on = match f.crossing.agree {
        _ if !f.crossing.is_confirmed() => "one process".to_owned(),
        agree if (1..processes).contains(&agree) => {
            format!("the median of {processes} processes, {agree} of which agree")
        }
        _ => format!("the median of {processes} processes"),
    };
    format!("{}; {rests_on}", where_it_wins(f))
}

/// `N ≥ 181`, or a word where nothing crosses.
pub fn size(f: &CrossoverAnswer) -> String {
    let only = f.crossing.only_size().is_some();
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
    if let Some(only) = f.crossing.only_size() {
        let only = format!(
            "at {}, the only size measured on both",
            f.topic.at(only as u64)
        );
        return match f.crossing.answer {
            Answer::Always => only,
            Answer::Undecided => format!("undecided {only}"),
            _ => format!("not {only}"),
        };
    }
    let range = sizes(&f.topic, f.crossing.range);
    let from = f.crossing.for_good().map(|change| {
        let interpolated = if change.measured {
            ""
        } else {
            " (interpolated)"
        };
        format!(
            "from {symbol} = {} on{interpolated}; another run would find {}{}",
            unit.from(change.size),
            unit.range(change.low, change.high),
            or(&f.crossing)
        )
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

/// The results of processes without a crossing.
fn or(crossing: &Crossing) -> &'static str {
    match (crossing.or_always, crossing.or_never) {
        (true, true) => ", always or never",
        (true, false) => ", or always",
        (false, true) => ", or never",
        (false, false) => "",
    }
}

/// The sizes that would decide an answer: `N = 2,048 to 4,096`.
pub fn open(f: &CrossoverAnswer) -> String {
    sizes(&f.topic, f.crossing.open())
}

fn sizes(topic: &GroupInfo, (first, last): (f64, f64)) -> String {
    let (first, last) = (
        topic.unit.write(first as u64),
        topic.unit.write(last as u64),
    );
    match first == last {
        true => format!("{} = {last}", topic.symbol),
        false => format!("{} = {first} to {last}", topic.symbol),
    }
}

/// The answer of another run: `from N = 181 on, 26× faster at N = 4,096`.
pub fn of_another_run(topic: &GroupInfo, answer: &Crossing) -> String {
    let wins = match (answer.answer, answer.for_good()) {
        (_, Some(change)) => format!(
            "from {} = {} on",
            topic.symbol,
            topic.unit.from(change.size)
        ),
        (Answer::Always, _) => "always".to_owned(),
        (Answer::Undecided, _) => "undecided".to_owned(),
        _ => "never".to_owned(),
    };
    format!(
        "{wins}, {} at {}",
        by_how_much(answer.speedup, None),
        topic.at(answer.largest as u64)
    )
}

/// `26× faster at N = 4,096 (median SM clock 1,365 MHz under the 700 W power cap)`.
pub fn at_largest(f: &CrossoverAnswer) -> String {
    let capped = f.capped.map(|capped| format!(" ({})", capped.words()));
    largest(f) + &capped.unwrap_or_default()
}

/// `26× faster at N = 4,096; another run would find 24× to 28×`.
pub fn largest(f: &CrossoverAnswer) -> String {
    let at = f.topic.at(f.crossing.largest as u64);
    let ends = between(f.crossing.speedup, f.crossing.speedup_interval);
    match f.crossing.wins_at_the_largest() {
        Some(_) => {
            let speedup = units::speedup(f.crossing.speedup);
            format!("{speedup} at {at}; another run would find {ends}")
        }
        None => format!("either may be ahead at {at}; another run would find {ends}"),
    }
}

/// The ends of a speedup's interval, in the direction of the speedup where both lie there: `24× to 28×`.
fn between(speedup: f64, (low, high): (f64, f64)) -> String {
    let (low, high) = match (speedup >= 1.0, low >= 1.0, high >= 1.0) {
        (true, true, _) => (units::factor(low), units::factor(high)),
        (false, _, false) => (units::factor(1.0 / high), units::factor(1.0 / low)),
        _ => (units::speedup(low), units::speedup(high)),
    };
    match low == high {
        true => low,
        false => format!("{low} to {high}"),
    }
}

/// `26× faster (24× to 28×)`.
pub fn by_how_much(speedup: f64, interval: Option<(f64, f64)>) -> String {
    let ends = interval.map(|ends| format!(" ({})", between(speedup, ends)));
    units::speedup(speedup) + &ends.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_are_written_alike_are_one_number() {
        for (speedup, ends, words) in [
            (1.2, (1.19, 1.21), "1.2× faster (1.2×)"),
            (2.2, (1.9, 2.6), "2.2× faster (1.9× to 2.6×)"),
            (0.5, (0.4, 0.75), "2× slower (1.3× to 2.5×)"),
            (1.0, (0.8, 1.3), "as fast (1.2× slower to 1.3× faster)"),
        ] {
            assert_eq!(by_how_much(speedup, Some(ends)), words);
        }
    }
}
