//! The chain on the GPU.

use std::rc::Rc;

use crate::device::Gpu;
use crate::model::Launches;
use crate::timing::Launch;
use crate::workload::lessons::graph_replay::chain::Chain;
use crate::workload::lessons::graph_replay::source::{CHAIN, FUSED};
use crate::workload::prepare::{On, Prepared, elementwise};
use crate::workload::routine::{Done, Made, RoutineError};

/// The chain on the GPU: its links as launched one by one, synchronised, or as one graph, or all
/// of them fused into one kernel that NVRTC compiles at run time.
///
/// # Errors
/// A way to launch that a chain does not have, errors of CUDA and of the kernel's compilation.
pub fn chain(gpu: &Rc<Gpu>, problem: &Rc<Chain>, launching: Launches) -> Made {
    let mut work = prepared(gpu, problem, launching)?;
    if launching == Launches::Graph {
        work.steps.replay()?;
    }
    Ok(Box::new(work))
}

/// The same, where what becomes a graph is not captured yet.
pub(crate) fn prepared(
    gpu: &Rc<Gpu>,
    problem: &Rc<Chain>,
    launching: Launches,
) -> Result<Prepared, RoutineError> {
    use Launches::{Fused, Graph, OneByOne, Synchronised};
    match launching {
        OneByOne | Graph => links(gpu, problem, Kernel::Link, false),
        Synchronised => links(gpu, problem, Kernel::Link, true),
        Fused => links(gpu, problem, Kernel::Fused, false),
        _ => Err(format!("a chain is not launched {launching:?}").into()),
    }
}

/// Compiles and loads the kernel of all links, if this process has not done so.
pub(crate) fn compile_fused(gpu: &Gpu) -> Done {
    gpu.function(&FUSED, "chain_fused")?;
    Ok(())
}

/// As one graph, in which each link but the first is a programmatic dependent launch: its blocks
/// are launched while the link before it still runs, and wait on the device until that is done.
/// <https://docs.nvidia.com/cuda/cuda-c-programming-guide/#programmatic-dependent-launch-and-synchronization>
///
/// # Errors
/// As [`chain`]; an absence on devices before compute capability 9.0.
pub fn dependent(gpu: &Rc<Gpu>, problem: &Rc<Chain>) -> Made {
    gpu.require((9, 0), "programmatic dependent launches")?;
    let mut work = links(gpu, problem, Kernel::Dependent, false)?;
    work.steps.replay()?;
    Ok(Box::new(work))
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

fn links(
    gpu: &Rc<Gpu>,
    problem: &Rc<Chain>,
    kernel: Kernel,
    waits_for_each: bool,
) -> Result<Prepared, RoutineError> {
    let mut work = Prepared::new(gpu)?;
    let n = problem.x.len() as u64;
    let x = work.upload(&problem.x)?;
    let y = work.output::<f32>(problem.x.len())?;
    let function = match kernel {
        Kernel::Link => gpu.function(&CHAIN, "chain_link")?,
        Kernel::Dependent => gpu.function(&CHAIN, "chain_link_dependent")?,
        Kernel::Fused => gpu.function(&FUSED, "chain_fused")?,
    };
    let grid = (elementwise::blocks(n)?, 1, 1);
    let new = || Launch::new(function.clone(), grid, (elementwise::THREADS, 1, 1));
    // SAFETY: the arguments are those of the kernel, and x and y hold n elements each.
    unsafe {
        if kernel == Kernel::Fused {
            work.steps
                .kernel(new().arg(x.address).arg(y.address).arg(n));
        } else {
            for (i, link) in problem.links.iter().enumerate() {
                // The first has nothing in the chain to overlap with.
                let launch = match kernel == Kernel::Dependent && i > 0 {
                    true => new().programmatic(),
                    false => new(),
                };
                // In place after the first link, so that the input stays as it is.
                let launch = launch.arg(if i == 0 { x.address } else { y.address });
                let launch = launch.arg(y.address).arg(link.factor).arg(link.term);
                work.steps.kernel(launch.arg(n));
                if waits_for_each {
                    work.steps.wait(On::Compute);
                }
            }
        }
    }
    let problem = problem.clone();
    work.check_values(None, y, f32::NAN, move |y| problem.compare(y))?;
    Ok(work)
}
