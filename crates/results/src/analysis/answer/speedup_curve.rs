//! The speedup along the sizes: the curve of which an answer is a point.

use crate::analysis::answer::confirmations::with_own;
use crate::analysis::answer::crossover_answer::{CrossoverAnswer, curve};
use crate::analysis::answer::curve::{Curve, gaps};
use crate::analysis::answer::kind::Speedup;
use crate::store::curves::Series;

/// The speedup of an answer at each size that the best CPU code and its GPU code both cover. It is the
/// curve from which the kind of the answer follows.
pub fn along(found: &CrossoverAnswer, best_cpu: &Curve, gpu: &Series) -> Vec<Speedup> {
    let own = gaps(best_cpu, &curve(gpu));
    let all = with_own(&own, &found.processes);
    all.map(|at| found.crossing.at_the_largest(at)).collect()
}
