//! The costs of the first call of a process, each phase measured in child processes with the driver's
//! JIT cache off, beside the same phase when it is warm.
//!
//! The clock is the host's; the device is synchronised at the end of each phase.

use std::ffi::CString;
use std::rc::Rc;
use std::time::Instant;

use crossover_arithmetic::number::{different, equal};
use cudarc::cublas::{result as cublas, sys::cublasOperation_t};
use cudarc::driver::{result, sys};
use cudarc::nvrtc::result as nvrtc;

use crate::device::Gpu;
use crate::device::gpu::cublas_error;
use crate::device::kernel::Source;
use crate::device::libraries::{self, NO_NVRTC};
use crate::model::{Format, Launches, Phase};
use crate::timing::Called;
use crate::workload::prepare::{PhaseTime, Processes, Report, Task, kernels};
use crate::workload::product::Workspace;
use crate::workload::routine::{Result, Routine, Workload};
use crate::workload::transformer::{self, Inference};

/// The kernel of the first launch.
pub static COLD_START: Source = kernels!("cold_start.cu");

/// The measured processes.
pub struct ColdStart {
    /// The processes of each of [`TASKS`].
    processes: [Rc<Processes>; 3],
}

const TASKS: [Task; 3] = [Task::ColdStart, Task::LargeGemm, Task::Transformer];

impl Workload for ColdStart {
    fn new(_: u64) -> Self {
        Self {
            processes: TASKS.map(Processes::of),
        }
    }

    fn host_bytes(_: u64) -> u64 {
        0
    }

    fn device_bytes(_: u64) -> u64 {
        1 << 30
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&COLD_START] }
    }
}

/// Requires the library that the phase needs.
fn require(phase: Phase, gpu: &Gpu) -> Result<()> {
    let nvrtc = || libraries::nvrtc().then_some(()).ok_or(NO_NVRTC);
    match phase {
        // These load and launch what the same process has compiled.
        Phase::KernelCompile
        | Phase::NvrtcCompile
        | Phase::WarmNvrtcCompile
        | Phase::PtxJit
        | Phase::CubinLoad
        | Phase::FirstLaunch
        | Phase::WarmLaunch => Ok(nvrtc()?),
        Phase::FirstGemm | Phase::WarmGemm | Phase::FirstLargeGemm => Ok(gpu.blas().map(drop)?),
        Phase::FirstTransformer => {
            nvrtc()?;
            Workspace::new(gpu).map(drop)
        }
        _ => Ok(()),
    }
}

/// One phase. Its samples are the times that the child processes measured.
///
/// # Errors
/// The [`Absence`](crate::device::Absence) of the library that the phase needs.
pub fn phase(gpu: &Rc<Gpu>, problem: &Rc<ColdStart>, phase: Phase) -> Result<Box<dyn Routine>> {
    require(phase, gpu)?;
    let [phases, large_gemm, transformer] = &problem.processes;
    let processes = match phase {
        Phase::FirstLargeGemm => large_gemm,
        Phase::FirstTransformer => transformer,
        _ => phases,
    };
    let method = "wrong values of the first launch or product, every one, or wrong transformers";
    let phase = PhaseTime::new(gpu, processes, phase, method);
    Ok(Box::new(phase))
}

/// Repetitions of a warm phase; their median counts.
const WARM: usize = 21;
/// The same of a compilation, which takes some 24 ms.
const WARM_COMPILATIONS: usize = 3;
/// Values that the kernel fills.
const VALUES: usize = 1 << 18;
/// N of the product, and of the large one, of which a text speaks.
const N: usize = 256;
const LARGE_N: usize = 5_000;
/// Sequences of the transformer's batch.
const BATCH: u64 = 8;

impl Report {
    /// Runs and times a phase that has run before.
    fn warm(&mut self, phase: Phase, mut run: impl FnMut() -> Result<()>) -> Result<()> {
        let count = match phase {
            Phase::WarmNvrtcCompile => WARM_COMPILATIONS,
            _ => WARM,
        };
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let start = Instant::now();
            run()?;
            times.push(start.elapsed().as_nanos());
        }
        times.sort_unstable();
        self.phases
            .insert(phase.to_string(), times[count / 2] as f64);
        Ok(())
    }
}

