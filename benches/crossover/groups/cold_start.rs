//! The cost of the first GPU call of a process, phase by phase, each measured in new processes, and of
//! a later call.

use crossover_suite::model::{Cost, Measures, Phase, Residency, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::Wall;
use crossover_suite::workload::cold_start::{self, ColdStart};

pub(crate) fn group() -> Group<ColdStart> {
    // A phase has no size, but an id needs one.
    let sizes = Sizes::new([], [1], [1]).odd([1]);
    let in_full = Sizes::new([], [], [1]).odd([1]);
    let row = |phase: Phase| {
        Implementation::gpu(phase.to_string().leak(), Wall, move |gpu, problem| {
            cold_start::phase(gpu, problem, phase)
        })
        .measures(Measures::Starts(phase))
        .data(Residency::Awaited)
    };
    Group::new("cold_start", sizes, None, |_| Cost::default())
        .about(
            "Cold start",
            "What does the first GPU call of a new process cost, phase by phase, and what does a later call cost?",
        )
        .no_inputs()
        .axis("n", "n", Unit::Count)
        .no_winner()
        .with(row(Phase::DriverInit))
        .with(row(Phase::Context))
        .with(row(Phase::FirstStream))
        .with(row(Phase::WarmStream))
        .with(row(Phase::FirstAlloc))
        .with(row(Phase::WarmAlloc))
        .with(row(Phase::NvrtcCompile))
        .with(row(Phase::WarmNvrtcCompile))
        .with(row(Phase::PtxJit))
        .with(row(Phase::CubinLoad))
        .with(row(Phase::FirstLaunch))
        .with(row(Phase::WarmLaunch))
        .with(row(Phase::FirstGemm))
        .with(row(Phase::WarmGemm))
        .with(row(Phase::FirstLargeGemm).sizes(in_full.clone()))
        .with(row(Phase::FirstTransformer).sizes(in_full))
}
