//! The machine as the suite uses it. Its GPU is probed without a context, opened when first
//! needed, and lost for good after an error that poisons the context. The launches of its process are kept
//! short: after kernels on many streams all launches take longer until the process makes a second context, and a row
//! must not depend on the rows before it.

use std::cell::{Cell, OnceCell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossover_machine::libraries::Absence;
use crossover_machine::nvml::Monitor;
use crossover_machine::peers::{first_gpu, further_gpus};
use crossover_machine::{fingerprint, limits};
use crossover_protocol::ranks::OtherRanks;
use crossover_protocol::settings::Settings;
use crossover_words::units::time;

use crate::device::copies_and_events::PinnedPool;
use crate::device::gpu::Gpu;
use crate::device::kernel::SharedKernels;
use crate::model::environment::{Environment, FurtherGpu};
use crate::package::{self, Package};
use crate::suite::group::{AnyRow, Inputs};
use crate::suite::journal::Missing;
use crate::suite::sizes::MachineMemory;
use crate::timing::{Clock, CudaError, CudaTime, DeviceProperties, LaunchState, TimingError};
use crate::workload::choices::Choices;
use crate::workload::devices::{LaunchRequest, launches_of_ranks};
use crate::workload::routine::{Routine, RoutineError};

/// An implementation, set up at a size.
pub(super) struct Timed {
    pub(super) clock: Clock,
    /// Kernel or graph launches of an iteration; 0 on the CPU, whose time must not contain a wait for the
    /// device.
    pub(super) launches: u32,
    /// Whether iterations compute their outputs; false on a GPU whose driver executes no kernels.
    pub(super) is_executed: bool,
    pub(super) routine: Box<dyn Routine>,
    /// Iterations that were run. More than are timed: behind a gate, a single iteration is run once before.
    pub(super) ran: u64,
}

/// An iteration of warm code, by the last of several measurements.
pub(super) struct WarmIteration {
    /// On the clock of the benchmark, ns.
    pub(super) ns: f64,
    /// With all that the clock leaves out, such as a wait for the device, ns.
    pub(super) wall_ns: f64,
}

/// The machine of a run, with what the run has chosen for it.
pub(super) struct Host {
    /// The clocks, attached to the device once it is opened.
    pub(super) time: CudaTime,
    /// The calibrated choices of the code that is set up here.
    pub(super) choices: Choices,
    /// The compiled kernels of the run.
    pub(super) kernels: SharedKernels,
    /// The other processes of a run of several.
    pub(super) ranks: Option<Rc<OtherRanks>>,
    /// The package whose code is measured; `None` if it is this one.
    pub(super) package: Option<Package>,
    /// Whether launches count as short when the device is opened, without a restoration: in a process that was started
    /// for a few benchmarks.
    pub(super) opens_short: bool,
    /// Whether the note on unknown launches was printed.
    pub(super) launches_noted: Cell<bool>,
    /// Clocks of the devices beside the first.
    beside: RefCell<Vec<CudaTime>>,
    settings: Settings,
    probed: OnceCell<Result<DeviceProperties, Absence>>,
    opened: OnceCell<Result<Rc<Gpu>, Absence>>,
    further: OnceCell<Result<Vec<FurtherGpu>, Absence>>,
    lost: RefCell<Option<String>>,
    monitor: OnceCell<Option<Arc<Monitor>>>,
    host_bytes: OnceCell<u64>,
}

impl Host {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            time: CudaTime::host_only(),
            choices: Choices::default(),
            kernels: SharedKernels::default(),
            ranks: None,
            package: None,
            opens_short: settings.turns.is_some(),
            launches_noted: Cell::new(false),
            beside: RefCell::default(),
            settings: settings.clone(),
            probed: OnceCell::new(),
            opened: OnceCell::new(),
            further: OnceCell::new(),
            lost: RefCell::default(),
            monitor: OnceCell::new(),
            host_bytes: OnceCell::new(),
        }
    }

    /// The driver's properties of the device; creates no context.
    pub(super) fn device(&self) -> Result<&DeviceProperties, &Absence> {
        self.probed
            .get_or_init(|| first_gpu(&self.settings))
            .as_ref()
    }

    /// The opened device, its stream attached to the clock.
    pub(super) fn gpu(&self) -> Result<Rc<Gpu>, Absence> {
        let properties = self.device().map_err(Clone::clone)?;
        self.opened
            .get_or_init(|| {
                let further = self.further().cloned().unwrap_or_default();
                let gpu = Gpu::open(properties.ordinal)?.sharing(self.kernels.clone());
                let mut gpu = gpu.with_further(further);
                gpu.ranks.clone_from(&self.ranks);
                self.time.attach(gpu.stream(), self.settings.gate)?;
                if self.opens_short {
                    // After an error, the first benchmark probes again.
                    let _ = self.known_launches(LaunchRequest::Probe.on(&self.time));
                }
                Ok(Rc::new(gpu))
            })
            .clone()
    }

    /// Clocks of the opened devices beside it.
    pub(super) fn clocks_beside(&self, gpu: &Gpu) -> Result<Ref<'_, [CudaTime]>, CudaError> {
        let opened = gpu.opened_beside();
        let mut clocks = self.beside.borrow_mut();
        for beside in &opened[clocks.len().min(opened.len())..] {
            clocks.push(CudaTime::on_stream(beside.stream(), self.settings.gate)?);
        }
        drop(clocks);
        Ok(Ref::map(self.beside.borrow(), Vec::as_slice))
    }

    /// The devices beside it that the settings name, and their links, which are tried in child processes.
    pub(super) fn further(&self) -> Result<&Vec<FurtherGpu>, &Absence> {
        let find = || further_gpus(&self.settings);
        self.further.get_or_init(find).as_ref()
    }

    /// Why no group on several devices can run, in a sentence; `None` where they can.
    pub(super) fn lacks_devices(&self) -> Option<String> {
        match self.device().and_then(|_| self.further()) {
            Ok(further) if further.is_empty() && self.ranks.is_none() => {
                Some(Absence::OneDevice.to_string())
            }
            Ok(_) => None,
            Err(absence) => Some(absence.to_string()),
        }
    }

    /// The device, if it has been opened and is not lost.
    pub(super) fn opened(&self) -> Option<&Rc<Gpu>> {
        if self.lost.borrow().is_some() {
            return None;
        }
        self.opened.get().and_then(|gpu| gpu.as_ref().ok())
    }

    /// Why no GPU benchmark can run, in a sentence; `None` where they can.
    pub(super) fn gpu_missing(&self) -> Option<String> {
        if let Some(lost) = &*self.lost.borrow() {
            return Some(lost.clone());
        }
        let absence = match (self.device(), self.opened.get()) {
            (Err(absence), _) | (_, Some(Err(absence))) => absence.to_string(),
            _ => return None,
        };
        Some(self.explain(absence))
    }

    /// Adds to an error of memory how much is free, and the remedy.
    pub(super) fn explain(&self, error: String) -> String {
        // The names of this error in CUDA and cuBLAS.
        let no_memory = ["CUDA_ERROR_OUT_OF_MEMORY", "CUBLAS_STATUS_ALLOC_FAILED"];
        if !no_memory.iter().any(|name| error.contains(name)) {
            return error;
        }
        let Some((free, all)) = self.monitor().and_then(|monitor| monitor.memory_bytes()) else {
            return error;
        };
        let gib = |bytes: u64| bytes as f64 / f64::from(1u32 << 30);
        format!(
            "{error}; {:.1} GiB of {:.1} GiB of device memory are free: end the process that holds \
             the rest (`nvidia-smi` lists it), or choose another GPU with CROSSOVER_DEVICE",
            gib(free),
            gib(all)
        )
    }

    /// Whether the device's absence is a failure: it was selected by its index, or the device or its
    /// driver exists but does not work. The absence of any GPU is no failure.
    pub(super) fn device_failed(&self) -> bool {
        use crate::timing::Absence as Timing;
        // Those beside it are all named.
        if matches!(self.opened.get(), Some(Err(_))) || matches!(self.further.get(), Some(Err(_))) {
            return true;
        }
        match self.device() {
            Err(Absence::Device(Timing::Failed { .. })) => true,
            Err(Absence::Device(_)) => self.settings.device_named,
            _ => false,
        }
    }

    /// After a sticky error nothing on the GPU can run in this process any more.
    pub(super) fn lose_gpu(&self, culprit: &str) {
        *self.lost.borrow_mut() = Some(format!(
            "the CUDA context was lost in {culprit}; only a new process can use the GPU again: \
             run the rest with a filter"
        ));
    }

    /// The device in NVML, where there are both.
    pub(super) fn monitor(&self) -> Option<&Arc<Monitor>> {
        self.monitor
            .get_or_init(|| Monitor::open(self.device().ok()?).map(Arc::new))
            .as_ref()
    }

    /// Collects the fingerprint of the machine.
    pub(super) fn environment(&self) -> Environment {
        let partners = u32::from(self.settings.turns.is_some());
        let (commit, dirty) = package::commit(self.package);
        Environment {
            package: self.package.map(|it| format!("{} {}", it.name, it.version)),
            commit,
            dirty,
            further_gpus: self.further().cloned().unwrap_or_default(),
            ..fingerprint::collect(self.device(), partners)
        }
    }

    /// Releases pinned memory that is kept for later routines.
    pub(super) fn release_pinned(&self) {
        if let Some(gpu) = self.opened() {
            gpu.pinned_pool().clear();
        }
    }

    /// Whether a benchmark that needs these bytes fits.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn has_room_for(&self, host: u64, device: Option<u64>) -> Result<(), Missing> {
        let memory = MachineMemory {
            host: *self.host_bytes.get_or_init(limits::memory),
            device: self.device().map_or(0, |d| d.memory_bytes),
        };
        if host.saturating_add(PinnedPool::MOST as u64) > memory.host {
            self.release_pinned();
        }
        memory
            .lacks(host, device)
            .map_or(Ok(()), |reason| Err(Missing::Absent(reason.into())))
    }

    /// Sets an implementation up for these inputs.
    pub(super) fn set_up(&self, row: &AnyRow, inputs: &Inputs) -> Result<Timed, RoutineError> {
        let gpu = || {
            let gpu = self.gpu()?;
            self.time.wake()?;
            Ok(gpu)
        };
        let routine = row.set_up(inputs, gpu)?;
        Ok(Timed {
            clock: row.clock,
            launches: if row.is_gpu() {
                routine.launches().max(1)
            } else {
                0
            },
            is_executed: row.is_executed(),
            routine,
            ran: 0,
        })
    }

    /// Poisons the output, runs once from restored state and waits. This happens even if nothing is
    /// verified: set-up in a routine's first run must not be timed, and in every process the poisoning
    /// threads must be the first to touch the output's memory.
    pub(super) fn run_once(&self, code: &mut Timed) -> Result<(), RoutineError> {
        code.routine.restore()?;
        code.routine.poison()?;
        code.routine.run()?;
        self.wait()
    }

    /// Waits for the device, where it is open.
    pub(super) fn wait(&self) -> Result<(), RoutineError> {
        match self.opened() {
            Some(gpu) => Ok(gpu.synchronize()?),
            None => Ok(()),
        }
    }

    /// Wakes the device: the CPU may have had a long turn, and the device's clock has come down meanwhile.
    pub(super) fn wake(&self, code: &Timed) -> Result<(), RoutineError> {
        if code.launches > 0 {
            self.time.wake()?;
        }
        Ok(())
    }

    /// Times `iterations` from restored state, in nanoseconds.
    pub(super) fn measure(&self, code: &mut Timed, iterations: u64) -> Result<f64, TimingError> {
        self.restore(code)?;
        self.measure_restored(code, iterations)
    }

    fn restore(&self, code: &mut Timed) -> Result<(), TimingError> {
        code.routine.restore()?;
        if code.launches > 0 {
            // Otherwise the sample would contain it.
            self.wait()?;
        }
        Ok(())
    }

    fn measure_restored(&self, code: &mut Timed, iterations: u64) -> Result<f64, TimingError> {
        let (clock, launches) = (code.clock, code.launches);
        let announcer = code.routine.announcer();
        let mut run = || {
            code.ran += 1;
            code.routine.run()
        };
        if launches > 0 {
            // Rows on this clock wait for their work themselves.
            return self.time.announcing(announcer, || match clock {
                Clock::Wall => self.time.measure_awaited(iterations, run),
                _ => self.time.measure_launches(clock, iterations, launches, run),
            });
        }
        let mut outcome = Ok(());
        let ns = self.time.measure_cpu(iterations, || {
            if outcome.is_ok() {
                outcome = run();
            }
        });
        outcome?;
        Ok(ns)
    }

    /// Runs twice as many iterations each time until so much time has passed, and the last time took at least
    /// `last` on its clock. Returns an iteration of the last time.
    pub(super) fn warm_up(
        &self,
        code: &mut Timed,
        time: Duration,
        last: Duration,
    ) -> Result<WarmIteration, TimingError> {
        let start = Instant::now();
        let mut iterations = 1;
        loop {
            self.restore(code)?;
            let begun = Instant::now();
            let ns = self.measure_restored(code, iterations)?;
            let wall = begun.elapsed();
            if start.elapsed() >= time && ns >= last.as_nanos() as f64 {
                return Ok(WarmIteration {
                    ns: ns / iterations as f64,
                    wall_ns: wall.as_nanos() as f64 / iterations as f64,
                });
            }
            iterations *= 2;
        }
    }
}

