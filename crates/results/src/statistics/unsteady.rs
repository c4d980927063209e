//! Whether the samples of a benchmark are unsteady. If they have two modes, their median is a time that
//! the benchmark rarely takes.

use crate::statistics::median::{interval_of_sorted, median, median_of_sorted};
use crossover_words::{Clock, units};

/// Fewer samples are not judged: the spread within a mode would be a guess.
const FEWEST_SAMPLES: usize = 10;
/// Least share of the samples in the smaller mode: fewer are outliers.
const SMALLEST_MODE: f64 = 0.15;
/// Least number of samples in the smaller mode: two may be close by chance.
const FEWEST_OF_A_MODE: usize = 3;
/// Least factor between the medians of two modes: a smaller one changes no answer.
const APART: f64 = 1.1;
/// Least distance between the medians of two modes, in spreads of the samples around them.
const OVER_SPREAD: f64 = 4.0;
/// A result is unsteady where the interval of its median is wider than this share of it.
const WIDE: f64 = 0.1;
/// A time on the clock `submit` is unsteady where the ends of its interval are further apart than
/// this factor.
const WIDE_OF_SUBMIT: f64 = 4.0;

/// Why samples (ns per iteration) are unsteady, in words; `None` if they are steady.
pub fn unsteady(mut ns: Vec<f64>, clock: Clock) -> Option<String> {
    if ns.len() < FEWEST_SAMPLES {
        return None;
    }
    ns.sort_unstable_by(f64::total_cmp);
    let (low, high) = interval_of_sorted(&ns)?;
    if clock == Clock::Submit {
        // The host's part of a launch moves between modes: on an H200 the interval of that of a product
        // which takes 21 ms reaches from 26 to 64 µs. No speedup rests on it, only by what order of
        // magnitude such a clock is wrong.
        let apart = units::factor(high / low);
        let words = || format!("the ends of its interval are {apart} apart");
        return (high / low > WIDE_OF_SUBMIT).then(words);
    }
    let wide = (high - low) / median_of_sorted(&ns)?;
    let words = || {
        format!(
            "the interval of its median is {} wide",
            units::percent(wide)
        )
    };
    two_modes(&ns).or_else(|| (wide > WIDE).then(words))
}

/// The split of the samples in two modes with the widest gap between them, such as
/// `two modes, 250 ns (40 % of the samples) and 560 ns`; `None` where they have one mode.
///
/// Times are compared by their logarithms. The longest gap between neighbours among n samples of
/// one mode shrinks about as 1 / n, so few samples need a wider one. Of planted samples (10 to 40
/// of them, 300 times each) at most 3 % were taken for two modes where there was one, log-normal
/// with a spread of 5 to 20 % or drifting by 30 or 100 %; of modes 15 % apart with a spread of 1 %
/// 96 % or more were found, a factor of 2.2 apart with 5 %, all.
fn two_modes(ns: &[f64]) -> Option<String> {
    let mut logs: Vec<f64> = ns.iter().map(|ns| ns.ln()).collect();
    logs.sort_unstable_by(f64::total_cmp);
    let n = logs.len();
    let fewest = FEWEST_OF_A_MODE.max((SMALLEST_MODE * n as f64).ceil() as usize);
    let empty = 0.25 + 4.5 / n as f64;
    let gap = |at: usize| logs[at] - logs[at - 1];
    let split = |at: usize| {
        let (short, long) = logs.split_at(at);
        let medians = (median_of_sorted(short)?, median_of_sorted(long)?);
        let apart = medians.1 - medians.0;
        let is_two = apart >= APART.ln()
            && gap(at) >= empty * apart
            && apart >= OVER_SPREAD * spread(short, long, medians)?;
        is_two.then_some(medians)
    };
    let (at, (short, long)) = (fewest..=n.saturating_sub(fewest))
        .filter_map(|at| Some((at, split(at)?)))
        .max_by(|a, b| gap(a.0).total_cmp(&gap(b.0)))?;
    Some(format!(
        "two modes, {} ({} of the samples) and {}",
        units::time(short.exp()),
        units::percent(at as f64 / n as f64),
        units::time(long.exp()),
    ))
}

