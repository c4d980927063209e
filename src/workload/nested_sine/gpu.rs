//! Nested sine on the GPU: one kernel per pass, the passes fused, the passes as a graph, and the
//! fused kernel from and to host memory.

use std::rc::Rc;

use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut, result, sys};

use crate::device::calls::{copy_to_device, copy_to_host};
use crate::device::gpu::Gpu;
use crate::device::graph::Graph;
use crate::model::verified::Verified;
use crate::timing::{CudaError, Launch};
use crate::workload::nested_sine::problem::{NESTED_SINE, NestedSine, PASSES};
use crate::workload::nested_sine::verify::{POISON, POISON_BYTE, Tolerance};
use crate::workload::prepare::host_memory::{Buffer, HostMemory, Input, fill};
use crate::workload::routine::{Made, Routine, RoutineError};

/// Threads per block: `THREADS` in the source.
const THREADS: u64 = 128;

/// A kernel of the source, with the number of its float4 vectors per thread.
#[derive(Clone, Copy)]
struct Kernel {
    name: &'static str,
    vectors: u64,
}

const PASS: Kernel = Kernel {
    name: "sine_pass",
    vectors: 1,
};
/// As [`PASS`], from the last element to the first.
const PASS_BACKWARDS: Kernel = Kernel {
    name: "sine_pass_backwards",
    ..PASS
};
const FUSED: Kernel = Kernel {
    name: "sine_fused",
    vectors: 2,
};
const FUSED_SINF: Kernel = Kernel {
    name: "sine_fused_sinf",
    vectors: 1,
};
const FUSED_FAST: Kernel = Kernel {
    name: "sine_fused_fast",
    vectors: 2,
};

/// Accuracy of every pass of `sine_pass` and `sine_fused`, as tested, and of CUDA's `sinf`:
/// <https://docs.nvidia.com/cuda/cuda-c-programming-guide/#mathematical-functions-appendix>
const ACCURATE: Tolerance = Tolerance::UlpPerPass(2.0);
/// Accuracy of `__sinf` on [-π, π], 2^-21.41, from the same page.
const FAST: Tolerance = Tolerance::AbsolutePerPass(3.6e-7);

/// Four launches of one sine each, through memory, alternately forwards and backwards.
pub fn per_kernel(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    Ok(Box::new(Resident {
        graph: None,
        device: Device::passes(gpu, problem)?,
        problem: problem.clone(),
        tolerance: ACCURATE,
    }))
}

/// One kernel: polynomials, with a range reduction in the first pass only.
pub fn fused(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    one_kernel(gpu, problem, FUSED, ACCURATE)
}

/// One kernel: CUDA's `sinf` four times.
pub fn fused_sinf(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    one_kernel(gpu, problem, FUSED_SINF, ACCURATE)
}

/// One kernel: the `__sinf` of the special-function units four times, with an absolute error
/// only, and on [-π, π] only.
pub fn fused_fast(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    one_kernel(gpu, problem, FUSED_FAST, FAST)
}

/// The four launches of [`per_kernel`], captured and replayed.
pub fn graph(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    let device = Device::passes(gpu, problem)?;
    // SAFETY: the graph lies beside the device memory that it uses, in one routine.
    let graph = Graph::capture(gpu.stream(), || unsafe { device.enqueue() })?;
    Ok(Box::new(Resident {
        graph: Some(graph),
        device,
        problem: problem.clone(),
        tolerance: ACCURATE,
    }))
}

/// Upload, the fused kernel and download, one after the other, from and to host memory of one
/// kind.
pub fn transfer(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>, memory: HostMemory) -> Made {
    Ok(Box::new(Transfer {
        device: Device::new(gpu, problem, FUSED)?,
        x: Input::new(gpu, memory, problem.input())?,
        y: Buffer::filled(gpu, memory, POISON, problem.len())?,
        problem: problem.clone(),
    }))
}

fn one_kernel(
    gpu: &Rc<Gpu>,
    problem: &Rc<NestedSine>,
    kernel: Kernel,
    tolerance: Tolerance,
) -> Made {
    let mut device = Device::new(gpu, problem, kernel)?;
    device.upload(problem.input())?;
    gpu.synchronize()?;
    Ok(Box::new(Resident {
        graph: None,
        device,
        problem: problem.clone(),
        tolerance,
    }))
}

/// The fused kernel on `n` elements from and to device addresses that are multiples of 16.
pub(crate) fn fused_launch(
    gpu: &Gpu,
    from: sys::CUdeviceptr,
    to: sys::CUdeviceptr,
    n: u64,
) -> Result<Launch, RoutineError> {
    launch(gpu, FUSED, from, to, n)
}

fn launch(
    gpu: &Gpu,
    kernel: Kernel,
    from: sys::CUdeviceptr,
    to: sys::CUdeviceptr,
    n: u64,
) -> Result<Launch, RoutineError> {
    let blocks = n.div_ceil(4 * kernel.vectors * THREADS).max(1);
    let blocks = u32::try_from(blocks)
        .ok()
        .filter(|&blocks| blocks <= i32::MAX as u32)
        .ok_or_else(|| format!("{n} elements need more blocks than a grid has"))?;
    let function = gpu.function(&NESTED_SINE, kernel.name)?;
    Ok(
        Launch::new(function, (blocks, 1, 1), (THREADS as u32, 1, 1))
            .arg(from)
            .arg(to)
            .arg(n),
    )
}

/// Input, output and the launches from one to the other.
struct Device {
    gpu: Rc<Gpu>,
    launches: Vec<Launch>,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
}

