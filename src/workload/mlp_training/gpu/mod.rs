//! A step on the GPU: in one kernel per operation or in few kernels, launched one by one or as a
//! graph, on a batch in device memory or from host memory.

mod fused;
mod kernels;
mod memory;
mod resident;
mod step;
mod transfer;
mod unfused;

use std::rc::Rc;

use crate::device::gpu::Gpu;
use crate::model::role::Launches;
use crate::workload::mlp_training::problem::Training;
use crate::workload::network::format::Format;
use crate::workload::prepare::host_memory::HostMemory;
use crate::workload::routine::Made;

/// A step in f32 in one kernel per operation, as code without fusion launches them: the library's
/// products, biases, ReLU, the loss in three kernels, each operation of AdamW over all parameters.
///
/// # Errors
/// Errors of CUDA and its libraries.
pub fn eager(gpu: &Rc<Gpu>, problem: &Rc<Training>) -> Made {
    resident::eager(gpu, problem)
}

/// A step in few kernels: bias and ReLU in the product, the loss with its gradient, the
/// derivative of ReLU with the sums of a bias, the update of all parameters at once. The gradient
/// of the second layer is computed beside that of the first, on a second stream.
///
/// # Errors
/// Other launches than [`Fused`](Launches::Fused) and [`Graph`](Launches::Graph), a device too old
/// for the format, errors of CUDA and its libraries.
pub fn fused(gpu: &Rc<Gpu>, problem: &Rc<Training>, format: Format, launches: Launches) -> Made {
    match launches {
        Launches::Fused => resident::fused(gpu, problem, format, false),
        Launches::Graph => resident::fused(gpu, problem, format, true),
        other => Err(format!("a step is not launched {other:?}").into()),
    }
}

/// The graph of [`fused`] in f32, with the batch and its labels uploaded from host memory of one
/// kind before it and the loss downloaded after it. It synchronises: time it on the wall clock.
///
/// # Errors
/// Errors of CUDA and its libraries.
pub fn transfer(gpu: &Rc<Gpu>, problem: &Rc<Training>, memory: HostMemory) -> Made {
    transfer::transfer(gpu, problem, memory)
}
