use std::time::Duration;

use crate::settings::Profile;

/// How long and how often a benchmark is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Effort {
    pub(super) warm_up: Duration,
    pub(super) measurement: Duration,
    pub(super) samples: usize,
    pub(super) resamples: usize,
    /// Longest iteration that is measured at all.
    pub(super) longest_iteration: Option<Duration>,
}

/// Criterion's smallest sample size.
pub(super) const FEWEST_SAMPLES: usize = 10;

impl Effort {
    /// The sizes of `quick` and `default` are chosen to fit these times; `full` has every
    /// size and therefore a limit on what one iteration may take.
    pub(super) fn of(profile: Profile) -> Self {
        let ms = Duration::from_millis;
        match profile {
            Profile::Quick => Self {
                warm_up: ms(50),
                measurement: ms(150),
                samples: 12,
                resamples: 1_500,
                longest_iteration: None,
            },
            Profile::Default => Self {
                warm_up: ms(100),
                measurement: ms(300),
                samples: 30,
                resamples: 4_000,
                longest_iteration: None,
            },
            Profile::Full => Self {
                warm_up: ms(150),
                measurement: ms(450),
                samples: 40,
                resamples: 10_000,
                longest_iteration: Some(Duration::from_secs(1)),
            },
        }
    }

    /// Samples and measurement time for a routine whose iteration takes about `iteration`:
    /// slow ones get fewer samples, and time enough that Criterion does not complain.
    pub(super) fn for_iteration(&self, iteration: Duration) -> (usize, Duration) {
        let iteration = iteration.max(Duration::from_nanos(1));
        let fit = self.measurement.as_nanos() / iteration.as_nanos();
        let samples = usize::try_from(fit)
            .unwrap_or(usize::MAX)
            .clamp(FEWEST_SAMPLES, self.samples);
        let needed = iteration.mul_f64(1.1 * samples as f64);
        (samples, self.measurement.max(needed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_iterations_get_fewer_samples_and_time_enough() {
        let effort = Effort::of(Profile::Default);
        let (samples, time) = effort.for_iteration(Duration::from_micros(3));
        assert_eq!((samples, time), (effort.samples, effort.measurement));
        let (samples, time) = effort.for_iteration(Duration::from_secs(1));
        assert_eq!(samples, FEWEST_SAMPLES);
        assert_eq!(time, Duration::from_secs(11));
        let (samples, _) = effort.for_iteration(Duration::from_millis(20));
        assert_eq!(samples, 15);
        let (samples, _) = effort.for_iteration(Duration::ZERO);
        assert_eq!(samples, effort.samples);
    }

    #[test]
    fn no_profile_resamples_more_than_ten_thousand_times() {
        for profile in [Profile::Quick, Profile::Default, Profile::Full] {
            let resamples = Effort::of(profile).resamples;
            // Below 1,001 Criterion prints a warning a benchmark.
            assert!((1_001..=10_000).contains(&resamples));
        }
    }
}
