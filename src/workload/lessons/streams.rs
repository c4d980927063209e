//! Nested sine from and to host memory, in pieces: what overlapping the upload, the kernel and the
//! download saves, and what overlapping needs.
//!
//! The size is the number of f32 values. All host memory is pinned. The limit is the time of
//! the longer one-way copy: the link carries both directions at once.

use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::{
    CudaEvent, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, PinnedHostSlice, sys,
};

use crate::device::calls::{
    copy_to_device, copy_to_host, pinned, pinned_mut, record, synchronize, wait,
};
use crate::device::gpu::Gpu;
use crate::device::kernel::Source;
use crate::model::cost::Cost;
use crate::model::role::Launches;
use crate::model::verified::Verified;
use crate::timing::{CudaError, Launch};
use crate::workload::nested_sine::{self, NestedSine, cut};
use crate::workload::prepare::host_memory::{fill, pinned_copy};
use crate::workload::routine::{Made, Routine, RoutineError, Workload};

/// The inputs. They are those on which nested sine was timed before adversarial ones had a run of
/// their own: here copies take the time, whatever the values, and ids keep their meaning.
pub struct Streams(Rc<NestedSine>);

impl Workload for Streams {
    fn new(size: u64) -> Self {
        Self(Rc::new(NestedSine::mixed(size)))
    }

    fn host_bytes(size: u64) -> u64 {
        // Input, pinned copy, pinned output, and a copy of the output for the check.
        16 * size
    }

    fn device_bytes(size: u64) -> u64 {
        8 * size
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&nested_sine::NESTED_SINE] }
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        self.0.visit_inputs(visit);
    }
}

/// As [`nested_sine::cost_transfer`].
pub fn cost(size: u64) -> Cost {
    nested_sine::cost_transfer(size)
}

/// Upload, kernel and download of at most `pieces` pieces, each stage on a stream of its own. With
/// one piece the stages follow each other. With [`Launches::Synchronised`] the host waits after
/// each stage of each piece: the streams are the same, and nothing overlaps.
///
/// # Errors
/// Other launches than [`Launches::OneByOne`] and [`Launches::Synchronised`], errors of CUDA and of
/// the kernel's compilation.
///
/// # Panics
/// If `pieces` is 0.
pub fn pieces(gpu: &Rc<Gpu>, problem: &Rc<Streams>, pieces: u32, launching: Launches) -> Made {
    let waits = match launching {
        Launches::OneByOne => false,
        Launches::Synchronised => true,
        other => return Err(format!("pieces are not launched {other:?}").into()),
    };
    let pieces = pieces as usize;
    Ok(Box::new(Overlap::new(gpu, &problem.0, pieces, waits)?))
}

/// Each stage has a stream of its own, and an event makes the next stage of a piece wait for it.
struct Overlap {
    gpu: Rc<Gpu>,
    problem: Rc<NestedSine>,
    /// Whether the host waits after each stage of each piece.
    waits: bool,
    up: Arc<CudaStream>,
    down: Arc<CudaStream>,
    pieces: Vec<Piece>,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
    from: PinnedHostSlice<f32>,
    to: PinnedHostSlice<f32>,
}

struct Piece {
    first: usize,
    len: usize,
    kernel: Launch,
    uploaded: CudaEvent,
    computed: CudaEvent,
}

impl Overlap {
    fn new(
        gpu: &Rc<Gpu>,
        problem: &Rc<NestedSine>,
        pieces: usize,
        waits: bool,
    ) -> Result<Self, RoutineError> {
        gpu.bind()?;
        let n = problem.len();
        let x: CudaSlice<f32> = gpu.alloc(n)?;
        let mut y: CudaSlice<f32> = gpu.alloc(n)?;
        let device = (
            x.device_ptr(gpu.stream()).0,
            y.device_ptr_mut(gpu.stream()).0,
        );
        let pieces = cut(n, pieces)
            .map(|(first, len)| Piece::new(gpu, device, first, len))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            gpu: gpu.clone(),
            problem: problem.clone(),
            waits,
            up: gpu.new_stream()?,
            down: gpu.new_stream()?,
            pieces,
            x,
            y,
            from: pinned_copy(gpu, problem.input())?,
            to: gpu.alloc_pinned(n)?,
        })
    }

    fn enqueue(&mut self) -> Result<(), CudaError> {
        let compute = self.gpu.stream();
        let x = self.x.device_ptr(compute).0;
        let y = self.y.device_ptr(compute).0;
        let from = pinned(&self.from)?;
        let to = pinned_mut(&mut self.to)?;
        let each_stage = |stream: &CudaStream| match self.waits {
            true => synchronize(stream),
            false => Ok(()),
        };
        for piece in &self.pieces {
            let range = piece.first..piece.first + piece.len;
            let offset = (piece.first * size_of::<f32>()) as sys::CUdeviceptr;
            // SAFETY: the piece lies within both sides, which live in `self`; `run` waits
            // for the last stream before either is touched again.
            unsafe { copy_to_device(&from[range.clone()], x + offset, &self.up) }?;
            record(&piece.uploaded, &self.up)?;
            wait(compute, &piece.uploaded)?;
            each_stage(&self.up)?;
            // SAFETY: the arguments are those of the kernel, and x and y live in `self`.
            unsafe { piece.kernel.launch(compute) }?;
            record(&piece.computed, compute)?;
            wait(&self.down, &piece.computed)?;
            each_stage(compute)?;
            // SAFETY: as for the upload.
            unsafe { copy_to_host(y + offset, &mut to[range], &self.down) }?;
            each_stage(&self.down)?;
        }
        Ok(())
    }
}

impl Piece {
    fn new(
        gpu: &Gpu,
        (x, y): (sys::CUdeviceptr, sys::CUdeviceptr),
        first: usize,
        len: usize,
    ) -> Result<Self, RoutineError> {
        let offset = (first * size_of::<f32>()) as sys::CUdeviceptr;
        Ok(Self {
            first,
            len,
            kernel: nested_sine::gpu::fused_launch(gpu, x + offset, y + offset, len as u64)?,
            uploaded: gpu.new_event()?,
            computed: gpu.new_event()?,
        })
    }
}

impl Routine for Overlap {
    fn poison(&mut self) -> Result<(), RoutineError> {
        fill(pinned_mut(&mut self.to)?, nested_sine::POISON);
        self.gpu.poison(&mut self.x)?;
        self.gpu.poison(&mut self.y)?;
        // The other streams are not ordered behind this one.
        Ok(self.gpu.synchronize()?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let enqueued = self.enqueue();
        // Waits even after an error: what was enqueued before it still uses the memory.
        let waited = [&self.up, self.gpu.stream(), &self.down]
            .into_iter()
            .try_for_each(|stream| synchronize(stream));
        Ok(enqueued.and(waited)?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        self.problem.check_output(pinned(&self.to)?)
    }

    fn launches(&self) -> u32 {
        self.pieces.len() as u32
    }
}
