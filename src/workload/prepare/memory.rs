//! The memory of a routine of the GPU, on the device and on the host.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, result, sys::CUdeviceptr};

use crate::device::copies_and_events::{mapped_address, synchronize};
use crate::device::{Gpu, Value};
use crate::timing::{Called, CudaError, DeviceMemory};
use crate::workload::prepare::host_memory::{Buffer, fill};

/// Values in the device memory of a [`Prepared`](super::prepared::Prepared).
#[derive(Clone, Copy, Debug)]
pub struct Device<T> {
    /// Their address, valid as long as the routine lives.
    pub address: CUdeviceptr,
    /// The number of its [`Memory`].
    owner: u64,
    place: usize,
    pub(super) len: usize,
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

/// Values in the host memory of a routine, or of a problem that it keeps alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host<T> {
    pub(crate) values: *mut [T],
    /// `None` for memory of a problem.
    place: Option<usize>,
}

impl<T> Host<T> {
    /// The values of a problem, which the routine keeps alive.
    pub(super) fn of_problem(values: &[T]) -> Self {
        Self {
            values: std::ptr::from_ref(values).cast_mut(),
            place: None,
        }
    }

    /// `len` values from the value `first` on.
    ///
    /// # Panics
    /// If there are fewer.
    pub(crate) fn part(self, first: usize, len: usize) -> *mut [T] {
        let count = self.values.len();
        assert!(
            first <= count && len <= count - first,
            "{len} from {first} on, of {count} values"
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
    /// Never exchanged, like the stream: what was allocated goes back on it.
    pub(crate) gpu: Rc<Gpu>,
    /// Where it is written and read beside the steps.
    pub(crate) stream: Arc<CudaStream>,
    device: Vec<Box<dyn Any>>,
    host: Vec<Box<dyn Any>>,
    kept: Vec<Rc<dyn Any>>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        // The device may still use host memory, after an iteration that nobody awaited or a panic.
        if !self.host.is_empty() || !self.kept.is_empty() {
            self.gpu.wait_for_all();
        }
    }
}

impl Memory {
    /// None yet. It is written and read on the timed stream.
    pub(crate) fn new(gpu: &Rc<Gpu>) -> Self {
        Self::on(gpu, gpu.stream())
    }

    /// None yet. It is written and read on this stream.
    pub(super) fn on(gpu: &Rc<Gpu>, stream: &Arc<CudaStream>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            gpu: gpu.clone(),
            stream: stream.clone(),
            device: Vec::new(),
            host: Vec::new(),
            kept: Vec::new(),
        }
    }

    pub(super) fn own<T: Value>(&mut self, slice: CudaSlice<T>, len: usize) -> Device<T> {
        let device = Device {
            address: slice.device_ptr(self.gpu.stream()).0,
            owner: self.number,
            place: self.device.len(),
            len,
            of: PhantomData,
        };
        self.device.push(Box::new(slice));
        device
    }

    /// Device memory with a copy of `values`, of which there is one at least.
    pub(crate) fn upload<T: Value>(&mut self, values: &[T]) -> Result<Device<T>, CudaError> {
        let slice = self.gpu.upload(values)?;
        Ok(self.own(slice, values.len()))
    }

    pub(super) fn own_host<T: Value>(&mut self, buffer: Buffer<T>) -> Host<T> {
        let host = Host {
            values: buffer.pointer(),
            place: Some(self.host.len()),
        };
        self.host.push(Box::new(buffer));
        host
    }

    /// Keeps something alive as long as the memory.
    pub(super) fn keep<W: 'static>(&mut self, owner: &Rc<W>) {
        self.kept.push(owner.clone());
    }

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
        // All threads touch its pages; the driver would on one.
        fill(&mut copy, T::zeroed());
        (self.stream)
            .memcpy_dtoh(&self.slice(from).slice(part), &mut copy)
            .called("cuMemcpyDtoHAsync")?;
        synchronize(&self.stream)?;
        Ok(copy)
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

    /// The address of the values, valid as long as this lives.
    ///
    /// # Panics
    /// On values of another routine, whose memory may be freed.
    pub(super) fn place<T: Value>(&self, device: Device<T>) -> DeviceMemory<'static> {
        let address = self.slice(device).device_ptr(self.gpu.stream()).0;
        // SAFETY: this owns the slice, and the routine that keeps this returns its memory only while it is
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
        let (to, stream) = (self.place(device), self.stream.cu_stream());
        // SAFETY: `place` returns memory that `self` owns, and `Value` makes all bits a value.
        unsafe { result::memset_d8_async(to.address(), byte, to.bytes(), stream) }
            .called("cuMemsetD8Async")
    }

    /// Enqueues a copy of all of `from` to `to`, which is equally long.
    pub(crate) fn copy<T: Value>(&self, from: Device<T>, to: Device<T>) -> Result<(), CudaError> {
        assert_eq!(from.len, to.len, "values of a copy");
        let (from, to) = (self.place(from), self.place(to));
        let stream = self.stream.cu_stream();
        // SAFETY: `place` returns memory that `self` owns, and both have as many bytes.
        unsafe { result::memcpy_dtod_async(to.address(), from.address(), to.bytes(), stream) }
            .called("cuMemcpyDtoDAsync")
    }
}