/// Why a series whose launches became long is not taken again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotAgain {
    /// The benchmark does so by itself, as any program with its streams.
    OwnStreams,
    /// A restoration had no effect.
    Stuck,
}

impl Host {
    /// Restores launches that became long during the samples of a benchmark, and runs it once. Returns why it need not
    /// be sampled again.
    pub(super) fn restore_after(
        &self,
        code: &mut Timed,
        several: bool,
    ) -> Result<Option<NotAgain>, RoutineError> {
        let restored = self.probe_launches(several, LaunchRequest::Shorten)?;
        if restored.is_none_or(|state| state.is_long) {
            return Ok(Some(NotAgain::Stuck));
        }
        self.run_once(code)?;
        let after = self.probe_launches(several, LaunchRequest::Probe)?;
        Ok((after.is_none_or(|state| state.is_long)).then_some(NotAgain::OwnStreams))
    }

    /// Probes the launches of the first device, or of all if `several`.
    pub(super) fn probe_launches(
        &self,
        several: bool,
        request: LaunchRequest,
    ) -> Result<Option<LaunchState>, RoutineError> {
        let probe_one = |time| self.known_launches(request.on(time));
        let mut worst = probe_one(&self.time)?;
        let gpu = self.opened().filter(|_| several);
        let (Some(gpu), Some(worst_state)) = (gpu, &mut worst) else {
            return Ok(worst);
        };
        for time in self.clocks_beside(gpu)?.iter() {
            if let Some(state) = probe_one(time)? {
                worst_state.is_long |= state.is_long;
                worst_state.is_restored |= state.is_restored;
            }
        }
        gpu.bind()?;
        worst_state.is_long |= launches_of_ranks(gpu, request)?;
        Ok(worst)
    }

