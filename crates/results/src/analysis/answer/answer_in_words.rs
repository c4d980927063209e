//! An answer in words.

use crate::analysis::answer::crossover_answer::CrossoverAnswer;
use crate::analysis::answer::estimate::Crossing;
use crate::model::group_info::GroupInfo;
use crossover_advice::thresholds::CrossingKind;
use crossover_words::units;

/// `from N = 181 on; another run would find 160 to 205; the median of 5 processes`.
pub fn wins(topic: &GroupInfo, crossing: &Crossing) -> String {
    let processes = crossing.processes;
    let rests_on = match crossing.agree {
        _ if !crossing.is_confirmed() => "one process".to_owned(),
        agree if (1..processes).contains(&agree) => {
            format!("the median of {processes} processes, {agree} of which agree")
        }
        _ => format!("the median of {processes} processes"),
    };
    let range = sizes(topic, crossing.range);
    let details = match (crossing.answer, crossing.changes.last()) {
        _ if crossing.only_size().is_some() => String::new(),
        (CrossingKind::Undecided, _) => {
            format!(" ({range}; {} would decide it)", open(topic, crossing))
        }
        (CrossingKind::From | CrossingKind::BothWays, Some(change)) => {
            let measured = change.measured.then_some("");
            let interpolated = measured.unwrap_or(" (interpolated)");
            let ends = topic.unit.range(change.low, change.high);
            format!(
                "{interpolated}; another run would find {ends}{}",
                or(crossing)
            )
        }
        _ => format!(" ({range})"),
    };
    let found = where_it_wins(topic, crossing);
    format!("{found}{details}; {rests_on}")
}

/// `N ≥ 181`, or a word where nothing crosses.
pub fn size(f: &CrossoverAnswer) -> String {
    if f.crossing.only_size().is_some() {
        let word = match f.crossing.wins_at_the_largest() {
            Some(true) => "faster",
            Some(false) => "not faster",
            None => "undecided",
        };
        return word.to_owned();
    }
    match (f.crossing.answer, f.crossing.for_good()) {
        (CrossingKind::Always, _) => "always".to_owned(),
        (CrossingKind::Never, _) => "never".to_owned(),
        (CrossingKind::Undecided, _) => "undecided".to_owned(),
        (_, Some(change)) => format!("{} ≥ {}", f.topic.symbol, f.topic.unit.from(change.size)),
        (_, None) => "not for good".to_owned(),
    }
}

/// `from N = 181 on`, or every change of the winner: `from N = 90, until N = 300, from N = 700 on`.
pub fn where_it_wins(topic: &GroupInfo, crossing: &Crossing) -> String {
    if let Some(only) = crossing.only_size() {
        let word = match crossing.wins_at_the_largest() {
            Some(true) => "",
            Some(false) => "not ",
            None => "undecided ",
        };
        let at = topic.at(only as u64);
        return format!("{word}at {at}, the only size measured on both");
    }
    match (crossing.answer, &crossing.changes[..]) {
        (CrossingKind::Always, _) => "always".to_owned(),
        (CrossingKind::Never, _) => "never".to_owned(),
        (CrossingKind::Undecided, _) | (_, []) => "undecided".to_owned(),
        (_, changes) => {
            let words = changes.iter().map(|change| {
                let side = if change.to_b { "from" } else { "until" };
                format!("{side} {} = {}", topic.symbol, topic.unit.from(change.size))
            });
            let on = crossing.for_good().map_or("", |_| " on");
            words.collect::<Vec<_>>().join(", ") + on
        }
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
pub fn open(topic: &GroupInfo, crossing: &Crossing) -> String {
    sizes(topic, crossing.open())
}

fn sizes(topic: &GroupInfo, (first, last): (f64, f64)) -> String {
    let (first, last) = (
        topic.unit.write(first as u64),
        topic.unit.write(last as u64),
    );
    if first == last {
        format!("{} = {last}", topic.symbol)
    } else {
        format!("{} = {first} to {last}", topic.symbol)
    }
}

/// The answer of another run: `from N = 181 on, 26× faster at N = 4,096`.
pub fn of_another_run(topic: &GroupInfo, crossing: &Crossing) -> String {
    let wins = where_it_wins(topic, crossing);
    let speedup = by_how_much(crossing.speedup, None);
    format!("{wins}, {speedup} at {}", topic.at(crossing.largest as u64))
}

/// `26× faster at N = 4,096 (median SM clock 1,365 MHz under the 700 W power cap)`.
pub fn at_largest(f: &CrossoverAnswer) -> String {
    let capped = f.capped.map(|capped| format!(" ({})", capped.words()));
    largest(&f.topic, &f.crossing) + &capped.unwrap_or_default()
}

/// `26× faster at N = 4,096; another run would find 24× to 28×`.
pub fn largest(topic: &GroupInfo, crossing: &Crossing) -> String {
    let at = topic.at(crossing.largest as u64);
    let ends = between(crossing.speedup, crossing.speedup_interval);
    match crossing.wins_at_the_largest() {
        Some(_) => {
            let speedup = units::speedup(crossing.speedup);
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
    if low == high {
        low
    } else {
        format!("{low} to {high}")
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
            (1.0, (0.8, 1.3), "as fast (1.3× slower to 1.3× faster)"),
        ] {
            assert_eq!(by_how_much(speedup, Some(ends)), words);
        }
    }
}