/// The median absolute deviation of both clusters from their own medians, as a standard
/// deviation of normal noise.
fn spread(short: &[f64], long: &[f64], medians: (f64, f64)) -> Option<f64> {
    let short = short.iter().map(|log| (log - medians.0).abs());
    let long = long.iter().map(|log| (log - medians.1).abs());
    Some(1.4826 * median(short.chain(long))?)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// A normal deviate by Box and Muller.
    fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
        let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
    }

    /// How many of 200 plantings of `n` samples are taken for two modes; `time` gives the true
    /// time of a sample, `spread` is the noise around it.
    fn found(n: usize, spread: f64, time: impl Fn(usize) -> f64) -> usize {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(n as u64);
        let mut planted = || -> Vec<f64> {
            let sample = |i| time(i) * (spread * normal(&mut random)).exp();
            (0..n).map(sample).collect()
        };
        (0..200).filter(|_| two_modes(&planted()).is_some()).count()
    }

    #[test]
    fn two_modes_are_found_and_noise_drift_and_outliers_are_one() {
        for n in [10, 12, 20, 30, 40] {
            for (short, apart, spread) in [
                (0.4, 2.2, 0.05),
                (0.3, 1.8, 0.04),
                (0.5, 1.15, 0.008),
                (0.7, 1.8, 0.04),
            ] {
                let is_short = |i: usize| (i as f64) < (short * n as f64).round();
                let time = |i| if is_short(i) { 250.0 } else { 250.0 * apart };
                let found = found(n, spread, time);
                assert!(found >= 190, "{found} of 200: {n}, {short}, {apart}");
            }
            for spread in [0.01, 0.02, 0.05, 0.1, 0.2] {
                let found = found(n, spread, |_| 1e3);
                assert!(found <= 10, "{found} of 200: {n}, noise of {spread}");
            }
            for drift in [0.1, 0.3, 1.0] {
                let found = found(n, 0.02, |i| 1e3 * (1.0 + drift * i as f64 / n as f64));
                assert!(found <= 10, "{found} of 200: {n}, a drift of {drift}");
            }
        }
        // A few slow samples are outliers, and more are a mode.
        for (n, slow, in_two_modes) in [(10, 2, 0), (40, 5, 0), (40, 8, 200)] {
            let found = found(n, 0.02, |i| if i < slow { 4e3 } else { 1e3 });
            assert_eq!(found, in_two_modes, "{slow} of {n} samples are slow");
        }
        let sample = |i| if i % 5 < 2 { 250.0 } else { 560.0 };
        let modes = two_modes(&Vec::from_iter((0..10).map(sample))).unwrap();
        let words = "two modes, 250 ns (40 % of the samples) and 560 ns";
        assert_eq!(modes, words);
    }

    /// The distance of two modes is compared with the spread of the samples within each.
    #[test]
    fn modes_lie_further_apart_than_their_samples() {
        let judged = |log: &dyn Fn(u32) -> f64| {
            let samples: Vec<f64> = (0..40).map(|i| 1e3 * log(i).exp()).collect();
            two_modes(&samples).is_some()
        };
        // Each mode fills half of the distance between the two.
        assert!(judged(&|i| f64::from(i % 2) + 0.5 * f64::from(i) / 40.0));
        // The four values that a coarse clock shows.
        assert!(!judged(&|i| 0.15 * f64::from(i % 4)));
    }

    #[test]
    fn a_wide_interval_and_few_samples() {
        // Evenly spread around 100 so that the interval, from the 10th to the 21st, is so wide.
        let wide = |width: f64| -> Vec<f64> {
            let sample = |i| 100.0 + width * (f64::from(i) - 14.5) / 11.0;
            (0..30).map(sample).collect()
        };
        let unsteady = |ns: Vec<f64>| unsteady(ns, Clock::Wall);
        assert_eq!(unsteady(wide(9.9)), None);
        let why = unsteady(wide(14.0)).unwrap();
        assert_eq!(why, "the interval of its median is 14 % wide");
        assert_eq!(unsteady(wide(40.0).split_off(21)), None);
        // Two modes say more than the interval that they make.
        let two = |n: i32| (0..n).map(|i| 100.0 + 100.0 * f64::from(i % 2)).collect();
        for n in [10, 30] {
            let why = unsteady(two(n)).unwrap();
            assert!(why.starts_with("two modes"), "{n} samples: {why}");
        }
        assert_eq!(unsteady(two(9)), None);
    }

    #[test]
    fn submit_times_may_have_two_modes() {
        let judged = |short: f64| {
            let two = (0..30).map(|i| if i % 2 == 0 { short } else { 60e3 });
            unsteady(two.collect(), Clock::Submit)
        };
        assert_eq!(judged(20e3), None);
        let why = judged(10e3).unwrap();
        assert_eq!(why, "the ends of its interval are 6× apart");
    }

    #[test]
    fn equal_and_absurd_samples_are_judged_without_a_panic() {
        assert_eq!(two_modes(&[5.0; 40]), None);
        assert_eq!(two_modes(&[]), None);
        for ns in [[f64::MIN_POSITIVE; 12], [f64::MAX; 12], [f64::NAN; 12]] {
            assert_eq!(two_modes(&ns), None);
        }
    }
}