impl Device {
    /// One launch of `kernel`. The input is not uploaded yet.
    fn new(gpu: &Rc<Gpu>, problem: &NestedSine, kernel: Kernel) -> Result<Self, RoutineError> {
        gpu.bind()?;
        // The driver refuses to allocate nothing.
        let len = problem.len().max(1);
        let mut device = Self {
            gpu: gpu.clone(),
            launches: Vec::new(),
            x: gpu.alloc(len)?,
            y: gpu.alloc(len)?,
        };
        let (x, y) = (device.source(), device.target());
        device.launches = vec![device.launch(kernel, x, y, problem.len() as u64)?];
        Ok(device)
    }

    /// One launch per pass, the later ones in place, so that the input stays as it is. Every other
    /// pass goes backwards, and so begins with what the one before it has just left in the L2 cache.
    /// Uploads the input.
    fn passes(gpu: &Rc<Gpu>, problem: &NestedSine) -> Result<Self, RoutineError> {
        let mut device = Self::new(gpu, problem, PASS)?;
        let y = device.target();
        for pass in 1..PASSES {
            let kernel = if pass % 2 == 1 { PASS_BACKWARDS } else { PASS };
            let launch = device.launch(kernel, y, y, problem.len() as u64)?;
            device.launches.push(launch);
        }
        device.upload(problem.input())?;
        gpu.synchronize()?;
        Ok(device)
    }

    fn source(&self) -> sys::CUdeviceptr {
        self.x.device_ptr(self.gpu.stream()).0
    }

    fn target(&mut self) -> sys::CUdeviceptr {
        self.y.device_ptr_mut(self.gpu.stream()).0
    }

    fn launch(
        &self,
        kernel: Kernel,
        from: sys::CUdeviceptr,
        to: sys::CUdeviceptr,
        n: u64,
    ) -> Result<Launch, RoutineError> {
        launch(&self.gpu, kernel, from, to, n)
    }

    /// # Safety
    /// `self` must live until the kernels have run.
    unsafe fn enqueue(&self) -> Result<(), CudaError> {
        for launch in &self.launches {
            // SAFETY: the arguments are those of the kernels, x and y hold n elements each,
            // and the context was made current when `self` was made on this thread, which
            // it cannot leave.
            unsafe { launch.launch(self.gpu.stream())? };
        }
        Ok(())
    }

    /// Enqueues the copy of the input; the caller synchronises before `input` is freed.
    fn upload(&mut self, input: &[f32]) -> Result<(), CudaError> {
        if input.is_empty() {
            return Ok(());
        }
        let (x, _guard) = self.x.device_ptr_mut(self.gpu.stream());
        // SAFETY: x holds as many elements as the problem's input.
        unsafe { copy_to_device(input, x, self.gpu.stream()) }
    }

    /// Enqueues the copy of the output; the caller synchronises before it reads it.
    fn download(&self, from: usize, output: &mut [f32]) -> Result<(), CudaError> {
        if output.is_empty() {
            return Ok(());
        }
        assert!(from + output.len() <= self.y.len());
        let (y, _guard) = self.y.device_ptr(self.gpu.stream());
        let y = y + (from * size_of::<f32>()) as u64;
        // SAFETY: the range lies within y, as just checked.
        unsafe { copy_to_host(y, output, self.gpu.stream()) }
    }

    fn poison(&mut self) -> Result<(), CudaError> {
        let bytes = self.y.num_bytes();
        let (y, _guard) = self.y.device_ptr_mut(self.gpu.stream());
        // SAFETY: the range is y's own memory.
        unsafe { result::memset_d8_async(y, POISON_BYTE, bytes, self.gpu.stream().cu_stream()) }
            .map_err(|e| CudaError::new("cuMemsetD8Async", e))
    }
}

/// Kernels on data that stays in device memory.
struct Resident {
    /// The kernels as a graph, dropped before the memory that it uses.
    graph: Option<Graph>,
    device: Device,
    problem: Rc<NestedSine>,
    tolerance: Tolerance,
}

impl Routine for Resident {
    fn poison(&mut self) -> Result<(), RoutineError> {
        Ok(self.device.poison()?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        // SAFETY: the memory lies in `self`, and freeing it waits for its turn on the stream;
        // the context is current on this thread since `Device::new`.
        Ok(unsafe {
            match &self.graph {
                Some(graph) => graph.launch(),
                None => self.device.enqueue(),
            }
        }?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let device = &self.device;
        self.problem.compare(self.tolerance, |window| {
            let mut y = vec![0.0; window.len()];
            device.download(window.start, &mut y)?;
            device.gpu.synchronize()?;
            Ok(y)
        })
    }

    // A graph may take as many places in the stream's queue as it has kernels.
    fn launches(&self) -> u32 {
        self.device.launches.len() as u32
    }
}

/// From host memory to host memory; [`run`](Routine::run) waits for the result.
struct Transfer {
    device: Device,
    x: Input<f32>,
    y: Buffer<f32>,
    problem: Rc<NestedSine>,
}

impl Transfer {
    fn enqueue(&mut self) -> Result<(), CudaError> {
        self.device.upload(self.x.values(self.problem.input())?)?;
        // SAFETY: `run` waits for the kernel.
        unsafe { self.device.enqueue() }?;
        self.device.download(0, self.y.values_mut()?)
    }
}

impl Routine for Transfer {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.device.poison()?;
        // Else an upload that never happens would go unnoticed.
        self.device.gpu.poison(&mut self.device.x)?;
        fill(self.y.values_mut()?, POISON);
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let enqueued = self.enqueue();
        // Waits even after an error: what was enqueued before it may still use the memory.
        let waited = self.device.gpu.synchronize();
        Ok(enqueued.and(waited)?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let y = self.y.values()?;
        self.problem
            .compare(ACCURATE, |window| Ok(y[window].to_vec()))
    }
}
