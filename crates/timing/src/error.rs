//! Errors of a measurement.

use cudarc::driver::DriverError;

use crate::cuda_error::CudaError;
use crate::prepared_launch::GATE_TIMEOUT;
use crossover_words::Clock;

/// The error of a routine: any that can be sent to another thread.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a measurement has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimingError {
    /// A CUDA call of the measurement itself failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// The routine under test failed.
    #[error("the routine failed: {0}")]
    Routine(#[source] BoxError),
    /// A clock that needs a device was asked of a host-only [`CudaTime`](crate::CudaTime).
    #[error(
        "the {clock} clock needs a GPU and this CudaTime is host-only; use the wall clock, or time CPU code with iter_cpu"
    )]
    NoDevice {
        /// The clock.
        clock: Clock,
    },
    /// No time is measured without an iteration.
    #[error("a measurement of 0 iterations has no time; ask for one or more")]
    NoIterations,
    /// The gate opened by itself before the batch was queued: the routine synchronised inside, another
    /// thread launches its work, the stream's queue was full, or a profiler began to record after the gate had been
    /// tried.
    #[error(
        "the gate opened by itself after {GATE_TIMEOUT:?}, before the batch was queued: the routine synchronises \
         inside (use the wall clock, iter_wall), another host thread launches its work later (as some frameworks \
         do: wait for that thread, or use iter_awaited), it enqueues more than a stream's queue holds (pass `launches` if \
         they were not counted, or set CUDA_SCALE_LAUNCH_QUEUES=4x), or a profiler makes launches wait (GateMode::Off, in the suite CROSSOVER_GATE=off)"
    )]
    GateTimeout,
    /// The clock needs the gate, the gate is off, and [`GateMode::Required`](crate::GateMode)
    /// admits no other clock.
    #[error(
        "the {clock} clock needs the gate, which is off: {reason}; with GateMode::Auto another clock would \
         take its place"
    )]
    GateOff {
        /// The clock.
        clock: Clock,
        /// Why the gate is off.
        reason: String,
    },
    /// The routine enqueued nothing on the stream that is timed.
    #[error(
        "the routine enqueued nothing on the timed stream: its work is on another stream, or another host \
         thread launches it later; enqueue it on CudaTime::stream, time work that it waits for itself with \
         iter_awaited, or CPU code with iter_cpu"
    )]
    NothingEnqueued,
    /// The timed stream is the legacy default stream, beside others that cudarc orders by events.
    #[error(
        "the timed stream is the default stream of a context with several streams, and nothing tells whether the \
         routine's work is on it; time a stream that CudaContext::new_stream made"
    )]
    DefaultStream,
    /// The routine allocates memory and cannot be captured, and the clock needs the number of its launches.
    #[error(
        "the launches of an iteration cannot be counted, because it allocates memory and cannot be captured in a \
         CUDA graph: {cause}; memory that the routine kept of this attempt does not exist. Pass the number of \
         launches (iter_on, measure_launches), or use the events or the wall clock"
    )]
    NotCounted {
        /// The error of the driver or the routine.
        #[source]
        cause: BoxError,
    },
    /// Work of the routine ran while the gate held the timed stream.
    #[error(
        "the gate does not hold the routine's work: it is on another stream, which does not wait for the timed \
         one; enqueue it on CudaTime::stream, have its stream wait for an event of that one, or use the events \
         or the wall clock"
    )]
    NotHeld,
    /// A device worked before the timed window or after it.
    #[error(
        "{work}: work on another stream or device is not in the time; enqueue it on CudaTime::stream, have that \
         stream wait for an event behind it, or call CudaTime::ignore_other_streams if it is no part of the benchmark"
    )]
    WorkElsewhere {
        /// Which work was outside of the timed window, or how long a device worked after it.
        work: String,
    },
    /// The work of the routine cannot be captured in a CUDA graph.
    #[error(
        "the routine cannot be captured in a CUDA graph: {cause}; it must not wait for the device, use the \
         default stream, copy pageable memory, or use slices of a context in which cudarc's event tracking is \
         on (CudaContext::disable_event_tracking); it may allocate only by cuMemAllocAsync, freed in the same \
         iteration, and must join other streams. Otherwise use iter_gated or iter_wall"
    )]
    NotCaptured {
        /// The error of the driver or the routine.
        #[source]
        cause: BoxError,
    },
    /// One iteration enqueues more launches than the stream's queue holds.
    #[error(
        "one iteration makes {launches} launches, and a stream's queue holds fewer here; set \
         CUDA_SCALE_LAUNCH_QUEUES=4x, capture them in a CUDA graph (iter_graph), or use the events clock"
    )]
    TooManyLaunches {
        /// Launches of one iteration.
        launches: u32,
    },
    /// The clock `activity` cannot record the work of the devices.
    #[error("the activity clock cannot record: {reason}")]
    NotRecorded {
        /// The cause, with its remedy.
        reason: String,
    },
    /// On the clock `activity`, there were fewer kernels than iterations.
    #[error(
        "the routine launched fewer kernels than it ran iterations: its work is on the CPU, or another thread launches it later; \
         pass a wait for that thread to CudaTime::wait_by, and time copies alone with iter_wall"
    )]
    NoKernel,
    /// On the clock `activity`, records are missing, without which a time would be too short.
    #[error(
        "CUPTI lost {lost} records of work and returned {unfinished} without an end; if another thread launches the work, \
         pass a wait for it to CudaTime::wait_by, otherwise launch fewer kernels in an iteration"
    )]
    RecordsLost {
        /// Records that did not fit.
        lost: u64,
        /// Work that had not ended after the wait, or whose time could not be taken.
        unfinished: u64,
    },
    /// The driver returned a time that is not a number.
    #[error("the driver returned a time that is not a number; this is a driver fault, run again")]
    NotANumber,
}

impl TimingError {
    /// The error of a capture, unless `cause` is the loss of the context.
    pub(crate) fn not_captured(cause: TimingError) -> Self {
        cause.wrapped(|cause| TimingError::NotCaptured { cause })
    }

    /// The error of a count, unless `cause` is the loss of the context.
    pub(crate) fn not_counted(cause: TimingError) -> Self {
        cause.wrapped(|cause| TimingError::NotCounted { cause })
    }

    fn wrapped(self, wrap: impl FnOnce(BoxError) -> Self) -> Self {
        match self {
            cause if cause.is_sticky() => cause,
            TimingError::Routine(cause) => wrap(cause),
            cause => wrap(cause.into()),
        }
    }

    /// Whether the CUDA context is lost with this error, so that only a new process can use
    /// the GPU again.
    pub fn is_sticky(&self) -> bool {
        match self {
            TimingError::Cuda(e) => e.sticky,
            _ => false,
        }
    }
}

/// An error of the routine. A CUDA error keeps its type, because the context may be lost.
impl From<BoxError> for TimingError {
    fn from(error: BoxError) -> Self {
        match error.downcast::<CudaError>() {
            Ok(cuda) => TimingError::Cuda(*cuda),
            Err(other) => match other.downcast::<DriverError>() {
                Ok(driver) => {
                    TimingError::Cuda(CudaError::new("a CUDA call of the routine", *driver))
                }
                Err(other) => TimingError::Routine(other),
            },
        }
    }
}
