//! Reads the properties of a device, and opens it.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError, result, sys};
use libloading::Library;

use crate::absence::{Absence, OLDEST_CUDA, OLDEST_DEVICE};
use crate::cuda_error::{Called, CudaError};
use crate::panic::catch_panic;
use crate::prepared_launch::bind;

/// Properties of a device, which the driver returns without a context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceProperties {
    /// Index of the device among those that the driver shows this process, from 0 on.
    pub ordinal: usize,
    /// Name, for example `NVIDIA H200`.
    pub name: String,
    /// UUID as `nvidia-smi` prints it, `GPU-…`.
    pub uuid: String,
    /// CUDA version the driver supports: major, minor.
    pub cuda: (u32, u32),
    /// Compute capability: major, minor.
    pub compute_capability: (u32, u32),
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// L2 cache in bytes.
    pub l2_bytes: u64,
    /// PCI bus id, such as `0000:1b:00.0`, by which NVML finds the device.
    pub pci_bus_id: String,
}

/// Asks the driver about device `ordinal`. This creates no context and allocates nothing on the
/// device, so it is cheap, and enough to list benchmarks.
///
/// ```
/// match crossover_timing::probe(0) {
///     Ok(gpu) => println!("{}, compute capability {:?}", gpu.name, gpu.compute_capability),
///     Err(absence) => println!("CPU alone: {absence}"),
/// }
/// ```
///
/// # Errors
/// The [`Absence`] that keeps the device from being used: no driver, one that is too old, no such
/// device, or one that is too old.
pub fn probe(ordinal: usize) -> Result<DeviceProperties, Absence> {
    if !is_driver_installed() {
        return Err(Absence::NoDriver);
    }
    catch_panic(|| probe_driver(ordinal)).unwrap_or_else(|message| {
        Err(Absence::BrokenDriver {
            message: first_line(message),
        })
    })
}

/// Opens device `ordinal`: retains its primary context, and creates a stream in it. Returns the properties of
/// the device, and the stream.
///
/// cudarc's event tracking is off in this context: with it, each launch carries events that order
/// streams, and capturing a graph fails.
///
/// # Safety
/// The caller keeps the contract of [`CudaContext::disable_event_tracking`] for all streams, the default ones
/// and those of other [`CudaContext`]s of the device included: no slice of this context is used on another
/// stream before its allocation is done there, written while another stream uses it, or freed before its
/// use on another stream is done, and the same holds for other slices that this stream uses. Pinned
/// memory is neither accessed nor freed before a copy of it is done. A program with one stream that waits for
/// its copies of pinned memory keeps it.
///
/// # Errors
/// As [`probe`], and the call that failed ([`Absence::Failed`]), for example because the device's
/// memory is full.
pub unsafe fn open(ordinal: usize) -> Result<(DeviceProperties, Arc<CudaStream>), Absence> {
    let properties = probe(ordinal)?;
    let context = primary_context(ordinal)?;
    // SAFETY: the caller orders the streams, and no slice of this context exists yet.
    unsafe { context.disable_event_tracking() };
    let stream = context.new_stream().called("cuStreamCreate")?;
    Ok((properties, stream))
}

/// A new stream in the primary context of device `ordinal`, which cudarc orders with its other streams by events.
#[cfg(feature = "profiler")]
pub(crate) fn own_stream(ordinal: usize) -> Result<Arc<CudaStream>, Absence> {
    probe(ordinal)?;
    Ok((primary_context(ordinal)?.new_stream()).called("cuStreamCreate")?)
}

/// A stream of device `ordinal` that cudarc did not make, for cudarc to use.
///
/// # Safety
/// The stream must be alive for as long as what is returned, or anything made of it.
pub(crate) unsafe fn borrow(
    ordinal: usize,
    stream: *mut c_void,
) -> Result<Arc<CudaStream>, Absence> {
    probe(ordinal)?;
    let context = primary_context(ordinal)?;
    bind(&context)?;
    let mut owner = std::ptr::null_mut();
    // SAFETY: the caller keeps the stream alive; the pointer is valid for the write.
    let status = unsafe { sys::cuStreamGetCtx(stream.cast(), &mut owner) };
    CudaError::check("cuStreamGetCtx", status)?;
    if owner != context.cu_ctx() {
        return Err(Absence::OtherContext { ordinal });
    }
    // SAFETY: of this context, by the check above; the caller keeps it alive.
    Ok(unsafe { context.wrap_borrowed_stream(stream.cast()) })
}

