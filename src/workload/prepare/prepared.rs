//! A routine of the GPU as data: the memory that it owns, the steps of an iteration, what to poison and
//! restore before one, and the check of the result.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::device::{Gpu, Value};
use crate::model::Verified;
use crate::timing::{CudaError, DeviceMemory, Launch};
use crate::workload::prepare::host_memory::{Buffer, HostMemory, fill};
use crate::workload::prepare::memory::{Device, Host, Memory};
use crate::workload::prepare::steps::{Steps, Stream};
use crate::workload::prepare::threads::Threads;
use crate::workload::routine::{Alteration, Routine, RoutineError, judged};

type Preparation = Box<dyn Fn(&mut Memory) -> Result<(), RoutineError>>;
/// Checks the output, or an altered copy if it can make one.
type Check = Box<dyn Fn(&Memory, Option<Alteration>) -> Result<Option<Verified>, RoutineError>>;
/// Gives the values of figures, by their keys.
type Measure = Box<dyn Fn(&Steps) -> Result<BTreeMap<String, f64>, RoutineError>>;

/// A routine of the GPU. Add memory ([`upload`](Self::upload), [`output`](Self::output),
/// [`input`](Self::input)), [kernels](Self::kernel) and a [check](Self::check_by), in the order in
/// which they are to run.
pub struct Prepared {
    /// The steps of an iteration. Dropped before the memory that they use.
    pub(crate) steps: Steps,
    /// Measures further figures after the last check.
    pub(crate) measure: Option<Measure>,
    pub(crate) memory: Memory,
    /// Whether an iteration ends only when the device is done with it.
    pub(crate) waits: bool,
    /// Whether the host must wait for each iteration, although the steps do not.
    awaited: bool,
    /// Remarks stored with the result.
    pub notes: Vec<String>,
    pub(crate) figures: BTreeMap<String, f64>,
    /// Threads that work on the host between the steps.
    pub(crate) threads: Option<Rc<Threads>>,
    poisons: Vec<Preparation>,
    /// Poisons of host memory, which are written at once.
    host_poisons: Vec<Preparation>,
    restores: Vec<Preparation>,
    /// Memory that no step changes.
    inputs: Vec<DeviceMemory<'static>>,
    outputs: Vec<DeviceMemory<'static>>,
    check: Option<Check>,
}

