//! The power of a comparison on this machine: the resolution of a class, and the pairs that a change
//! takes.

use std::collections::BTreeMap;

use crate::analyses::next_analysis;
use crate::comparison::Comparison;
use crate::evidence::Drift;
use crate::judge::Judgement;
use crate::rows::BenchmarkRow;
use crate::verdict::Verdict;
use crossover_results::statistics::median::median;

impl Comparison {
    /// The classes of the benchmarks that could be compared.
    pub fn classes(&self) -> impl Iterator<Item = &Drift> {
        self.drifts.iter()
    }

    /// The change that is found in the typical benchmark of a class with 95 % probability, as a
    /// fraction.
    pub fn resolution(&self, class: &Drift) -> Option<f64> {
        // A benchmark that was not run to the end may have changed by more than its resolution.
        let is_complete = |row: &&BenchmarkRow| {
            let confirmed = row.judgement.map_or(0, |judgement| judgement.confirmed);
            self.options.screened == 0 || confirmed > 0 || row.verdict != Verdict::Unsure
        };
        let complete = self.of_class(class).filter(is_complete);
        let resolutions = complete.filter_map(|row| Some(row.judgement.as_ref()?.resolution));
        median(resolutions).filter(|resolution| resolution.is_finite())
    }

    /// The time after which a change is found with 95 % probability in the typical benchmark of a class,
    /// if a pair of processes of a benchmark takes these `seconds`; infinite where no number of pairs
    /// would do.
    pub fn seconds_to_find(
        &self,
        change: f64,
        class: &Drift,
        seconds: &BTreeMap<String, f64>,
    ) -> Option<f64> {
        let of_row = |row: &BenchmarkRow| {
            let pairs = row.judgement?.pairs_to_find(change, self.options.screened);
            Some(pairs * seconds.get(&row.id)?)
        };
        median(self.of_class(class).filter_map(of_row))
    }

    fn of_class<'a>(&'a self, class: &'a Drift) -> impl Iterator<Item = &'a BenchmarkRow> {
        self.rows.iter().filter(|row| row.is_of(class))
    }
}

impl Judgement {
    /// About as many pairs of processes as find a change with 95 % probability: the resolution falls with
    /// the square root of their number.
    fn pairs_to_find(&self, change: f64, screened: usize) -> f64 {
        let ratio = self.resolution.ln_1p() / change.ln_1p();
        let tested = (self.resolved_by as f64 * ratio.powi(2)).ceil();
        if !tested.is_finite() {
            return f64::INFINITY;
        }
        match screened {
            0 => tested.max(1.0),
            _ => (screened + next_analysis(tested as usize)) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_half_the_resolution_takes_four_times_the_pairs() {
        let judgement = Judgement {
            ratio: 1.0,
            low: 0.99,
            high: 1.01,
            resolution: 0.02,
            resolved_by: 13,
            pairs: 21,
            confirmed: 13,
            more_pairs: f64::INFINITY,
        };
        for (change, screened, pairs) in [
            (0.02, 0, 13.0),
            (0.02, 8, 8.0 + 13.0),
            // The next analysis after 53 pairs.
            (0.01, 8, 8.0 + 63.0),
            // No analysis comes earlier.
            (0.5, 8, 8.0 + 6.0),
        ] {
            assert_eq!(judgement.pairs_to_find(change, screened), pairs, "{change}");
        }
        let unknown = Judgement {
            resolution: f64::INFINITY,
            ..judgement
        };
        assert_eq!(unknown.pairs_to_find(0.02, 8), f64::INFINITY);
    }
}
