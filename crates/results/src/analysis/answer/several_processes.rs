//! Answers that rest on several processes.
//!
//! After its groups a run puts each question to child processes, in which the best CPU code and the
//! GPU's take turns at sizes around the crossing and at the largest size ([`Confirmation`]). Each
//! process has its own crossing ([`confirming_process`](super::confirming_process)) and its own speedup. The
//! answer is their median, and its interval is where another run's answer lies with a probability
//! of 95 %.
//!
//! Two answers, each the median of n processes, differ by the spread between processes and by how
//! the machine changes between two runs, which no single run can tell and is assumed. The spread of
//! the processes is moderated ([`Spread`]) by that of the other questions about data in the same
//! place.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::analysis::answer::confirming_process::{Seen, crossing, gap};
use crate::model::record::{Confirmation, PairedTimes};
use crate::statistics::median::median;
use crate::statistics::spread::{CLASS_FREEDOM, Spread, freedom_of_sum};

/// Probability that another run's answer lies in the interval.
const COVERAGE: f64 = 0.95;

/// Variance of a median of some normal samples over that of their mean: 1.35 for three, 1.43 for
/// five, π/2 in the limit.
const MEDIAN_OVER_MEAN: f64 = 1.45;

/// How far runs a few minutes apart are assumed to differ beside the spread between their
/// processes, at least: the standard deviation of the logarithm of the ratio.
const ASSUMED_OF_A_RUN: f64 = 0.05;
/// The same as a share of the standard deviation of the processes. What makes processes differ, such
/// as other work on the host, also comes and goes for longer than a run takes, and meets the
/// calibrations whose choices all processes of a run share.
const RUN_OVER_PROCESSES: f64 = 0.5;

/// Fewer processes are no confirmation.
pub const FEWEST_PROCESSES: usize = 3;

/// Where the GPU begins to win.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WinsFrom {
    /// At every size that was asked about.
    Always,
    /// At this size.
    Size {
        /// Median over the processes.
        size: f64,
        /// Lower end of the interval.
        low: f64,
        /// Upper end.
        high: f64,
        /// Whether in some process the GPU won at every size.
        or_always: bool,
        /// Whether in some process it won at none.
        or_never: bool,
    },
    /// At none.
    Never,
}

/// What several processes say together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confirmed {
    /// Number of processes.
    pub processes: usize,
    /// Number of those that agree with the joint answer: always, from some size on, or never. None
    /// where they give no joint answer.
    pub agree: usize,
    /// Where the GPU begins to win; `None` where they do not say, or another run may find the other
    /// side ahead at the largest size.
    pub from: Option<WinsFrom>,
    /// CPU over GPU time at the largest size: median over the processes.
    pub speedup: f64,
    /// The interval in which another run's speedup lies with a probability of 95 %.
    pub speedup_interval: (f64, f64),
    /// The largest size.
    pub largest: u64,
}

impl Confirmed {
    /// Whether the GPU wins at the largest size; `None` where another run may find either.
    pub fn wins_at_the_largest(&self) -> Option<bool> {
        let (low, high) = self.speedup_interval;
        match (low > 1.0, high < 1.0) {
            (false, false) => None,
            (wins, _) => Some(wins),
        }
    }

    /// Whether the answer of another run lies where this one's interval says.
    pub(crate) fn holds(&self, other: &Confirmed) -> bool {
        use WinsFrom::{Always, Never, Size};
        let from = match (self.from, other.from) {
            (Some(Size { low, high, .. }), Some(Size { size, .. })) => (low..=high).contains(&size),
            (Some(Size { or_always, .. }), Some(Always)) => or_always,
            (Some(Size { or_never, .. }), Some(Never)) => or_never,
            (ours, theirs) => ours == theirs,
        };
        let (low, high) = self.speedup_interval;
        from && (low..=high).contains(&other.speedup)
    }
}

