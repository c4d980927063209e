//! An opened GPU: its context, stream, libraries and loaded kernels.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::sync::Arc;

use bytemuck::AnyBitPattern;
use cudarc::cublas::CudaBlas;
use cudarc::cublas::result::CublasError;
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaSlice, CudaStream, DeviceRepr, PinnedHostSlice,
    ValidAsZeroBits, result, sys,
};

use crate::device::collectives::Collectives;
use crate::device::copies_and_events;
use crate::device::copies_and_events::PinnedPool;
use crate::device::kernel::{Module, SharedKernels, Source};
use crate::model::{FurtherGpu, GpuLink};
use crate::timing::{
    BoxError, Called, CudaError, DeviceProperties, Launch, bind, catch_panic, open,
};
use crossover_machine::libraries::{self, Absence, NO_CUBLAS, recorded};
use crossover_machine::nccl::{Nccl, UniqueId};
use crossover_machine::numa::Nodes;
use crossover_machine::peers::{self, first_gpu, further_gpus};
use crossover_protocol::ranks::OtherRanks;
use crossover_protocol::settings::Settings;
use crossover_system::OnCores;

/// Number of streams beside the timed one.
const OTHER_STREAMS: usize = 5;

/// The type of a value in device or host memory. All bits are a value of it, so memory may be read
/// that was never written, or that was poisoned with bytes of 0xFF. `bool` is not such a type:
///
/// ```compile_fail,E0277
/// fn flags(work: &mut crossover_suite::workload::Prepared) {
///     let _ = work.alloc::<bool>(1);
/// }
/// ```
pub trait Value: AnyBitPattern + Send + Sync + DeviceRepr + ValidAsZeroBits {}

impl<T: AnyBitPattern + Send + Sync + DeviceRepr + ValidAsZeroBits> Value for T {}

/// An opened GPU: one context, the stream that the clock times, and code and libraries loaded on
/// demand. Everything runs on this stream, in order, but for copies and work beside it.
///
/// cudarc orders no streams of its context. This crate does, so other code gets neither a stream nor a slice,
/// which names its stream:
///
/// ```compile_fail,E0624
/// fn free_early(gpu: &crossover_suite::device::Gpu) {
///     let _ = gpu.stream().fork();
/// }
/// ```
/// ```compile_fail,E0624
/// fn free_early(gpu: &crossover_suite::device::Gpu) {
///     let _ = gpu.upload(&[1.0f32]).unwrap().stream().fork();
/// }
/// ```
pub struct Gpu {
    properties: DeviceProperties,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    others: Vec<Arc<CudaStream>>,
    /// The NUMA nodes; `None` if the machine has only one.
    nodes: Option<Nodes>,
    blas: OnceCell<Result<Rc<CudaBlas>, Absence>>,
    /// The devices beside it, by the settings of the run.
    further: Vec<FurtherGpu>,
    collectives: OnceCell<Result<Rc<Collectives>, Absence>>,
    /// The other processes of a run of several, if this is rank 0.
    pub(crate) ranks: Option<Rc<OtherRanks>>,
    /// The further devices, opened when a group first needs them.
    beside: OnceCell<Result<Vec<Rc<Gpu>>, Absence>>,
    modules: RefCell<HashMap<Source, Module>>,
    kernels: SharedKernels,
    pinned: PinnedPool,
}

