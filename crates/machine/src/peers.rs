//! The GPUs that the settings name, and the links between them: what the driver reports, and whether data
//! arrive. Peer access that the driver reports is tried in a child process, because a copy over a link that does
//! not work may never end.

use std::env;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::{self, CUdeviceptr};
use cudarc::driver::{CudaContext, CudaStream, result};
use serde::{Deserialize, Serialize};

use crossover_protocol::child::{self, CONFIRMS, Request, not_interrupted};
use crossover_protocol::settings::{FurtherDevices, Settings};
use crossover_results::model::environment::{FurtherGpu, GpuLink};
use crossover_timing::{Called, CudaError, DeviceProperties, bind, probe, synchronize};
use crossover_words::text::with_causes;

use crate::libraries::Absence;

/// The number of devices that the driver shows, once one was probed.
///
/// # Errors
/// The driver's.
pub fn count() -> Result<usize, CudaError> {
    let count = result::device::get_count().called("cuDeviceGetCount")?;
    Ok(count as usize)
}

/// Whether this process sees one GPU, as a launcher may show each process only its own.
pub fn is_only() -> bool {
    probe(0).is_ok() && count().is_ok_and(|count| count == 1)
}

/// The link that the driver reports, once both devices were probed.
///
/// # Errors
/// The driver's.
pub fn reported(first: usize, other: usize) -> Result<GpuLink, CudaError> {
    let device = |ordinal| result::device::get(ordinal as i32).called("cuDeviceGet");
    let (first, other) = (device(first)?, device(other)?);
    let attribute = |which, from, to| {
        let mut value = 0;
        // SAFETY: the pointer is valid for the write, and both devices exist.
        let status = unsafe { sys::cuDeviceGetP2PAttribute(&mut value, which, from, to) };
        CudaError::check("cuDeviceGetP2PAttribute", status).map(|()| value != 0)
    };
    use sys::CUdevice_P2PAttribute::*;
    let both = |which| {
        Ok::<_, CudaError>(attribute(which, first, other)? && attribute(which, other, first)?)
    };
    Ok(if !both(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED)? {
        GpuLink::Host
    } else if both(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)? {
        // PCIe has no atomics between GPUs.
        GpuLink::Nvlink
    } else {
        GpuLink::Pcie
    })
}

/// Lets the device of the first context use memory of the second that is of no pool.
///
/// # Errors
/// The driver's.
pub fn give_access(to: &CudaContext, of: &CudaContext) -> Result<(), CudaError> {
    bind(to)?;
    // SAFETY: both contexts are retained.
    let status = unsafe { sys::cuCtxEnablePeerAccess(of.cu_ctx(), 0) };
    match status {
        sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
        status => CudaError::check("cuCtxEnablePeerAccess", status),
    }
}

/// Two devices, and memory of each for a copy from the other and to it. It is freed with the process.
pub struct TriedLink([Side; 2]);

struct Side {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    source: CUdeviceptr,
    target: CUdeviceptr,
}

impl TriedLink {
    const BYTES: usize = 1 << 20;

    /// Opens both devices, and lets them use each other's memory.
    ///
    /// # Errors
    /// The driver's.
    pub fn open(first: usize, other: usize) -> Result<Self, CudaError> {
        let open = |ordinal| {
            let context = CudaContext::new(ordinal).called("cuDevicePrimaryCtxRetain")?;
            let stream = context.new_stream().called("cuStreamCreate")?;
            // SAFETY: written before it is read.
            let alloc = || unsafe { result::malloc_sync(Self::BYTES) }.called("cuMemAlloc");
            Ok(Side {
                source: alloc()?,
                target: alloc()?,
                context,
                stream,
            })
        };
        let sides = [open(first)?, open(other)?];
        give_access(&sides[0].context, &sides[1].context)?;
        give_access(&sides[1].context, &sides[0].context)?;
        Ok(Self(sides))
    }

