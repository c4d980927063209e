//! Chooses among several ways to do the same on the GPU the fastest, by device time.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use cudarc::driver::CudaEvent;

use crate::device::{Gpu, copies_and_events::record, graph::Graph};
use crate::timing::CudaError;
use crate::workload::prepare::calibrate;
use crate::workload::prepare::events::{nanoseconds, timing_event};
use crate::workload::routine::RoutineError;

/// The place of the fastest of the named candidates, chosen once per process and handed over to others, as
/// [`calibrate`] says. `enqueue` puts one iteration on the GPU's stream. The iterations of a
/// measurement are replayed as a graph: launched one by one, those of a few microseconds would
/// all take as long as their launches.
///
/// # Errors
/// Errors of CUDA where no candidate works.
pub(crate) fn fastest(
    gpu: &Rc<Gpu>,
    choice: &str,
    names: &[impl AsRef<str>],
    mut enqueue: impl FnMut(usize) -> Result<(), CudaError>,
) -> Result<usize, RoutineError> {
    let mut replays = Replays::new(gpu)?;
    calibrate::fastest_that_works(choice, names, |at, times| {
        Ok(replays.measure(at, times, &mut enqueue)?)
    })
}

/// Device time of iterations that are replayed as a graph.
struct Replays {
    gpu: Rc<Gpu>,
    first: CudaEvent,
    last: CudaEvent,
    graphs: HashMap<(usize, u32), Graph>,
}

impl Replays {
    fn new(gpu: &Rc<Gpu>) -> Result<Self, CudaError> {
        Ok(Self {
            gpu: gpu.clone(),
            first: timing_event(gpu)?,
            last: timing_event(gpu)?,
            graphs: HashMap::new(),
        })
    }

    /// Time of `times` iterations of a candidate.
    fn measure(
        &mut self,
        candidate: usize,
        times: u32,
        enqueue: &mut impl FnMut(usize) -> Result<(), CudaError>,
    ) -> Result<Duration, CudaError> {
        let stream = self.gpu.stream();
        let key = (candidate, times);
        if !self.graphs.contains_key(&key) {
            // Once before the capture, in which no kernel may be loaded.
            enqueue(candidate)?;
            self.gpu.synchronize()?;
            let captured =
                Graph::capture(stream, || (0..times).try_for_each(|_| enqueue(candidate)))?;
            self.graphs.insert(key, captured);
        }
        let graph = &self.graphs[&key];
        record(&self.first, stream)?;
        // SAFETY: what the candidates use outlives the calibration, and this waits for them.
        unsafe { graph.launch() }?;
        record(&self.last, stream)?;
        self.gpu.synchronize()?;
        let took = nanoseconds(&self.first, &self.last)?;
        Ok(Duration::from_secs_f64(took.max(100.0) * 1e-9))
    }
}
