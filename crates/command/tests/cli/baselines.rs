//! Writes baseline folders as Criterion and the suite do, for tests of the comparison.

use std::fs;
use std::path::{Path, PathBuf};

use crossover_results::store::planted;
use crossover_suite::model::{Cpu, Environment, GpuInfo};
use crossover_suite::model::{DeviceState, RunRecord, SCHEMA, Sidecar};
use crossover_suite::timing::Clock;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;

/// One benchmark to write.
pub(crate) struct Result {
    id: String,
    ns: f64,
    seed: u64,
    sidecar: Option<Sidecar>,
}

impl Result {
    pub(crate) fn new(id: &str, ns: f64, seed: u64) -> Self {
        let mut this = Self {
            id: id.to_owned(),
            ns,
            seed,
            sidecar: Some(Sidecar::of(id, Clock::EventsGated)),
        };
        this.set_state(1980, &[]);
        this
    }

    fn set_state(&mut self, clock_mhz: u32, reasons: &[&str]) {
        let reasons = reasons.iter().map(ToString::to_string).collect();
        let sidecar = self.sidecar.as_mut().expect("a sidecar");
        sidecar.device_state = Some(DeviceState {
            sm_clock_mhz: Some(clock_mhz),
            throttle_reasons: Some(reasons),
        });
    }

    pub(crate) fn throttled(mut self) -> Self {
        self.set_state(1200, &["sw_thermal_slowdown"]);
        self
    }

    /// As another project's benchmarks leave it.
    pub(crate) fn without_sidecar(mut self) -> Self {
        self.sidecar = None;
        self
    }
}

/// Folder of a result, named as Criterion names it.
pub(crate) fn folder(root: &Path, baseline: &str, id: &str) -> PathBuf {
    let (group, rest) = id.split_once('/').unwrap();
    let (function, size) = rest.rsplit_once('/').unwrap();
    let function = function.replace('/', "_");
    root.join(group).join(function).join(size).join(baseline)
}

/// Writes a result of the run that [`suite`] names after its baseline.
pub(crate) fn write(root: &Path, baseline: &str, result: &Result) {
    let dir = folder(root, baseline, &result.id);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(result.seed);
    // The sum of four for a bell.
    let mut bell = || (0..4).map(|_| random.random::<f64>()).sum::<f64>() - 2.0;
    let iters = Vec::from_iter((1..=30).map(|i| f64::from(i * 10)));
    let times = iters.iter();
    let times = Vec::from_iter(times.map(|n| n * result.ns * (1.0 + 0.00085 * bell())));
    let sidecar = result.sidecar.clone().map(|sidecar| Sidecar {
        run: format!("run-{baseline}"),
        ..sidecar
    });
    planted::plant(&dir, &result.id, &iters, &times, sidecar);
    fs::write(dir.join("tukey.json"), "[]").unwrap();
}

pub(crate) fn record(root: &Path, run: &str, change: impl FnOnce(&mut RunRecord)) {
    let mut record = RunRecord {
        schema: SCHEMA,
        run: run.to_owned(),
        started: "2026-11-21T09:30:00Z".to_owned(),
        size_set: "quick".to_owned(),
        environment: Environment {
            crossover: "0.1.0".to_owned(),
            commit: Some("0123456789abcdef".to_owned()),
            dirty: Some(false),
            cpu: Cpu {
                model: "A CPU".to_owned(),
                ..Cpu::default()
            },
            gpu: Some(GpuInfo {
                name: "A GPU".to_owned(),
                driver: Some("580.1".to_owned()),
                ..GpuInfo::default()
            }),
            ..Environment::default()
        },
        ..RunRecord::default()
    };
    change(&mut record);
    let runs = root.join("runs");
    fs::create_dir_all(&runs).unwrap();
    fs::write(runs.join(format!("{run}.json")), json!(record).to_string()).unwrap();
}

/// Twenty gated benchmarks of 100 µs and more; `ratio` says by how much each differs.
pub(crate) fn suite(root: &Path, baseline: &str, seed: u64, ratio: impl Fn(&str) -> f64) {
    record(root, &format!("run-{baseline}"), |_| {});
    for kernel in ["tiled", "naive", "cublas", "fused"] {
        for (i, size) in [64, 128, 256, 512, 1024].into_iter().enumerate() {
            let id = format!("matmul/gpu/{kernel}/{size}");
            let ns = 1e5 * f64::from(1 << i) * ratio(&id);
            let seed = seed * 1000 + size + kernel.len() as u64;
            write(root, baseline, &Result::new(&id, ns, seed));
        }
    }
}
