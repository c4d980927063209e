//! Samples that take few distinct values: counts, or times of a clock that ticks coarsely.
//!
//! Criterion's files name no unit. Counts, such as instructions, are exact. Times around single launches, taken with
//! CUDA events, are multiples of a tick that is up to a seventh of a short kernel. So numbers without a clock that are
//! all multiples of a known tick are taken for such times, and others for counts.

use crossover_results::store::sampled::Sampled;

/// Ticks of CUDA events and of host clocks, ns: the coarsest first.
const TICKS: [f64; 6] = [1024.0, 1000.0, 512.0, 500.0, 100.0, 32.0];

/// Times are rounded to nanoseconds.
const ROUNDING_NS: f64 = 1.0;

/// Samples have few distinct values if each is taken so many times on average.
const TIMES_EACH: usize = 4;

/// Values closer than this, as a fraction, differ by the rounding of a division by the iterations.
const EQUAL: f64 = 1e-9;

/// The distinct values of samples in order, if they are few.
fn few_values<'a>(runs: impl IntoIterator<Item = &'a Sampled>) -> Option<Vec<f64>> {
    let mut values: Vec<f64> = runs
        .into_iter()
        .flat_map(|run| run.ns.iter().copied())
        .collect();
    let samples = values.len();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup_by(|a, b| (*a / *b - 1.0).abs() <= EQUAL);
    (values.len() * TIMES_EACH <= samples).then_some(values)
}

/// The least distance between two values of samples that take few, or the measured step of their clock, if it is less.
/// `None` if they take many values, or one and the step was not measured.
pub(super) fn step<'a>(runs: impl IntoIterator<Item = &'a Sampled> + Clone) -> Option<f64> {
    let values = few_values(runs.clone())?;
    let distances = values.windows(2).map(|pair| pair[1] - pair[0]);
    let measured = runs.into_iter().filter_map(|run| run.event_step_ns);
    let measured = measured.max_by(f64::total_cmp);
    distances.chain(measured).min_by(f64::total_cmp)
}

/// The tick of the numbers without a clock that take few values, if they may be times.
pub(super) fn tick<'a>(results: impl Iterator<Item = &'a Sampled>) -> Option<f64> {
    let without_clock = results.filter(|result| result.clock.is_none() && !result.is_count);
    let values: Vec<f64> = without_clock
        .filter_map(|result| few_values([result]))
        .flatten()
        .collect();
    let fits = |tick: &f64| {
        let is_multiple = |value: &f64| {
            let nearest = (value / tick).round();
            nearest >= 1.0 && (value - nearest * tick).abs() <= ROUNDING_NS
        };
        !values.is_empty() && values.iter().all(is_multiple)
    };
    TICKS.into_iter().find(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(ns: &[f64]) -> Sampled {
        Sampled {
            ns: ns.repeat(10),
            ..Sampled::default()
        }
    }

    #[test]
    fn times_with_steps_are_multiples_of_a_tick_and_counts_are_not() {
        for (values, wanted) in [
            (&[7_168.0, 8_192.0][..], Some(1024.0)),
            (&[6_656.0, 7_168.0], Some(512.0)),
            // Truncated to nanoseconds.
            (&[7_167.0, 24_575.0], Some(1024.0)),
            (&[100_003.0, 250_010.0], None),
            (&[512.0, 40_123.0], None),
            (&[], None),
        ] {
            let results: Vec<Sampled> = values.iter().map(|ns| result(&[*ns])).collect();
            assert_eq!(tick(results.iter()), wanted, "{values:?}");
        }
        assert_eq!(
            step([&result(&[7_168.0]), &result(&[8_192.0, 9_216.0])]),
            Some(1024.0)
        );
        assert_eq!(step([&result(&[7_168.0])]), None);
        let many = Sampled {
            ns: (0..40).map(f64::from).collect(),
            ..Sampled::default()
        };
        assert_eq!(step([&many]), None);
    }
}