    /// A state; without one the benchmark is measured all the same. Says once why there is none, and that no
    /// restoration is tried any more.
    pub(super) fn known_launches(
        &self,
        state: Result<Option<LaunchState>, TimingError>,
    ) -> Result<Option<LaunchState>, TimingError> {
        match state {
            Err(error) if !error.is_sticky() => {
                if !self.launches_noted.replace(true) {
                    eprintln!(
                        "note: it is not known whether launches take longer than in a new process: {error}"
                    );
                }
                Ok(None)
            }
            Ok(Some(state)) if state.gives_up => {
                eprintln!("note: {STUCK}");
                Ok(Some(state))
            }
            known => known,
        }
    }
}

/// The note if launches stay long.
const STUCK: &str = "two restorations in a row did not make launches shorter, so this run tries no more; its short \
    kernels and graphs take longer than in a new process";

/// The note on a benchmark during whose samples launches were long.
pub(super) fn long_launches(state: LaunchState, not_again: Option<NotAgain>) -> String {
    let LaunchState {
        probe_ns, short_ns, ..
    } = state;
    let why = match not_again {
        Some(NotAgain::OwnStreams) => {
            "it runs kernels on many streams itself, which makes launches longer in every program"
        }
        Some(NotAgain::Stuck) => "a second context did not make them shorter",
        None => "kernels on many streams make them longer",
    };
    format!(
        "launches took longer after its samples (a graph of 32 small kernels {} instead of {}): {why}",
        time(probe_ns),
        time(short_ns)
    )
}