impl Prepared {
    /// A routine without memory and steps.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(gpu: &Rc<Gpu>) -> Result<Self, CudaError> {
        Self::with(gpu, Memory::new(gpu))
    }

    /// Memory of a device beside the first, for steps of a routine of the first. It is written and read on a
    /// stream on which no step runs.
    pub(crate) fn beside(gpu: &Rc<Gpu>) -> Result<Self, CudaError> {
        Self::with(gpu, Memory::on(gpu, &gpu.other_streams()[0]))
    }

    fn with(gpu: &Rc<Gpu>, memory: Memory) -> Result<Self, CudaError> {
        Ok(Self {
            steps: Steps::new(gpu)?,
            measure: None,
            memory,
            waits: false,
            awaited: false,
            notes: Vec::new(),
            figures: BTreeMap::new(),
            threads: None,
            poisons: Vec::new(),
            host_poisons: Vec::new(),
            restores: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            check: None,
        })
    }

    /// Launches a kernel in each iteration, after the steps added before.
    ///
    /// # Safety
    /// The kernel's arguments must be of the declared types, and its memory must be that of this
    /// routine, or valid as long as this lives and used by nothing else while it runs.
    pub unsafe fn kernel(&mut self, launch: Launch) {
        // SAFETY: the caller promises the arguments; the steps are dropped before the memory.
        unsafe { self.steps.kernel(launch) };
    }

    /// Device memory with a copy of `values` that no step changes.
    ///
    /// # Errors
    /// The driver's, out of memory included.
    pub fn upload<T: Value>(&mut self, values: &[T]) -> Result<Device<T>, CudaError> {
        let device = self.state(values)?;
        self.inputs.push(self.memory.place(device));
        Ok(device)
    }

    /// Device memory with a copy of `values` that the steps change.
    ///
    /// # Errors
    /// The driver's, out of memory included.
    pub(crate) fn state<T: Value>(&mut self, values: &[T]) -> Result<Device<T>, CudaError> {
        if values.is_empty() {
            return self.alloc(0);
        }
        self.memory.upload(values)
    }

    /// Device memory for `len` values, neither initialised nor poisoned.
    ///
    /// # Errors
    /// The driver's, out of memory included.
    pub fn alloc<T: Value>(&mut self, len: usize) -> Result<Device<T>, CudaError> {
        // The driver refuses an allocation of 0 bytes.
        let slice = self.memory.gpu.alloc(len.max(1))?;
        Ok(self.memory.own(slice, len))
    }

    /// Device memory for `len` values that the steps write. Before a checked run each byte is set to
    /// 0xFF, which makes floats NaN.
    ///
    /// # Errors
    /// The driver's, out of memory included.
    pub fn output<T: Value>(&mut self, len: usize) -> Result<Device<T>, CudaError> {
        let device = self.alloc(len)?;
        self.poison_by(device, 0xFF);
        Ok(device)
    }

    /// As [`output`](Self::output), for memory that the suite need not observe.
    ///
    /// # Errors
    /// The driver's, out of memory included.
    pub(crate) fn unobserved<T: Value>(&mut self, len: usize) -> Result<Device<T>, CudaError> {
        let device = self.alloc(len)?;
        self.poison(move |memory| Ok(memory.fill(device, 0xFF)?));
        Ok(device)
    }

    /// A copy of values on the device: made once, or by the steps from host memory of one kind. In that
    /// case it is poisoned, so that a missing upload shows. The routine keeps `owner` alive, because
    /// pageable memory is the owner's own.
    ///
    /// # Errors
    /// The driver's, out of memory included.
    pub fn input<W: 'static, T: Value>(
        &mut self,
        from: Option<HostMemory>,
        owner: &Rc<W>,
        values: impl Fn(&W) -> &[T],
    ) -> Result<Device<T>, CudaError> {
        // Called once: a second call may give another number of values.
        let own = values(owner);
        let Some(memory) = from else {
            return self.upload(own);
        };
        let device = self.output(own.len())?;
        self.keep(owner);
        let host = self.host_values(memory, own)?;
        // SAFETY: both have as many values as `own`; the routine owns the device's, and owns or keeps the
        // host's.
        unsafe {
            self.steps
                .upload(Stream::Compute, host.values, device.address)
        };
        Ok(device)
    }

    /// Values of `owner` in host memory of one kind: its own, or a pinned copy.
    pub(crate) fn host_input<W: 'static, T: Value>(
        &mut self,
        memory: HostMemory,
        owner: &Rc<W>,
        values: impl Fn(&W) -> &[T],
    ) -> Result<Host<T>, CudaError> {
        self.keep(owner);
        self.host_values(memory, values(owner))
    }

    /// Values of an owner that the routine keeps, in host memory of one kind.
    fn host_values<T: Value>(
        &mut self,
        memory: HostMemory,
        own: &[T],
    ) -> Result<Host<T>, CudaError> {
        match memory {
            HostMemory::Pageable => Ok(Host::of_problem(own)),
            HostMemory::Pinned => self.host_copy(memory, own),
        }
    }

    /// A copy of values in host memory of one kind.
    pub(crate) fn host_copy<T: Value>(
        &mut self,
        memory: HostMemory,
        values: &[T],
    ) -> Result<Host<T>, CudaError> {
        let copy = Buffer::of(&self.memory.gpu, memory, values)?;
        Ok(self.memory.own_host(copy))
    }

    /// Host memory of one kind for `len` values, set to `poison` before a checked run.
    pub(crate) fn host_output<T: Value>(
        &mut self,
        memory: HostMemory,
        poison: T,
        len: usize,
    ) -> Result<Host<T>, CudaError> {
        let buffer = Buffer::filled(&self.memory.gpu, memory, poison, len)?;
        let host = self.memory.own_host(buffer);
        self.poison_host(host, poison);
        Ok(host)
    }

    /// Checks the values of `device` by `check`. With host memory of one kind, the steps copy the
    /// values there first, and each iteration waits for the copy.
    ///
    /// # Errors
    /// The driver's, out of memory included.
    pub fn check_values<T: Value>(
        &mut self,
        to: Option<HostMemory>,
        device: Device<T>,
        poison: T,
        check: impl Fn(&[T]) -> Verified + 'static,
    ) -> Result<(), CudaError> {
        let Some(memory) = to else {
            let check: Check =
                Box::new(move |memory, altered| Ok(judged(&memory.read(device)?, altered, &check)));
            self.check = Some(check);
            return Ok(());
        };
        let host = self.host_output(memory, poison, device.len)?;
        let from = self.memory.place(device).address();
        // SAFETY: both have as many values, the routine owns them, and `waits` keeps the host from them.
        unsafe { self.steps.download(Stream::Compute, from, host.values) };
        self.waits = true;
        let check: Check =
            Box::new(move |memory, altered| Ok(judged(memory.values(host), altered, &check)));
        self.check = Some(check);
        Ok(())
    }

    /// Checks the results of the steps by `check`.
    pub fn check_by(
        &mut self,
        check: impl Fn(&Memory) -> Result<Verified, RoutineError> + 'static,
    ) {
        self.check = Some(Box::new(move |memory, altered| match altered {
            None => check(memory).map(Some),
            Some(_) => Ok(None),
        }));
    }

    /// The verdict on the result, or on an altered copy of it; `None` where nothing compares it, or there is
    /// no such copy.
    pub(crate) fn verdict(
        &self,
        altered: Option<Alteration>,
    ) -> Result<Option<Verified>, RoutineError> {
        let check = self.check.as_ref();
        check.map_or(Ok(None), |check| check(&self.memory, altered))
    }

    /// Sets each byte to `byte` before a checked run.
    ///
    /// # Panics
    /// On values of another routine.
    pub fn poison_by<T: Value>(&mut self, device: Device<T>, byte: u8) {
        self.outputs.push(self.memory.place(device));
        self.poison(move |memory| Ok(memory.fill(device, byte)?));
    }

    /// As [`poison_by`](Self::poison_by), for host memory, with a value.
    pub(crate) fn poison_host<T: Value>(&mut self, host: Host<T>, value: T) {
        self.host_poisons.push(Box::new(move |memory| {
            if let Some(values) = memory.values_mut(host) {
                fill(values, value);
            }
            Ok(())
        }));
    }

    /// Poisons device memory in the order of the stream: host memory may be in use.
    pub(crate) fn poison_device(&mut self) -> Result<(), RoutineError> {
        (self.poisons.iter()).try_for_each(|poison| poison(&mut self.memory))
    }

    /// Adds work before a checked run.
    pub(crate) fn poison(
        &mut self,
        change: impl Fn(&mut Memory) -> Result<(), RoutineError> + 'static,
    ) {
        self.poisons.push(Box::new(change));
    }

    /// Copies `from` to `to`, which the steps change, before each sample.
    ///
    /// # Panics
    /// On values of another routine.
    pub fn restore<T: Value>(&mut self, to: Device<T>, from: Device<T>) {
        let [changed, _] = [to, from].map(|device| self.memory.place(device));
        self.inputs.retain(|input| *input != changed);
        let copy = move |memory: &mut Memory| Ok(memory.copy(from, to)?);
        self.restores.push(Box::new(copy));
    }

    /// Declares that the steps read these values of memory that others share, which no step changes.
    ///
    /// # Panics
    /// On values of other memory.
    pub(crate) fn reads<T: Value, const N: usize>(
        &mut self,
        memory: &Rc<Memory>,
        values: [Device<T>; N],
    ) {
        (self.inputs).extend(values.map(|device| memory.place(device)));
        self.keep(memory);
    }

    /// Keeps something alive as long as the routine.
    pub fn keep<W: 'static>(&mut self, owner: &Rc<W>) {
        self.memory.keep(owner);
    }
}

