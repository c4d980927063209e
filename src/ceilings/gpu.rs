//! The limits of the GPU, its memory and its link.

use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut, result};

use crate::ceilings::kernels::{self, REPEATS, typical};
use crate::ceilings::measured::raise;
use crate::device::copies_and_events;
use crate::device::gpu::Gpu;
use crate::model::record::RunRecord;
use crate::timing::{Called, Clock, CudaTime, TimingError};

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
    kernels::measure(gpu, time, free, &mut measured)?;
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
