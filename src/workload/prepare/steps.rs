//! Copies, kernels and library calls that are prepared once, on one stream or on several that overlap, also
//! of other devices: enqueued one by one, or replayed as one graph.

use std::cell::Cell;
use std::rc::Rc;

use cudarc::driver::{CudaEvent, CudaStream, result, sys};

use crate::device::Gpu;
use crate::device::copies_and_events::synchronize;
use crate::timing::{Called, Captured, CudaError, Enqueued, Graph, Launch, Range, range};
use crate::workload::prepare::host_memory::{Block, Direction};
use crate::workload::prepare::memory::Host;

/// A stream of the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// The stream that is timed, where kernels and library calls run.
    Compute,
    /// Copies to the device that overlap with `Compute`, or other work beside it.
    Up,
    /// Copies to the host that overlap with both.
    Down,
    /// A stream of a device beside the first, which is device 0 of the steps.
    Beside(usize, PeerStream),
}

/// A stream of a device beside the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerStream {
    /// Kernels and library calls.
    Work,
    /// Copies to the device.
    In,
    /// Copies from the device.
    Out,
}

/// Memory of a device of the steps: its number, and the address.
pub(crate) type PeerAddress = (usize, sys::CUdeviceptr);

/// Enqueues something on a stream, or does something on the host.
pub(crate) type Call = Box<dyn Fn(&CudaStream) -> Result<(), CudaError>>;

/// Uploads, the work on them once they have arrived, and downloads of the result.
pub(crate) struct Stage {
    pub(crate) uploads: Vec<Block>,
    pub(crate) compute: Call,
    pub(crate) downloads: Vec<Block>,
}

