//! The kinds of host memory that are copied from and to.

use std::ptr::NonNull;
use std::rc::Rc;

use cudarc::driver::{result, sys};

use crate::device::Gpu;
use crate::model::Residency;
use crate::timing::CudaError;
use crate::workload::prepare::Prepared;

/// How a piece of host memory is known to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ordinary memory: the driver copies it through a pinned buffer of its own.
    Pageable,
    /// Allocated page-locked: the device reads and writes it directly.
    Pinned,
    /// Page-locked and not cached by the CPU: fast to write, very slow to read.
    WriteCombined,
    /// Ordinary memory, page-locked afterwards by `cuMemHostRegister`.
    Registered,
    /// Managed memory: one address for host and device, moved by the driver when the device
    /// finds a page missing.
    ManagedFaults,
    /// Managed memory that the driver is told to move before the device needs it.
    ManagedPrefetch,
}

impl Kind {
    fn is_managed(self) -> bool {
        matches!(self, Kind::ManagedFaults | Kind::ManagedPrefetch)
    }
}

impl From<Kind> for Residency {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Pageable | Kind::ManagedFaults | Kind::ManagedPrefetch => Residency::Ordinary,
            Kind::Pinned | Kind::WriteCombined | Kind::Registered => Residency::Pinned,
        }
    }
}

/// Host memory of one kind; freed, or given back to the driver, when dropped.
pub(super) struct HostBuffer {
    gpu: Rc<Gpu>,
    kind: Kind,
    address: NonNull<u8>,
    len: usize,
    /// The memory of `Pageable` and `Registered`.
    _owned: Vec<u8>,
}

impl HostBuffer {
    fn new(gpu: &Rc<Gpu>, kind: Kind, len: usize) -> Result<Self, CudaError> {
        gpu.bind()?;
        let mut owned = Vec::new();
        let address = match kind {
            Kind::Pageable | Kind::Registered => {
                // Writing it makes the system provide the pages before anything is timed.
                owned = vec![1u8; len];
                if kind == Kind::Registered {
                    // SAFETY: the range is the vector's own memory, which is neither moved
                    // nor freed before it is unregistered in `drop`.
                    CudaError::check("cuMemHostRegister", unsafe {
                        sys::cuMemHostRegister_v2(
                            owned.as_mut_ptr().cast(),
                            len,
                            sys::CU_MEMHOSTREGISTER_DEVICEMAP,
                        )
                    })?;
                }
                owned.as_mut_ptr()
            }
            Kind::Pinned | Kind::WriteCombined => {
                let flags = if kind == Kind::WriteCombined {
                    sys::CU_MEMHOSTALLOC_WRITECOMBINED
                } else {
                    sys::CU_MEMHOSTALLOC_DEVICEMAP
                };
                let _near = gpu.keep_near();
                // SAFETY: freed once, in `drop`.
                unsafe { result::malloc_host(len, flags) }
                    .map_err(|e| CudaError::new("cuMemHostAlloc", e))?
                    .cast()
            }
            Kind::ManagedFaults | Kind::ManagedPrefetch => {
                // SAFETY: freed once, in `drop`.
                unsafe { result::malloc_managed(len, sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL) }
                    .map_err(|e| CudaError::new("cuMemAllocManaged", e))? as *mut u8
            }
        };
        let address = NonNull::new(address).expect("the driver and Vec give no null pointer");
        if owned.is_empty() {
            // By this managed memory gets its pages, and nothing is read before it is written.
            // SAFETY: `len` bytes, just allocated by the driver.
            unsafe { address.as_ptr().write_bytes(1, len) };
        }
        Ok(Self {
            gpu: gpu.clone(),
            kind,
            address,
            len,
            _owned: owned,
        })
    }

    /// Memory that `work` keeps.
    pub(super) fn owned(
        work: &mut Prepared,
        kind: Kind,
        len: usize,
    ) -> Result<Rc<Self>, CudaError> {
        let host = Rc::new(Self::new(work.memory.gpu(), kind, len)?);
        work.keep(&host);
        Ok(host)
    }

    /// Initialised bytes that live as long as `self`.
    pub(super) fn bytes(&self) -> *mut [u8] {
        std::ptr::slice_from_raw_parts_mut(self.address.as_ptr(), self.len)
    }

    /// The address at which a kernel reads this memory.
    pub(super) fn device_address(&self) -> Result<sys::CUdeviceptr, CudaError> {
        if self.kind.is_managed() {
            return Ok(self.address.as_ptr() as sys::CUdeviceptr);
        }
        let mut address = 0;
        // SAFETY: the memory is page-locked and mapped; only such kinds are read by kernels.
        CudaError::check("cuMemHostGetDevicePointer", unsafe {
            sys::cuMemHostGetDevicePointer_v2(&mut address, self.address.as_ptr().cast(), 0)
        })?;
        Ok(address)
    }

    /// Writes one byte of each page from the host, so that managed memory is on the host again and
    /// the next kernel has to fetch it. Does nothing to other kinds.
    pub(super) fn touch(&self) {
        const PAGE: usize = 4096;
        if self.kind.is_managed() {
            for i in (0..self.len).step_by(PAGE) {
                // SAFETY: within the allocation; written back unchanged, and volatile, since
                // the compiler would drop it.
                unsafe {
                    let byte = self.address.as_ptr().add(i);
                    byte.write_volatile(byte.read_volatile());
                }
            }
        }
    }

    /// Makes the driver move the memory to the device, where it is of the kind for that.
    pub(super) fn prefetch(&self) -> Result<(), CudaError> {
        if self.kind != Kind::ManagedPrefetch {
            return Ok(());
        }
        let device = sys::CUmemLocation {
            type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: self.gpu.context().cu_device(),
        };
        let address = self.address.as_ptr() as sys::CUdeviceptr;
        let stream = self.gpu.stream().cu_stream();
        // SAFETY: the range is managed memory of `self`, whose `drop` waits for the stream.
        unsafe { result::mem_prefetch_async(address, self.len, device, stream) }
            .map_err(|e| CudaError::new("cuMemPrefetchAsync", e))
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        // Nothing may read or write it any more. An error of the wait is that of an earlier call.
        let _ = self.gpu.synchronize();
        let pointer = self.address.as_ptr();
        // SAFETY: each kind is given back once, the way it was made.
        let given_back = unsafe {
            match self.kind {
                Kind::Pageable => Ok(()),
                Kind::Registered => sys::cuMemHostUnregister(pointer.cast()).result(),
                Kind::Pinned | Kind::WriteCombined => result::free_host(pointer.cast()),
                Kind::ManagedFaults | Kind::ManagedPrefetch => {
                    result::free_sync(pointer as sys::CUdeviceptr)
                }
            }
        };
        // Told after the benchmark, as those of other memory.
        self.gpu.context().record_err(given_back);
    }
}
