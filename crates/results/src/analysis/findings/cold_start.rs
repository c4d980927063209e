//! The cost of the first call of a new process, and its parts.

use crate::analysis::cold_start::{First, Start, phase, phase_of, start, words};
use crate::analysis::findings::finding::{Context, Finding};
use crate::model::role::Phase;
use crate::store::curves::Benchmark;
use crate::store::machine::MachineResults;
use crossover_words::units;

/// Share of a phase from which on the sentence names it.
const NAMED: f64 = 0.01;

pub(super) fn find(context: &Context) -> Vec<Finding> {
    let kernel = one(context, First::Kernel, "cold_start.kernel", "kernel");
    let product = one(
        context,
        First::Product,
        "cold_start.product",
        "cuBLAS product",
    );
    [kernel, product].into_iter().flatten().collect()
}

fn one(context: &Context, first: First, id: &str, what: &str) -> Option<Finding> {
    let start = start(context.machine, first)?;
    let (total, warm) = (start.total_ns(), start.warm?);
    let named = start.phases.iter().filter(|b| b.median_ns >= NAMED * total);
    let named = named.map(|b| format!("{} {}", words(b), units::percent(b.median_ns / total)));
    let cubin = cubin(context.machine, &start);
    let spared = cubin.map_or(String::new(), |(cubin, compiling)| {
        format!(
            "; a CUBIN compiled beforehand loads in {} instead of {}",
            units::time(cubin.median_ns),
            units::time(compiling)
        )
    });
    let text = format!(
        "The first {what} of a new process takes {}, {} as long as a warm one ({}): {}{spared}.",
        units::time(total),
        units::factor(total / warm.median_ns),
        units::time(warm.median_ns),
        named.collect::<Vec<String>>().join(", "),
    );
    let cubin = cubin.map(|(cubin, _)| cubin);
    let rests = start.phases.into_iter().chain([warm]).chain(cubin);
    Some(Finding::new(&warm.group, id, text).rests_on(rests))
}

/// Loading what was compiled beforehand, and how long compiling takes, ns.
fn cubin<'a>(machine: &'a MachineResults, start: &Start) -> Option<(&'a Benchmark, f64)> {
    let takes = |phase| {
        let mut phases = start.phases.iter();
        Some(phases.find(|b| phase_of(b) == Some(phase))?.median_ns)
    };
    let compiling = takes(Phase::NvrtcCompile)? + takes(Phase::PtxJit)?;
    Some((phase(machine, Phase::CubinLoad)?, compiling))
}
