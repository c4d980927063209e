//! Break-even reuse: how many operations pay for moving the data, how many calls for the
//! cold start.
//!
//! With T the time end to end, D the work alone on data already on the device and C the
//! best CPU time, moving costs T − D once and each operation saves C − D. From
//! k = (T − D) / (C − D) operations on the same data on, the GPU is ahead. D is the
//! headline answer's time with the data on the device and the calls queued.

use std::sync::Arc;

use serde::Serialize;

use crate::analysis::answer::crossover_answer::{
    CrossoverAnswer, best_cpu, curve, headlines, of_group,
};
use crate::analysis::cold_start::{self, First};
use crate::model::role::Residency;
use crate::store::curves::{Benchmark, Group, Series};
use crate::store::machine_results::MachineResults;

/// One size of a table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReuseRow {
    /// Problem size.
    pub size: u64,
    /// Operations on the same data that pay for moving it once; infinite where the CPU is
    /// faster even on data already moved, at most 1 where one operation pays.
    pub operations: f64,
    /// Calls on data on the device that pay for the cold start, where that was measured.
    pub calls: Option<f64>,
}

/// Break-even by size for one way of moving the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reuse {
    /// The group.
    pub group: String,
    /// The implementation that moves the data.
    pub transfer: String,
    /// The implementation on data already moved.
    pub resident: String,
    /// Sizes measured end to end, ascending.
    pub rows: Vec<ReuseRow>,
}

/// All tables of a machine. `found` are its answers.
pub fn find(machine: &MachineResults, found: &[CrossoverAnswer]) -> Vec<Reuse> {
    let tables = |group: &Arc<Group>| -> Option<Vec<Reuse>> {
        let mut asked = headlines(of_group(found, &group.name));
        let resident =
            asked.find(|f| f.question == Residency::Queued && f.gpu_machine.is_none())?;
        let series = resident.gpu_series(group)?;
        let start = cold_start::start(machine, First::of(series));
        let cold = start.map(|start| start.total_ns());
        let (device, (cpu, _)) = (curve(series), best_cpu(group));
        let row = |b: &Benchmark| {
            let size = b.size as f64;
            let (c, d) = (cpu.at(size)?.median, device.at(size)?.median);
            Some(ReuseRow {
                size: b.size,
                operations: pays((b.median_ns - d).max(0.0), c, d),
                calls: cold.map(|cold| pays(cold, c, d)),
            })
        };
        let table = |series: &Series| Reuse {
            group: group.name.clone(),
            transfer: series.implementation.clone(),
            resident: resident.gpu.clone(),
            rows: series.steady_points().filter_map(row).collect(),
        };
        let tables = group.moving().map(table);
        Some(tables.filter(|table| !table.rows.is_empty()).collect())
    };
    let tables = machine.groups.iter().filter_map(tables);
    tables.flatten().collect()
}

/// How many times `cpu - gpu` make up for `once`; infinite where the GPU saves nothing.
fn pays(once: f64, cpu: f64, gpu: f64) -> f64 {
    match cpu - gpu {
        saved if saved > 0.0 => once / saved,
        _ => f64::INFINITY,
    }
}
