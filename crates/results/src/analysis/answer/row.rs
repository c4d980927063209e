//! An answer as the record of a machine stores it; docs/records.md describes the fields.

use serde_json::{Value, json};

use crate::analysis::answer::crossover_answer::CrossoverAnswer;

/// The answers as they are stored, in their order.
pub fn crossovers(found: &[CrossoverAnswer]) -> Vec<Value> {
    let one = |f: &CrossoverAnswer| {
        let change = f.crossing.for_good();
        let (low, high) = f.crossing.speedup_interval;
        json!({
            "group": f.group,
            "cpu": f.cpu,
            "gpu": f.gpu,
            "gpu_machine": f.gpu_machine,
            "question": f.question,
            "clock": f.clock,
            "headline": f.headline,
            "answer": f.crossing.answer,
            "size": change.map(|c| c.size),
            "size_low": change.map(|c| c.low),
            "size_high": change.map(|c| c.high),
            "measured": change.map(|c| c.measured),
            "range": f.crossing.range,
            "speedup": f.crossing.speedup,
            "speedup_size": f.crossing.largest,
            "processes": f.crossing.is_confirmed().then_some(f.crossing.processes),
            "speedup_low": low,
            "speedup_high": high,
        })
    };
    found.iter().map(one).collect()
}