impl Gpu {
    /// Opens device `ordinal`: retains its primary context, and creates streams in it.
    ///
    /// # Errors
    /// The [`Absence`] that keeps the device from being used.
    pub fn open(ordinal: usize) -> Result<Self, Absence> {
        // SAFETY: `Steps` and the routines of this crate order the streams of this context by events, end on the stream
        // that frees the memory, and wait for it before they use pinned memory. Other code gets no slice, and the
        // stream from `timed_stream` alone, whose callers keep the same contract.
        let (properties, stream) = unsafe { open(ordinal) }?;
        let context = stream.context().clone();
        CudaError::name_device(context.cu_ctx(), ordinal);
        let others = (0..OTHER_STREAMS).map(|_| context.new_stream());
        let others = others.collect::<Result<_, _>>().called("cuStreamCreate")?;
        keep_pool_memory(&context)?;
        let nodes = Nodes::of_this_machine(Some(&properties.pci_bus_id));
        Ok(Self {
            properties,
            context,
            stream,
            others,
            nodes,
            blas: OnceCell::new(),
            further: Vec::new(),
            collectives: OnceCell::new(),
            ranks: None,
            beside: OnceCell::new(),
            modules: RefCell::default(),
            kernels: SharedKernels::default(),
            pinned: PinnedPool::default(),
        })
    }

    /// Whether the driver executes kernels. The recording driver of the tests does not: the outputs are not
    /// written, and device times are invented.
    pub(crate) fn executes_kernels() -> bool {
        !recorded()
    }

    /// The GPU with compiled kernels that it shares with other processes.
    pub(crate) fn sharing(mut self, kernels: SharedKernels) -> Self {
        self.kernels = kernels;
        self
    }

    /// Opens the device that `CROSSOVER_DEVICE` names, the first of several.
    ///
    /// # Errors
    /// A setting with a bad value, and the absence of a device.
    pub fn named() -> Result<Self, BoxError> {
        let settings = Settings::from_env()?;
        let gpu = Self::open(first_gpu(&settings)?.ordinal)?;
        Ok(gpu.with_further(further_gpus(&settings)?))
    }

    /// Names the devices beside this one, for work on several.
    pub fn with_further(mut self, further: Vec<FurtherGpu>) -> Self {
        self.further = further;
        self
    }

    /// The devices beside this one, opened at the first call. Where the link allows it, this one may use
    /// their memory and they may use its.
    ///
    /// # Errors
    /// There are none, in a run of one process, and the errors of [`open`](Self::open).
    pub(crate) fn beside(&self) -> Result<&[Rc<Gpu>], Absence> {
        let open = |further: &FurtherGpu| {
            let other = Self::open(further.ordinal)?.sharing(self.kernels.clone());
            if further.link.has_access() {
                give_access(self, &other)?;
                give_access(&other, self)?;
            }
            Ok(Rc::new(other))
        };
        let opened = self.beside.get_or_init(|| {
            if self.further.is_empty() {
                return Err(Absence::OneDevice);
            }
            let opened = self.further.iter().map(open).collect();
            self.bind()?;
            opened
        });
        opened.as_deref().map_err(Clone::clone)
    }

    /// The devices beside this one that are open.
    pub(crate) fn opened_beside(&self) -> &[Rc<Gpu>] {
        let opened = self.beside.get().map(Result::as_deref);
        opened.and_then(Result::ok).unwrap_or_default()
    }

    /// Whether this device and one of those beside it may use each other's memory.
    pub(crate) fn has_access(&self, beside: usize) -> bool {
        self.further[beside].link.has_access()
    }

    /// Requires that this device and the first `devices` of those beside it may use each other's memory.
    ///
    /// # Errors
    /// The first device without such a link.
    pub(crate) fn require_peers(&self, devices: usize) -> Result<(), Absence> {
        let mut further = self.further.iter().take(devices);
        let lacks = further.find(|further| !further.link.has_access());
        let own = self.properties.ordinal;
        lacks.map_or(Ok(()), |further| Err(no_peer(own, further, further.link)))
    }

    /// Requires that the links of all devices work, or that the driver reports none.
    ///
    /// # Errors
    /// A link that is reported does not work.
    pub(super) fn require_no_broken_link(&self) -> Result<(), Absence> {
        let own = self.properties.ordinal;
        for further in &self.further {
            let broken = (further.link == GpuLink::Broken).then_some(own);
            if let Some(other) = broken.or(further.broken_with.first().copied()) {
                return Err(no_peer(other, further, GpuLink::Broken));
            }
        }
        Ok(())
    }

