//! The limits of the GPU, its memory and its link.
//! The suite's own kernels measure multiply-adds in registers, and bandwidth over the working set.

use cudarc::driver::{CudaFunction, CudaSlice, DevicePtr, DevicePtrMut, result};

use crossover_results::statistics::median::median;

use crate::device::copies_and_events;
use crate::device::gpu::Gpu;
use crate::device::kernel::{CompileError, Source};
use crate::limits::{raise, raise_curve};
use crate::model::record::{BandwidthPoint, RunRecord};
use crate::timing::{BoxError, Called, Clock, CudaError, CudaTime, Launch, TimingError};

/// Bytes of a copy over the link, at which the fixed cost of a copy is negligible.
const LINK_BYTES: usize = 256 << 20;
/// With fewer bytes the fixed cost is visible.
const FEWEST_LINK_BYTES: usize = 64 << 20;

/// Measures the GPU's limits in about a second. Limits that cannot be measured here (no NVRTC, too
/// little memory) are absent.
///
/// # Errors
/// Errors of CUDA.
pub(crate) fn measure(
    gpu: &Gpu,
    time: &CudaTime,
    record: &mut RunRecord,
) -> Result<(), TimingError> {
    // Free memory, because other processes may use some.
    let (free, _) = result::mem_get_info().called("cuMemGetInfo")?;
    // If one of them fails, the record has none of them.
    let mut measured = record.clone();
    launches(gpu, time, &mut measured)?;
    suite_kernels(gpu, time, free, &mut measured)?;
    let bytes = LINK_BYTES.min(free / 8);
    if bytes >= FEWEST_LINK_BYTES {
        link(gpu, time, bytes, &mut measured)?;
    }
    *record = measured;
    Ok(())
}