/// What a question's processes say, before the spread is known.
struct QuestionSamples<'a> {
    asked: &'a Confirmation,
    seen: Vec<Seen>,
    /// Logarithm of the size of the median crossing; infinite where the GPU always or never wins.
    root: Option<f64>,
    /// How far on either side of it the bounds leave it unknown.
    unknown: f64,
    slope: Option<f64>,
    /// Logarithms of CPU over GPU time at the largest size.
    speedups: Vec<f64>,
    speedup: f64,
    largest: u64,
}

/// The answers to a run's questions; `None` for one that too few processes answered, or whose range
/// of sizes descends.
pub fn answers(confirmations: &[Confirmation]) -> Vec<Option<Confirmed>> {
    // Each with the spreads of its speedups and of its crossings.
    let with_spreads = |asked| {
        let one = said(asked)?;
        let spreads = (Spread::of(&one.speedups), one.around_the_crossing());
        Some((one, spreads))
    };
    let said: Vec<_> = confirmations.iter().map(with_spreads).collect();
    said.iter()
        .map(|one| {
            let (one, (of_speedups, of_crossings)) = one.as_ref()?;
            let others = || {
                let memory = |said: &QuestionSamples| said.asked.question;
                let all = said.iter().flatten();
                let others = all.filter(move |(said, _)| {
                    memory(said) == memory(one) && !std::ptr::eq(said, one)
                });
                others.map(|(_, spreads)| *spreads)
            };
            let speedups = others().map(|(speedups, _)| speedups);
            let speedup = reach(*of_speedups, speedups, one.speedups.len());
            let from = one.root.map(|root| match root {
                f64::NEG_INFINITY => WinsFrom::Always,
                f64::INFINITY => WinsFrom::Never,
                root => {
                    let crossings = others().map(|(_, crossings)| crossings);
                    let reach = reach(*of_crossings, crossings, one.finite().count());
                    let reach = reach / one.slope.map_or(1.0, f64::abs) + one.unknown;
                    let (smallest, largest) = one.asked.range;
                    let within = |log: f64| log.exp().clamp(smallest as f64, largest as f64);
                    WinsFrom::Size {
                        size: within(root),
                        low: within(root - reach),
                        high: within(root + reach),
                        or_always: one.seen.iter().any(|seen| seen.high == f64::NEG_INFINITY),
                        or_never: one.seen.iter().any(|seen| seen.low == f64::INFINITY),
                    }
                }
            });
            let kind = |root: f64| if root.is_finite() { 0.0 } else { root };
            // Who saw the GPU win at each size that was asked about does not contradict a crossing.
            let agrees = |root: f64, seen: &Seen| match seen.root() {
                Some(own) => kind(root) == kind(own),
                None => root < f64::INFINITY,
            };
            let same = |seen: &&Seen| one.root.is_some_and(|root| agrees(root, seen));
            let mut confirmed = Confirmed {
                processes: one.speedups.len(),
                agree: one.seen.iter().filter(same).count(),
                from,
                speedup: one.speedup.exp(),
                speedup_interval: ((one.speedup - speedup).exp(), (one.speedup + speedup).exp()),
                largest: one.largest,
            };
            // Whoever is said to win from some size on wins at the largest.
            let wins = from.map(|from| from != WinsFrom::Never);
            confirmed.from = from.filter(|_| confirmed.wins_at_the_largest() == wins);
            Some(confirmed)
        })
        .collect()
}

/// CPU over GPU time at one size, as several processes have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AtSize {
    pub(super) size: u64,
    /// Median over the processes.
    pub(super) ratio: f64,
    /// The interval in which another run's ratio lies with a probability of 95 %.
    pub(super) interval: (f64, f64),
    /// Number of processes.
    pub(super) processes: usize,
}

