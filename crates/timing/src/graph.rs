//! Timing the replay of a routine that was captured in a CUDA graph.

use crate::capture::Graph;
use crate::cuda_time::CudaTime;
use crate::device::{ClockedDevice, Iteration, Routine, Sample};
use crate::error::{BoxError, TimingError};
use crate::prepared_launch::bind;
use crate::sequence;
use crossover_words::Clock;

impl CudaTime {
    /// Captures one call of `routine` in a CUDA graph, replays the graph `iterations` times, and
    /// returns the time of all replays together on `clock`, in nanoseconds. The capture
    /// and the upload of the graph are not timed. If the routine takes [rotating](crate::Rotating)
    /// inputs, as many calls are captured as there are copies, and their graphs are replayed in turn.
    ///
    /// With one iteration the routine runs once beforehand, as in [`measure`](Self::measure): in a
    /// capture nothing may be loaded.
    ///
    /// A graph keeps the addresses that its work uses. A routine that copies ordinary host memory is
    /// refused, because it may free that memory before a replay: copy pinned memory that it borrows.
    /// So is one that keeps memory which it allocates, or frees other memory than that.
    ///
    /// ```no_run
    /// use crossover_timing::{Clock, CudaTime};
    ///
    /// // SAFETY: it is the only stream of the program.
    /// let time = unsafe { CudaTime::new(0) }?;
    /// let empty = time.empty_kernel().expect("opened on a device");
    /// let stream = time.stream().expect("opened on a device");
    /// // SAFETY: the kernel takes no arguments.
    /// let mut ten = || (0..10).try_for_each(|_| unsafe { empty.launch(stream) });
    /// time.measure_graph(Clock::EventsGated, 1, &mut ten)?;
    /// let ns = time.measure_graph(Clock::EventsGated, 100, &mut ten)? / 100.0;
    /// println!("ten kernels in one graph: {ns:.0} ns");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TimingError::NotCaptured`], [`TimingError::NothingEnqueued`], and those of
    /// [`measure`](Self::measure).
    pub fn measure_graph<E: Into<BoxError>>(
        &self,
        clock: Clock,
        iterations: u64,
        mut routine: impl FnMut() -> Result<(), E>,
    ) -> Result<f64, TimingError> {
        let mut routine = || routine().map_err(|e| TimingError::from(e.into()));
        self.measure_graph_erased(clock, iterations, &mut routine)
    }

    pub(crate) fn measure_graph_erased(
        &self,
        clock: Clock,
        iterations: u64,
        routine: Routine<'_>,
    ) -> Result<f64, TimingError> {
        let device = self.device().ok_or(TimingError::NoDevice { clock })?;
        if iterations == 1 {
            sequence::load(&mut device.window(routine)?)?;
        } else {
            bind(&device.context)?;
        }
        let mut graphs = Vec::new();
        // Work on a stream that is not captured runs now, so it is detected here.
        self.alone(|| {
            graphs = self.captured(device, iterations, routine)?;
            Ok(0.0)
        })?;
        let mut in_turn = graphs.iter().cycle();
        let sample = Sample {
            clock,
            iterations,
            iteration: Iteration::Launches(1),
        };
        self.measure_erased(sample, &mut || {
            in_turn
                .next()
                .map_or(Ok(()), |graph| Ok(device.replay(graph)?))
        })
    }

    /// Captures one call; if the routine takes rotating inputs, one call for each copy that
    /// `iterations` replays need.
    fn captured(
        &self,
        device: &ClockedDevice,
        iterations: u64,
        routine: Routine<'_>,
    ) -> Result<Vec<Graph>, TimingError> {
        let copies = self.copies_in_turn();
        copies.set(1);
        let mut graphs = Vec::new();
        while graphs.is_empty() || (graphs.len() as u64) < iterations.min(copies.get() as u64) {
            let captured = device.capture(routine).map_err(TimingError::not_captured)?;
            if captured.enqueued()?.all() == 0 {
                return Err(TimingError::NothingEnqueued);
            }
            let reason = captured.reason_to_run_once()?;
            let graph = captured.instantiate()?;
            if let Some(why) = reason {
                // Memory that the routine keeps has to exist.
                device.replay(&graph)?;
                device.synchronize()?;
                return Err(TimingError::NotCaptured { cause: why.into() });
            }
            graphs.push(graph);
        }
        device.synchronize()?;
        Ok(graphs)
    }
}
