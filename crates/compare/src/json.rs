//! A comparison as JSON, for programs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::comparison::{Comparison, FailOn};
use crate::judge::Judgement;
use crate::rows::BenchmarkRow;
use crate::show::VERDICTS;
use crate::verdict::{CHANGE_ERROR, Layout, SAME_ERROR, Verdict};
use crossover_words::Clock;

/// Version of the JSON.
const SCHEMA: u32 = 1;

impl Comparison {
    /// The comparison as JSON, described in `docs/comparing.md`.
    pub fn json(&self, fail_on: FailOn) -> String {
        let counts = VERDICTS.map(|verdict| (verdict.to_string(), self.count(verdict)));
        let classes = self.drifts.iter().map(|drift| {
            json!({
                "class": drift.name(),
                "benchmarks": drift.benchmarks,
                "pairs": drift.pairs,
                "deviation": drift.deviation,
                "resolution": self.resolution(drift),
            })
        });
        let constants = self.slopes.iter().map(|(clock, slope)| {
            json!({
                "clock": clock.name(),
                "benchmarks": slope.benchmarks,
                "slope": slope.value,
                "slope_error": slope.error,
            })
        });
        let warnings = [&self.doubts[..], &self.unknown, &self.warnings].concat();
        let json = json!({
            "schema": SCHEMA,
            "base": self.base,
            "new": self.new,
            "threshold": self.options.threshold,
            "change_error": CHANGE_ERROR,
            "same_error": SAME_ERROR,
            "screened": self.options.screened,
            "layout": match &self.options.layout {
                Layout::Unknown => Value::Null,
                Layout::Random => json!("random"),
                Layout::Fixed(_) => json!("fixed"),
            },
            "layout_note": self.layout(),
            "failures": self.failures,
            "exit_code": self.exit_code(fail_on),
            "counts": BTreeMap::from(counts),
            "benchmarks": Vec::from_iter(self.rows.iter().map(benchmark)),
            "classes": Vec::from_iter(classes),
            "launch_constants": Vec::from_iter(constants),
            "warnings": warnings,
            "notes": self.notes,
            "problems": self.problems,
        });
        format!("{json:#}\n")
    }
}

/// A benchmark in the JSON. Infinite numbers become null.
fn benchmark(row: &BenchmarkRow) -> Value {
    let judged = |field: fn(&Judgement) -> f64| row.judgement.as_ref().map(field);
    json!({
        "id": row.id,
        "verdict": row.verdict,
        "clock": row.clock.map(Clock::name),
        "base_ns": row.base_ns,
        "new_ns": row.new_ns,
        "correction_ns": row.correction_ns,
        "ratio": judged(|j| j.ratio),
        "low": judged(|j| j.low),
        "high": judged(|j| j.high),
        "resolution": judged(|j| j.resolution),
        "pairs": row.judgement.map(|j| j.pairs),
        "more_pairs": judged(|j| j.more_pairs).filter(|_| row.verdict == Verdict::Unsure),
        "base_samples": row.base_samples,
        "new_samples": row.new_samples,
        "reason": row.reason,
        "marks": row.marks,
    })
}