fn primary_context(ordinal: usize) -> Result<Arc<CudaContext>, CudaError> {
    CudaContext::new(ordinal).called("cuDevicePrimaryCtxRetain")
}

fn failed(call: &'static str) -> impl Fn(DriverError) -> Absence {
    move |e| CudaError::new(call, e).into()
}

/// Initialises the driver. Returns the CUDA that it has, major and minor.
fn driver_version() -> Result<(u32, u32), Absence> {
    result::init().map_err(|e| match e.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => Absence::NoDevice,
        sys::CUresult::CUDA_ERROR_STUB_LIBRARY => Absence::BrokenDriver {
            message: "it is the toolkit's stub".to_owned(),
        },
        _ => failed("cuInit")(e),
    })?;
    let mut version = 0;
    // SAFETY: the pointer is valid for the write.
    unsafe { sys::cuDriverGetVersion(&mut version) }
        .result()
        .map_err(failed("cuDriverGetVersion"))?;
    Ok((version as u32 / 1000, version as u32 % 1000 / 10))
}

fn probe_driver(ordinal: usize) -> Result<DeviceProperties, Absence> {
    let cuda = driver_version()?;
    if cuda < OLDEST_CUDA {
        return Err(Absence::DriverTooOld { cuda });
    }
    let count = result::device::get_count().map_err(failed("cuDeviceGetCount"))? as usize;
    if count == 0 {
        return Err(Absence::NoDevice);
    }
    if ordinal >= count {
        return Err(Absence::NoSuchDevice { ordinal, count });
    }
    let device = result::device::get(ordinal as i32).map_err(failed("cuDeviceGet"))?;
    let name = result::device::get_name(device).map_err(failed("cuDeviceGetName"))?;
    let attribute = |which| {
        // SAFETY: `device` was returned by `cuDeviceGet`.
        unsafe { result::device::get_attribute(device, which) }
            .map(|v| v as u32)
            .map_err(failed("cuDeviceGetAttribute"))
    };
    use sys::CUdevice_attribute::*;
    let compute_capability = (
        attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    if compute_capability < OLDEST_DEVICE {
        return Err(Absence::DeviceTooOld {
            name,
            compute_capability,
        });
    }
    let uuid = result::device::get_uuid(device).map_err(failed("cuDeviceGetUuid"))?;
    // SAFETY: `device` was returned by `cuDeviceGet`.
    let memory =
        unsafe { result::device::total_mem(device) }.map_err(failed("cuDeviceTotalMem"))?;
    Ok(DeviceProperties {
        ordinal,
        name,
        uuid: format_uuid(uuid.bytes.map(|b| b as u8)),
        cuda,
        compute_capability,
        multiprocessors: attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory_bytes: memory as u64,
        l2_bytes: u64::from(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        pci_bus_id: format!(
            "{:04x}:{:02x}:{:02x}.0",
            attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?,
            attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?,
            attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?
        ),
    })
}

/// Names of the driver's library.
pub(crate) const DRIVER_LIBRARIES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// Whether the driver's library can be loaded. cudarc's own check exists only where cudarc loads the
/// library at run time, and code that calls it does not compile beside `dynamic-linking`.
fn is_driver_installed() -> bool {
    DRIVER_LIBRARIES
        .into_iter()
        // SAFETY: NVIDIA's library, whose initialisers and finalisers may run at any time.
        .any(|name| unsafe { Library::new(name) }.is_ok())
}

/// cudarc's panic lists every symbol and path it tried.
fn first_line(message: String) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}

fn format_uuid(bytes: [u8; 16]) -> String {
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    format!(
        "GPU-{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

#[cfg(test)]
mod tests {
    use super::format_uuid;

    #[test]
    fn uuid_reads_as_nvidia_smi_prints_it() {
        let bytes = std::array::from_fn(|i| i as u8 * 17);
        let uuid = "GPU-00112233-4455-6677-8899-aabbccddeeff";
        assert_eq!(format_uuid(bytes), uuid);
    }
}
