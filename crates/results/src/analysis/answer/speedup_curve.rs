//! The speedup along the sizes: the curve of which an answer is a point.

use crate::analysis::answer::confirmations::by_size;
use crate::analysis::answer::crossover_answer::{CrossoverAnswer, best_cpu, curve};
use crate::analysis::answer::curve::gaps;
use crate::analysis::answer::estimate::{Crossing, Gap};
use crate::store::curves::{Group, Series};

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
    /// Number of processes that it is the median of.
    pub processes: usize,
}

impl Speedup {
    /// The speedup that one process shows at a size.
    pub(super) fn of_one_process(gap: &Gap) -> Self {
        Self {
            size: gap.size,
            ratio: (-gap.log).exp(),
            low: (-gap.log - gap.half_width).exp(),
            high: (-gap.log + gap.half_width).exp(),
            processes: 1,
        }
    }

    /// At the largest size the interval of the answer, which includes the spread of similar questions.
    pub(super) fn with_answer(self, answer: &Crossing) -> Self {
        if answer.largest != self.size {
            return self;
        }
        let (low, high) = answer.speedup_interval;
        Self {
            ratio: answer.speedup,
            low,
            high,
            ..self
        }
    }
}

/// The speedup of an answer at each size that its CPU code, of `ours`, and its GPU code both
/// cover.
///
/// If several processes measured, around the crossing and at the largest size, their median replaces
/// the run's own time, so the curve passes through the answer.
pub fn along(found: &CrossoverAnswer, ours: &Group, gpu: &Series) -> Vec<Speedup> {
    let (best, _) = best_cpu(ours);
    let confirmed = by_size(&found.processes);
    // All but the largest size lie around the crossing.
    let around = confirmed.len().saturating_sub(1);
    let asked = |size: f64| {
        let inside = |first: f64, last: f64| (first..=last).contains(&size);
        let crossing = confirmed[..around].first().zip(confirmed[..around].last());
        crossing.is_some_and(|(first, last)| inside(first.size, last.size))
            || confirmed.iter().any(|at| at.size == size)
    };
    let own = gaps(&best, &curve(gpu));
    let own = own.iter().map(Speedup::of_one_process);
    let mut all: Vec<Speedup> = own.filter(|own| !asked(own.size)).collect();
    all.extend(confirmed.iter().map(|at| at.with_answer(&found.crossing)));
    all.retain(|at| {
        [at.size, at.ratio, at.low, at.high]
            .iter()
            .all(|v| v.is_normal())
    });
    all.sort_by(|a, b| a.size.total_cmp(&b.size));
    all
}