fn launches(gpu: &Gpu, time: &CudaTime, record: &mut RunRecord) -> Result<(), TimingError> {
    let empty = time.empty_kernel().expect("the clock has this device");
    // SAFETY: the kernel takes a time of zero nanoseconds.
    let mut launch = || unsafe { empty.launch(gpu.stream()) };
    for (name, clock) in [
        ("launch_latency", Clock::Events),
        ("empty_kernel", Clock::EventsGated),
    ] {
        let ns = typical(time, clock, 2_000, &mut launch)?;
        raise(
            record,
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

fn link(
    gpu: &Gpu,
    time: &CudaTime,
    bytes: usize,
    record: &mut RunRecord,
) -> Result<(), TimingError> {
    let mut host = gpu.pinned(bytes, 1u8)?;
    let mut device: CudaSlice<u8> = gpu.alloc(bytes)?;
    let stream = gpu.stream();
    let slice = copies_and_events::pinned_places(&mut host)?;
    let mut insert = |name, direction, ns: f64| {
        let size = bytes >> 20;
        let method =
            format!("copy of {size} MiB of pinned memory, {direction}, median of {REPEATS}");
        raise(record, name, bytes as f64 / ns * 1e9, "B/s", method);
    };
    let ns = typical(time, Clock::EventsGated, 4, || {
        let (to, _to) = device.device_ptr_mut(stream);
        // SAFETY: both buffers hold `bytes` bytes, and the clock waits for the copy before this returns.
        unsafe { copies_and_events::copy_to_device(slice, to, stream) }
    })?;
    insert("h2d_pinned", "host to device", ns);
    let ns = typical(time, Clock::EventsGated, 4, || {
        let (from, _from) = device.device_ptr(stream);
        // SAFETY: both buffers hold `bytes` bytes, and nobody reads the host's before the clock has waited.
        unsafe { copies_and_events::copy_to_host(from, slice, stream) }
    })?;
    insert("d2h_pinned", "device to host", ns);
    Ok(())
}

/// The kernels that measure the device's limits.
pub static LIMITS: Source = Source::new("limits.cu", include_str!("../../kernels/limits.cu"));

/// The smallest working set of the curves.
const SMALLEST: usize = 256 << 10;
/// The largest: many times any L2 cache.
const LARGEST: usize = 2 << 30;
/// Bytes of a vector.
const VECTOR: usize = 16;
/// Lower bound on the bytes that a launch moves, so that its own cost is under 1 %.
const TRAFFIC: usize = 1 << 30;
/// Launches of a sample.
const LAUNCHES: u64 = 2;
/// Threads of a block of the kernels that move bytes.
const BLOCK: u32 = 256;
/// Blocks per multiprocessor of these kernels: 1,024 threads, which every device can hold at once,
/// have 64 KiB in flight.
const BLOCKS: u32 = 4;
/// Threads of the block of multiply-adds, of which each multiprocessor has one.
const FMA_BLOCK: u32 = 1024;
/// Rounds of the kernel: about 2 ms.
const FMA_ROUNDS: u32 = 1024;
/// Multiply-adds of a thread in a round, as in the kernel.
const FMA_OF_ROUND: u32 = 512;

/// Repetitions; the median counts.
pub(super) const REPEATS: usize = 7;

/// Median nanoseconds of one iteration.
pub(super) fn typical(
    time: &CudaTime,
    clock: Clock,
    iterations: u64,
    mut routine: impl FnMut() -> Result<(), CudaError>,
) -> Result<f64, TimingError> {
    time.measure_launches(clock, 1, 1, &mut routine)?;
    let mut samples = Vec::with_capacity(REPEATS);
    for _ in 0..REPEATS {
        samples
            .push(time.measure_launches(clock, iterations, 1, &mut routine)? / iterations as f64);
    }
    // The median is the rate that a device, which runs nothing else meanwhile, sustains.
    Ok(median(samples).expect("there are repetitions"))
}

/// Measures f32 multiply-adds in registers on all multiprocessors, in FLOP/s.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
pub fn fma_rate(gpu: &Gpu, time: &CudaTime) -> Result<f64, BoxError> {
    let function = gpu.function(&LIMITS, "fma_chains")?;
    Ok(multiply_add(gpu, time, function)?)
}

fn multiply_add(gpu: &Gpu, time: &CudaTime, function: CudaFunction) -> Result<f64, TimingError> {
    let mut sink: CudaSlice<f32> = gpu.alloc(1)?;
    let stream = gpu.stream();
    let multiprocessors = gpu.properties().multiprocessors;
    let (address, _sink) = sink.device_ptr_mut(stream);
    let launch = Launch::new(function, (multiprocessors, 1, 1), (FMA_BLOCK, 1, 1))
        .arg(address)
        .arg(0.5f32)
        .arg(FMA_ROUNDS);
    // SAFETY: the kernel takes these arguments and writes at most the one value of `sink`,
    // which lives until the clock has synchronised.
    let run = || unsafe { launch.launch(stream) };
    let ns = typical(time, Clock::EventsGated, LAUNCHES, run)?;
    let threads = f64::from(multiprocessors) * f64::from(FMA_BLOCK);
    let flop = 2.0 * threads * f64::from(FMA_ROUNDS) * f64::from(FMA_OF_ROUND);
    Ok(flop / ns * 1e9)
}

/// Adds `gpu_fma` and the curves `gpu_read` and `gpu_copy`, or nothing if the kernels cannot be
/// compiled, as without NVRTC. The curves end at the largest working set that fits in `memory`.
fn suite_kernels(
    gpu: &Gpu,
    time: &CudaTime,
    memory: usize,
    record: &mut RunRecord,
) -> Result<(), TimingError> {
    let kernel = |name| match gpu.function(&LIMITS, name) {
        Ok(function) => Ok(Some(function)),
        Err(error) if error.is::<CompileError>() => Ok(None),
        Err(error) => Err(TimingError::from(error)),
    };
    let (Some(fma), Some(read), Some(copy)) = (
        kernel("fma_chains")?,
        kernel("read_again")?,
        kernel("copy_again")?,
    ) else {
        return Ok(());
    };
    raise(
        record,
        "gpu_fma",
        multiply_add(gpu, time, fma)?,
        "FLOP/s",
        format!(
            "8 independent chains of f32 fused multiply-adds in registers, {FMA_BLOCK} threads per multiprocessor, median of {REPEATS}"
        ),
    );
    largest(memory).map_or(Ok(()), |largest| {
        bandwidth(gpu, time, largest, [&read, &copy], record)
    })
}

/// Adds the curves `gpu_read` and `gpu_copy` up to the largest working set.
fn bandwidth(
    gpu: &Gpu,
    time: &CudaTime,
    largest: usize,
    [read, copy]: [&CudaFunction; 2],
    record: &mut RunRecord,
) -> Result<(), TimingError> {
    let mut buffer: CudaSlice<u8> = gpu.alloc(largest)?;
    gpu.poison(&mut buffer)?;
    let mut sink: CudaSlice<u32> = gpu.alloc(1)?;
    let stream = gpu.stream();
    let blocks = BLOCKS * gpu.properties().multiprocessors;
    let (from, _from) = buffer.device_ptr_mut(stream);
    let (sink, _sink) = sink.device_ptr_mut(stream);
    let launch =
        |function: &CudaFunction| Launch::new(function.clone(), (blocks, 1, 1), (BLOCK, 1, 1));
    let (mut reads, mut copies) = (Vec::new(), Vec::new());
    for bytes in sizes(largest) {
        let work = MoveArguments::of(bytes);
        let launch_read = launch(read)
            .arg(from)
            .arg(work.mask)
            .arg(work.total)
            .arg(sink);
        reads.push(point(gpu, time, bytes, &work, &launch_read)?);
        // From the first half of the working set to the second, each byte counted twice.
        let half = MoveArguments::of(bytes / 2);
        let launch_copy = launch(copy)
            .arg(from + (bytes / 2) as u64)
            .arg(from)
            .arg(half.mask)
            .arg(work.total / 2);
        copies.push(point(gpu, time, bytes, &work, &launch_copy)?);
    }
    for (name, points, does) in [
        ("gpu_read", reads, "one launch reads the working set"),
        (
            "gpu_copy",
            copies,
            "one launch copies one half of the working set to the other half",
        ),
    ] {
        let method = format!(
            "{does} repeatedly, bypassing the L1 cache; bytes read plus written, median of {REPEATS}"
        );
        raise_curve(record, name, points, method);
    }
    Ok(())
}

/// The largest working set that fits; `None` if not even the smallest does.
fn largest(memory: usize) -> Option<usize> {
    sizes(LARGEST)
        .take_while(|bytes| *bytes <= memory / 4)
        .last()
}

/// The working sets: powers of two, as the kernels require.
fn sizes(largest: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(SMALLEST), |bytes| Some(2 * bytes))
        .take_while(move |bytes| *bytes <= largest)
}

/// The arguments of a kernel: how much it moves.
struct MoveArguments {
    /// Vectors of the working set, less one.
    mask: u32,
    /// Vectors that a launch moves.
    total: u32,
}

impl MoveArguments {
    fn of(bytes: usize) -> Self {
        // At most 2 GiB of 16 bytes each.
        Self {
            mask: (bytes / VECTOR - 1) as u32,
            total: (bytes.max(TRAFFIC) / VECTOR) as u32,
        }
    }
}

fn point(
    gpu: &Gpu,
    time: &CudaTime,
    bytes: usize,
    work: &MoveArguments,
    launch: &Launch,
) -> Result<BandwidthPoint, TimingError> {
    // SAFETY: the kernels take these arguments and stay within the buffer and the sink, which
    // live until the clock has synchronised.
    let run = || unsafe { launch.launch(gpu.stream()) };
    let ns = typical(time, Clock::EventsGated, LAUNCHES, run)?;
    Ok(BandwidthPoint {
        bytes: bytes as u64,
        rate: f64::from(work.total) * VECTOR as f64 / ns * 1e9,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_sets_fit_and_a_launch_moves_each_byte_at_least_once() {
        assert_eq!(largest(80 << 30), Some(LARGEST));
        assert_eq!(largest(5 << 30), Some(1 << 30));
        assert_eq!(largest(512 << 10), None);
        for bytes in sizes(LARGEST) {
            let work = MoveArguments::of(bytes);
            let total = work.total as usize * VECTOR;
            assert!(total >= bytes && total >= TRAFFIC);
            assert_eq!((work.mask as usize + 1) * VECTOR, bytes);
            // The kernels count up to three steps further.
            assert!(work.total.checked_mul(2).is_some());
        }
    }
}
