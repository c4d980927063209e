//! The forward pass alone: the activations and logits of a batch.

use std::rc::Rc;

use crate::device::Gpu;
use crate::model::{Cost, Launches};
use crate::workload::mlp_training::cost::forward_cost;
use crate::workload::mlp_training::problem::Training;
use crate::workload::mlp_training::verify::verified_forward;
use crate::workload::network::{Format, Network, Order, Tensor};
use crate::workload::prepare::Prepared;
use crate::workload::routine::Made;

/// Cost of two kernels: parameters and inputs are read once, the activations are written and read, and
/// the logits written.
pub fn cost(batch: u64) -> Cost {
    forward_cost(batch, true)
}

/// As [`cost`], in five: each bias and ReLU reads and writes once more what it is applied to.
pub fn cost_eager(batch: u64) -> Cost {
    forward_cost(batch, false)
}

/// On data in device memory: a kernel for each operation, launched one by one, with
/// [`Launches::Synchronised`] with a wait of the host after each layer; or, as a graph, a kernel for
/// each layer.
///
/// # Errors
/// Another way to launch, errors of CUDA and its libraries.
pub fn forward(gpu: &Rc<Gpu>, problem: &Rc<Training>, launching: Launches) -> Made {
    let replayed = launching == Launches::Graph;
    if !(replayed || [Launches::OneByOne, Launches::Synchronised].contains(&launching)) {
        return Err(format!("a forward pass is not launched {launching:?}").into());
    }
    let mut work = Prepared::new(gpu)?;
    let inputs = Tensor::input(&mut work, None, problem, |problem| &problem.inputs)?;
    let (model, parameters, batch) = (&problem.model, &problem.start.parameters, problem.batch);
    let mut network = Network::new(work, model, parameters, Format::F32, replayed, batch)?;
    network.activations(inputs, false)?;
    for (layer, phase) in model.layers.iter().zip(["first layer", "second layer"]) {
        if launching == Launches::Synchronised && phase == "second layer" {
            network.wait()?;
        }
        network.phase = phase;
        network.layer(layer)?;
    }
    let [_, hidden, logits] = network.values[..] else {
        return Err("a perceptron has two layers".into());
    };
    let (problem, all) = (problem.clone(), (hidden, 0..hidden.len));
    network.finish(Order::InTurn, replayed, None, all, move |memory, hidden| {
        Ok(verified_forward(&problem, hidden, &logits.values(memory)?))
    })
}
