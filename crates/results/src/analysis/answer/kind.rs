//! The kind of an answer, as a definition over who wins at each size.
//!
//! A size is *won* if the interval of its speedup lies above 1, *lost* if it lies below, and otherwise
//! *unsure*: for one process the interval in which another process finds it, for several that of
//! another run, extended to 1 if they disagree about the winner. An end of the range that nobody
//! measured is unsure. Then the answer is
//!
//! - *undecided* if the largest size is unsure,
//! - *both ways* if a size is won below one that is lost,
//! - *never* if the largest size is lost, and none below is won,
//! - *always* if every size is won,
//! - *from* a size on if the largest size is won, another one is not, and none is won below one that is
//!   lost. That size lies between the last one that is lost and the first from which on all are won.

use crossover_advice::thresholds::CrossingKind;

/// CPU over GPU time at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speedup {
    /// Problem size.
    pub size: f64,
    /// The time of the best CPU code over the GPU's.
    pub ratio: f64,
    /// Lower end of its interval for another process (of several processes: for another run).
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Number of processes that it is the median of; 0 if a time is interpolated.
    pub processes: usize,
}

impl Speedup {
    /// A size at which either side may win.
    pub(super) fn unknown(size: f64, processes: usize) -> Self {
        Self {
            size,
            ratio: 1.0,
            low: 0.0,
            high: f64::INFINITY,
            processes,
        }
    }

    /// Whether its interval lies above 1 or below; `None` where it contains 1.
    fn wins(&self) -> Option<bool> {
        winner((self.low, self.high))
    }
}

/// One change of the winner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WinnerChange {
    /// Median over the processes.
    pub size: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether b is faster above it.
    pub to_b: bool,
    /// Whether both sides were measured closely around it.
    pub measured: bool,
    /// The sizes that enclose it.
    pub bracket: (f64, f64),
}

/// Whether an interval of the speedup lies above 1 or below; `None` where it contains 1.
pub(super) fn winner((low, high): (f64, f64)) -> Option<bool> {
    match (low > 1.0, high < 1.0) {
        (false, false) => None,
        (wins, _) => Some(wins),
    }
}

/// The kind of the answer over the speedups of `sizes`, ascending, and every change of the winner.
/// `estimate` is where the winner changes for good by the times around that size.
pub(super) fn kind(
    sizes: &[Speedup],
    range: (f64, f64),
    estimate: Option<WinnerChange>,
) -> (CrossingKind, Vec<WinnerChange>) {
    let (pairs, earliest) = pairs(sizes, range);
    let change = |&(ref from, ref to, to_b): &(Speedup, Speedup, bool)| {
        let (first, last) = (from.size, to.size);
        // Of several changes it may be another one.
        let is_it = |own: &WinnerChange| match pairs.len() {
            1 => own.low <= last && first <= own.high,
            _ => (first..=last).contains(&own.size),
        };
        let Some(own) = estimate.filter(|own| own.to_b == to_b && is_it(own)) else {
            let change = between(from, to, to_b);
            let low = change.low.min(earliest);
            return WinnerChange { low, ..change };
        };
        let size = own.size.clamp(first, last);
        let (low, high) = (own.low.min(size), own.high.max(size));
        WinnerChange {
            size,
            low,
            high,
            ..own
        }
    };
    let changes: Vec<WinnerChange> = pairs.iter().map(change).collect();
    let largest = sizes
        .last()
        .filter(|at| at.wins() == Some(true) || at.size >= range.1);
    let answer = match largest.and_then(Speedup::wins) {
        None => return (CrossingKind::Undecided, Vec::new()),
        _ if changes.iter().any(|change| !change.to_b) => CrossingKind::BothWays,
        Some(false) => CrossingKind::Never,
        Some(true) if changes.is_empty() => CrossingKind::Always,
        Some(true) => CrossingKind::From,
    };
    (answer, changes)
}

/// The sizes between which the winner changes, and whether b wins above them; and the smallest size at which
/// the only change may lie.
fn pairs(sizes: &[Speedup], range: (f64, f64)) -> (Vec<(Speedup, Speedup, bool)>, f64) {
    let decided = sizes.iter().filter_map(|at| Some((*at, at.wins()?)));
    let decided: Vec<(Speedup, bool)> = decided.collect();
    let start = Speedup::unknown(range.0, 0);
    let start = *sizes
        .first()
        .filter(|at| at.size <= range.0)
        .unwrap_or(&start);
    // Without a size that is lost, b may begin to win anywhere above the smallest one.
    let opens = decided.first();
    let opens = opens.filter(|(at, to_b)| *to_b && at.size > start.size);
    let opens = opens.map(|(at, _)| (start, *at, true));
    let changed = decided.windows(2).filter(|pair| pair[0].1 != pair[1].1);
    let changed = changed.map(|pair| (pair[0].0, pair[1].0, pair[1].1));
    let mut pairs: Vec<(Speedup, Speedup, bool)> = opens.into_iter().chain(changed).collect();
    // Above an unsure size b may not win yet for good.
    let unsure = sizes.iter().rposition(|at| at.wins() != Some(true));
    let settled = unsure.and_then(|at| Some((at, sizes.get(at + 1)?)));
    let mut earliest = f64::INFINITY;
    match (pairs.last_mut(), settled) {
        (Some((_, to, true)), Some((_, settled))) => *to = *settled,
        // Won at the smallest size and lost at none, but not decided at every one.
        (None, Some((at, settled))) if settled.wins() == Some(true) => {
            let before = sizes.iter().take_while(|at| at.wins().is_some()).last();
            earliest = before.map_or(range.0, |at| at.size);
            pairs.push((sizes[at], *settled, true));
        }
        _ => {}
    }
    (pairs, earliest)
}

/// A change between two sizes: straight between their speedups in log-log.
fn between(from: &Speedup, to: &Speedup, to_b: bool) -> WinnerChange {
    // A size below the first one that is won may be ahead as well, without being won.
    let lead = if to_b {
        from.ratio.ln().min(0.0)
    } else {
        from.ratio.ln()
    };
    let share = lead / (lead - to.ratio.ln());
    let bracket = (from.size, to.size);
    let size = from.size * (to.size / from.size).powf(share);
    WinnerChange {
        size: size.clamp(from.size, to.size),
        low: from.size,
        high: to.size,
        to_b,
        measured: is_close(bracket),
        bracket,
    }
}

/// Two sizes at most this far apart enclose a measured crossing, not an interpolated one: a quarter
/// of a power of two at its lower end.
const MEASURED_STEP: f64 = 1.25 + 1e-9;

/// Whether sizes enclose a measured crossing, not an interpolated one.
pub(super) fn is_close((below, above): (f64, f64)) -> bool {
    above <= (below * MEASURED_STEP).max(below + 1.0)
}
