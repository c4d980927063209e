//! The state of a process that makes its launches longer: a probe that notices it, and a restoration that ends it.
//!
//! Once kernels have run on eight streams beside the first, or persisting lines of the L2 cache were reset eight times,
//! each launch takes 0.1 to 0.25 µs longer, and each node of a graph 0.18 µs (H100 and H200, driver 580). The launches
//! stay longer after the streams are destroyed. A second context of the device, made and destroyed, ends it.

use std::ffi::c_uint;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, DevicePtr, sys};
use libloading::Library;

use crate::capture::Graph;
use crate::cuda_error::{Called, CudaError};
use crate::prepared_launch::{Launch, synchronize};
use crate::probe::DRIVER_LIBRARIES;

/// Kernels of the probe's graph. An empty kernel cannot tell the states apart: its times differ more between processes.
const KERNELS: usize = 32;
/// Blocks and threads per block of such a kernel.
const GEOMETRY: [u32; 2] = [4, 256];
/// Samples of the probe, of which the median counts, and replays in each.
pub(super) const SAMPLES: usize = 5;
pub(super) const REPLAYS: u64 = 4;
/// A probe is long if it exceeds the shortest one by this factor. On H100s and H200s the states differ by 17 to 20 %.
const LONG: f64 = 1.08;
/// Pause before a long probe is repeated. After a product of order 8192, which ran at the power limit, the clock of an
/// H200 was low: the probe took 11 % longer, and there was nothing to restore.
pub(super) const RECOVERY: Duration = Duration::from_millis(50);
/// After this many restorations in a row that did not shorten the launches, no further one is tried.
const FRUITLESS: u32 = 2;

/// Whether the launches of a process take longer than they could.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LaunchState {
    /// Time of a graph of 32 small kernels, ns.
    pub probe_ns: f64,
    /// The shortest such time of this clock, ns.
    pub short_ns: f64,
    /// Whether the graph took more than 8 % longer than that.
    pub is_long: bool,
    /// Whether a restoration went before the probe.
    pub is_restored: bool,
    /// Whether this restoration was the second in a row without effect. It was the last one.
    pub gives_up: bool,
}

/// The probes and restorations of a device so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaunchLevels {
    /// The shortest probe, ns.
    pub(super) short_ns: Option<f64>,
    /// Restorations without effect since the last one that had one.
    pub(super) fruitless: u32,
}

impl LaunchLevels {
    /// Takes a probe into account that may follow a restoration.
    pub(super) fn judge(&mut self, probe_ns: f64, is_restored: bool) -> LaunchState {
        let short_ns = self.short_ns.map_or(probe_ns, |short| short.min(probe_ns));
        self.short_ns = Some(short_ns);
        let is_long = is_longer(probe_ns, short_ns);
        if is_restored {
            self.fruitless = if is_long { self.fruitless + 1 } else { 0 };
        }
        LaunchState {
            probe_ns,
            short_ns,
            is_long,
            is_restored,
            gives_up: is_restored && self.fruitless == FRUITLESS,
        }
    }

    /// Whether a restoration comes before the next probe: the first one is of restored launches.
    pub(super) fn begins(&self) -> bool {
        self.short_ns.is_none() && self.fruitless < FRUITLESS
    }

    /// Whether launches in this state are to be restored.
    pub(super) fn wants(&self, state: LaunchState) -> bool {
        state.is_long && !state.is_restored && self.fruitless < FRUITLESS
    }
}

/// Whether a probe shows long launches, and `than` another one short ones.
pub(crate) fn is_longer(probe_ns: f64, than: f64) -> bool {
    probe_ns > LONG * than
}

/// The graph of small kernels, and the memory that they use.
pub(crate) struct LaunchProbe {
    pub(super) graph: Graph,
    _numbers: CudaSlice<f32>,
}

impl LaunchProbe {
    /// A probe on this stream, whose context is current. Each thread of `function` reads and writes a number.
    pub(super) fn new(stream: &Arc<CudaStream>, function: CudaFunction) -> Result<Self, CudaError> {
        let [blocks, threads] = GEOMETRY;
        let numbers =
            (stream.alloc_zeros::<f32>((blocks * threads) as usize)).called("cuMemAllocAsync")?;
        let kernel = Launch::new(function, (blocks, 1, 1), (threads, 1, 1));
        let kernel = kernel.arg::<u64>(numbers.device_ptr(stream).0);
        // SAFETY: the kernel takes the address of one number for each of its threads, which `self` owns as long as the
        // graph. The caller has made the context current.
        let launch = || unsafe { kernel.launch(stream) };
        // In a capture nothing may be loaded.
        launch()?;
        synchronize(stream)?;
        let graph = Graph::capture(stream, || (0..KERNELS).try_for_each(|_| launch()))?;
        Ok(Self {
            graph,
            _numbers: numbers,
        })
    }
}

/// Calls `body` in a context of a device beside the primary one, which is destroyed then. Another context may be
/// current afterwards than before.
pub(crate) fn in_second_context<T>(
    device: sys::CUdevice,
    body: impl FnOnce() -> T,
) -> Result<T, CudaError> {
    type Create = unsafe extern "C" fn(*mut sys::CUcontext, c_uint, sys::CUdevice) -> sys::CUresult;
    const CREATE: &str = "cuCtxCreate_v2";
    // cudarc's binding has another form of this function for each version of CUDA; every driver has this one.
    let not_found = |error: libloading::Error| CudaError::with_message(CREATE, error.to_string());
    let loaded = DRIVER_LIBRARIES.map(|name| {
        // SAFETY: NVIDIA's library, which is loaded already.
        unsafe { Library::new(name) }
    });
    let [first, second] = loaded;
    let library = first.or(second).map_err(not_found)?;
    // SAFETY: the driver's ABI has this type for the function.
    let create = unsafe { library.get::<Create>(CREATE) }.map_err(not_found)?;
    let mut context = ptr::null_mut();
    // SAFETY: the pointer is valid for the write, and the driver is initialised, since the device is open.
    CudaError::check(CREATE, unsafe { create(&mut context, 0, device) })?;
    let returned = body();
    // SAFETY: created above, and destroyed once.
    CudaError::check("cuCtxDestroy", unsafe { sys::cuCtxDestroy_v2(context) })?;
    Ok(returned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_launches_are_restored_until_two_restorations_had_no_effect() {
        // A probe in µs, whether a restoration went before it; whether it is long, whether another restoration is
        // wanted, and whether no further one is tried.
        let table = [
            (31.0, true, [false, false, false]),
            (31.4, false, [false, false, false]),
            (30.8, false, [false, false, false]),
            (33.2, false, [false, false, false]),
            (33.4, false, [true, true, false]),
            (31.0, true, [false, false, false]),
            (36.8, false, [true, true, false]),
            (36.8, true, [true, false, false]),
            // An effect in between starts the count again.
            (36.8, false, [true, true, false]),
            (30.9, true, [false, false, false]),
            (36.8, false, [true, true, false]),
            (36.7, true, [true, false, false]),
            (36.8, false, [true, true, false]),
            (36.7, true, [true, false, true]),
            (36.8, false, [true, false, false]),
            (31.0, false, [false, false, false]),
            (36.8, false, [true, false, false]),
        ];
        let mut levels = LaunchLevels::default();
        assert!(levels.begins());
        for (at, (micros, is_restored, expected)) in table.into_iter().enumerate() {
            let state = levels.judge(1e3 * micros, is_restored);
            let seen = [state.is_long, levels.wants(state), state.gives_up];
            assert_eq!(seen, expected, "line {at}: {state:?}");
            assert!(!levels.begins());
        }
    }
}
