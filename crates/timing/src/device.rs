//! The device behind a [`CudaTime`](crate::CudaTime): its stream, gate and pooled events, and
//! the CUDA calls of a measurement, which `sequence` puts in order.

use std::cell::{Cell, RefCell};
#[cfg(feature = "profiler")]
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::{CudaContext, CudaStream, result, sys};

use crate::cuda_error::{Called, CudaError};
use crate::error::TimingError;
use crate::events::EventPair;
use crate::gate::{EmptyTimes, Gate};
use crate::launch_state::{LaunchLevels, LaunchProbe, in_second_context};
use crate::prepared_launch::{bind, synchronize};
use crate::sequence::{Edge, Timeline};
use crossover_words::Clock;
#[cfg(feature = "criterion")]
use crossover_words::f32_flop_per_clock;

pub(super) struct ClockedDevice {
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
    /// Before `gate`, since fields are dropped in order: its graph has a kernel of the gate's module.
    pub(super) launch_probe: RefCell<Option<LaunchProbe>>,
    pub(super) gate: RefCell<Gate>,
    /// Events that can time, for reuse: creating one takes longer than many kernels.
    pub(super) events: RefCell<Vec<EventPair>>,
    pub(super) flush: RefCell<Option<Flush>>,
    pub(super) usual_persisting: Cell<Option<usize>>,
    pub(super) launch_levels: RefCell<LaunchLevels>,
    /// The other devices that this process can use.
    pub(super) others: Vec<sys::CUdevice>,
    /// The step of the clock of its events, ns; `None` if it could not be measured.
    pub(super) event_step_ns: Option<f64>,
    /// When the last measurement ended: a device that idles lowers its clock.
    pub(super) last_use: Cell<Option<Instant>>,
    /// Times of an empty window and an empty kernel behind a gate, once they are measured.
    pub(super) empty_times: Cell<Option<EmptyTimes>>,
    /// How many samples in a row of Criterion's own `iter` ended while the device was still busy.
    #[cfg(feature = "criterion")]
    pub(super) late: Cell<u32>,
}

impl ClockedDevice {
    /// The smallest step of a clock, ns.
    pub(super) fn resolution_ns(&self, clock: Clock) -> f64 {
        let measured = self.event_step_ns.filter(|_| clock.is_of_events());
        measured.unwrap_or(clock.resolution_ns())
    }

    /// Peak of the device's memory, by the highest clock and the width of the bus, whose lines transfer twice per
    /// clock.
    #[cfg(feature = "criterion")]
    pub(super) fn memory_bytes_per_s(&self) -> Option<f64> {
        use sys::CUdevice_attribute::*;
        let kilohertz = self.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
        let bits = self.attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?;
        Some(2.0 * kilohertz * 1e3 * bits / 8.0)
    }

    /// Peak of f32 outside of the tensor cores at the highest clock.
    #[cfg(feature = "criterion")]
    pub(super) fn f32_flop_per_s(&self) -> Option<f64> {
        use sys::CUdevice_attribute::*;
        let (major, minor) = self.context.compute_capability().ok()?;
        let per_clock = f32_flop_per_clock((major as u32, minor as u32))?;
        let kilohertz = self.attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?;
        let multiprocessors = self.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        Some(f64::from(per_clock) * kilohertz * 1e3 * multiprocessors)
    }

    /// An attribute of the device; `None` if the driver does not have it.
    #[cfg(feature = "criterion")]
    fn attribute(&self, which: sys::CUdevice_attribute) -> Option<f64> {
        let value = self.context.attribute(which).ok()?;
        (value > 0).then_some(f64::from(value))
    }

    pub(super) fn synchronize(&self) -> Result<(), CudaError> {
        synchronize(&self.stream)
    }

    pub(super) fn events(&self) -> Result<EventPair, CudaError> {
        let pooled = self.events.borrow_mut().pop();
        pooled.map_or_else(|| EventPair::new(&self.context), Ok)
    }

    pub(super) fn give_back(&self, events: EventPair) {
        self.events.borrow_mut().push(events);
    }

