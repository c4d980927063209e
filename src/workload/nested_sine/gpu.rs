//! Nested sine on the GPU: one kernel per pass, the passes fused, the passes as a graph; on data in
//! device memory, and from host memory and back.

use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::device::kernel::Source;
use crate::model::Verified;
use crate::timing::Launch;
use crate::workload::nested_sine::problem::{
    ACCURATE, NESTED_SINE, NestedSine, PASSES, POISON, POISON_BYTE,
};
use crate::workload::prepare::end_to_end::{self, cut};
use crate::workload::prepare::{Buffers, Device, EndToEnd, HostMemory, Prepared, Stage, Stages};
use crate::workload::routine::{Candidates, Result, Routine, RoutineError};

const PASS: Kernel = Kernel {
    source: &NESTED_SINE,
    name: "sine_pass",
    vectors: 1,
};
/// As [`PASS`], from the last element to the first.
const PASS_BACKWARDS: Kernel = Kernel {
    name: "sine_pass_backwards",
    ..PASS
};
const FUSED_SINF: Kernel = Kernel {
    name: "sine_fused_sinf",
    ..PASS
};

/// Four launches of one sine each, through memory, alternately forwards and backwards.
pub fn per_kernel(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Result<Box<dyn Routine>> {
    Ok(Box::new(resident(gpu, problem, &KERNELS)?))
}

/// One kernel: polynomials, with a range reduction in the first pass only.
pub fn fused(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Result<Box<dyn Routine>> {
    Ok(Box::new(resident(gpu, problem, &[FUSED])?))
}

/// One kernel: CUDA's `sinf` four times.
pub fn fused_sinf(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Result<Box<dyn Routine>> {
    Ok(Box::new(resident(gpu, problem, &[FUSED_SINF])?))
}

/// The four launches of [`per_kernel`], captured and replayed.
pub fn graph(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Result<Box<dyn Routine>> {
    let mut work = resident(gpu, problem, &KERNELS)?;
    work.steps.replay()?;
    Ok(Box::new(work))
}

/// The launches of [`per_kernel`]. Every second pass goes backwards, so it begins with data that the pass
/// before it left in the L2 cache.
const KERNELS: [Kernel; PASSES as usize] = [PASS, PASS_BACKWARDS, PASS, PASS_BACKWARDS];

/// Kernels on data that stays in device memory.
fn resident(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>, kernels: &[Kernel]) -> Result<Prepared> {
    let mut work = Prepared::new(gpu)?;
    let x = work.upload(problem.input())?;
    let y = work.alloc::<f32>(problem.len())?;
    work.poison_by(y, POISON_BYTE);
    enqueue(&mut work, x, y, problem.len(), kernels)?;
    let problem = problem.clone();
    work.check_by(move |memory| {
        problem.compare(ACCURATE, |window| Ok(memory.read_part(y, window)?))
    });
    Ok(work)
}

/// Kernels from x to y, n elements each; those after the first in place, so that x stays as it is.
fn enqueue(
    work: &mut Prepared,
    x: Device<f32>,
    y: Device<f32>,
    n: usize,
    kernels: &[Kernel],
) -> Result<()> {
    for (pass, &kernel) in kernels.iter().enumerate() {
        let from = if pass == 0 { x.address } else { y.address };
        let kernel = kernel.launch(&work.memory.gpu, from, y.address, n as u64)?;
        // SAFETY: `launch` gives a kernel its arguments, and the routine owns `x` and `y` of `n` elements.
        unsafe { work.steps.kernel(kernel) };
    }
    Ok(())
}

/// An upload, a kernel for each pass and a download, one after the other, from and to ordinary
/// memory. It synchronises: time it on the wall clock.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
pub fn transfer_per_kernel(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Result<Box<dyn Routine>> {
    let n = problem.len();
    let mut work = Prepared::new(gpu)?;
    let x = work.input(Some(HostMemory::Pageable), problem, |problem| {
        problem.input()
    })?;
    let y = work.output::<f32>(n)?;
    enqueue(&mut work, x, y, n, &KERNELS)?;
    let problem = problem.clone();
    let check = move |y: &[f32]| problem.check_output(y);
    work.check_values(Some(HostMemory::Pageable), y, POISON, check)?;
    Ok(Box::new(work))
}

/// From host memory to host memory by the fused kernel. It synchronises: time it on the wall clock.
///
/// From pinned memory in the fastest way, that is a copy, the kernel and a copy; the kernel on the
/// host's memory in place; or pieces whose copies both ways overlap with each other and with kernels.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
pub fn from_host(
    gpu: &Rc<Gpu>,
    problem: &Rc<NestedSine>,
    memory: HostMemory,
) -> Result<Box<dyn Routine>> {
    end_to_end::from_host(gpu, problem, memory)
}

/// A routine for every way that [`from_host`] chooses from in pinned memory, with its name. For tests.
///
/// # Errors
/// As [`from_host`].
pub fn from_pinned_ways(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Result<Candidates> {
    end_to_end::ways(gpu, problem)
}

// SAFETY: a piece is a part of both arrays.
unsafe impl EndToEnd for NestedSine {
    type Value = f32;

    const POISON: f32 = POISON;

    fn words(&self) -> String {
        format!("nested sine of {} values", self.len())
    }

    fn operands(&self) -> Vec<&[f32]> {
        vec![self.input()]
    }

    fn result(&self) -> usize {
        self.len()
    }

    fn check(&self, result: &[f32]) -> Verified {
        self.check_output(result)
    }

    fn stages(&self, gpu: &Rc<Gpu>, buffers: &Buffers<f32>, pieces: usize) -> Stages {
        let stage = |(first, len): (usize, usize)| -> Result<Stage> {
            let [from, to] = [0, 1].map(|at| buffers.piece(at, first, len));
            let kernel = FUSED.launch(gpu, from.device, to.device, len as u64)?;
            Ok(Stage {
                uploads: vec![from],
                // SAFETY: a piece lies within both buffers, which the caller of `of_stages` keeps.
                compute: Box::new(move |stream| unsafe { kernel.launch(stream) }),
                downloads: vec![to],
            })
        };
        cut(self.len(), pieces).map(stage).collect()
    }
}

/// Threads per block: `THREADS` in the source.
const THREADS: u64 = 128;

/// A kernel, with the number of its vectors of 16 bytes per thread.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    pub(super) source: &'static Source,
    pub(super) name: &'static str,
    pub(super) vectors: u64,
}

/// The kernel that fuses the four passes.
pub(crate) const FUSED: Kernel = Kernel {
    source: &NESTED_SINE,
    name: "sine_fused",
    vectors: 2,
};

impl Kernel {
    /// On `n` elements from and to device addresses that are multiples of 16.
    pub(crate) fn launch(
        self,
        gpu: &Gpu,
        from: CUdeviceptr,
        to: CUdeviceptr,
        n: u64,
    ) -> Result<Launch, RoutineError> {
        const LANES: u64 = 16 / size_of::<f32>() as u64;
        let blocks = n.div_ceil(LANES * self.vectors * THREADS).max(1);
        let blocks = u32::try_from(blocks)
            .ok()
            .filter(|&blocks| blocks <= i32::MAX as u32)
            .ok_or_else(|| format!("{n} elements need more blocks than a grid has"))?;
        let launch = gpu.launch(self.source, self.name, blocks, THREADS as u32)?;
        Ok(launch.arg(from).arg(to).arg(n))
    }
}
