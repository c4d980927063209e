//! What the first call of a fresh process costs, and where it goes.

use crate::analysis::cold_start::{First, Start, phase, phase_of, start, words};
use crate::analysis::findings::finding::{Context, Finding};
use crate::model::role::Phase;
use crossover_words::units;

/// Share of a phase from which on the sentence names it.
const NAMED: f64 = 0.01;

pub(super) fn find(context: &Context) -> Vec<Finding> {
    let firsts = [
        (First::Kernel, "cold_start.kernel", "kernel"),
        (First::Product, "cold_start.product", "cuBLAS product"),
    ];
    firsts
        .into_iter()
        .filter_map(|(first, id, what)| {
            let start = start(context.machine, first)?;
            let mut finding = one(&start, id, what)?;
            if first == First::Kernel {
                cubin(context, &start, &mut finding);
            }
            finding.text.push('.');
            Some(finding)
        })
        .collect()
}

fn one(start: &Start, id: &str, what: &str) -> Option<Finding> {
    let (total, warm) = (start.total_ns(), start.warm?);
    let mut phases = start.phases.clone();
    phases.sort_by(|a, b| b.median_ns.total_cmp(&a.median_ns));
    let named: Vec<String> = phases
        .iter()
        .filter(|b| b.median_ns >= NAMED * total)
        .map(|b| {
            let share = units::percent(b.median_ns / total);
            format!("{} {share}", words(b))
        })
        .collect();
    let text = format!(
        "The first {what} of a new process takes {}, {} as long as a warm one ({}): {}",
        units::time(total),
        units::factor(total / warm.median_ns),
        units::time(warm.median_ns),
        named.join(", "),
    );
    let finding = Finding::new(&warm.group, id, text);
    Some(finding.rests_on(phases.into_iter().chain([warm])))
}

/// What compiling beforehand would spare.
fn cubin(context: &Context, start: &Start, finding: &mut Finding) {
    let compiled = |phase| start.phases.iter().find(|b| phase_of(b) == Some(phase));
    let (Some(nvrtc), Some(jit), Some(cubin)) = (
        compiled(Phase::NvrtcCompile),
        compiled(Phase::PtxJit),
        phase(context.machine, Phase::CubinLoad),
    ) else {
        return;
    };
    let compiling = nvrtc.median_ns + jit.median_ns;
    finding.text += &format!(
        "; a CUBIN compiled beforehand loads in {} instead of {}",
        units::time(cubin.median_ns),
        units::time(compiling)
    );
    finding.benchmarks.push(cubin.id.clone());
    finding.benchmarks.sort();
}