enum PreparedStep {
    Copy(Block, Direction, Stream),
    /// A copy of this number of bytes between two devices.
    Peer([PeerAddress; 2], usize, Stream),
    Kernel(Launch, Stream),
    /// A call, and the launches that it makes.
    Call(Call, u32, Stream),
    /// The second stream waits for the work enqueued on the first so far.
    Order(CudaEvent, Stream, Stream),
    /// The host waits for the stream.
    Wait(Stream),
    /// A profile shows the following steps as a range of this name.
    Named(&'static str),
}

/// The steps of an iteration, in order. They hold addresses, not memory.
///
/// Whoever adds a step promises, in an `unsafe` block, that its addresses are valid as long as the
/// steps live, that nothing else uses their memory while the steps run, and that a kernel's arguments
/// have the declared types. So running the steps is safe.
pub(crate) struct Steps {
    /// Dropped before the streams that it was captured from.
    graph: Option<Graph>,
    gpu: Rc<Gpu>,
    steps: Vec<PreparedStep>,
    /// The device whose context is current while the steps are enqueued.
    current: Cell<usize>,
}

impl Steps {
    /// No steps. Those on `Up` and `Down` will not be ordered behind the work on the GPU's stream.
    pub(crate) fn new(gpu: &Rc<Gpu>) -> Result<Self, CudaError> {
        gpu.bind()?;
        Ok(Self {
            graph: None,
            gpu: Rc::clone(gpu),
            steps: Vec::new(),
            current: Cell::new(0),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Launches a kernel.
    ///
    /// # Safety
    /// The kernel's arguments must be of the declared types, and its memory must be valid as long as
    /// the steps live and used by nothing else while they run.
    pub(crate) unsafe fn kernel(&mut self, launch: Launch) {
        self.steps
            .push(PreparedStep::Kernel(launch, Stream::Compute));
    }

    /// Launches kernels, one after the other.
    ///
    /// # Safety
    /// As for [`kernel`](Self::kernel).
    pub(crate) unsafe fn kernels(
        &mut self,
        on: Stream,
        launches: impl IntoIterator<Item = Launch>,
    ) {
        let launches = launches.into_iter();
        self.steps
            .extend(launches.map(|launch| PreparedStep::Kernel(launch, on)));
    }

    /// Copies `from` to the device.
    ///
    /// # Safety
    /// As for [`kernel`](Self::kernel).
    pub(crate) unsafe fn upload<T>(&mut self, on: Stream, from: *const [T], to: sys::CUdeviceptr) {
        let block = Block::whole(from.cast_mut(), to);
        self.steps
            .push(PreparedStep::Copy(block, Direction::Up, on));
    }

    /// Fills `to` from the device.
    ///
    /// # Safety
    /// As for [`kernel`](Self::kernel).
    pub(crate) unsafe fn download<T>(&mut self, on: Stream, from: sys::CUdeviceptr, to: *mut [T]) {
        let block = Block::whole(to, from);
        self.steps
            .push(PreparedStep::Copy(block, Direction::Down, on));
    }

    /// Downloads the values at the first address, has the CPU change them, and uploads them to the second.
    ///
    /// # Safety
    /// As for [`kernel`](Self::kernel), for as many values as `host` has at both addresses.
    pub(crate) unsafe fn on_cpu(
        &mut self,
        [from, to]: [sys::CUdeviceptr; 2],
        host: Host<f32>,
        change: impl Fn(&mut [f32]) + 'static,
    ) {
        // SAFETY: the caller promises the memory, and the next step waits.
        unsafe { self.download(Stream::Compute, from, host.values) };
        self.wait(Stream::Compute);
        self.call(move |_| {
            // SAFETY: the caller promises the values, and the step before has waited for the copy to them.
            change(unsafe { &mut *host.values });
            Ok(())
        });
        // SAFETY: the caller promises the memory, and the CPU writes to it again only after a later wait.
        unsafe { self.upload(Stream::Compute, host.values, to) };
    }

    /// Copies `bytes` bytes from memory of one device to that of another.
    ///
    /// # Safety
    /// As for [`kernel`](Self::kernel).
    pub(crate) unsafe fn peer_copy(
        &mut self,
        on: Stream,
        [from, to]: [PeerAddress; 2],
        bytes: usize,
    ) {
        self.steps.push(PreparedStep::Peer([from, to], bytes, on));
    }

    /// Stages that overlap: a stage computes once its uploads have arrived, while the uploads of the
    /// next stage run; its downloads follow. A single stage is on the GPU's stream alone.
    ///
    /// # Safety
    /// As for [`kernel`](Self::kernel).
    pub(crate) unsafe fn of_stages(gpu: &Rc<Gpu>, stages: Vec<Stage>) -> Result<Self, CudaError> {
        let mut steps = Self::new(gpu)?;
        let (up, down) = if stages.len() > 1 {
            (Stream::Up, Stream::Down)
        } else {
            (Stream::Compute, Stream::Compute)
        };
        // Earlier work on the GPU's stream may still use the memory.
        steps.order(Stream::Compute, up)?;
        steps.order(Stream::Compute, down)?;
        for stage in stages {
            let copies = |blocks: Vec<Block>, way, on| {
                (blocks.into_iter()).map(move |block| PreparedStep::Copy(block, way, on))
            };
            (steps.steps).extend(copies(stage.uploads, Direction::Up, up));
            steps.order(up, Stream::Compute)?;
            (steps.steps).push(PreparedStep::Call(stage.compute, 1, Stream::Compute));
            if !stage.downloads.is_empty() {
                steps.order(Stream::Compute, down)?;
                (steps.steps).extend(copies(stage.downloads, Direction::Down, down));
            }
        }
        steps.order(down, Stream::Compute)?;
        Ok(steps)
    }

    /// Adds a call of a library or of host code, which gets the GPU's stream.
    pub(crate) fn call(&mut self, call: impl Fn(&CudaStream) -> Result<(), CudaError> + 'static) {
        self.call_on(Stream::Compute, 1, call);
    }

    /// Adds a library call on the GPU's stream. Its launches are counted by calling it here.
    pub(crate) fn counted_call(
        &mut self,
        call: impl Fn(&CudaStream) -> Result<(), CudaError> + 'static,
    ) -> Result<(), CudaError> {
        let launches = launches(&self.gpu, || call(self.gpu.stream()))?;
        self.call_on(Stream::Compute, launches, call);
        Ok(())
    }

    /// Adds a call of this number of launches, which gets a stream.
    pub(crate) fn call_on(
        &mut self,
        on: Stream,
        launches: u32,
        call: impl Fn(&CudaStream) -> Result<(), CudaError> + 'static,
    ) {
        self.steps
            .push(PreparedStep::Call(Box::new(call), launches, on));
    }

    /// Makes later steps on `then` wait for the steps on `first` so far.
    pub(crate) fn order(&mut self, first: Stream, then: Stream) -> Result<(), CudaError> {
        if first == then {
            return Ok(());
        }
        let event = self.gpu(device(first)).new_event()?;
        self.gpu.bind()?;
        self.steps.push(PreparedStep::Order(event, first, then));
        Ok(())
    }

    /// Runs the steps once, because libraries must not load code during a capture, and captures them.
    pub(crate) fn into_graph(mut self) -> Result<Self, CudaError> {
        self.run()?;
        self.replay()?;
        Ok(self)
    }

    /// Makes the host wait for a stream.
    pub(crate) fn wait(&mut self, on: Stream) {
        self.steps.push(PreparedStep::Wait(on));
    }

    /// Shows the following steps in a profile under this name.
    pub(crate) fn named(&mut self, name: &'static str) {
        self.steps.push(PreparedStep::Named(name));
    }

    /// Captures the steps; later iterations replay the graph. Library calls must have run once before,
    /// because libraries must not load code during a capture.
    pub(crate) fn replay(&mut self) -> Result<(), CudaError> {
        self.instantiate(self.capture()?)
    }

    /// The first half of [`replay`](Self::replay).
    pub(crate) fn capture(&self) -> Result<Captured, CudaError> {
        Captured::new(self.gpu.stream(), || self.enqueue_each())
    }

    /// The second half.
    pub(crate) fn instantiate(&mut self, captured: Captured) -> Result<(), CudaError> {
        self.graph = Some(captured.instantiate()?);
        Ok(())
    }

    /// Enqueues everything. After an error or a panic it waits for the steps enqueued before it, which may
    /// still use the memory.
    pub(crate) fn enqueue(&self) -> Result<(), CudaError> {
        let unfinished = Unfinished(self);
        let enqueued = match &self.graph {
            Some(graph) => {
                self.begin()?;
                // SAFETY: whoever added a step promised its memory; the context is current.
                unsafe { graph.launch() }
            }
            None => self.enqueue_each(),
        };
        if enqueued.is_ok() {
            std::mem::forget(unfinished);
        }
        enqueued
    }

    /// Enqueues everything and waits until it is done.
    pub(crate) fn run(&self) -> Result<(), CudaError> {
        self.enqueue()?;
        self.gpu.synchronize()
    }

    /// Makes the context of the first device current, which other code may have left.
    fn begin(&self) -> Result<(), CudaError> {
        self.current.set(0);
        self.gpu.bind()
    }

    fn enqueue_each(&self) -> Result<(), CudaError> {
        self.begin()?;
        let mut shown: Option<Range> = None;
        for step in &self.steps {
            if let PreparedStep::Named(name) = step {
                // A range ends before the next begins.
                drop(shown.take());
                shown = Some(range(name));
            }
            self.step(step)?;
        }
        self.enter(Stream::Compute)
    }

    /// A device of the steps.
    fn gpu(&self, device: usize) -> &Gpu {
        match device {
            0 => &self.gpu,
            at => &self.gpu.opened_beside()[at - 1],
        }
    }

    /// Makes the context of the stream's device current.
    fn enter(&self, on: Stream) -> Result<(), CudaError> {
        let device = device(on);
        if self.current.get() != device {
            self.gpu(device).bind()?;
            self.current.set(device);
        }
        Ok(())
    }

    fn stream(&self, on: Stream) -> &CudaStream {
        match on {
            Stream::Compute => self.gpu.stream(),
            Stream::Up => &self.gpu.other_streams()[0],
            Stream::Down => &self.gpu.other_streams()[1],
            Stream::Beside(at, PeerStream::Work) => self.gpu(at).stream(),
            // The first one is that of its memory.
            Stream::Beside(at, PeerStream::In) => &self.gpu(at).other_streams()[1],
            Stream::Beside(at, PeerStream::Out) => &self.gpu(at).other_streams()[2],
        }
    }

    fn step(&self, step: &PreparedStep) -> Result<(), CudaError> {
        let raw = |on: Stream| self.stream(on).cu_stream();
        // These call the driver directly: cudarc's functions query the current context each time, and
        // there may be many steps.
        match step {
            PreparedStep::Copy(block, way, on) => {
                self.enter(*on)?;
                // SAFETY: whoever added the step promised its memory.
                unsafe { block.enqueue(*way, raw(*on)) }
            }
            PreparedStep::Peer([from, to], bytes, on) => {
                self.enter(*on)?;
                let [here, there] = [from, to].map(|side| self.gpu(side.0).context().cu_ctx());
                let (from, to) = (from.1, to.1);
                // SAFETY: whoever added the step promised the memory on both devices, which `self` keeps.
                unsafe { result::memcpy_peer_async(there, to, here, from, *bytes, raw(*on)) }
                    .called("cuMemcpyPeerAsync")
            }
            PreparedStep::Kernel(launch, on) => {
                self.enter(*on)?;
                // SAFETY: whoever added the step promised its arguments; the stream's context is current.
                unsafe { launch.launch(self.stream(*on)) }
            }
            PreparedStep::Call(call, _, on) => {
                self.enter(*on)?;
                call(self.stream(*on))
            }
            PreparedStep::Order(event, first, then) => {
                self.enter(*first)?;
                // SAFETY: the step owns the event, and `self` keeps the stream, whose context is current.
                unsafe { result::event::record(event.cu_event(), raw(*first)) }
                    .called("cuEventRecord")?;
                self.enter(*then)?;
                let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                // SAFETY: as for the record.
                unsafe { result::stream::wait_event(raw(*then), event.cu_event(), flags) }
                    .called("cuStreamWaitEvent")
            }
            PreparedStep::Wait(on) => {
                self.enter(*on)?;
                synchronize(self.stream(*on))
            }
            PreparedStep::Named(_) => Ok(()),
        }
    }

    /// Upper bound on the entries that the steps take in the stream's queue, also as a graph. Copies do
    /// not count.
    pub(crate) fn launches(&self) -> u32 {
        let launches = self.steps.iter().map(|step| match step {
            PreparedStep::Kernel(..) => 1,
            PreparedStep::Call(_, launches, _) => *launches,
            // An event is recorded and waited for.
            PreparedStep::Order(..) => 2,
            _ => 0,
        });
        launches.sum::<u32>().max(1)
    }
}

/// Steps of which some may be enqueued. They are waited for when this is dropped.
struct Unfinished<'a>(&'a Steps);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // Errors of these calls repeat the first one, or tell less.
        let devices = 1..=self.0.gpu.opened_beside().len();
        let lanes = [PeerStream::In, PeerStream::Out, PeerStream::Work];
        let beside = devices.flat_map(|at| lanes.map(|lane| Stream::Beside(at, lane)));
        let own = [Stream::Up, Stream::Down, Stream::Compute];
        for on in beside.chain(own) {
            let _ = synchronize(self.0.stream(on));
        }
    }
}

/// The device of a stream.
fn device(of: Stream) -> usize {
    match of {
        Stream::Beside(at, _) => at,
        _ => 0,
    }
}

/// Launches of one library call. A product of a few rows, for example, may clear counters, compute
/// pieces of the sum and add them up. The call runs once, so that the library loads its code, and is
/// then captured. A call that cannot be captured counts as four launches, the most that any product was
/// seen to make.
///
/// # Errors
/// Errors of the call.
pub(crate) fn launches(
    gpu: &Gpu,
    call: impl Fn() -> Result<(), CudaError>,
) -> Result<u32, CudaError> {
    call()?;
    gpu.synchronize()?;
    const MOST_SEEN: u32 = 4;
    let count = Graph::count(gpu.stream(), call).map(Enqueued::all);
    Ok(count.map_or(MOST_SEEN, |count| count.max(1)))
}