/// Measures this process's start.
pub(crate) fn measure(device: usize) -> Result<Report> {
    let ordinal = i32::try_from(device)?;
    let mut report = Report::default();
    let stream = first_stream(&mut report, ordinal)?;
    report.warm(Phase::WarmStream, || new_stream().map(drop))?;

    let bytes = VALUES * size_of::<f32>();
    let allocate = || allocated(bytes);
    let x = report.once(Phase::FirstAlloc, allocate)?;
    report.warm(Phase::WarmAlloc, || allocate().map(drop))?;

    if libraries::nvrtc() {
        let arch = arch(ordinal)?;
        kernel(&mut report, stream, x, arch)?;
    }
    if libraries::cublas() {
        let again = product(&mut report, stream, Phase::FirstGemm, N)?;
        report.warm(Phase::WarmGemm, again)?;
    }
    Ok(report)
}

/// Measures the first product of this process, a large one.
pub(crate) fn measure_large_gemm(device: usize) -> Result<Report> {
    let mut report = Report::default();
    let stream = first_stream(&mut report, i32::try_from(device)?)?;
    let _again = product(&mut report, stream, Phase::FirstLargeGemm, LARGE_N)?;
    Ok(report)
}

/// Measures what a small transformer costs this process before its first result. Its inputs exist
/// beforehand, and the check comes after another replay.
pub(crate) fn measure_transformer(device: usize) -> Result<Report> {
    let mut report = Report::default();
    let problem = Rc::new(Inference::new(BATCH));
    let mut pass = report.once(Phase::FirstTransformer, || {
        let gpu = Rc::new(Gpu::open(device)?);
        let mut pass = transformer::gpu::pass(&gpu, &problem, Format::F32, Launches::Graph, None)?;
        pass.wait_for_each()?;
        pass.run()?;
        Ok(pass)
    })?;
    pass.poison()?;
    pass.run()?;
    report.wrong += u64::from(!pass.check()?.passed());
    Ok(report)
}

fn new_stream() -> Result<sys::CUstream> {
    let kind = result::stream::StreamKind::NonBlocking;
    Ok(result::stream::create(kind).called("cuStreamCreate")?)
}

/// Starts the driver, makes the context current, and creates a stream.
fn first_stream(report: &mut Report, ordinal: i32) -> Result<sys::CUstream> {
    report.once(Phase::DriverInit, || Ok(result::init().called("cuInit")?))?;
    report.once(Phase::Context, || {
        let device = result::device::get(ordinal).called("cuDeviceGet")?;
        // SAFETY: the driver has just returned the device.
        let context =
            unsafe { result::primary_ctx::retain(device) }.called("cuDevicePrimaryCtxRetain")?;
        // SAFETY: nobody releases the context before the process ends.
        unsafe { result::ctx::set_current(context) }.called("cuCtxSetCurrent")?;
        Ok(())
    })?;
    report.once(Phase::FirstStream, new_stream)
}

fn arch(ordinal: i32) -> Result<(u32, u32)> {
    use sys::CUdevice_attribute::*;
    let device = result::device::get(ordinal).called("cuDeviceGet")?;
    let attribute = |which| {
        // SAFETY: the device was just returned by the driver.
        unsafe { result::device::get_attribute(device, which) }.called("cuDeviceGetAttribute")
    };
    Ok((
        attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? as u32,
        attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)? as u32,
    ))
}

