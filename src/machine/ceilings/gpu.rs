//! The limits of the GPU, its memory and its link, and the rates that its libraries reach.

use cudarc::cublas::{result as cublas, sys::cublasOperation_t};
use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut, result};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::copies_and_events;
use crate::device::gpu::{Gpu, cublas_error};
use crate::machine::ceilings::kernels;
use crate::machine::ceilings::measured::Measured;
use crate::machine::ceilings::typical::{REPEATS, typical};
use crate::timing::{Clock, CudaError, CudaTime, TimingError};
use crossover_arithmetic::Number;

/// Bytes of each buffer of the device copy: many times the L2 cache.
const COPY_BYTES: usize = 1 << 30;
/// Bytes of a copy over the link: the fixed cost of a copy no longer shows.
const LINK_BYTES: usize = 256 << 20;
/// With fewer bytes the fixed cost shows.
const FEWEST_LINK_BYTES: usize = 64 << 20;
/// N of the SGEMM: large enough to keep all multiprocessors busy.
const SGEMM_N: usize = 8192;
/// With a smaller N some multiprocessors are idle.
const SMALLEST_SGEMM_N: usize = 2048;

/// Measures the GPU's ceilings; takes one to two seconds. What cannot be measured here (no
/// NVRTC, no cuBLAS, too little memory) is absent from the result.
///
/// # Errors
/// Errors of CUDA.
pub(crate) fn measure(gpu: &Gpu, time: &CudaTime) -> Result<Measured, TimingError> {
    let mut measured = Measured::default();
    // Free memory, since another process may hold some.
    let (free, _) = result::mem_get_info().map_err(|e| CudaError::new("cuMemGetInfo", e))?;
    launches(gpu, time, &mut measured)?;
    kernels::measure(gpu, time, free, &mut measured)?;
    let bytes = COPY_BYTES.min(free / 8);
    // With less than twice the L2 cache in each buffer, the copy would measure the cache.
    if bytes as u64 >= 2 * gpu.properties().l2_bytes {
        copy(gpu, time, bytes, &mut measured)?;
    }
    let bytes = LINK_BYTES.min(free / 8);
    if bytes >= FEWEST_LINK_BYTES {
        link(gpu, time, bytes, &mut measured)?;
    }
    sgemm(gpu, time, free, &mut measured)?;
    Ok(measured)
}

fn launches(gpu: &Gpu, time: &CudaTime, measured: &mut Measured) -> Result<(), TimingError> {
    let empty = time.empty_kernel().expect("the clock has this device");
    // SAFETY: the kernel takes a time of zero nanoseconds.
    let mut launch = || unsafe { empty.launch(gpu.stream()) };
    for (name, clock) in [
        ("launch_latency", Clock::Events),
        ("empty_kernel", Clock::EventsGated),
    ] {
        let ns = typical(time, clock, 2_000, &mut launch)?;
        measured.insert(
            name,
            ns,
            "ns",
            format!(
                "a kernel of one thread that does nothing, 2,000 launches per sample on the {} clock, median of {REPEATS}",
                time.effective_clock(clock)
            ),
        );
    }
    Ok(())
}

fn copy(
    gpu: &Gpu,
    time: &CudaTime,
    bytes: usize,
    measured: &mut Measured,
) -> Result<(), TimingError> {
    let mut from: CudaSlice<u8> = gpu.alloc(bytes)?;
    let mut to: CudaSlice<u8> = gpu.alloc(bytes)?;
    gpu.poison(&mut from)?;
    let stream = gpu.stream();
    let ns = typical(time, Clock::EventsGated, 10, || {
        let (from, _from) = from.device_ptr(stream);
        let (to, _to) = to.device_ptr_mut(stream);
        // SAFETY: both buffers hold `bytes` bytes and outlive the copy.
        unsafe { result::memcpy_dtod_async(to, from, bytes, stream.cu_stream()) }
            .map_err(|e| CudaError::new("cuMemcpyDtoDAsync", e))
    })?;
    measured.insert(
        "gpu_copy",
        2.0 * bytes as f64 / ns * 1e9,
        "B/s",
        format!(
            "device-to-device copy of {} MiB, bytes read plus written, median of {REPEATS}",
            bytes >> 20
        ),
    );
    Ok(())
}

