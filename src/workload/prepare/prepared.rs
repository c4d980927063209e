//! A routine of the GPU as data: the memory that it owns, the steps of an iteration, what to poison and
//! restore before one, and the check of the result.

use std::any::Any;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::{CudaSlice, DevicePtr, result, sys::CUdeviceptr};

use crate::device::{Gpu, Value, copies_and_events::mapped_address};
use crate::model::Verified;
use crate::timing::{CudaError, DeviceMemory, Launch};
use crate::workload::prepare::host_memory::{Buffer, HostMemory, fill};
use crate::workload::prepare::steps::{Steps, Stream};
use crate::workload::prepare::threads::Threads;
use crate::workload::routine::{Alteration, Routine, RoutineError, judged};

/// Values in the device memory of a [`Prepared`].
#[derive(Clone, Copy, Debug)]
pub struct Device<T> {
    /// Their address, valid as long as the routine lives.
    pub address: CUdeviceptr,
    /// The number of its [`Memory`].
    owner: u64,
    place: usize,
    len: usize,
    of: PhantomData<T>,
}

impl<T> Device<T> {
    /// The address of the value with this index.
    pub(crate) fn at(self, index: usize) -> CUdeviceptr {
        assert!(index < self.len, "{index} of {} values", self.len);
        self.address + (index * size_of::<T>()) as CUdeviceptr
    }

    pub(crate) fn bytes(self) -> usize {
        self.len * size_of::<T>()
    }
}

/// Values in the host memory of a [`Prepared`], or of a problem that it keeps alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host<T> {
    pub(crate) values: *mut [T],
    /// `None` for memory of a problem.
    place: Option<usize>,
}

impl<T> Host<T> {
    /// `len` values from the value `first` on.
    ///
    /// # Panics
    /// If there are fewer.
    pub(crate) fn part(self, first: usize, len: usize) -> *mut [T] {
        let all = self.values.len();
        assert!(
            first <= all && len <= all - first,
            "{len} from {first} on, of {all} values"
        );
        std::ptr::slice_from_raw_parts_mut(self.values.cast::<T>().wrapping_add(first), len)
    }

    /// The address at which the device accesses pinned memory.
    pub(crate) fn mapped(self) -> Result<CUdeviceptr, CudaError> {
        mapped_address(self.values)
    }
}

/// The memory that a routine owns or keeps alive.
pub struct Memory {
    /// No other has this number.
    number: u64,
    gpu: Rc<Gpu>,
    device: Vec<Box<dyn Any>>,
    host: Vec<Box<dyn Any>>,
    kept: Vec<Rc<dyn Any>>,
}

impl Memory {
    /// A copy of values in device memory. Waits until it has arrived.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Panics
    /// On values of another routine.
    pub fn read<T: Value>(&self, from: Device<T>) -> Result<Vec<T>, CudaError> {
        self.read_part(from, 0..from.len)
    }

    /// A copy of a part of the values. Waits until it has arrived.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Panics
    /// On values of another routine, or a part that they do not have.
    pub fn read_part<T: Value>(
        &self,
        from: Device<T>,
        part: Range<usize>,
    ) -> Result<Vec<T>, CudaError> {
        // Fresh zeros, so that a copy that does not happen cannot leave the values of an earlier one.
        let mut copy = vec![T::zeroed(); part.len()];
        (self.gpu.stream())
            .memcpy_dtoh(&self.slice(from).slice(part), &mut copy)
            .map_err(|e| CudaError::new("cuMemcpyDtoHAsync", e))?;
        self.gpu.synchronize()?;
        Ok(copy)
    }

    pub(crate) fn gpu(&self) -> &Rc<Gpu> {
        &self.gpu
    }

    /// # Panics
    /// On values of another routine.
    fn slice<T: Value>(&self, device: Device<T>) -> &CudaSlice<T> {
        assert_eq!(
            device.owner, self.number,
            "the values are another routine's"
        );
        let slice = self.device[device.place].downcast_ref();
        slice.expect("`own` put it there")
    }