fn kernel(
    report: &mut Report,
    stream: sys::CUstream,
    x: sys::CUdeviceptr,
    arch: (u32, u32),
) -> Result<()> {
    let ptx = report.once(Phase::NvrtcCompile, || ptx(arch))?;
    report.once(Phase::WarmNvrtcCompile, || self::ptx(arch).map(drop))?;
    let cubin = COLD_START.compile(arch)?.image;
    let load = |image: &[u8]| {
        // SAFETY: a whole PTX text with its final zero, or a whole CUBIN.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) }
            .called("cuModuleLoadData")?;
        // SAFETY: the module is alive.
        Ok(
            unsafe { result::module::get_function(module, CString::new("fill")?) }
                .called("cuModuleGetFunction")?,
        )
    };
    report.once(Phase::PtxJit, || load(&ptx))?;
    let fill = report.once(Phase::CubinLoad, || load(&cubin))?;

    // SAFETY: the allocation has this many bytes.
    unsafe { result::memset_d8_async(x, 0xFF, VALUES * size_of::<f32>(), stream) }
        .called("cuMemsetD8Async")?;
    synchronize(stream)?;
    let launch = || -> Result<()> {
        let (mut x, mut value, mut n) = (x, 1.0f32, VALUES as u32);
        let mut arguments = [
            (&raw mut x).cast(),
            (&raw mut value).cast(),
            (&raw mut n).cast(),
        ];
        // SAFETY: the kernel takes an address, a float and a count, and writes as many
        // values as were allocated.
        unsafe {
            result::launch_kernel(
                fill,
                (VALUES.div_ceil(256) as u32, 1, 1),
                (256, 1, 1),
                0,
                stream,
                &mut arguments,
            )
        }
        .called("cuLaunchKernel")?;
        synchronize(stream)
    };
    report.once(Phase::FirstLaunch, launch)?;
    let mut values = vec![0f32; VALUES];
    // SAFETY: both sides have as many values, and the copy is synchronous.
    unsafe { result::memcpy_dtoh_sync(&mut values, x) }.called("cuMemcpyDtoH")?;
    report.wrong += values.iter().filter(|v| **v != 1.0).count() as u64;
    report.warm(Phase::WarmLaunch, launch)
}

/// PTX with a final zero, as the driver wants it.
fn ptx(arch: (u32, u32)) -> Result<Vec<u8>> {
    let [text, name] = [COLD_START.text, COLD_START.name].map(CString::new);
    let program = nvrtc::create_program(&text?, Some(&name?))?;
    let options = [format!("--gpu-architecture=compute_{}{}", arch.0, arch.1)];
    // SAFETY: the program was just created and is destroyed once.
    unsafe {
        nvrtc::compile_program(program, &options)?;
        let text = nvrtc::get_ptx(program)?;
        nvrtc::destroy_program(program)?;
        let mut text: Vec<u8> = text.into_iter().map(|c| c as u8).collect();
        text.push(0);
        Ok(text)
    }
}

/// Times the first product of this order as `phase`, and returns another call of it.
fn product(
    report: &mut Report,
    stream: sys::CUstream,
    phase: Phase,
    order: usize,
) -> Result<impl FnMut() -> Result<()> + use<>> {
    let matrix = |value: f32| -> Result<sys::CUdeviceptr> {
        let address = allocated(order * order * size_of::<f32>())?;
        // SAFETY: both sides have as many values, and the copy is synchronous.
        unsafe { result::memcpy_htod_sync(address, &equal(order * order, value)) }
            .called("cuMemcpyHtoD")?;
        Ok(address)
    };
    let (a, b, c) = (matrix(1.0)?, matrix(1.0)?, matrix(f32::NAN)?);
    let multiply = move |handle| -> Result<()> {
        let (none, n) = (cublasOperation_t::CUBLAS_OP_N, order as i32);
        let (a, b, c) = (a as *const f32, b as *const f32, c as *mut f32);
        // SAFETY: three N by N matrices of f32 on this device; alpha and beta are read at
        // the call.
        unsafe { cublas::sgemm(handle, none, none, n, n, n, &1.0, a, n, b, n, &0.0, c, n) }
            .map_err(cublas_error)?;
        synchronize(stream)
    };
    let handle = report.once(phase, || {
        let handle = cublas::create_handle().map_err(cublas_error)?;
        // SAFETY: handle and stream are alive for the life of the process.
        unsafe { cublas::set_stream(handle, stream.cast()) }.map_err(cublas_error)?;
        multiply(handle)?;
        Ok(handle)
    })?;
    let mut values = vec![0f32; order * order];
    // SAFETY: both sides have as many values, and the copy is synchronous.
    unsafe { result::memcpy_dtoh_sync(&mut values, c) }.called("cuMemcpyDtoH")?;
    report.wrong += different(&values, order as f32) as u64;
    Ok(move || multiply(handle))
}

/// Device memory that is released with the process.
fn allocated(bytes: usize) -> Result<sys::CUdeviceptr> {
    // SAFETY: only addresses are handed out, and whoever writes to one says that the memory suffices.
    Ok(unsafe { result::malloc_sync(bytes) }.called("cuMemAlloc")?)
}

fn synchronize(stream: sys::CUstream) -> Result<()> {
    // SAFETY: the stream lives as long as the process.
    Ok(unsafe { result::stream::synchronize(stream) }.called("cuStreamSynchronize")?)
}
