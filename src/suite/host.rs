//! The machine as the suite uses it. Its GPU is probed without a context, opened when first
//! needed, and lost for good after an error that poisons the context.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use crate::device::gpu::Gpu;
use crate::machine::commit;
use crate::model::environment::Environment;
use crate::suite::group::Memory;
use crate::suite::missing::Missing;
use crate::timing::{CudaTime, DeviceProperties};
use crossover_machine::absence::Absence;
use crossover_machine::nvml::Monitor;
use crossover_machine::{fingerprint, memory};
use crossover_protocol::settings::Settings;

pub(super) struct Host {
    /// The clocks, attached to the device once it is opened.
    pub(super) time: CudaTime,
    settings: Settings,
    probed: OnceCell<Result<DeviceProperties, Absence>>,
    opened: OnceCell<Result<Rc<Gpu>, Absence>>,
    lost: RefCell<Option<String>>,
    monitor: OnceCell<Option<Arc<Monitor>>>,
    host_bytes: OnceCell<u64>,
}

impl Host {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            time: CudaTime::host_only(),
            settings: settings.clone(),
            probed: OnceCell::new(),
            opened: OnceCell::new(),
            lost: RefCell::default(),
            monitor: OnceCell::new(),
            host_bytes: OnceCell::new(),
        }
    }

    /// The driver's properties of the device; creates no context.
    pub(super) fn device(&self) -> Result<&DeviceProperties, &Absence> {
        self.probed.get_or_init(|| self.settings.probe()).as_ref()
    }

    /// The opened device, its stream attached to the clock.
    pub(super) fn gpu(&self) -> Result<Rc<Gpu>, Absence> {
        let properties = self.device().map_err(Clone::clone)?;
        self.opened
            .get_or_init(|| {
                let gpu = Gpu::open(properties.ordinal)?;
                self.time.attach(gpu.stream(), self.settings.gate)?;
                Ok(Rc::new(gpu))
            })
            .clone()
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
        if matches!(self.opened.get(), Some(Err(_))) {
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
        let (commit, dirty) = commit::of_what_is_measured();
        let package = commit::measured();
        Environment {
            package: package.map(|it| format!("{} {}", it.name, it.version)),
            commit,
            dirty,
            ..fingerprint::collect(self.device(), partners)
        }
    }

    /// Whether a benchmark that needs these bytes fits.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn has_room_for(&self, host: u64, device: Option<u64>) -> Result<(), Missing> {
        let memory = Memory {
            host: *self.host_bytes.get_or_init(memory::usable),
            device: self.device().map_or(0, |d| d.memory_bytes),
        };
        memory
            .lacks(host, device)
            .map_or(Ok(()), |reason| Err(Missing::Absent(reason.into())))
    }
}