/// The speedup at each size that enough processes measured, by size.
pub(super) fn by_size(processes: &[Vec<PairedTimes>]) -> Vec<AtSize> {
    let mut sizes: Vec<u64> = processes.iter().flatten().map(|duel| duel.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let at = |size: u64| {
        let here = processes.iter().flatten().filter(|duel| duel.size == size);
        let logs: Vec<f64> = here
            .map(|duel| -gap(duel))
            .filter(|l| l.is_finite())
            .collect();
        if size == 0 || logs.len() < FEWEST_PROCESSES {
            return None;
        }
        let middle = median(logs.iter().copied())?;
        let reach = reach(Spread::of(&logs), std::iter::empty(), logs.len());
        Some(AtSize {
            size,
            ratio: middle.exp(),
            interval: ((middle - reach).exp(), (middle + reach).exp()),
            processes: logs.len(),
        })
    };
    sizes.into_iter().filter_map(at).collect()
}

fn said(asked: &Confirmation) -> Option<QuestionSamples<'_>> {
    // A damaged record may have it so.
    if asked.range.0 > asked.range.1 {
        return None;
    }
    let sound = |duel: &PairedTimes| {
        let ns = [duel.cpu_ns, duel.gpu_ns];
        duel.size > 0 && ns.iter().all(|ns| ns.is_finite() && *ns > 0.0)
    };
    let ascending = |p: &&Vec<PairedTimes>| p.windows(2).all(|pair| pair[0].size < pair[1].size);
    let processes = (asked.processes.iter())
        .filter(|p| p.iter().all(sound))
        .filter(ascending);
    let largest = processes
        .clone()
        .filter_map(|p| Some(p.last()?.size))
        .max()?;
    let processes: Vec<&Vec<PairedTimes>> = processes
        .filter(|p| p.last().is_some_and(|duel| duel.size == largest))
        .collect();
    if processes.len() < FEWEST_PROCESSES {
        return None;
    }
    let seen = processes
        .iter()
        .filter_map(|duels| crossing(duels, asked.range));
    let seen: Vec<Seen> = seen.collect();
    let speedups: Vec<f64> = processes.iter().map(|p| -gap(&p[p.len() - 1])).collect();
    let (root, unknown) = middle(&seen).unzip();
    Some(QuestionSamples {
        asked,
        root,
        unknown: unknown.unwrap_or(0.0),
        slope: median(seen.iter().filter_map(|seen| seen.slope)),
        seen,
        speedup: median(speedups.iter().copied())?,
        speedups,
        largest,
    })
}

/// The median of the processes, and how far on either side of it they leave it unknown. Where the two
/// in the middle are one that saw a crossing and one that saw none, it is the crossing; `None` where
/// one always and the other never sees the GPU win, and where too few see anything.
fn middle(seen: &[Seen]) -> Option<(f64, f64)> {
    if seen.len() < FEWEST_PROCESSES {
        return None;
    }
    let median_of = |end: fn(&Seen) -> f64| {
        let mut ends: Vec<f64> = seen.iter().map(end).collect();
        // What is not known may be the smallest.
        ends.sort_unstable_by(|a, b| b.is_nan().cmp(&a.is_nan()).then(a.total_cmp(b)));
        middle_of_sorted(&ends)
    };
    let (low, high) = (median_of(|seen| seen.low)?, median_of(|seen| seen.high)?);
    let distance = (high - low) / 2.0;
    let unknown = if distance.is_finite() { distance } else { 0.0 };
    Some((middle_of_sorted(&[low, high])?, unknown))
}

/// The median, as [`middle`] has it; `None` next to one that is not a number, which is not known.
fn middle_of_sorted(sorted: &[f64]) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let (a, b) = (sorted[last / 2], sorted[sorted.len() / 2]);
    match (a.is_finite(), b.is_finite()) {
        _ if a.is_nan() || b.is_nan() => None,
        (true, true) => Some(a.midpoint(b)),
        (true, false) => Some(a),
        (false, true) => Some(b),
        (false, false) => (a == b).then_some(a),
    }
}

impl QuestionSamples<'_> {
    /// The crossings that were seen.
    fn finite(&self) -> impl Iterator<Item = f64> {
        let roots = self.seen.iter().filter_map(Seen::root);
        roots.filter(|root| root.is_finite())
    }

    fn around_the_crossing(&self) -> Spread {
        let (Some(root), Some(slope)) = (self.root.filter(|root| root.is_finite()), self.slope)
        else {
            return Spread::default();
        };
        let distances: Vec<f64> = self.finite().map(|other| slope * (other - root)).collect();
        Spread::of(&distances)
    }
}