    /// Collective operations of this device and those beside it, by NCCL, connected at the first call.
    ///
    /// # Errors
    /// There is no NCCL, or it fails.
    pub(crate) fn collectives(&self) -> Result<Rc<Collectives>, Absence> {
        let connect = || Collectives::of_this_process(self).map(Rc::new);
        self.collectives.get_or_init(connect).clone()
    }

    /// Connects this device with those of other processes, whose ranks call this too.
    ///
    /// # Errors
    /// As [`collectives`](Self::collectives).
    pub(crate) fn join(&self, id: UniqueId, rank: usize, size: usize) -> Result<(), BoxError> {
        let joined = Collectives::connect(Nccl::open()?, &[self], id, [rank, size])?;
        let _ = self.collectives.set(Ok(Rc::new(joined)));
        let _ = self.beside.set(Ok(Vec::new()));
        Ok(())
    }

    /// Whether this device is connected with others.
    pub(crate) fn is_connected(&self) -> bool {
        self.collectives.get().is_some()
    }

    /// The properties that the driver reports.
    pub fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    /// Keeps this thread at the NUMA node of the device until the returned value is dropped; `None` if
    /// there is only one node, or the thread may not run at that node.
    pub fn keep_near(&self) -> Option<OnCores> {
        OnCores::new(self.nodes.as_ref()?.cores_of_gpu()?)
    }

    /// Requires a compute capability of at least `oldest` (major, minor), with which `what`, such
    /// as `FP8 tensor cores`, came.
    ///
    /// # Errors
    /// [`Absence::DeviceLacks`] on an older device. The suite then skips the implementation and
    /// says why.
    pub fn require(&self, oldest: (u32, u32), what: &'static str) -> Result<(), Absence> {
        let compute_capability = self.properties.compute_capability;
        if compute_capability >= oldest {
            return Ok(());
        }
        Err(Absence::DeviceLacks {
            what,
            oldest,
            name: self.properties.name.clone(),
            compute_capability,
        })
    }

    /// The device's primary context.
    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// The stream that everything runs on and the clock times.
    pub(crate) fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// [`stream`](Self::stream) for code outside of this crate.
    ///
    /// # Safety
    /// As [`open`]: the caller orders other streams with it.
    #[doc(hidden)]
    pub unsafe fn timed_stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// A cuBLAS handle on [`stream`](Self::stream), created at the first call.
    ///
    /// # Errors
    /// [`Absence::NoLibrary`] without cuBLAS, [`Absence::Failed`] where it gives no handle.
    pub(crate) fn blas(&self) -> Result<Rc<CudaBlas>, Absence> {
        self.blas
            .get_or_init(|| {
                if !libraries::cublas() {
                    return Err(NO_CUBLAS);
                }
                match catch_panic(|| CudaBlas::new(self.stream.clone())) {
                    Ok(Ok(blas)) => Ok(Rc::new(blas)),
                    Ok(Err(e)) => Err(Absence::Failed {
                        call: "cublasCreate",
                        message: format!("{:?}", e.0),
                    }),
                    Err(_) => Err(NO_CUBLAS),
                }
            })
            .clone()
    }

    /// Kernel `name` of `source`, compiled for this device and loaded at the first call.
    ///
    /// # Errors
    /// A [`CompileError`](crate::device::kernel::CompileError) where NVRTC is absent or rejects the
    /// source, or the device is too old for it; a [`CudaError`] where the kernel cannot be loaded.
    pub fn function(&self, source: &Source, name: &str) -> Result<CudaFunction, BoxError> {
        if let Some(module) = self.modules.borrow().get(source) {
            return Ok(module.function(name)?);
        }
        let arch = self.properties.compute_capability;
        let module = self.kernels.cubin(source, arch)?.load(&self.context)?;
        let function = module.function(name)?;
        self.modules.borrow_mut().insert(*source, module);
        Ok(function)
    }

