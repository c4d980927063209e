//! An answer as the record of a machine stores it.

use serde::Serialize;

use crate::analysis::answer::crossover_answer::CrossoverAnswer;
use crate::analysis::answer::estimate::Answer;
use crate::model::role::Residency;

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Crossover {
    /// The group.
    pub group: String,
    /// Best CPU implementation where the winner changes, else at the largest size.
    pub cpu: String,
    /// The GPU implementation.
    pub gpu: String,
    /// The machine whose GPU it is, when not the CPU's own.
    pub gpu_machine: Option<String>,
    /// Where the data start and end, and whether each call is awaited.
    pub question: Residency,
    /// Clock of the GPU's times.
    pub clock: &'static str,
    /// Whether it answers its question for the group.
    pub headline: bool,
    /// The answer.
    pub answer: Answer,
    /// From this size on the GPU wins for good.
    pub size: Option<f64>,
    /// Lower end of the interval of `size`.
    pub size_low: Option<f64>,
    /// Upper end of it.
    pub size_high: Option<f64>,
    /// Sizes around it were measured, rather than interpolated between powers of two.
    pub measured: Option<bool>,
    /// Smallest and largest size that both curves cover.
    pub range: [f64; 2],
    /// CPU over GPU time at the largest such size.
    pub speedup: f64,
    /// That size.
    pub speedup_size: f64,
    /// The answer is the median of so many processes; null where it is that of one. Then size_low
    /// and size_high, speedup_low and speedup_high hold another run's answer with a probability of
    /// 95 %.
    pub processes: Option<usize>,
    /// Lower end of the interval of `speedup`.
    pub speedup_low: Option<f64>,
    /// Upper end of it.
    pub speedup_high: Option<f64>,
}

/// The answers as they are stored, in their order.
pub fn crossovers(found: &[CrossoverAnswer]) -> Vec<Crossover> {
    let one = |f: &CrossoverAnswer| {
        let change = f.crossing.for_good();
        Crossover {
            group: f.group.clone(),
            cpu: f.cpu.clone(),
            gpu: f.gpu.clone(),
            gpu_machine: f.gpu_machine.clone(),
            question: f.question,
            clock: f.clock,
            headline: f.headline,
            answer: f.crossing.answer,
            size: change.map(|c| c.size),
            size_low: change.map(|c| c.low),
            size_high: change.map(|c| c.high),
            measured: change.map(|c| c.measured),
            range: [f.crossing.range.0, f.crossing.range.1],
            speedup: f.speedup,
            speedup_size: f.speedup_size,
            processes: f.crossing.is_confirmed().then_some(f.crossing.processes),
            speedup_low: Some(f.crossing.speedup_interval.0),
            speedup_high: Some(f.crossing.speedup_interval.1),
        }
    };
    found.iter().map(one).collect()
}
