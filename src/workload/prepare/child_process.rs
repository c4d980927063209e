//! Events that happen once per process, measured in child processes: the executable starts itself
//! again, and the child measures and sends its times.
//!
//! Criterion cannot repeat such events, so the processes run first, and each of Criterion's samples is
//! one process's time.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crossover_protocol::child;
use crossover_words::text::with_causes;

use crate::device::Gpu;
use crate::model::Verified;
use crate::workload::routine::{Routine, RoutineError};

/// Number of processes: as many as Criterion's samples. A further sample reuses the first process's
/// time.
const PROCESSES: usize = 10;

/// The measurement that a child process makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Task {
    /// The phases of its own start.
    ColdStart,
    /// The first product of a process, a large one.
    LargeGemm,
    /// All that a small transformer costs before its first result.
    Transformer,
    /// The first calls of several kinds of work, one by one.
    WarmingUp,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DeviceTask {
    pub(crate) device: usize,
    pub(crate) task: Task,
}

impl child::Request for DeviceTask {
    const VARIABLE: &'static str = "CROSSOVER_MEASURES";
    type Reply = Report;
}

/// The times of one process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Nanoseconds by phase, without phases whose library is absent.
    pub(crate) phases: BTreeMap<String, f64>,
    /// Number of results that the process computed and found wrong.
    pub(crate) wrong: u64,
}

impl Report {
    /// Runs and times something once.
    ///
    /// # Errors
    /// Errors of `run`.
    pub(crate) fn once<T>(
        &mut self,
        phase: impl ToString,
        run: impl FnOnce() -> Result<T, RoutineError>,
    ) -> Result<T, RoutineError> {
        let start = Instant::now();
        let value = run()?;
        self.phases
            .insert(phase.to_string(), start.elapsed().as_nanos() as f64);
        Ok(value)
    }
}

/// The measured processes, which run when the first of their phases is needed.
pub(crate) struct Processes {
    task: Task,
    reports: OnceCell<Vec<Report>>,
}

impl Processes {
    /// The processes of a task, shared by all rows and sizes.
    pub(crate) fn of(task: Task) -> Rc<Self> {
        thread_local! {
            static KNOWN: RefCell<BTreeMap<Task, Rc<Processes>>> = RefCell::default();
        }
        let reports = OnceCell::new();
        let new = || Rc::new(Self { task, reports });
        KNOWN.with_borrow_mut(|known| known.entry(task).or_insert_with(new).clone())
    }

    fn reports(&self, device: usize) -> Result<&[Report], RoutineError> {
        if let Some(reports) = self.reports.get() {
            return Ok(reports);
        }
        let task = DeviceTask {
            device,
            task: self.task,
        };
        // Some take a second each, and invented times are all the same.
        let processes = if Gpu::executes_kernels() {
            PROCESSES
        } else {
            2
        };
        let reports = (0..processes).map(|_| measured(&task));
        let reports = reports.collect::<Result<_, _>>()?;
        Ok(self.reports.get_or_init(|| reports))
    }
}

/// Runs a child process to its end.
fn measured(order: &DeviceTask) -> Result<Report, RoutineError> {
    // The driver's JIT, if measured, must not find the result of an earlier run.
    let variables = [("CUDA_CACHE_DISABLE", "1")];
    let mut report = None;
    child::ask(order, &variables, |sent| report = Some(sent)).map_err(|error| {
        format!(
            "the child process that measures failed: {}",
            with_causes(&*error)
        )
    })?;
    Ok(report.ok_or("the child process that measures sent no times")?)
}

/// One phase of the processes, as a routine.
pub(crate) struct PhaseTime {
    name: String,
    processes: Rc<Processes>,
    device: usize,
    /// The check that the processes make, in a sentence.
    method: &'static str,
    next: usize,
}

impl PhaseTime {
    pub(crate) fn new(
        gpu: &Gpu,
        processes: &Rc<Processes>,
        name: impl ToString,
        method: &'static str,
    ) -> Self {
        Self {
            name: name.to_string(),
            processes: processes.clone(),
            device: gpu.properties().ordinal,
            method,
            next: 0,
        }
    }
}

impl Routine for PhaseTime {
    fn poison(&mut self) -> Result<(), RoutineError> {
        // Each process poisons its own memory.
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        self.processes.reports(self.device).map(drop)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let reports = self.processes.reports(self.device)?;
        Ok(Verified {
            error: reports.iter().map(|r| r.wrong).sum::<u64>() as f64,
            bound: 0.0,
            method: self.method.to_owned(),
        })
    }

    fn time(&mut self, iterations: u64) -> Option<Result<f64, RoutineError>> {
        let sample = self.processes.reports(self.device).and_then(|reports| {
            let report = &reports[self.next % reports.len()];
            let ns = report.phases.get(&self.name).copied();
            ns.ok_or_else(|| {
                format!("the child process did not measure the phase {}", self.name).into()
            })
        });
        self.next += 1;
        Some(sample.map(|ns| ns * iterations as f64))
    }
}
