//! Two events that time what is between them.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaEvent, CudaStream, result, sys};

use crate::cuda_error::{Called, CudaError};
use crate::prepared_launch::Launch;

/// The start and the end of a window on a stream.
#[derive(Debug)]
pub struct EventPair {
    start: CudaEvent,
    end: CudaEvent,
}

impl EventPair {
    /// Makes both events.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(context: &Arc<CudaContext>) -> Result<Self, CudaError> {
        let event = || {
            // Unless given flags, cudarc creates an event that cannot time.
            let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
            context.new_event(flags).called("cuEventCreate")
        };
        Ok(Self {
            start: event()?,
            end: event()?,
        })
    }

    /// Records the start.
    ///
    /// # Errors
    /// The driver's.
    pub fn start(&self, on: &CudaStream) -> Result<(), CudaError> {
        record(&self.start, on)
    }

    /// Records the end.
    ///
    /// # Errors
    /// The driver's.
    pub fn end(&self, on: &CudaStream) -> Result<(), CudaError> {
        record(&self.end, on)
    }

    /// Waits for the end.
    pub(crate) fn wait(&self) -> Result<(), CudaError> {
        // SAFETY: `self` owns the event.
        unsafe { result::event::synchronize(self.end.cu_event()) }.called("cuEventSynchronize")
    }

    /// Time from the start to the end, ns.
    ///
    /// # Errors
    /// The driver's, also if one of them was not reached.
    pub fn elapsed_ns(&self) -> Result<f64, CudaError> {
        // SAFETY: `self` owns the events; the driver refuses events that were not reached.
        unsafe { result::event::elapsed(self.start.cu_event(), self.end.cu_event()) }
            .map(|ms| f64::from(ms) * 1e6)
            .called("cuEventElapsedTime")
    }
}

/// The step of the clock of events on this stream, ns: the least distance between the times of windows around an
/// `empty` kernel. `None` if all times are equal.
pub(crate) fn measure_step_ns(
    stream: &Arc<CudaStream>,
    empty: &Launch,
) -> Result<Option<f64>, CudaError> {
    const WINDOWS: usize = 64;
    /// Closer times are equal: the driver returns milliseconds as `f32`.
    const EQUAL_NS: f64 = 0.5;
    let events = EventPair::new(stream.context())?;
    let mut times = Vec::with_capacity(WINDOWS);
    for _ in 0..WINDOWS {
        events.start(stream)?;
        // SAFETY: the kernel takes no arguments.
        unsafe { empty.launch(stream) }?;
        events.end(stream)?;
        events.wait()?;
        times.push(events.elapsed_ns()?);
    }
    times.sort_unstable_by(f64::total_cmp);
    let distances = times.windows(2).map(|pair| pair[1] - pair[0]);
    let steps = distances.filter(|distance| *distance > EQUAL_NS);
    Ok(steps.min_by(f64::total_cmp))
}

fn record(event: &CudaEvent, stream: &CudaStream) -> Result<(), CudaError> {
    // Not `CudaEvent::record`, which makes the context current each time.
    // SAFETY: both are borrowed; the driver refuses those of two contexts.
    unsafe { result::event::record(event.cu_event(), stream.cu_stream()) }.called("cuEventRecord")
}
