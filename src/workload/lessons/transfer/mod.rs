//! Copies between host and device, by kind of host memory: what pageable memory costs, what
//! pinning saves, and what a copy costs however small it is.
//!
//! The size is the number of bytes. Every routine synchronises the stream at its end, since a copy
//! from pageable memory returns before it has arrived, and all are timed on the wall clock, so that
//! they can be compared.

mod host;
mod problem;
mod staged;

use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut, sys};

use crate::device::calls::{copy_to_device, copy_to_host, synchronize};
use crate::device::gpu::Gpu;
use crate::model::role::Way;
use crate::model::verified::Verified;
use crate::timing::{CudaError, Launch};
use crate::workload::lessons::transfer::host::HostBuffer;
use crate::workload::lessons::transfer::problem::verified;
use crate::workload::routine::{Made, Routine, RoutineError};

pub use host::Kind;
pub use problem::{TRANSFER, Transfer, cost, cost_both_ways};
pub use staged::staged;

/// A copy of every byte, from or to one kind of host memory; with [`Way::ToDevice`] also in several
/// pieces, each copied by itself. Managed memory is written by the host in each iteration, a byte
/// per page, before a kernel reads it.
///
/// # Errors
/// Errors of CUDA, out of memory included, and of the kernel's compilation; [`Way::InPlace`] from
/// pageable memory, and several pieces in any direction but to the device.
pub fn copy(gpu: &Rc<Gpu>, problem: &Rc<Transfer>, way: Way, kind: Kind, pieces: u32) -> Made {
    if pieces == 0 || pieces > 1 && way != Way::ToDevice {
        return Err(format!("no copy {way:?} has {pieces} pieces").into());
    }
    Ok(Box::new(Copy::new(
        gpu,
        problem,
        way,
        kind,
        pieces as usize,
    )?))
}

struct Copy {
    gpu: Rc<Gpu>,
    problem: Rc<Transfer>,
    way: Way,
    pieces: usize,
    host: HostBuffer,
    device: CudaSlice<u8>,
    /// The other direction of `Both`: device memory with the pattern, and where it is copied to.
    back: Option<Back>,
    read: Option<Launch>,
}

struct Back {
    stream: Arc<CudaStream>,
    host: HostBuffer,
    device: CudaSlice<u8>,
}

impl Copy {
    fn new(
        gpu: &Rc<Gpu>,
        problem: &Rc<Transfer>,
        way: Way,
        kind: Kind,
        pieces: usize,
    ) -> Result<Self, RoutineError> {
        let pattern = &problem.pattern;
        let mut host = HostBuffer::new(gpu, kind, pattern.len())?;
        let device = if way == Way::ToHost {
            gpu.upload(pattern)?
        } else {
            host.bytes_mut().copy_from_slice(pattern);
            gpu.alloc(pattern.len())?
        };
        let back = if way == Way::Both {
            Some(Back {
                stream: gpu.new_stream()?,
                host: HostBuffer::new(gpu, kind, pattern.len())?,
                device: gpu.upload(pattern)?,
            })
        } else {
            None
        };
        let read = if way == Way::InPlace {
            let blocks = 4 * gpu.properties().multiprocessors;
            Some(
                Launch::new(
                    gpu.function(&TRANSFER, "copy_bytes")?,
                    (blocks, 1, 1),
                    (256, 1, 1),
                )
                .arg(device.device_ptr(gpu.stream()).0)
                .arg(host.device_address()?)
                .arg(pattern.len() as u64),
            )
        } else {
            None
        };
        Ok(Self {
            gpu: gpu.clone(),
            problem: problem.clone(),
            way,
            pieces,
            host,
            device,
            back,
            read,
        })
    }

    fn upload(&mut self) -> Result<(), CudaError> {
        let stream = self.gpu.stream();
        let (to, _to) = self.device.device_ptr_mut(stream);
        // SAFETY: both sides hold as many bytes; `run` synchronises before either is touched.
        unsafe { copy_to_device(self.host.bytes(), to, stream) }
    }

    fn download(&mut self) -> Result<(), CudaError> {
        let stream = self.gpu.stream();
        let (from, _from) = self.device.device_ptr(stream);
        // SAFETY: as in `upload`.
        unsafe { copy_to_host(from, self.host.bytes_mut(), stream) }
    }

    fn upload_in_pieces(&mut self) -> Result<(), CudaError> {
        let stream = self.gpu.stream();
        let (to, _to) = self.device.device_ptr_mut(stream);
        let piece = self.host.bytes().len().div_ceil(self.pieces);
        for (i, bytes) in self.host.bytes().chunks(piece).enumerate() {
            let to = to + (i * piece) as sys::CUdeviceptr;
            // SAFETY: as in `upload`, a piece of it at the same offset on both sides.
            unsafe { copy_to_device(bytes, to, stream) }?;
        }
        Ok(())
    }
}

impl Copy {
    /// `run` waits for what this enqueues, whether it fails or not.
    fn enqueue(&mut self) -> Result<(), CudaError> {
        match self.way {
            Way::ToDevice if self.pieces > 1 => self.upload_in_pieces(),
            Way::ToDevice => self.upload(),
            Way::ToHost => self.download(),
            Way::Both => {
                if let Some(back) = &mut self.back {
                    back.start()?;
                }
                self.upload()
            }
            Way::InPlace => {
                self.host.touch();
                self.host.prefetch()?;
                match &self.read {
                    // SAFETY: both addresses hold the number of bytes the kernel is given.
                    Some(read) => unsafe { read.launch(self.gpu.stream()) },
                    None => Ok(()),
                }
            }
        }
    }
}

impl Back {
    fn start(&mut self) -> Result<(), CudaError> {
        let (from, _from) = self.device.device_ptr(&self.stream);
        // SAFETY: both sides hold as many bytes; `wait` comes before either is touched.
        unsafe { copy_to_host(from, self.host.bytes_mut(), &self.stream) }
    }

    fn wait(&self) -> Result<(), CudaError> {
        synchronize(&self.stream)
    }
}

impl Routine for Copy {
    fn poison(&mut self) -> Result<(), RoutineError> {
        let problem = &self.problem;
        match self.way {
            Way::ToHost => problem.poison_host(self.host.bytes_mut()),
            _ => problem.poison_device(&self.gpu, &mut self.device)?,
        }
        if let Some(back) = &mut self.back {
            problem.poison_host(back.host.bytes_mut());
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let enqueued = self.enqueue();
        // Waits even after an error: what was enqueued before it may still use the memory.
        let waited = self.back.as_ref().map_or(Ok(()), Back::wait);
        let idle = self.gpu.synchronize();
        Ok(enqueued.and(waited).and(idle)?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let problem = &self.problem;
        let there = match self.way {
            Way::ToHost => problem.differences(self.host.bytes()),
            _ => problem.differences_on_device(&self.gpu, &self.device)?,
        };
        let back = self.back.iter();
        let back = back.map(|back| problem.differences(back.host.bytes()));
        Ok(verified(there + back.sum::<usize>()))
    }
}
