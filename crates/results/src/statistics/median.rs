//! The median (of an even count, the mean of the two in the middle) and its interval.

/// The median; `None` without numbers.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

/// The same for numbers in ascending order.
pub fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    (n > 0).then(|| sorted[(n - 1) / 2].midpoint(sorted[n / 2]))
}

/// Confidence interval of 95 % of the median, of numbers in ascending order: two of them, so it
/// assumes no distribution. `None` of fewer than six, the ends of which cover less.
///
/// Source: the sign test turned around, with the normal limit of its ranks (W. J. Conover, "Practical
/// nonparametric statistics", 3rd edition, section 3.2).
pub fn interval_of_sorted(sorted: &[f64]) -> Option<(f64, f64)> {
    let n = sorted.len();
    let rank = ((n as f64 + 1.0 - 1.96 * (n as f64).sqrt()) / 2.0) as usize;
    (rank > 0).then(|| (sorted[rank - 1], sorted[n - rank]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often the median of a distribution lies between the `rank`-th smallest and largest of `n`
    /// numbers drawn from it: as often as of n tosses of a coin at least `rank` fall on each side.
    fn coverage(n: usize, rank: usize) -> f64 {
        let tosses = n as f64 * 0.5_f64.ln();
        let (mut log, mut tail) = (tosses, 0.0);
        for heads in 0..rank {
            tail += log.exp();
            log += ((n - heads) as f64 / (heads + 1) as f64).ln();
        }
        1.0 - 2.0 * tail
    }

    #[test]
    fn the_interval_covers_the_median_in_95_of_100_cases() {
        for n in 1..=2_000 {
            let ranks: Vec<f64> = (1..=n).map(|rank| rank as f64).collect();
            let Some((low, high)) = interval_of_sorted(&ranks) else {
                assert!(n < 6 && coverage(n, 1) < 0.95, "{n}");
                continue;
            };
            assert_eq!(low + high, (n + 1) as f64, "{n}");
            let rank = low as usize;
            assert!(coverage(n, rank) > 0.948, "{n}: {}", coverage(n, rank));
            assert!(coverage(n, rank + 1) < 0.952, "{n}: too wide");
        }
    }

    #[test]
    fn odd_even_and_no_counts() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median([]), None);
        assert_eq!(median([f64::MAX, f64::MAX]), Some(f64::MAX));
    }
}