fn link(
    gpu: &Gpu,
    time: &CudaTime,
    bytes: usize,
    measured: &mut Measured,
) -> Result<(), TimingError> {
    let mut host = gpu.alloc_pinned::<u8>(bytes)?;
    let mut device: CudaSlice<u8> = gpu.alloc(bytes)?;
    let stream = gpu.stream();
    let slice = copies_and_events::pinned_mut(&mut host)?;
    slice.fill(1);
    let mut insert = |name, direction, ns: f64| {
        let size = bytes >> 20;
        let method =
            format!("copy of {size} MiB of pinned memory, {direction}, median of {REPEATS}");
        measured.insert(name, bytes as f64 / ns * 1e9, "B/s", method);
    };
    let ns = typical(time, Clock::EventsGated, 4, || {
        let (to, _to) = device.device_ptr_mut(stream);
        // SAFETY: both buffers hold `bytes` bytes and outlive the copy.
        unsafe { copies_and_events::copy_to_device(slice, to, stream) }
    })?;
    insert("h2d_pinned", "host to device", ns);
    let ns = typical(time, Clock::EventsGated, 4, || {
        let (from, _from) = device.device_ptr(stream);
        // SAFETY: as above; nobody reads the host buffer before the clock has synchronised.
        unsafe { copies_and_events::copy_to_host(from, slice, stream) }
    })?;
    insert("d2h_pinned", "device to host", ns);
    Ok(())
}

fn sgemm(
    gpu: &Gpu,
    time: &CudaTime,
    memory: usize,
    measured: &mut Measured,
) -> Result<(), TimingError> {
    // Without cuBLAS the products that would be compared with it do not run either.
    let Ok(blas) = gpu.blas() else {
        return Ok(());
    };
    let mut n = SGEMM_N;
    while 3 * 4 * n * n > memory / 4 {
        n /= 2;
    }
    if n < SMALLEST_SGEMM_N {
        return Ok(());
    }
    // Random data, since the clock that a GPU holds depends on how many bits toggle.
    let values = random_values(n * n);
    let a = gpu.upload(&values)?;
    let b = gpu.upload(&values)?;
    let mut c: CudaSlice<f32> = gpu.alloc(n * n)?;
    let stream = gpu.stream();
    let dim = n as i32;
    let ns = typical(time, Clock::EventsGated, 4, || {
        let ((a, _a), (b, _b)) = (a.device_ptr(stream), b.device_ptr(stream));
        let (c, _c) = c.device_ptr_mut(stream);
        let none = cublasOperation_t::CUBLAS_OP_N;
        // SAFETY: three n by n matrices of f32 on this device, alive until the clock has
        // synchronised; alpha and beta are read at the call.
        unsafe {
            cublas::sgemm(
                *blas.handle(),
                none,
                none,
                dim,
                dim,
                dim,
                &1.0,
                a as *const f32,
                dim,
                b as *const f32,
                dim,
                &0.0,
                c as *mut f32,
                dim,
            )
        }
        .map_err(cublas_error)
    })?;
    measured.insert(
        "gpu_sgemm",
        2.0 * (n as f64).powi(3) / ns * 1e9,
        "FLOP/s",
        format!(
            "the rate of a library, not a limit: cuBLAS SGEMM, N = {n}, random data, median of {REPEATS}"
        ),
    );
    Ok(())
}

fn random_values(len: usize) -> Vec<f32> {
    let mut values = vec![0.0; len];
    f32::fill_uniform(&mut values, 1.0, &mut Xoshiro256PlusPlus::seed_from_u64(1));
    values
}
