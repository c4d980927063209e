//! Collective operations of several devices of one process.

use std::cell::RefCell;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::timing::CudaError;
use crossover_machine::absence::Absence;
use crossover_machine::nccl::{Communicator, Nccl};

/// A communicator for each device of a run.
pub(crate) struct Collectives {
    nccl: &'static Nccl,
    /// None after an error.
    communicators: RefCell<Vec<Communicator>>,
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
        for communicator in self.communicators.take() {
            // SAFETY: a communicator of this, which is used no more.
            unsafe { self.nccl.destroy(communicator) };
        }
    }
}