    /// A launch of this kernel, with these numbers of blocks and of threads per block, without arguments.
    ///
    /// # Errors
    /// As [`function`](Self::function).
    pub fn launch(
        &self,
        source: &Source,
        name: &str,
        blocks: u32,
        threads: u32,
    ) -> Result<Launch, BoxError> {
        let function = self.function(source, name)?;
        Ok(Launch::new(function, (blocks, 1, 1), (threads, 1, 1)))
    }

    /// Makes the context current on this thread, which [`Launch`](crate::timing::Launch) needs.
    ///
    /// # Errors
    /// The driver's error of `cuCtxSetCurrent`.
    pub fn bind(&self) -> Result<(), CudaError> {
        bind(&self.context)
    }

    /// Device memory for `len` values, whose content is undefined until something writes it.
    ///
    /// # Errors
    /// The driver's error, out of memory included.
    pub(crate) fn alloc<T: Value>(&self, len: usize) -> Result<CudaSlice<T>, CudaError> {
        // SAFETY: nobody has written the memory, and `Value` makes all bits a value.
        unsafe { self.stream.alloc(len) }.called("cuMemAllocAsync")
    }

    /// Device memory with a copy of `values`.
    ///
    /// # Errors
    /// The driver's error, out of memory included.
    pub(crate) fn upload<T: Value>(&self, values: &[T]) -> Result<CudaSlice<T>, CudaError> {
        let mut copy = self.alloc(values.len())?;
        self.stream
            .memcpy_htod(values, &mut copy)
            .called("cuMemcpyHtoDAsync")?;
        self.synchronize()?;
        Ok(copy)
    }

    /// Pinned host memory for `len` values. The CPU caches it (it is not write-combined).
    ///
    /// # Safety
    /// The memory is not initialised: each value must be written before it is read.
    ///
    /// # Errors
    /// The driver's error, out of memory included.
    pub(crate) unsafe fn alloc_pinned<T: Value>(
        &self,
        len: usize,
    ) -> Result<PinnedHostSlice<T>, CudaError> {
        // The driver takes the pages at once, and the system places them near the calling thread.
        let _near = self.keep_near();
        // SAFETY: the caller writes the values before it reads them.
        let allocate = || unsafe { self.context.alloc_pinned_with_flags(len, 0) };
        // Memory that is kept for later may be missing now.
        let again = |error| {
            if self.pinned.clear() {
                allocate()
            } else {
                Err(error)
            }
        };
        allocate().or_else(again).called("cuMemHostAlloc")
    }

    /// The pinned memory that its routines have given back.
    pub(crate) fn pinned_pool(&self) -> &PinnedPool {
        &self.pinned
    }

    /// Pinned host memory with `len` times `value`, written by this thread.
    pub(crate) fn pinned<T: Value>(
        &self,
        len: usize,
        value: T,
    ) -> Result<PinnedHostSlice<T>, CudaError> {
        // SAFETY: the next line writes all values.
        let mut slice = unsafe { self.alloc_pinned(len) }?;
        copies_and_events::pinned_places(&mut slice)?.fill(MaybeUninit::new(value));
        Ok(slice)
    }