    /// Copies a pattern between the devices, either way, and compares it. Where an IOMMU or a switch is set
    /// up wrongly, the copy arrives wrong, or never ends.
    ///
    /// # Errors
    /// The driver's.
    pub fn moves_data(&self) -> Result<bool, CudaError> {
        let bytes = Self::BYTES;
        let pattern: Vec<u8> = (0..bytes).map(|i| ((i * 167) ^ (i >> 8)) as u8).collect();
        let [first, other] = &self.0;
        for (from, to) in [(first, other), (other, first)] {
            let mut arrived = vec![0; bytes];
            let stream = from.stream.cu_stream();
            // SAFETY: all of them have as many bytes, and each wait comes before the next use.
            unsafe {
                bind(&from.context)?;
                result::memcpy_htod_async(from.source, &pattern, stream)
                    .called("cuMemcpyHtoDAsync")?;
                let contexts = [to, from].map(|side| side.context.cu_ctx());
                let [there, here] = contexts;
                result::memcpy_peer_async(there, to.target, here, from.source, bytes, stream)
                    .called("cuMemcpyPeerAsync")?;
                synchronize(&from.stream)?;
                bind(&to.context)?;
                result::memcpy_dtoh_async(&mut arrived, to.target, to.stream.cu_stream())
                    .called("cuMemcpyDtoHAsync")?;
                synchronize(&to.stream)?;
            }
            if arrived != pattern {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The driver's properties of the device that the settings name; creates no context.
///
/// # Errors
/// The [`Absence`] that keeps it from being used.
pub fn first_gpu(settings: &Settings) -> Result<DeviceProperties, Absence> {
    match settings.device {
        Some(ordinal) => Ok(probe(ordinal)?),
        None => Err(Absence::SwitchedOff {
            setting: "CROSSOVER_DEVICE=none",
        }),
    }
}

/// The GPUs that the settings name beside the first one.
///
/// # Errors
/// The absence of one of them, or that a link could not be tried.
pub fn further_gpus(settings: &Settings) -> Result<Vec<FurtherGpu>, Absence> {
    let Some(first) = settings.device else {
        return Ok(Vec::new());
    };
    let mut devices = vec![first];
    match &settings.further {
        FurtherDevices::Listed(others) => devices.extend(others),
        FurtherDevices::All => {
            probe(first)?;
            devices.extend((0..count()?).filter(|other| *other != first));
        }
    }
    let mut further: Vec<FurtherGpu> = Vec::new();
    let mut to_try = Vec::new();
    for (at, &ordinal) in devices.iter().enumerate().skip(1) {
        further.push(FurtherGpu {
            ordinal,
            name: probe(ordinal)?.name,
            link: reported(first, ordinal)?,
            broken_with: Vec::new(),
        });
        for &before in &devices[..at] {
            if reported(before, ordinal)?.has_access() {
                to_try.push((before, ordinal));
            }
        }
    }
    // The run that started this process has tried the links.
    if env::var_os(CONFIRMS).is_some() {
        to_try.clear();
    }
    let broken = broken(&to_try)?;
    for gpu in &mut further {
        for (before, _) in broken.iter().filter(|(_, of)| *of == gpu.ordinal) {
            if *before == first {
                gpu.link = GpuLink::Broken;
            } else {
                gpu.broken_with.push(*before);
            }
        }
    }
    Ok(further)
}

/// Two devices, the ends of a link.
type DevicePair = (usize, usize);

/// The links over which child processes move no data within the time limit.
///
/// # Errors
/// A process was not started, or could not open the devices.
fn broken(mut links: &[DevicePair]) -> Result<Vec<DevicePair>, Absence> {
    let mut broken = Vec::new();
    while !links.is_empty() {
        let (mut working, mut is_tried) = (0, false);
        let asked = child::ask(&Links(links.to_vec()), &[], |has_arrived| {
            working += usize::from(has_arrived);
            is_tried = !has_arrived;
        });
        // A copy that was begun arrives wrong, ends the process or never ends.
        let is_known = is_tried && not_interrupted().is_ok();
        // Once all links have moved data, how the process ends does not matter.
        if let Err(cause) = asked
            && let Some(&(first, other)) = links.get(working)
            && !is_known
        {
            return Err(Absence::Untried {
                first,
                other,
                cause: with_causes(&*cause),
            });
        }
        // The devices of a link that does not work may be lost in that process.
        broken.extend(links.get(working));
        links = links.get(working + 1..).unwrap_or_default();
    }
    Ok(broken)
}

/// Has a child try links. For each it replies `false` once the devices are open, and `true` once data have arrived.
#[derive(Serialize, Deserialize)]
struct Links(Vec<DevicePair>);

impl Request for Links {
    const VARIABLE: &'static str = "CROSSOVER_PEERS";
    /// Two megabytes are moved in a moment.
    const SILENCE: Duration = Duration::from_secs(30);
    type Reply = bool;
}

/// In a process that is to try links, does so and returns the exit code; `None` in any other. Called
/// first in `main`.
pub fn answer() -> Option<ExitCode> {
    child::answer(|Links(links), say| {
        // Contexts live on for the next link.
        let mut tried = Vec::new();
        for (first, other) in links {
            probe(first)?;
            probe(other)?;
            let link = TriedLink::open(first, other).map_err(Absence::from)?;
            say(false)?;
            if !link.moves_data()? {
                return Err("other data arrive".into());
            }
            say(true)?;
            tried.push(link);
        }
        Ok(())
    })
}
