//! The [ranges](crate::range) that code enters while it is recorded.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::library::Cupti;
use crossover_profile::recording::RangeRecord;

/// The number of the recording that is under way, 0 while there is none.
static RECORDING: AtomicU64 = AtomicU64::new(0);

static RANGES: Mutex<Ranges> = Mutex::new(Ranges {
    recording: 0,
    records: Vec::new(),
});

/// How many threads have entered ranges.
static THREADS: AtomicU32 = AtomicU32::new(0);

thread_local!(
    static THREAD: u32 = THREADS.fetch_add(1, Ordering::Relaxed);
    /// The ranges that this thread is in, outermost first.
    static WITHIN: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
);

/// A range that was entered: in which recording, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    recording: u64,
    number: usize,
}

/// The ranges of one recording.
#[derive(Debug, Default)]
struct Ranges {
    recording: u64,
    records: Vec<RangeRecord>,
}

impl Ranges {
    fn enter(&mut self, name: &str, within: &[Entered], now: u64) -> Entered {
        let around = within.last().filter(|e| e.recording == self.recording);
        self.records.push(RangeRecord {
            name: name.to_owned(),
            thread: THREAD.with(|thread| *thread),
            within: around.map(|e| e.number),
            start: now,
            end: None,
        });
        Entered {
            recording: self.recording,
            number: self.records.len() - 1,
        }
    }

    fn leave(&mut self, entered: Entered, now: u64) {
        if entered.recording == self.recording
            && let Some(record) = self.records.get_mut(entered.number)
        {
            record.end = Some(now.max(record.start));
        }
    }
}

/// Records ranges from here on.
pub(super) fn begin() {
    let mut ranges = RANGES.lock().unwrap_or_else(PoisonError::into_inner);
    ranges.recording += 1;
    ranges.records.clear();
    RECORDING.store(ranges.recording, Ordering::Relaxed);
}

/// Stops recording ranges, and returns those that were recorded.
pub(super) fn end() -> Vec<RangeRecord> {
    RECORDING.store(0, Ordering::Relaxed);
    let mut ranges = RANGES.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut ranges.records)
}

/// Enters a range, where ranges are being recorded.
pub(crate) fn enter(name: &str) -> Option<Entered> {
    if RECORDING.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let cupti = Cupti::get().ok()?;
    let now = cupti.timestamp().ok()?;
    let entered = WITHIN.with_borrow_mut(|within| {
        let mut ranges = RANGES.lock().unwrap_or_else(PoisonError::into_inner);
        let entered = ranges.enter(name, within, now);
        within.push(entered);
        entered
    });
    cupti.push(entered.number as u64);
    Some(entered)
}

/// Leaves a range that was entered on this thread.
pub(crate) fn leave(entered: Entered) {
    WITHIN.with_borrow_mut(|within| within.retain(|e| *e != entered));
    let Ok(cupti) = Cupti::get() else {
        return;
    };
    // Also after the recording has ended: whatever was pushed must be popped.
    cupti.pop();
    if let Ok(now) = cupti.timestamp() {
        let mut ranges = RANGES.lock().unwrap_or_else(PoisonError::into_inner);
        ranges.leave(entered, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lie_within_those_of_their_recording() {
        let mut ranges = Ranges::default();
        let outer = ranges.enter("outer", &[], 10);
        let inner = ranges.enter("inner", &[outer], 20);
        ranges.leave(inner, 30);
        let next = ranges.enter("next", &[outer], 40);
        ranges.leave(next, 50);
        ranges.leave(outer, 60);
        let seen: Vec<_> = (ranges.records.iter())
            .map(|r| (r.name.as_str(), r.within, r.start, r.end))
            .collect();
        assert_eq!(
            seen,
            [
                ("outer", None, 10, Some(60)),
                ("inner", Some(0), 20, Some(30)),
                ("next", Some(0), 40, Some(50)),
            ]
        );

        // A range of an earlier recording is ignored.
        let mut later = Ranges {
            recording: 1,
            records: Vec::new(),
        };
        let first = later.enter("first", &[outer], 100);
        assert_eq!(later.records[first.number].within, None);
        later.leave(outer, 110);
        assert_eq!(later.records[0].end, None);
    }
}