    /// Enqueues that device memory is filled with bytes of 0xFF: NaN as f32, f64, f16 and bf16.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn poison<T: Value>(&self, values: &mut CudaSlice<T>) -> Result<(), CudaError> {
        use cudarc::driver::DevicePtrMut;
        let bytes = values.num_bytes();
        let (pointer, _guard) = values.device_ptr_mut(&self.stream);
        // SAFETY: the slice owns these bytes until it is dropped, and all bits are a value.
        unsafe { result::memset_d8_async(pointer, 0xFF, bytes, self.stream.cu_stream()) }
            .called("cuMemsetD8Async")
    }

    /// Checks whether an earlier call failed that could not return its error, on this device or one beside it.
    ///
    /// # Errors
    /// The driver's error of the first such call.
    pub(crate) fn check_earlier(&self) -> Result<(), CudaError> {
        let beside = self.opened_beside().iter().map(|gpu| &gpu.context);
        let mut contexts = [&self.context].into_iter().chain(beside);
        let named = |error| CudaError::new("an earlier CUDA call", error);
        contexts.try_for_each(|context| context.check_err().map_err(named))
    }

    /// Waits until the stream is idle.
    ///
    /// # Errors
    /// The driver's error, also that of earlier work on the stream.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        copies_and_events::synchronize(&self.stream)
    }

    /// Waits until this device and those beside it are idle. Errors are those of earlier calls, which have
    /// reported them. One that a context keeps does not end the wait, as it would in cudarc, and
    /// [`check_earlier`](Self::check_earlier) finds it later.
    pub(crate) fn wait_for_all(&self) {
        let beside = self.opened_beside().iter().map(|gpu| &gpu.context);
        // The context of this device is current afterwards.
        for context in beside.chain([&self.context]) {
            let _ = bind(context).map(|()| result::ctx::synchronize());
        }
    }

    /// A stream that is not ordered with others. Kernels and memory sets belong on
    /// [`other_streams`](Self::other_streams): each further stream that runs some counts towards those that make all
    /// launches longer.
    pub(crate) fn new_stream(&self) -> Result<Arc<CudaStream>, CudaError> {
        self.context.new_stream().called("cuStreamCreate")
    }

    /// More streams, not ordered with each other. All routines share them.
    pub(crate) fn other_streams(&self) -> &[Arc<CudaStream>] {
        &self.others
    }

    /// An event that orders work and cannot time, which is cheaper than one that can.
    pub(crate) fn new_event(&self) -> Result<CudaEvent, CudaError> {
        // Without flags cudarc creates such an event.
        self.context.new_event(None).called("cuEventCreate")
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // After the context is lost, the library cannot destroy its handle, and cudarc would panic.
        let libraries = (self.collectives.take(), self.blas.take());
        let _ = catch_panic(|| drop(libraries));
    }
}

fn no_peer(first: usize, other: &FurtherGpu, link: GpuLink) -> Absence {
    Absence::NoPeer {
        first,
        other: other.ordinal,
        link: link.in_words(),
    }
}

/// The pool behind `cuMemAllocAsync`, where there is that call.
fn default_pool(context: &CudaContext) -> Result<Option<sys::CUmemoryPool>, CudaError> {
    if !context.has_async_alloc() {
        return Ok(None);
    }
    // SAFETY: the context is retained, and so its device exists.
    let pool = unsafe { result::device::get_default_mem_pool(context.cu_device()) };
    pool.called("cuDeviceGetDefaultMemPool").map(Some)
}

/// Lets a device use all memory of another.
fn give_access(to: &Gpu, of: &Gpu) -> Result<(), CudaError> {
    peers::give_access(&to.context, &of.context)?;
    let Some(pool) = default_pool(&of.context)? else {
        return Ok(());
    };
    // SAFETY: all zeros is a valid value of this plain C struct.
    let mut access: sys::CUmemAccessDesc = unsafe { std::mem::zeroed() };
    access.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = to.properties.ordinal as i32;
    access.flags = sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    // SAFETY: the pool is the device's own default pool, and the description is one.
    let status = unsafe { sys::cuMemPoolSetAccess(pool, &access, 1) };
    CudaError::check("cuMemPoolSetAccess", status)
}

/// By default the pool behind `cuMemAllocAsync` gives its memory back to the system at every
/// synchronisation, and the next allocation pays for it again.
fn keep_pool_memory(context: &CudaContext) -> Result<(), CudaError> {
    let Some(pool) = default_pool(context)? else {
        return Ok(());
    };
    let mut threshold = u64::MAX;
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the pool is the device's own default pool; the attribute is a 64-bit number.
    unsafe { result::mem_pool::set_attribute(pool, attribute, (&raw mut threshold).cast()) }
        .called("cuMemPoolSetAttribute")
}

/// An error of cuBLAS as a [`CudaError`].
pub(crate) fn cublas_error(error: CublasError) -> CudaError {
    CudaError::with_message("cuBLAS", format!("{:?}", error.0))
}
