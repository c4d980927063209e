//! Timing the replay of a routine that was captured in a CUDA graph.

use std::ptr;

use cudarc::driver::sys;

use crate::capture::{COPY, Captured, Enqueued, Graph, copies_ordinary_memory};
use crate::cuda_error::CudaError;
use crate::cuda_time::CudaTime;
use crate::device::{ClockedDevice, Iteration, Routine, Sample};
use crate::error::{BoxError, TimingError};
use crate::panic::catch_panic;
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
        let copies = &self.inner.copies_in_turn;
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

impl ClockedDevice {
    /// Counts the work that `routine` enqueues. The routine first runs once, since in a capture nothing may be loaded,
    /// and is then captured. The captured iteration runs too, so that the routine's memory is as after any other.
    /// `None` where it cannot be captured, for example because it synchronises; if cudarc orders the streams by
    /// events, it does not run at all.
    ///
    /// Memory that is allocated in a capture which fails never exists, though the routine may keep it. So a
    /// routine that allocates is captured only if the number is `required`, and then the failure is an error.
    pub(crate) fn count(
        &self,
        routine: Routine<'_>,
        required: bool,
    ) -> Result<Option<Enqueued>, TimingError> {
        // `capture` would refuse before it begins.
        if self.is_tracked() {
            return Ok(None);
        }
        let allocates = self.allocates(&mut *routine)?;
        if allocates && !required {
            return Ok(None);
        }
        // A routine that waits for the device may panic at the driver's refusal.
        let mut caught = || {
            catch_panic(&mut *routine)
                .unwrap_or_else(|message| Err(TimingError::Routine(message.into())))
        };
        let captured = match self.capture(&mut caught) {
            Ok(captured) => captured,
            Err(cause) if allocates => return Err(TimingError::not_counted(cause)),
            Err(_) => return Ok(None),
        };
        let enqueued = captured.enqueued()?;
        let graph = captured.instantiate()?;
        self.replay(&graph)?;
        self.synchronize()?;
        Ok(Some(enqueued))
    }

    /// Runs `routine` once. Whether it allocates from the device's memory pool: whether more of it was in use
    /// meanwhile than before.
    fn allocates(&self, routine: Routine<'_>) -> Result<bool, TimingError> {
        use sys::CUmemPool_attribute::{
            CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_HIGH,
        };
        let mut window = self.window(routine)?;
        let mut pool = ptr::null_mut();
        // SAFETY: the pointer is valid for the write.
        let status = unsafe { sys::cuDeviceGetMemPool(&mut pool, self.context.cu_device()) };
        if !self.context.has_async_alloc() || status != sys::CUresult::CUDA_SUCCESS {
            // cudarc then allocates by a call that no capture allows.
            return sequence::load(&mut window).map(|()| false);
        }
        let used = |attribute| -> Result<u64, CudaError> {
            let mut bytes = 0u64;
            // SAFETY: the device's own pool; both attributes are numbers of 64 bits.
            let status =
                unsafe { sys::cuMemPoolGetAttribute(pool, attribute, (&raw mut bytes).cast()) };
            CudaError::check("cuMemPoolGetAttribute", status).map(|()| bytes)
        };
        let before = used(CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?;
        let (high, mut zero) = (CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0u64);
        // SAFETY: the device's own pool; the attribute is a number of 64 bits, and 0 resets it.
        let status = unsafe { sys::cuMemPoolSetAttribute(pool, high, (&raw mut zero).cast()) };
        CudaError::check("cuMemPoolSetAttribute", status)?;
        sequence::load(&mut window)?;
        Ok(used(high)? > before)
    }

    /// Whether a kernel may begin before the one before it has ended, of this iteration or the one before
    /// (programmatic dependent launch). Two iterations are captured, and then run.
    pub(crate) fn overlaps(&self, routine: Routine<'_>) -> Result<bool, TimingError> {
        let captured = self.capture(&mut || routine().and_then(|()| routine()))?;
        let overlaps = captured.overlaps()?;
        self.replay(&captured.instantiate()?)?;
        self.synchronize()?;
        Ok(overlaps)
    }

    /// Captures the work that `routine` enqueues on the stream. None of it runs.
    ///
    /// # Errors
    /// The reason why it cannot be captured. The routine's own error comes first, because the driver
    /// refuses uncapturable calls inside the routine. Copies of ordinary host memory are refused: the
    /// routine may free that memory when it returns, and a replay would access it again.
    pub(crate) fn capture(&self, routine: Routine<'_>) -> Result<Captured, TimingError> {
        // In a capture, slices would wait for events from outside, and the failed capture would spoil the events.
        if self.is_tracked() {
            let why = "cudarc's event tracking orders the streams of this context";
            return Err(TimingError::Routine(why.into()));
        }
        let captured = Captured::new(&self.stream, || {
            let ran = routine();
            // cudarc keeps the errors of drops and of waits for events, and returns them from later calls,
            // which they have nothing to do with.
            match self.context.check_err() {
                // A slice of a context that tracks events was used, and the routine's error is a later one.
                Err(error) if error.0 == sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION => {
                    Err(CudaError::new("cuStreamWaitEvent", error).into())
                }
                _ => ran,
            }
        })?;
        // The routine may have left another context current.
        bind(&self.context)?;
        for (node, kind) in captured.nodes()? {
            if kind == COPY && copies_ordinary_memory(node)? {
                let why =
                    "it copies ordinary (pageable) host memory, which may be freed before a replay";
                return Err(TimingError::Routine(why.into()));
            }
        }
        Ok(captured)
    }

    /// Enqueues a captured graph.
    pub(crate) fn replay(&self, graph: &Graph) -> Result<(), CudaError> {
        // SAFETY: `window` or `capture` made the context current. The routine or the probe that was captured keeps its
        // memory and modules until the replay is waited for; host memory in the graph is pinned, by `capture`.
        unsafe { graph.launch() }
    }
}
