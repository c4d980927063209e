//! Which of several ways to do the same on the GPU is the fastest, by device time.

use std::collections::HashMap;
use std::fmt::Display;
use std::rc::Rc;
use std::time::Duration;

use cudarc::driver::{CudaEvent, sys::CUevent_flags};

use crate::device::calls::record;
use crate::device::gpu::Gpu;
use crate::device::graph::Graph;
use crate::timing::CudaError;
use crate::workload::calibrate;
use crate::workload::routine::RoutineError;

/// What a candidate that fails is taken to need: so long that it is never chosen.
const FAILED: Duration = Duration::from_millis(10);

/// The fastest of the candidates, chosen once for every process of this machine as
/// [`calibrate`] says. `enqueue` puts one iteration on the GPU's stream. The iterations of a
/// measurement are replayed as a graph: launched one by one, those of a few microseconds would
/// all take as long as their launches.
///
/// # Errors
/// Those of CUDA, and no candidate works.
pub(in crate::workload) fn fastest<T: Copy + Display>(
    gpu: &Rc<Gpu>,
    choice: &str,
    candidates: &[T],
    mut enqueue: impl FnMut(T) -> Result<(), CudaError>,
) -> Result<T, RoutineError> {
    let (first, last) = (timing_event(gpu)?, timing_event(gpu)?);
    let mut graphs: HashMap<(String, u32), Graph> = HashMap::new();
    let mut failure: Option<CudaError> = None;
    let mut worked = false;
    let mut measure = |candidate: T, times: u32| -> Result<Duration, CudaError> {
        let key = (candidate.to_string(), times);
        if !graphs.contains_key(&key) {
            // Once outside of a capture, in which no kernel may be loaded.
            enqueue(candidate)?;
            gpu.synchronize()?;
            let captured = Graph::capture(gpu.stream(), || {
                (0..times).try_for_each(|_| enqueue(candidate))
            })?;
            graphs.insert(key.clone(), captured);
        }
        let graph = &graphs[&key];
        record(&first, gpu.stream())?;
        // SAFETY: what the candidates use outlives this function, which waits for them.
        unsafe { graph.launch() }?;
        record(&last, gpu.stream())?;
        gpu.synchronize()?;
        let ms = first
            .elapsed_ms(&last)
            .map_err(|e| CudaError::new("cuEventElapsedTime", e))?;
        Ok(Duration::from_secs_f64(f64::from(ms.max(1e-4)) / 1e3))
    };
    let chosen = calibrate::fastest_by(choice, candidates, |candidate, times| {
        match measure(candidate, times) {
            Ok(took) => {
                worked = true;
                took
            }
            Err(error) => {
                failure = Some(error);
                FAILED * times
            }
        }
    });
    match failure {
        Some(error) if !worked || error.sticky => Err(error.into()),
        _ => Ok(chosen),
    }
}

fn timing_event(gpu: &Gpu) -> Result<CudaEvent, CudaError> {
    (gpu.context())
        .new_event(Some(CUevent_flags::CU_EVENT_DEFAULT))
        .map_err(|e| CudaError::new("cuEventCreate", e))
}
