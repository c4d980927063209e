//! How far a run is.

use std::time::{Duration, Instant};

/// Number of benchmarks after which the time left is estimated from them.
const ENOUGH: usize = 3;

/// Prints a line before each benchmark: its number of how many, and about how much time is left.
#[derive(Default)]
pub(super) struct Progress {
    total: usize,
    begun: usize,
    start: Option<Instant>,
    is_quiet: bool,
}

impl Progress {
    pub(super) fn new(is_quiet: bool) -> Self {
        Self {
            is_quiet,
            ..Self::default()
        }
    }

    /// Counts benchmarks that are going to be run.
    pub(super) fn expect(&mut self, benchmarks: usize) {
        self.total += benchmarks;
    }

    /// Notes that a benchmark begins, or is skipped for a reason of its own.
    pub(super) fn begin(&mut self, id: &str) {
        let elapsed = self.start.get_or_insert_with(Instant::now).elapsed();
        let line = line(self.begun, self.total, elapsed, id);
        self.begun += 1;
        if !self.is_quiet {
            eprintln!("{line}");
        }
    }
}

fn line(begun: usize, total: usize, elapsed: Duration, id: &str) -> String {
    let total = total.max(begun + 1);
    let place = format!("[{}/{total}] {id}", begun + 1);
    if begun < ENOUGH {
        return place;
    }
    let left = elapsed.as_secs_f64() / begun as f64 * (total - begun) as f64;
    if left < 90.0 {
        format!("{place}, about {left:.0} s left")
    } else {
        format!("{place}, about {:.0} min left", left / 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_place_and_time_left() {
        let line = |begun, elapsed| line(begun, 181, Duration::from_secs(elapsed), "a/cpu/b/1");
        assert_eq!(line(0, 0), "[1/181] a/cpu/b/1");
        assert_eq!(line(11, 22), "[12/181] a/cpu/b/1, about 6 min left");
        assert_eq!(line(180, 360), "[181/181] a/cpu/b/1, about 2 s left");
        assert_eq!(line(200, 400), "[201/201] a/cpu/b/1, about 2 s left");
    }
}
