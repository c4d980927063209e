//! The chain on the GPU.

use std::rc::Rc;

use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut, result};

use crate::device::gpu::Gpu;
use crate::device::graph::Graph;
use crate::model::role::Launches;
use crate::model::verified::Verified;
use crate::timing::{CudaError, Launch};
use crate::workload::lessons::graph_replay::chain::Chain;
use crate::workload::lessons::graph_replay::link::Link;
use crate::workload::lessons::graph_replay::source::{CHAIN, FUSED};
use crate::workload::prepare::elementwise;
use crate::workload::routine::{Made, Routine, RoutineError};

/// The chain on the GPU: its links as launched one by one, synchronised, or as one graph, or all
/// of them fused into one kernel that NVRTC compiles at run time.
///
/// # Errors
/// A way to launch that a chain does not have, errors of CUDA and of the kernel's compilation.
pub fn chain(gpu: &Rc<Gpu>, problem: &Rc<Chain>, launching: Launches) -> Made {
    use Launches::{Fused, Graph as Replayed, OneByOne, Synchronised};
    Ok(Box::new(match launching {
        OneByOne | Synchronised => Links::new(gpu, problem, Kernel::Link, launching)?,
        Fused => Links::new(gpu, problem, Kernel::Fused, launching)?,
        Replayed => Links::new(gpu, problem, Kernel::Link, launching)?.replayed()?,
        _ => return Err(format!("a chain is not launched {launching:?}").into()),
    }))
}

/// As one graph, in which each link but the first is a programmatic dependent launch: its blocks
/// are launched while the link before it still runs, and wait on the device until that is done.
/// <https://docs.nvidia.com/cuda/cuda-c-programming-guide/#programmatic-dependent-launch-and-synchronization>
///
/// # Errors
/// As [`chain`]; an absence on devices before compute capability 9.0.
pub fn dependent(gpu: &Rc<Gpu>, problem: &Rc<Chain>) -> Made {
    gpu.require((9, 0), "programmatic dependent launches")?;
    let links = Links::new(gpu, problem, Kernel::Dependent, Launches::Graph)?;
    Ok(Box::new(links.replayed()?))
}

/// What is launched.
#[derive(Clone, Copy, PartialEq)]
enum Kernel {
    Link,
    /// A link as a programmatic dependent launch.
    Dependent,
    /// All links.
    Fused,
}

struct Links {
    /// Dropped before the memory that it uses.
    graph: Option<Graph>,
    gpu: Rc<Gpu>,
    problem: Rc<Chain>,
    launching: Launches,
    launches: Vec<Launch>,
    y: CudaSlice<f32>,
    // Only read by the first kernel, through its address.
    _x: CudaSlice<f32>,
}

impl Links {
    fn new(
        gpu: &Rc<Gpu>,
        problem: &Rc<Chain>,
        kernel: Kernel,
        launching: Launches,
    ) -> Result<Self, RoutineError> {
        gpu.bind()?;
        let n = problem.x.len() as u64;
        let grid = (elementwise::blocks(n)?, 1, 1);
        let block = (elementwise::THREADS, 1, 1);
        let x = gpu.upload(&problem.x)?;
        let mut y = gpu.alloc::<f32>(problem.x.len())?;
        let source = x.device_ptr(gpu.stream()).0;
        let target = y.device_ptr_mut(gpu.stream()).0;
        let function = match kernel {
            Kernel::Link => gpu.function(&CHAIN, "chain_link")?,
            Kernel::Dependent => gpu.function(&CHAIN, "chain_link_dependent")?,
            Kernel::Fused => gpu.function(&FUSED, "chain_fused")?,
        };
        let launches = if kernel == Kernel::Fused {
            let launch = Launch::new(function, grid, block);
            vec![launch.arg(source).arg(target).arg(n)]
        } else {
            let link = |(i, link): (usize, &Link)| {
                let launch = Launch::new(function.clone(), grid, block);
                // The first has nothing in the chain to overlap with.
                let launch = match kernel == Kernel::Dependent && i > 0 {
                    true => launch.programmatic(),
                    false => launch,
                };
                // In place after the first link, so that the input stays as it is.
                launch
                    .arg(if i == 0 { source } else { target })
                    .arg(target)
                    .arg(link.factor)
                    .arg(link.term)
                    .arg(n)
            };
            problem.links.iter().enumerate().map(link).collect()
        };
        Ok(Self {
            graph: None,
            gpu: gpu.clone(),
            problem: problem.clone(),
            launching,
            launches,
            y,
            _x: x,
        })
    }

    /// The same, captured and replayed.
    fn replayed(mut self) -> Result<Self, CudaError> {
        // SAFETY: the graph lies beside the device memory that it uses, in one routine.
        let graph = Graph::capture(self.gpu.stream(), || unsafe { self.enqueue() })?;
        self.graph = Some(graph);
        Ok(self)
    }

    /// # Safety
    /// `self` must live until the kernels have run.
    unsafe fn enqueue(&self) -> Result<(), CudaError> {
        let stream = self.gpu.stream();
        for launch in &self.launches {
            // SAFETY: the arguments are those of the kernel, x and y hold n elements each, and
            // the context was made current when `self` was made on this thread, which it
            // cannot leave.
            unsafe { launch.launch(stream)? };
            if self.launching == Launches::Synchronised {
                // SAFETY: the stream is alive.
                unsafe { result::stream::synchronize(stream.cu_stream()) }
                    .map_err(|e| CudaError::new("cuStreamSynchronize", e))?;
            }
        }
        Ok(())
    }
}

impl Routine for Links {
    fn poison(&mut self) -> Result<(), RoutineError> {
        Ok(self.gpu.poison(&mut self.y)?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        // SAFETY: the memory lies in `self`, and freeing it waits for its turn on the stream;
        // the context is current on this thread since `new`.
        Ok(unsafe {
            match &self.graph {
                Some(graph) => graph.launch(),
                None => self.enqueue(),
            }
        }?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok(self.problem.compare(&self.gpu.download(&self.y)?))
    }

    // A graph may take as many places in the stream's queue as it has kernels.
    fn launches(&self) -> u32 {
        self.launches.len() as u32
    }
}
