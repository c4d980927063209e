//! The network on the GPU: in one kernel per step or in few kernels, launched one by one or as a
//! graph, on tokens in device memory or from host memory.

mod fused;
mod kernels;
mod memory;
mod pass;
mod resident;
mod transfer;
mod unfused;

use std::rc::Rc;

use crate::device::gpu::Gpu;
use crate::model::role::Launches;
use crate::workload::network::format::Format;
use crate::workload::prepare::host_memory::HostMemory;
use crate::workload::routine::Made;
use crate::workload::transformer::problem::Inference;

/// In f32 in one kernel per step, as code without fusion launches them: the library's products,
/// biases, ReLU, norms and sums; for attention copies that give each head a matrix of its own,
/// batched products, and softmax.
///
/// # Errors
/// Errors of CUDA and its libraries.
pub fn eager(gpu: &Rc<Gpu>, problem: &Rc<Inference>) -> Made {
    resident::eager(gpu, problem)
}

/// In few kernels: bias, ReLU and residual in the products, attention in one kernel that keeps its
/// scores on the multiprocessor, a layer norm in one pass, and the first norm with the embedding.
///
/// # Errors
/// Other launches than [`Fused`](Launches::Fused) and [`Graph`](Launches::Graph), a device too old
/// for the format, errors of CUDA and its libraries.
pub fn fused(gpu: &Rc<Gpu>, problem: &Rc<Inference>, format: Format, launches: Launches) -> Made {
    match launches {
        Launches::Fused => resident::fused(gpu, problem, format, false),
        Launches::Graph => resident::fused(gpu, problem, format, true),
        other => Err(format!("a transformer is not launched {other:?}").into()),
    }
}

/// The graph of [`fused`] in f32, with the tokens uploaded from host memory of one kind before it
/// and the logits downloaded after it. It synchronises: time it on the wall clock.
///
/// # Errors
/// Errors of CUDA and its libraries.
pub fn transfer(gpu: &Rc<Gpu>, problem: &Rc<Inference>, memory: HostMemory) -> Made {
    transfer::transfer(gpu, problem, memory)
}
