//! Collective operations of several devices, of one process or of a process each.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, CudaStream};

use crate::device::Gpu;
use crate::timing::{Called, CudaError};
use crossover_machine::libraries::Absence;
use crossover_machine::nccl::{Communicator, Nccl, UniqueId};
use crossover_system::interrupt;

/// NCCL connects eight devices in some seconds, and waits for other processes to start.
const LONGEST_CONNECT: Duration = Duration::from_secs(120);
/// Time between two checks for a signal.
const GLANCE: Duration = Duration::from_millis(50);

/// Whether a thread was left behind in NCCL. The process must then end without `exit`, which would take apart what
/// NCCL and the driver still use.
pub(crate) static HANGS: AtomicBool = AtomicBool::new(false);

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
    pub(super) fn of_this_process(first: &Gpu) -> Result<Self, Absence> {
        let nccl = Nccl::open()?;
        // NCCL uses a link that the driver reports, and would wait for ever.
        if std::env::var_os("NCCL_P2P_DISABLE").is_none_or(|value| value != "1") {
            first.require_no_broken_link()?;
        }
        let beside = first.beside()?.iter().map(|gpu| &**gpu);
        let gpus: Vec<&Gpu> = [first].into_iter().chain(beside).collect();
        let id = nccl.unique_id();
        let connected = id.and_then(|id| Self::connect(nccl, &gpus, id, [0, gpus.len()]));
        connected.map_err(|error| Absence::Failed {
            call: error.call,
            message: error.message,
        })
    }

    /// Connects these devices, of which the first has number `first` among all. If other processes have some, they
    /// call this too.
    ///
    /// # Errors
    /// NCCL's.
    pub(super) fn connect(
        nccl: &'static Nccl,
        gpus: &[&Gpu],
        id: UniqueId,
        [first, devices]: [usize; 2],
    ) -> Result<Self, CudaError> {
        let place = [first, gpus.len(), devices];
        let contexts: Vec<Arc<CudaContext>> =
            gpus.iter().map(|gpu| gpu.context().clone()).collect();
        // In a thread of its own, which is left behind if NCCL hangs.
        let (tell, connected) = mpsc::channel();
        let thread = thread::spawn(move || {
            let bind = |at: usize| contexts[at].bind_to_thread().called("cuCtxSetCurrent");
            let connected = nccl.communicators(id, place, bind);
            // The contexts go with the communicators, which need them, and end after those that come too late.
            // This thread keeps none, which it would release at any later time.
            drop(tell.send(connected.map(|communicators| (communicators, contexts))));
        });
        let connected = within(LONGEST_CONNECT, &connected);
        HANGS.fetch_or(connected.is_err() && !thread.is_finished(), Relaxed);
        gpus[0].bind()?;
        let (communicators, _) = connected?;
        Ok(Self {
            nccl,
            communicators: RefCell::new(communicators),
            first,
            devices,
        })
    }

    /// Enqueues the sum of f32 over all devices: of each device the addresses of the values and of the
    /// sums, and the stream. Another context may be current afterwards.
    ///
    /// # Safety
    /// Both addresses must be memory of the device for `values` values until the operation has run, and be
    /// equal or not overlap.
    ///
    /// # Errors
    /// NCCL's. The first one ends the connection: devices whose part was launched wait for the others.
    pub(crate) unsafe fn all_reduce<'a>(
        &self,
        values: usize,
        devices: impl Iterator<Item = ([CUdeviceptr; 2], &'a CudaStream)>,
    ) -> Result<(), CudaError> {
        // Dropped after an error.
        let communicators = self.communicators.take();
        if communicators.is_empty() {
            let message =
                "the connection ended with an earlier error; run this benchmark again".to_owned();
            return Err(CudaError::with_message("ncclAllReduce", message));
        }
        self.nccl.together(|| {
            (devices.zip(&communicators)).try_for_each(|((places, stream), communicator)| {
                // SAFETY: the caller promises the memory, in the order of the devices.
                unsafe { communicator.all_reduce(places, values, stream.cu_stream()) }
            })
        })?;
        self.communicators.replace(communicators);
        Ok(())
    }
}

/// Waits for NCCL to start, for at most `limit`.
///
/// # Errors
/// NCCL's; a signal, and that it takes longer than `limit`.
fn within<T>(limit: Duration, ends: &Receiver<Result<T, CudaError>>) -> Result<T, CudaError> {
    let failed = |why: &str| Err(CudaError::with_message("ncclCommInitRank", why));
    let start = Instant::now();
    loop {
        match ends.recv_timeout(GLANCE) {
            Ok(ended) => return ended,
            Err(RecvTimeoutError::Disconnected) => return failed("its thread panicked"),
            Err(RecvTimeoutError::Timeout) if interrupt::signal().is_some() => {
                return failed("a signal ended the wait for it");
            }
            Err(RecvTimeoutError::Timeout) if start.elapsed() >= limit => {
                return failed(&format!(
                    "it did not return within {} s; NCCL_DEBUG=INFO shows where it hangs, NCCL_P2P_DISABLE=1 \
                     has it copy through the host, and CROSSOVER_DEVICE with one device leaves it out",
                    limit.as_secs()
                ));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_hangs_ends_in_a_sentence() {
        let (hangs, ends) = mpsc::channel::<Result<(), CudaError>>();
        let error = within(Duration::ZERO, &ends).unwrap_err().to_string();
        assert!(error.contains("it did not return within 0 s"), "{error}");
        hangs.send(Ok(())).unwrap();
        assert_eq!(within(Duration::ZERO, &ends), Ok(()));
    }
}
