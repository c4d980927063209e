//! Collective operations of several devices, of one process or of a process each.

use std::cell::RefCell;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::timing::{BoxError, CudaError};
use crossover_machine::absence::Absence;
use crossover_machine::nccl::{Communicator, Nccl, UniqueId};

/// A communicator for each device of this process.
pub(crate) struct Collectives {
    nccl: &'static Nccl,
    /// None after an error.
    communicators: RefCell<Vec<Communicator>>,
    /// The number of this process's first device among the devices of all processes.
    pub(crate) first: usize,
    /// The number of devices of all processes.
    pub(crate) devices: usize,
}

impl Collectives {
    /// Connects the device with those beside it.
    ///
    /// # Errors
    /// There is no other device or no NCCL, or NCCL fails.
    pub(super) fn new(first: &Gpu) -> Result<Self, Absence> {
        let nccl = Nccl::open()?;
        // NCCL uses a link that the driver reports, and would wait for ever.
        if std::env::var_os("NCCL_P2P_DISABLE").is_none_or(|value| value != "1") {
            first.require_no_broken_link()?;
        }
        let others = first.beside()?.iter().map(|gpu| gpu.properties().ordinal);
        let devices: Vec<usize> = [first.properties().ordinal]
            .into_iter()
            .chain(others)
            .collect();
        let connected = nccl.communicators(&devices);
        first.bind()?;
        let failed = |error: CudaError| Absence::Failed {
            call: error.call,
            message: error.message,
        };
        Ok(Self {
            nccl,
            communicators: RefCell::new(connected.map_err(failed)?),
            first: 0,
            devices: devices.len(),
        })
    }

    /// Connects the device with those of other processes, which call this too.
    ///
    /// # Errors
    /// There is no NCCL, or it fails.
    pub(super) fn join(
        gpu: &Gpu,
        id: UniqueId,
        rank: usize,
        size: usize,
    ) -> Result<Self, BoxError> {
        let nccl = Nccl::open()?;
        gpu.bind()?;
        Ok(Self {
            nccl,
            communicators: RefCell::new(vec![nccl.join(id, rank, size)?]),
            first: rank,
            devices: size,
        })
    }

    /// The version of NCCL.
    pub(crate) fn version(&self) -> String {
        self.nccl.version()
    }

    /// Enqueues the sum of f32 over all devices: of each device the addresses of the values and of the
    /// sums, and the stream. Another context may be current afterwards.
    ///
    /// # Safety
    /// Both addresses must be memory of the device for so many values until the operation has run, and be
    /// equal or not overlap.
    ///
    /// # Errors
    /// NCCL's. The first one ends the connection: devices whose part was launched wait for the others.
    pub(crate) unsafe fn all_reduce<'a>(
        &self,
        values: usize,
        devices: impl Iterator<Item = ([CUdeviceptr; 2], &'a CudaStream)>,
    ) -> Result<(), CudaError> {
        let communicators = self.communicators.take();
        if communicators.is_empty() {
            let message =
                "the connection ended with an earlier error; run this benchmark again".to_owned();
            return Err(CudaError::with_message("ncclAllReduce", message));
        }
        let reduced = self.nccl.together(|| {
            (devices.zip(&communicators)).try_for_each(|((places, stream), communicator)| {
                // SAFETY: the caller promises the memory; this has the communicators, in the order of the devices.
                unsafe {
                    self.nccl
                        .all_reduce(places, values, *communicator, stream.cu_stream())
                }
            })
        });
        if reduced.is_ok() {
            self.communicators.replace(communicators);
        } else {
            for communicator in communicators {
                // SAFETY: a communicator of this, which is used no more.
                unsafe { self.nccl.abort(communicator) };
            }
        }
        reduced
    }
}

impl Drop for Collectives {
    fn drop(&mut self) {
        let communicators = self.communicators.take();
        let is_shared = communicators.len() < self.devices;
        for communicator in communicators {
            // SAFETY: a communicator of this, which is used no more.
            unsafe {
                // To destroy it, the other processes would have to make this call too.
                if is_shared {
                    self.nccl.abort(communicator);
                } else {
                    self.nccl.destroy(communicator);
                }
            }
        }
    }
}