impl Routine for Prepared {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.poison_device()?;
        (self.host_poisons.iter()).try_for_each(|poison| poison(&mut self.memory))?;
        if self.waits {
            // Neither the other streams nor the host are ordered behind the GPU's stream.
            self.memory.gpu.synchronize()?;
        }
        Ok(())
    }

    fn restore(&mut self) -> Result<(), RoutineError> {
        (self.restores.iter()).try_for_each(|restore| restore(&mut self.memory))
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        Ok(if self.waits || self.awaited {
            self.steps.run()
        } else {
            self.steps.enqueue()
        }?)
    }

    fn wait_for_each(&mut self) -> Result<(), RoutineError> {
        self.awaited = true;
        Ok(())
    }

    fn park(&mut self) {
        if let Some(threads) = &self.threads {
            threads.park();
        }
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok(self.verdict(None)?.ok_or("nothing compares the result")?)
    }

    fn check_altered(&mut self, by: Alteration) -> Result<Option<Verified>, RoutineError> {
        self.verdict(Some(by))
    }

    fn inputs(&self) -> Vec<DeviceMemory<'_>> {
        self.inputs.clone()
    }

    fn outputs(&self) -> Vec<DeviceMemory<'_>> {
        self.outputs.clone()
    }

    fn launches(&self) -> u32 {
        self.steps.launches()
    }

    fn extra(&mut self) -> Result<BTreeMap<String, f64>, RoutineError> {
        let measure = self.measure.as_ref();
        let mut figures = measure.map_or(Ok(BTreeMap::new()), |measure| measure(&self.steps))?;
        figures.extend(self.figures.clone());
        Ok(figures)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
