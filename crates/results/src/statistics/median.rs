//! The median (of an even count, the mean of the two in the middle), its interval and its variance.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use statrs::function::beta::beta_reg;

/// The median; `None` without numbers.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

/// The median of numbers in ascending order.
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

/// A sample counts at most this many times as far from the median as the next one, so that one absurd
/// sample does not make the whole variance.
const FARTHEST: f64 = 3.0;

/// The median of positive numbers in the order they were taken, and the variance of its logarithm; `None`
/// without numbers.
///
/// The variance is that of the bootstrap with infinitely many resamples, which for a
/// median has a closed form (Maritz and Jarrett, "A note on estimating the variance of
/// the sample median", JASA 73, 1978): no seed, and no resampling noise in the far tail.
/// Samples that follow each other closely count for fewer, by the autocorrelation of
/// the signs around the median.
pub fn median_and_log_variance(ns: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = ns.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = median_of_sorted(&sorted)?;
    let mut logs: Vec<f64> = sorted.iter().map(|x| x.ln() - median.ln()).collect();
    let distances = logs.iter().map(|x| x.abs());
    // The largest distance and the next one.
    let [_, next] = distances.fold([0.0; 2], |[most, next]: [f64; 2], distance| {
        [most.max(distance), next.max(distance.min(most))]
    });
    let reach = FARTHEST * next;
    logs.iter_mut().for_each(|x| *x = x.clamp(-reach, reach));
    let weights = bootstrap_weights(logs.len());
    let moment = |power| -> f64 {
        let weighted = logs
            .iter()
            .zip(weights.iter())
            .map(|(x, w)| w * x.powi(power));
        weighted.sum()
    };
    let variance = (moment(2) - moment(1).powi(2)).max(0.0);
    Some((median, variance * repetition(ns, median)))
}

/// Probability that the bootstrap median of `n` sorted samples falls on each of them.
fn bootstrap_weights(n: usize) -> Rc<[f64]> {
    thread_local! {
        static KNOWN: RefCell<HashMap<usize, Rc<[f64]>>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        known
            .entry(n)
            .or_insert_with(|| {
                let a = (n as f64 + 1.0) / 2.0;
                let below = |i: usize| match i {
                    0 => 0.0,
                    i if i == n => 1.0,
                    i => beta_reg(a, a, i as f64 / n as f64),
                };
                (0..n).map(|i| below(i + 1) - below(i)).collect()
            })
            .clone()
    })
}

/// How many samples carry the information of one: 1 where they are independent, more where
/// each resembles the one before it.
fn repetition(ns: &[f64], median: f64) -> f64 {
    let n = ns.len();
    let sign = |t: &f64| f64::from(i8::from(*t > median) - i8::from(*t < median));
    let signs: Vec<f64> = ns.iter().map(sign).collect();
    let product = |lag: usize| -> f64 { signs.iter().zip(&signs[lag..]).map(|(a, b)| a * b).sum() };
    let power = product(0);
    if power == 0.0 {
        return 1.0;
    }
    let correlation = |lag| product(lag) / power;
    // Only a correlation that independent samples show in one run of twenty is believed:
    // else its noise would widen every interval.
    if correlation(1) < 1.645 / (n as f64).sqrt() {
        return 1.0;
    }
    let tail: f64 = (1..n / 2).map(correlation).take_while(|c| *c > 0.0).sum();
    (1.0 + 2.0 * tail).min(n as f64 / 2.0)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rand_core::Rng;
    use rand_xoshiro::Xoshiro256PlusPlus;

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

    fn uniform(rng: &mut impl Rng) -> f64 {
        (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One sample 10,000 times as long as the others widens the interval of the median no more than a
    /// heavy tail does.
    #[test]
    fn one_absurd_sample_does_not_make_the_variance() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        for (n, factor) in [(5, 2.5), (10, 1.5), (20, 1.3)] {
            let mut samples: Vec<f64> = (0..n).map(|_| 100.0 + uniform(&mut rng)).collect();
            let deviation = |ns: &[f64]| median_and_log_variance(ns).unwrap().1.sqrt();
            let clean = deviation(&samples);
            samples[n / 2] *= 1e4;
            let widened = deviation(&samples) / clean;
            assert!(widened < factor, "{n} samples: {widened}");
        }
    }

    #[test]
    fn the_variance_is_that_of_a_bootstrap() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for n in [11, 30, 101] {
            let samples: Vec<f64> = (0..n).map(|_| 100.0 + uniform(&mut rng)).collect();
            let exact = median_and_log_variance(&samples).unwrap().1;
            let medians: Vec<f64> = (0..8_000)
                .map(|_| {
                    let resample: Vec<f64> = (0..n)
                        .map(|_| samples[(uniform(&mut rng) * n as f64) as usize])
                        .collect();
                    median(resample).unwrap()
                })
                .collect();
            let mean = medians.iter().sum::<f64>() / medians.len() as f64;
            let drawn = medians
                .iter()
                .map(|m| (m / mean - 1.0).powi(2))
                .sum::<f64>()
                / medians.len() as f64;
            // An even n averages two samples, where the closed form is a close neighbour.
            let allowed = if n % 2 == 1 { 0.05 } else { 0.12 };
            assert!(
                (exact / drawn - 1.0).abs() < allowed,
                "n={n} exact={exact:e} drawn={drawn:e}"
            );
        }
    }

    #[test]
    fn samples_that_follow_each_other_count_for_fewer() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let independent: Vec<f64> = (0..100).map(|_| 100.0 + uniform(&mut rng)).collect();
        let mut walk = 0.0;
        let following: Vec<f64> = (0..100)
            .map(|_| {
                walk = 0.9 * walk + uniform(&mut rng) - 0.5;
                100.0 + walk
            })
            .collect();
        assert!(repetition(&independent, median(independent.clone()).unwrap()) < 1.5);
        assert!(repetition(&following, median(following.clone()).unwrap()) > 4.0);
    }
}