    /// Where the values are as long as this lives.
    ///
    /// # Panics
    /// On values of another routine, whose memory may be freed.
    fn place<T: Value>(&self, device: Device<T>) -> DeviceMemory<'static> {
        let address = self.slice(device).device_ptr(self.gpu.stream()).0;
        // SAFETY: this owns the slice, and the routine that owns this returns its memory only while it is
        // borrowed.
        unsafe { DeviceMemory::from_raw(address, device.bytes()) }
    }

    /// Values in host memory.
    ///
    /// # Panics
    /// On values of another routine, or of a problem.
    pub(crate) fn values<T: Value>(&self, host: Host<T>) -> &[T] {
        let buffer = host.place.and_then(|place| self.host[place].downcast_ref());
        Buffer::values(buffer.expect("the values are this routine's"))
    }

    /// As [`values`](Self::values), to write to; `None` for those of a problem.
    pub(crate) fn values_mut<T: Value>(&mut self, host: Host<T>) -> Option<&mut [T]> {
        let buffer = host.place.and_then(|place| self.host[place].downcast_mut());
        buffer.map(Buffer::values_mut)
    }

    /// Enqueues setting each byte to `byte`.
    pub(crate) fn fill<T: Value>(&self, device: Device<T>, byte: u8) -> Result<(), CudaError> {
        let (to, stream) = (self.place(device), self.gpu.stream().cu_stream());
        // SAFETY: `place` returns memory that `self` owns, and `Value` makes all bits a value.
        unsafe { result::memset_d8_async(to.address(), byte, to.bytes(), stream) }
            .map_err(|e| CudaError::new("cuMemsetD8Async", e))
    }

    /// Enqueues a copy of all of `from` to `to`, which is equally long.
    fn copy<T: Value>(&self, from: Device<T>, to: Device<T>) -> Result<(), CudaError> {
        assert_eq!(from.len, to.len, "values of a copy");
        let (from, to) = (self.place(from), self.place(to));
        let stream = self.gpu.stream().cu_stream();
        // SAFETY: `place` returns memory that `self` owns, and both have as many bytes.
        unsafe { result::memcpy_dtod_async(to.address(), from.address(), to.bytes(), stream) }
            .map_err(|e| CudaError::new("cuMemcpyDtoDAsync", e))
    }
}

type Change = Box<dyn Fn(&mut Memory) -> Result<(), RoutineError>>;
/// Of the output, or of an altered copy if it can make one.
type Check = Box<dyn Fn(&Memory, Option<Alteration>) -> Result<Option<Verified>, RoutineError>>;

/// A routine of the GPU. Add memory ([`upload`](Self::upload), [`output`](Self::output),
/// [`input`](Self::input)), [kernels](Self::kernel) and a [check](Self::check_by), in the order in
/// which they are to run.
pub struct Prepared {
    /// The steps of an iteration. Dropped before the memory that they use.
    pub(crate) steps: Steps,
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
    poisons: Vec<Change>,
    restores: Vec<Change>,
    /// Memory that no step changes.
    inputs: Vec<DeviceMemory<'static>>,
    outputs: Vec<DeviceMemory<'static>>,
    check: Check,
}

