//! The forward pass alone: the activations and logits of a batch.

use std::rc::Rc;

use crate::device::Gpu;
use crate::model::Launches;
use crate::workload::mlp_training::problem::Training;
use crate::workload::mlp_training::verify::verified_forward;
use crate::workload::network::{Format, Network, Order, Tensor};
use crate::workload::prepare::Prepared;
use crate::workload::routine::Made;

/// On data in device memory: a kernel for each operation, launched one by one, with
/// [`Launches::Synchronised`] with a wait of the host after each layer.
///
/// # Errors
/// Another way to launch, errors of CUDA and its libraries.
pub fn forward(gpu: &Rc<Gpu>, problem: &Rc<Training>, launching: Launches) -> Made {
    if ![Launches::OneByOne, Launches::Synchronised].contains(&launching) {
        return Err(format!("a forward pass is not launched {launching:?}").into());
    }
    let mut work = Prepared::new(gpu)?;
    let inputs = Tensor::input(&mut work, None, problem, |problem| &problem.inputs)?;
    let (model, parameters, batch) = (&problem.model, &problem.start.parameters, problem.batch);
    let mut network = Network::new(work, model, parameters, Format::F32, false, batch)?;
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
    network.finish(Order::InTurn, false, None, all, move |memory, hidden| {
        Ok(verified_forward(&problem, hidden, &logits.values(memory)?))
    })
}