    pub(super) fn window<'a>(&'a self, routine: Routine<'a>) -> Result<Window<'a>, CudaError> {
        bind(&self.context)?;
        let events = Some(self.events()?);
        Ok(Window {
            device: self,
            routine,
            events,
            begun: Instant::now(),
            is_trial: false,
            pause: Duration::ZERO,
        })
    }

    /// Enqueues an eviction of the L2 cache.
    #[cfg(feature = "profiler")]
    pub(super) fn evict(&self) -> Result<(), CudaError> {
        self.prepare_flush()?;
        (self.flush.borrow().as_ref()).map_or(Ok(()), Flush::enqueue)
    }

    pub(super) fn prepare_flush(&self) -> Result<(), CudaError> {
        let mut flush = self.flush.borrow_mut();
        if flush.is_none() {
            // Without room for a second context, the limit counts as the usual one.
            let usual = self.usual_persisting_bytes().ok();
            *flush = Some(Flush::new(&self.context, &self.stream, usual)?);
        }
        Ok(())
    }
}

impl ClockedDevice {
    /// Bytes of the L2 cache that a new context sets aside for persisting lines (H200: 3/16 of the cache).
    fn usual_persisting_bytes(&self) -> Result<usize, CudaError> {
        if self.usual_persisting.get().is_none() {
            self.replace_second_context()?;
        }
        Ok(self.usual_persisting.get().unwrap_or_default())
    }

    /// Creates a second context, destroys it, and makes the first one current again.
    pub(super) fn replace_second_context(&self) -> Result<(), CudaError> {
        let usual = in_second_context(self.context.cu_device(), persisting_bytes);
        bind(&self.context)?;
        self.usual_persisting.set(Some(usual??));
        Ok(())
    }
}

/// The other devices that this process can use.
pub(super) fn devices_beside(context: &CudaContext) -> Result<Vec<sys::CUdevice>, CudaError> {
    let count = result::device::get_count().called("cuDeviceGetCount")?;
    let mut devices = (0..count)
        .map(|ordinal| result::device::get(ordinal).called("cuDeviceGet"))
        .collect::<Result<Vec<_>, _>>()?;
    devices.retain(|device| *device != context.cu_device());
    Ok(devices)
}

/// A sample: how many iterations on which clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) clock: Clock,
    pub(crate) iterations: u64,
    pub(crate) iteration: Iteration,
}

/// The launches of an iteration, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "criterion"),
    expect(unreachable_pub, reason = "a sealed trait of the bencher names it")
)]
pub enum Iteration {
    #[default]
    Uncounted,
    /// It enqueues so many launches, copies and memory sets.
    Launches(u32),
    /// It waits for its work.
    Awaited,
}

impl Iteration {
    pub(crate) fn launches(self) -> u32 {
        match self {
            Iteration::Launches(launches) => launches.max(1),
            Iteration::Uncounted | Iteration::Awaited => 1,
        }
    }
}

/// A routine, as the clocks take it.
pub(crate) type Routine<'a> = &'a mut dyn FnMut() -> Result<(), TimingError>;

/// A wait for work that was launched on another thread.
#[cfg(feature = "profiler")]
pub(crate) type Wait = Rc<dyn Fn() -> Result<(), TimingError>>;

/// The [`Timeline`] that makes the CUDA calls.
pub(super) struct Window<'a> {
    device: &'a ClockedDevice,
    routine: Routine<'a>,
    events: Option<EventPair>,
    /// The zero of the host's clock.
    begun: Instant,
    /// Whether the gate waits for a short time only.
    pub(super) is_trial: bool,
    /// How long the gate stays closed once all is queued.
    pub(super) pause: Duration,
}

impl Window<'_> {
    fn events(&self) -> &EventPair {
        self.events.as_ref().expect("taken in `drop` alone")
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        if let Some(events) = self.events.take() {
            self.device.give_back(events);
        }
    }
}