impl Prepared {
    /// A routine without memory and steps.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(gpu: &Rc<Gpu>) -> Result<Self, CudaError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            steps: Steps::new(gpu)?,
            memory: Memory {
                number: NEXT.fetch_add(1, Ordering::Relaxed),
                gpu: gpu.clone(),
                device: Vec::new(),
                host: Vec::new(),
                kept: Vec::new(),
            },
            waits: false,
            awaited: false,
            notes: Vec::new(),
            figures: BTreeMap::new(),
            threads: None,
            poisons: Vec::new(),
            restores: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            check: Box::new(|_, _| Err("nothing compares the result".into())),
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
        let slice = self.memory.gpu.upload(values)?;
        Ok(self.own(slice, values.len()))
    }

    /// Device memory for `len` values, neither initialised nor poisoned.
    ///
    /// # Errors
    /// The driver's, out of memory included.
    pub fn alloc<T: Value>(&mut self, len: usize) -> Result<Device<T>, CudaError> {
        // The driver refuses an allocation of 0 bytes.
        let slice = self.memory.gpu.alloc(len.max(1))?;
        Ok(self.own(slice, len))
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
        let Some(memory) = from else {
            return self.upload(values(owner));
        };
        let device = self.output(values(owner).len())?;
        let host = self.host_input(memory, owner, values)?;
        // SAFETY: both have as many values; the routine owns the device's, and owns or keeps the host's.
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
        let own = values(owner);
        match memory {
            HostMemory::Pageable => Ok(Host {
                values: std::ptr::from_ref(own).cast_mut(),
                place: None,
            }),
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
        Ok(self.own_host(copy))
    }

    /// Host memory of one kind for `len` values, set to `poison` before a checked run.
    pub(crate) fn host_output<T: Value>(
        &mut self,
        memory: HostMemory,
        poison: T,
        len: usize,
    ) -> Result<Host<T>, CudaError> {
        let buffer = Buffer::filled(&self.memory.gpu, memory, poison, len)?;
        let host = self.own_host(buffer);
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
            self.check =
                Box::new(move |memory, altered| Ok(judged(&memory.read(device)?, altered, &check)));
            return Ok(());
        };
        let host = self.host_output(memory, poison, device.len)?;
        let from = self.memory.place(device).address();
        // SAFETY: both have as many values, the routine owns them, and `waits` keeps the host from them.
        unsafe { self.steps.download(Stream::Compute, from, host.values) };
        self.waits = true;
        self.check =
            Box::new(move |memory, altered| Ok(judged(memory.values(host), altered, &check)));
        Ok(())
    }

    /// Checks the results of the steps by `check`.
    pub fn check_by(
        &mut self,
        check: impl Fn(&Memory) -> Result<Verified, RoutineError> + 'static,
    ) {
        self.check = Box::new(move |memory, altered| match altered {
            None => check(memory).map(Some),
            Some(_) => Ok(None),
        });
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
        self.poison(move |memory| {
            if let Some(values) = memory.values_mut(host) {
                fill(values, value);
            }
            Ok(())
        });
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

    /// Declares that the steps read memory of others, which no step changes.
    pub(crate) fn reads(&mut self, memory: &[DeviceMemory<'static>]) {
        self.inputs.extend_from_slice(memory);
    }

    /// Keeps something alive as long as the routine.
    pub fn keep<W: 'static>(&mut self, owner: &Rc<W>) {
        self.memory.kept.push(owner.clone());
    }

    fn own<T: Value>(&mut self, slice: CudaSlice<T>, len: usize) -> Device<T> {
        let device = Device {
            address: slice.device_ptr(self.memory.gpu.stream()).0,
            owner: self.memory.number,
            place: self.memory.device.len(),
            len,
            of: PhantomData,
        };
        self.memory.device.push(Box::new(slice));
        device
    }

    fn own_host<T: Value>(&mut self, buffer: Buffer<T>) -> Host<T> {
        let host = Host {
            values: buffer.pointer(),
            place: Some(self.memory.host.len()),
        };
        self.memory.host.push(Box::new(buffer));
        host
    }
}

impl Routine for Prepared {
    fn poison(&mut self) -> Result<(), RoutineError> {
        (self.poisons.iter()).try_for_each(|poison| poison(&mut self.memory))?;
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
        Ok(match self.waits || self.awaited {
            true => self.steps.run(),
            false => self.steps.enqueue(),
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
        let verified = (self.check)(&self.memory, None)?;
        Ok(verified.ok_or("nothing compares the result")?)
    }

    fn check_altered(&mut self, by: Alteration) -> Result<Option<Verified>, RoutineError> {
        (self.check)(&self.memory, Some(by))
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
        Ok(self.figures.clone())
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
