//! The forward pass alone: the activations and logits of a batch.

use std::rc::Rc;

use crate::device::Gpu;
use crate::model::{Cost, Launches};
use crate::workload::mlp_training::model::{CLASSES, HIDDEN, INPUTS, PARAMETERS, layers};
use crate::workload::mlp_training::problem::Training;
use crate::workload::mlp_training::verify::verified_forward;
use crate::workload::network::{Element, Format, Network, Order, Tensor, Then};
use crate::workload::prepare::Prepared;
use crate::workload::routine::Made;

/// Cost of two kernels: parameters and inputs are read once, the activations are written and read, and
/// the logits written.
pub fn cost(batch: u64) -> Cost {
    let values = PARAMETERS as u64 + batch * (INPUTS + 2 * HIDDEN + CLASSES) as u64;
    Cost::default()
        .flop(2.0 * batch as f64 * (HIDDEN * (INPUTS + CLASSES)) as f64)
        .bytes(4.0 * values as f64)
        .launches(2)
}

/// As [`cost`], in five: each bias and ReLU reads and writes once more what it is applied to.
pub fn cost_eager(batch: u64) -> Cost {
    let more = 4 * batch * (4 * HIDDEN + 2 * CLASSES) as u64;
    let fused = cost(batch);
    Cost {
        bytes: fused.bytes.map(|bytes| bytes + more as f64),
        launches: Some(5),
        ..fused
    }
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
    let problem = problem.clone();
    let mut work = Prepared::new(gpu)?;
    let inputs = Tensor::of(&mut work, Element::F32, &problem.inputs)?;
    let (parameters, batch) = (&problem.start.parameters, problem.batch);
    let mut network = Network::new(work, parameters, Format::F32, replayed, batch)?;
    network.bytes[1] += inputs.device.bytes();
    let hidden = network.rows_of(Element::F32, HIDDEN)?;
    let logits = network.rows_of(Element::F32, CLASSES)?;
    let [first, second] = layers();
    network.phase = "first layer";
    network.linear(
        "activations",
        &first,
        [&inputs, &hidden],
        Then::ReluBias,
        None,
    )?;
    if launching == Launches::Synchronised {
        network.wait()?;
    }
    network.phase = "second layer";
    network.linear("logits", &second, [&hidden, &logits], Then::Bias, None)?;
    let mut work = network.finish(Order::InTurn, replayed)?;
    work.check_by(move |memory| {
        let (hidden, logits) = (hidden.values(memory)?, logits.values(memory)?);
        Ok(verified_forward(&problem, &hidden, &logits))
    });
    Ok(Box::new(work))
}
