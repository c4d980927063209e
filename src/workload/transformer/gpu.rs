//! The network on the GPU: in one kernel per step or in few kernels, launched one by one or as a
//! graph, on tokens in device memory or from host memory.

use std::rc::Rc;

use crate::device::Gpu;
use crate::model::{Format, Launches};
use crate::workload::network::{Network, Tensor, fused_and_replayed};
use crate::workload::prepare::{HostMemory, Prepared};
use crate::workload::routine::{Result, Routine};
use crate::workload::transformer::problem::{Inference, verified};

/// A batch, launched one by one, in few kernels or as the graph of those.
///
/// One by one, in f32, each step has its own kernel, as in code without fusion: the library's products,
/// biases, ReLU, norms and sums; for attention copies that give each head a matrix of its own, batched
/// products, and softmax. That is 75 kernels: 18 per layer, the embedding, the logits and their bias.
/// Fused, bias, ReLU and residual are in the products, attention is one kernel that keeps its scores on
/// the multiprocessor, a layer norm takes one pass, and the first norm has the embedding: 29 kernels, 7
/// per layer and the logits. BF16 needs one more, because the residual is f32 and the product of the
/// logits reads BF16.
///
/// With host memory of one kind the tokens are uploaded before that and the logits are downloaded after
/// it. It synchronises then: time it on the wall clock.
///
/// # Errors
/// Other launches, a device too old for the format, errors of CUDA and its libraries.
pub fn pass(
    gpu: &Rc<Gpu>,
    problem: &Rc<Inference>,
    format: Format,
    launches: Launches,
    memory: Option<HostMemory>,
) -> Result<Box<dyn Routine>> {
    let (fused, replayed) = fused_and_replayed(launches)?;
    let mut work = Prepared::new(gpu)?;
    let tokens = Tensor::indices(&mut work, memory, problem, |problem| &problem.tokens)?;
    let (model, parameters, rows) = (&problem.model, &problem.parameters, problem.rows());
    let mut network = Network::new(work, model, parameters, format, fused, rows)?;
    network.activations(tokens, false)?;
    network.forward()?;
    let logits = *network.values.last().expect("activations");
    let (problem, all) = (problem.clone(), (logits, 0..logits.len));
    network.finish(replayed, memory, all, move |_, logits| {
        Ok(verified(&problem, format, logits))
    })
}