/// How far from an answer, the median of `processes`, another run's may lie, as a logarithm of a
/// ratio of times. `own` is the spread of the processes, `others` that of similar questions.
fn reach(own: Spread, others: impl Iterator<Item = Spread>, processes: usize) -> f64 {
    let spread = match median(others.filter_map(Spread::variance)) {
        Some(variance) => own.and(Spread::known(variance, CLASS_FREEDOM)),
        None => own,
    };
    let freedom = spread.freedom.max(1.0);
    // Each variance of both runs.
    let variance = spread.squares / freedom;
    let of_processes = 2.0 * MEDIAN_OVER_MEAN * variance / processes.max(1) as f64;
    let of_a_run = (RUN_OVER_PROCESSES.powi(2) * variance).max(ASSUMED_OF_A_RUN.powi(2));
    let parts = [(of_processes, freedom), (2.0 * of_a_run, f64::INFINITY)];
    let sum: f64 = parts.iter().map(|(variance, _)| variance).sum();
    let freedom = freedom_of_sum(&parts).min(200.0);
    let student = StudentsT::new(0.0, 1.0, freedom).expect("the freedom is above zero");
    student.inverse_cdf(f64::midpoint(1.0, COVERAGE)) * sum.sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::analysis::answer::confirming_process::{centre, sizes};
    use crate::model::role::Residency;
    use crossover_words::Clock;

    const RANGE: (u64, u64) = (8, 4096);

    fn asked(processes: Vec<Vec<PairedTimes>>) -> Confirmation {
        Confirmation {
            group: "a".into(),
            question: Residency::Queued,
            gpu: "b".into(),
            clock: Clock::Events,
            gpu_machine: None,
            gpu_run: None,
            range: RANGE,
            processes,
        }
    }

    /// The GPU takes 10 µs at each size, the CPU as long at `at` and `steep` powers of the size.
    fn process(sizes: &[u64], at: f64, steep: f64, shift: impl Fn(u64) -> f64) -> Vec<PairedTimes> {
        let duel = |&size: &u64| PairedTimes {
            size,
            cpu: "c".into(),
            cpu_ns: 10_000.0 * (size as f64 / at).powf(steep) * shift(size).exp(),
            gpu_ns: 10_000.0,
        };
        sizes.iter().map(duel).collect()
    }

    /// What the first process is asked about.
    fn around(near: f64) -> Vec<u64> {
        sizes(near, RANGE, &[])
    }

    fn one(confirmation: &Confirmation) -> Confirmed {
        answers(std::slice::from_ref(confirmation))[0].unwrap()
    }

    proptest! {
        #[test]
        fn a_planted_crossing_is_found(at in 10.0f64..3000.0, steep in 0.3f64..3.0) {
            // Nearer to the end another run may find that the GPU never wins.
            prop_assume!((4096.0 / at).powf(steep) > 1.25);
            let sizes = around(at);
            let confirmed = one(&asked(vec![process(&sizes, at, steep, |_| 0.0); 5]));
            let Some(WinsFrom::Size { size, low, high, .. }) = confirmed.from else {
                panic!("{confirmed:?}");
            };
            prop_assert!((size / at).ln().abs() < 1e-9, "{size} for {at}");
            prop_assert!(low < at && at < high);
            let speedup = (4096.0 / at).powf(steep);
            prop_assert!((confirmed.speedup / speedup).ln().abs() < 1e-9);
        }

        #[test]
        fn any_durations_give_an_answer(
            durations in proptest::collection::vec((1u64..1 << 40, any::<f64>(), any::<f64>()), 0..12),
        ) {
            let duel = |(size, cpu_ns, gpu_ns)| PairedTimes { size, cpu: "c".into(), cpu_ns, gpu_ns };
            let duels: Vec<PairedTimes> = durations.into_iter().map(duel).collect();
            let processes = duels.chunks(3).map(<[PairedTimes]>::to_vec).collect();
            for confirmed in answers(&[asked(processes)]).into_iter().flatten() {
                let (low, high) = confirmed.speedup_interval;
                prop_assert!(low <= confirmed.speedup && confirmed.speedup <= high);
            }
        }
    }

    proptest! {
        /// Processes on a host that is loud or quiet, each asked about sizes around where it began.
        #[test]
        fn an_answer_does_not_contradict_the_speedup(
            processes in proptest::collection::vec((1.0f64..5000.0, 0.2f64..2.0, -1.0f64..1.0), 3..9),
            noise in 0.0f64..2.0,
            at in 1.0f64..10_000.0,
        ) {
            let made_up = processes.iter().map(|&(near, steep, luck)| {
                process(&around(near), at, steep, |size| noise * luck * (size as f64).sin())
            });
            for said in answers(&[asked(made_up.collect())]).into_iter().flatten() {
                let (low, high) = said.speedup_interval;
                let holds = match said.from {
                    None => true,
                    Some(WinsFrom::Never) => said.speedup < 1.0 && high < 1.0,
                    Some(_) => said.speedup > 1.0 && low > 1.0,
                };
                prop_assert!(holds, "{said:?}");
            }
        }
    }

    #[test]
    fn a_crossing_outside_the_sizes_is_asked_about_next() {
        // Above what was asked about it lies between there and the largest size.
        let first = process(&around(100.0), 400.0, 2.0, |_| 0.0);
        let next = centre(std::slice::from_ref(&first), RANGE).unwrap();
        assert!((next - 400.0).abs() < 1e-6, "{next}");
        // Below it, it may be anywhere, and is no answer.
        let first = process(&around(100.0), 30.0, 2.0, |_| 0.0);
        let next = centre(std::slice::from_ref(&first), RANGE).unwrap();
        assert!((next - 40.0).abs() < 1e-6, "{next}");
        assert_eq!(one(&asked(vec![first; 5])).from, None);
        let second = process(&around(next), 30.0, 2.0, |_| 0.0);
        let next = centre(&[second], RANGE).unwrap();
        assert!((next - 30.0).abs() < 1e-6, "{next}");
    }

    #[test]
    fn a_crossing_below_what_was_asked_about_is_no_contradiction() {
        let at = |near: f64, at: f64| process(&around(near), at, 2.0, |_| 0.0);
        let (seen, below) = (at(100.0, 100.0), at(100.0, 30.0));
        let two_and = |other: &Vec<PairedTimes>| {
            let later = at(120.0, 120.0);
            one(&asked(vec![seen.clone(), later, other.clone()]))
        };
        // It is the smallest of three, wherever below 80 it lies.
        let said = two_and(&below);
        let Some(WinsFrom::Size { size, .. }) = said.from else {
            panic!("{said:?}");
        };
        assert!((size - 100.0).abs() < 1e-6 && said.agree == 3, "{said:?}");
        // With one that lies below 160 it is anywhere between the two others.
        let far = two_and(&at(200.0, 30.0));
        let Some(WinsFrom::Size {
            size, low, high, ..
        }) = far.from
        else {
            panic!("{far:?}");
        };
        assert!(
            (size * size / 12_000.0 - 1.0).abs() < 1e-6 && far.agree == 3,
            "{far:?}"
        );
        assert!((size / low).min(high / size) > 1.2f64.sqrt(), "{far:?}");
    }

    #[test]
    fn bounds_leave_the_median_between_two_sizes() {
        let middle = |seen: &[(f64, f64)]| {
            let slope = None;
            let seen = seen.iter().map(|&(low, high)| Seen { high, low, slope });
            middle(&seen.collect::<Vec<_>>())
        };
        let at = |root: f64| (root, root);
        let (never, below) = (f64::INFINITY, |bound: f64| (f64::NAN, bound));
        assert_eq!(middle(&[at(4.0), below(3.0), below(3.0)]), None);
        assert_eq!(
            middle(&[at(4.0), at(5.0), at(never), below(3.0)]),
            Some((4.5, 0.0))
        );
        assert_eq!(
            middle(&[at(1.0), at(4.0), at(5.0), below(4.5)]),
            Some((3.375, 0.875))
        );
        assert_eq!(
            middle(&[at(-never), at(-never), at(5.0), below(9.0)]),
            Some((5.0, 0.0))
        );
        // Where all lie below, their lines say where.
        assert_eq!(middle(&[(3.0, 4.0); 3]), Some((3.5, 0.5)));
    }

    /// What the fit says never contradicts the signs.
    #[test]
    fn a_flat_noisy_row_is_no_never() {
        let mut duels = process(&around(100.0), 100.0, 1.5, |_| 0.0);
        for (duel, gpu_ns) in duels.iter_mut().zip([0.9, 1.05, 0.95, 1.1]) {
            duel.cpu_ns = 1e4;
            duel.gpu_ns = 1e4 * gpu_ns;
        }
        let Some(WinsFrom::Size { size, .. }) = one(&asked(vec![duels; 5])).from else {
            panic!("not a size");
        };
        assert!((128.0..4096.0).contains(&size), "{size}");
    }

    #[test]
    fn who_wins_at_an_end_of_the_range_wins_always_or_never() {
        let fast = process(&around(0.0), 4.0, 2.0, |_| 0.0);
        assert_eq!(one(&asked(vec![fast; 5])).from, Some(WinsFrom::Always));
        let slow = process(&around(f64::INFINITY), 9e4, 2.0, |_| 0.0);
        let never = one(&asked(vec![slow; 5]));
        assert_eq!(never.from, Some(WinsFrom::Never));
        assert!(never.speedup < 1.0);
    }

    #[test]
    fn a_range_that_descends_confirms_nothing() {
        let process = process(&around(100.0), 100.0, 2.0, |_| 0.0);
        let mut asked = asked(vec![process; 5]);
        assert!(answers(std::slice::from_ref(&asked))[0].is_some());
        asked.range = (RANGE.1, RANGE.0);
        assert_eq!(answers(&[asked]), [None]);
    }

    #[test]
    fn processes_that_disagree_say_so() {
        let fast = process(&around(0.0), 4.0, 2.0, |_| 0.0);
        let slow = process(&around(f64::INFINITY), 9e4, 2.0, |_| 0.0);
        let near = |at: f64| process(&around(at), at, 2.0, |_| 0.0);
        let say = |processes: &[&Vec<PairedTimes>]| {
            one(&asked(processes.iter().copied().cloned().collect()))
        };
        let (early, late) = (near(10.0), near(11.0));
        assert_eq!(say(&[&fast, &fast, &slow, &slow]).from, None);
        let mostly = say(&[&slow, &slow, &slow, &late]);
        // One that is this far ahead leaves it open who is at the largest size.
        assert_eq!((mostly.from, mostly.agree, mostly.processes), (None, 3, 4));
        let always = process(&around(0.0), 7.0, 2.0, |_| 0.0);
        let some = say(&[&always, &early, &late, &late]);
        let Some(WinsFrom::Size {
            size,
            or_always,
            or_never,
            ..
        }) = some.from
        else {
            panic!("{some:?}");
        };
        assert!((10.0..=11.0).contains(&size) && or_always && !or_never);
        assert_eq!(some.agree, 3);
    }

    /// Worked by hand: two variances of two medians, and two of how runs differ.
    #[test]
    fn the_interval_is_that_of_two_runs() {
        let noisy = reach(
            Spread::known(0.02, 4.0),
            [Spread::known(0.02, 4.0)].into_iter(),
            5,
        );
        let sum: f64 = 2.0 * 1.45 * 0.02 / 5.0 + 2.0 * 0.25 * 0.02;
        // Student's t with 27.7 degrees of freedom.
        assert!(
            (noisy / (2.0493 * sum.sqrt()) - 1.0).abs() < 1e-3,
            "{noisy}"
        );
        let quiet = reach(Spread::known(1e-8, 4.0), std::iter::empty(), 5);
        // With 200.
        assert!(
            (quiet / (1.9719 * 0.005_f64.sqrt()) - 1.0).abs() < 1e-3,
            "{quiet}"
        );
    }

    #[test]
    fn two_processes_confirm_nothing() {
        let two = asked(vec![process(&around(100.0), 100.0, 2.0, |_| 0.0); 2]);
        assert_eq!(answers(&[two]), [None]);
    }

    #[test]
    fn one_process_of_five_that_is_far_off_moves_little() {
        let at = |at: f64| process(&around(100.0), at, 2.0, |_| 0.0);
        let confirmed = one(&asked([98.0, 99.0, 100.0, 101.0, 160.0].map(at).into()));
        let Some(WinsFrom::Size { size, .. }) = confirmed.from else {
            panic!("{confirmed:?}");
        };
        assert!((size - 100.0).abs() < 1e-6, "{size}");
    }

    #[test]
    fn what_is_no_time_is_left_out() {
        let mut processes = vec![process(&around(100.0), 100.0, 2.0, |_| 0.0); 5];
        processes[0][1].cpu_ns = f64::NAN;
        processes[1][0].gpu_ns = 0.0;
        assert_eq!(one(&asked(processes)).processes, 3);
        assert_eq!(answers(&[asked(vec![])]), [None]);
    }

    /// Sixteen questions of runs that differ by a spread between processes and one between runs:
    /// how often the interval of one run holds the answer of another.
    #[test]
    fn the_interval_holds_another_runs_answer() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(15);
        let mut normal = move |deviation: f64| {
            // Twelve uniform numbers are normal enough.
            let sum: f64 = (0..12).map(|_| random.random::<f64>()).sum();
            deviation * (sum - 6.0)
        };
        for (between_processes, between_runs) in [(0.01, 0.0), (0.1, 0.0), (0.1, 0.05), (0.3, 0.05)]
        {
            let (mut held, mut asked_about, mut widths) = (0, 0, Vec::new());
            for _ in 0..40 {
                let mut run = || -> Vec<Confirmed> {
                    let question = |_| {
                        let shift = normal(between_runs);
                        let mut process = |_| {
                            let own = shift + normal(between_processes);
                            process(&around(100.0), 100.0, 1.5, |_| own)
                        };
                        asked((0..5).map(&mut process).collect())
                    };
                    let confirmations: Vec<Confirmation> = (0..4).map(question).collect();
                    answers(&confirmations).into_iter().flatten().collect()
                };
                let (one, other) = (run(), run());
                for (one, other) in one.iter().zip(&other) {
                    let (low, high) = one.speedup_interval;
                    held += usize::from(low <= other.speedup && other.speedup <= high);
                    widths.push(high / low);
                    asked_about += 1;
                    let (Some(WinsFrom::Size { low, high, .. }), Some(WinsFrom::Size { size, .. })) =
                        (one.from, other.from)
                    else {
                        // Beyond the sizes: another process would have been asked about others.
                        continue;
                    };
                    held += usize::from(low <= size && size <= high);
                    asked_about += 1;
                }
            }
            let share = f64::from(held as u32) / f64::from(asked_about);
            let width = median(widths).unwrap();
            assert!(
                (0.88..=1.0).contains(&share),
                "{share} held at {between_processes}, {between_runs}"
            );
            // Useful: no wider than a known spread would need, and half as much again.
            let between_runs = f64::max(between_runs, ASSUMED_OF_A_RUN);
            let deviation =
                (2.0 * 0.29 * between_processes.powi(2) + 2.0 * between_runs.powi(2)).sqrt();
            assert!(
                width.ln() < 1.5 * 2.0 * 2.2 * deviation,
                "{width} wide at {between_processes}, {between_runs}"
            );
        }
    }
}
