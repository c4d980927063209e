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
        OneByOne | Graph | Synchronised | Fused => links(gpu, problem, launching),
        _ => Err(format!("a chain is not launched {launching:?}").into()),
    }
}

/// Compiles and loads the kernel of all links, if this process has not done so.
pub(crate) fn compile_fused(gpu: &Gpu) -> Done {
    gpu.function(&FUSED, "chain_fused")?;
    Ok(())
}

fn links(
    gpu: &Rc<Gpu>,
    problem: &Rc<Chain>,
    launching: Launches,
) -> Result<Prepared, RoutineError> {
    let mut work = Prepared::new(gpu)?;
    let n = problem.x.len() as u64;
    let x = work.upload(&problem.x)?;
    let y = work.output::<f32>(problem.x.len())?;
    let is_fused = launching == Launches::Fused;
    let function = match is_fused {
        true => gpu.function(&FUSED, "chain_fused")?,
        false => gpu.function(&CHAIN, "chain_link")?,
    };
    let grid = (elementwise::blocks(n)?, 1, 1);
    let new = || Launch::new(function.clone(), grid, (elementwise::THREADS, 1, 1));
    // SAFETY: the arguments are those of the kernel, and x and y hold n elements each.
    unsafe {
        if is_fused {
            work.steps
                .kernel(new().arg(x.address).arg(y.address).arg(n));
        } else {
            for (i, link) in problem.links.iter().enumerate() {
                // In place after the first link, so that the input stays as it is.
                let launch = new().arg(if i == 0 { x.address } else { y.address });
                let launch = launch.arg(y.address).arg(link.factor).arg(link.term);
                work.steps.kernel(launch.arg(n));
                if launching == Launches::Synchronised {
                    work.steps.wait(On::Compute);
                }
            }
        }
    }
    let problem = problem.clone();
    work.check_values(None, y, f32::NAN, move |y| problem.compare(y))?;
    Ok(work)
}