impl Timeline for Window<'_> {
    fn flush(&mut self) -> Result<(), TimingError> {
        if let Some(flush) = &*self.device.flush.borrow() {
            flush.enqueue()?;
        }
        Ok(())
    }

    fn close_gate(&mut self) -> Result<(), TimingError> {
        Ok(self.device.gate.borrow_mut().close(self.is_trial)?)
    }

    fn open_gate(&mut self) {
        std::thread::sleep(self.pause);
        self.device.gate.borrow_mut().open();
    }

    fn record(&mut self, edge: Edge) -> Result<(), TimingError> {
        let (events, stream) = (self.events(), &self.device.stream);
        Ok(match edge {
            Edge::Start => events.start(stream),
            Edge::End => events.end(stream),
        }?)
    }

    fn launch(&mut self) -> Result<(), TimingError> {
        (self.routine)()
    }

    fn wait(&mut self) -> Result<(), TimingError> {
        self.events().wait()?;
        if self.device.gate.borrow_mut().take_timed_out() {
            return Err(TimingError::GateTimeout);
        }
        Ok(())
    }

    fn elapsed(&mut self) -> Result<f64, TimingError> {
        Ok(self.events().elapsed_ns()?)
    }

    fn synchronize(&mut self) -> Result<(), TimingError> {
        Ok(self.device.synchronize()?)
    }

    fn now(&mut self) -> f64 {
        self.begun.elapsed().as_nanos() as f64
    }
}

/// Evicts the L2 cache by writing twice its size. Persisting lines of a routine would survive this: if the context sets
/// another part of the cache aside for them than a new context does, they are first made normal.
pub(super) struct Flush {
    stream: Arc<CudaStream>,
    /// Bytes that a new context sets aside.
    usual: Option<usize>,
    /// Whether the note on persisting lines was printed.
    has_noted: Cell<bool>,
    buffer: cudarc::driver::CudaSlice<u8>,
}

impl Flush {
    fn new(
        context: &CudaContext,
        stream: &Arc<CudaStream>,
        usual: Option<usize>,
    ) -> Result<Self, CudaError> {
        // SAFETY: nothing reads the buffer, which is unset.
        let buffer = unsafe { stream.alloc(2 * l2_bytes(context)?) }.called("cuMemAllocAsync")?;
        Ok(Self {
            stream: stream.clone(),
            usual,
            has_noted: Cell::new(false),
            buffer,
        })
    }

    fn enqueue(&self) -> Result<(), CudaError> {
        // A routine may have left another context current.
        bind(self.stream.context())?;
        let persisting = persisting_bytes()?;
        if self.usual.is_some_and(|usual| usual != persisting) {
            reset_persisting_lines()?;
            if !self.has_noted.replace(true) {
                eprintln!("note: {PERSISTING}");
            }
        }
        use cudarc::driver::DevicePtr;
        let (address, _guard) = self.buffer.device_ptr(&self.stream);
        // SAFETY: `self` owns the buffer, of which this is the whole, and frees it on this stream.
        unsafe { result::memset_d8_async(address, 0, self.buffer.len(), self.stream.cu_stream()) }
            .called("cuMemsetD8Async")
    }
}

/// The note on persisting lines of the L2 cache.
const PERSISTING: &str = "the program has set L2 memory aside for persisting lines, so events-cold resets them before each \
    iteration; eight resets make each launch of the process 0.1 to 0.25 µs longer, which \
    CudaTime::restore_launches ends";

/// Bytes of the L2 cache that the current context has set aside for persisting lines.
fn persisting_bytes() -> Result<usize, CudaError> {
    let (mut bytes, limit) = (0, sys::CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
    // SAFETY: the pointer is valid for the write.
    match unsafe { sys::cuCtxGetLimit(&mut bytes, limit) } {
        // Before compute capability 8.0 no line persists.
        sys::CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT => Ok(0),
        status => CudaError::check("cuCtxGetLimit", status).map(|()| bytes),
    }
}

/// Size of the device's L2 cache.
pub(super) fn l2_bytes(context: &CudaContext) -> Result<usize, CudaError> {
    let bytes = context
        .attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
        .called("cuDeviceGetAttribute")?;
    Ok(bytes.max(1) as usize)
}

/// Makes persisting lines of the L2 cache of the current context normal.
///
/// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__CTX.html>
fn reset_persisting_lines() -> Result<(), CudaError> {
    // SAFETY: it takes no argument.
    CudaError::check("cuCtxResetPersistingL2Cache", unsafe {
        sys::cuCtxResetPersistingL2Cache()
    })
}
