//! A step in few kernels.

use std::rc::Rc;

use crate::workload::mlp_training::gpu::kernels;
use crate::workload::mlp_training::gpu::memory::Memory;
use crate::workload::mlp_training::gpu::step::{Branch, Phase, Products, Step, Which};
use crate::workload::mlp_training::model::{CLASSES, HIDDEN};
use crate::workload::network::kernels::{add_bias, relu, relu_backward_sums, sum_rows};
use crate::workload::prepare::cublaslt::{Epilogue, Workspace};
use crate::workload::routine::RoutineError;

/// Nine kernels: two products with what follows them, the loss with its gradient, three products
/// of gradients and two sums of biases (two kernels each for more than 256 rows), the update. Where
/// nothing computes a product with a bias (and ReLU), kernels follow it, and the notes say so.
pub(super) fn step(memory: &Memory, workspaces: &[Rc<Workspace>; 2]) -> Result<Step, RoutineError> {
    let gpu = &memory.gpu;
    let [here, beside] = workspaces;
    let products = Products {
        memory,
        arithmetic: memory.format.arithmetic(),
        own: true,
    };
    let mut step = Step::new(gpu)?;

    let in_product = products.make(here, Which::Hidden, Epilogue::ReluBias(products.b1()))?;
    match in_product {
        Some(product) => step.product(Branch::Before, product),
        None => {
            let own = "the library has no product with bias and ReLU here; two kernels follow it";
            step.notes.push(own.to_owned());
            step.product(Branch::Before, products.plain(here, Which::Hidden)?);
            let bias = add_bias(gpu, &memory.hidden, products.b1(), HIDDEN)?;
            step.kernel(Branch::Before, bias);
            step.kernel(Branch::Before, relu(gpu, &memory.hidden)?);
        }
    }
    let in_product = products.make(here, Which::Logits, Epilogue::Bias(products.b2()))?;
    match in_product {
        Some(product) => step.product(Branch::Before, product),
        None => {
            let own = "the library has no product with a bias here; a kernel follows it";
            step.notes.push(own.to_owned());
            step.product(Branch::Before, products.plain(here, Which::Logits)?);
            let bias = add_bias(gpu, &memory.logits, products.b2(), CLASSES)?;
            step.kernel(Branch::Before, bias);
        }
    }
    let loss = kernels::cross_entropy(memory)?;
    // SAFETY: the arguments are those of the kernel; the memory is the step's. What follows is
    // calibrated on the gradient that this leaves.
    unsafe { loss.launch(gpu.stream()) }?;
    gpu.synchronize()?;
    step.kernel(Branch::Before, loss);

    step.begin(Phase::Backward);
    step.product(Branch::Beside, products.plain(beside, Which::OfW2)?);
    let sums = sum_rows(gpu, &memory.of_logits, memory.of_b2())?;
    step.kernels(Branch::Beside, sums);
    step.product(Branch::Here, products.plain(here, Which::OfHidden)?);
    let back = relu_backward_sums(gpu, &memory.of_hidden, &memory.hidden, memory.of_b1())?;
    step.kernels(Branch::Here, back);
    step.product(Branch::Here, products.plain(here, Which::OfW1)?);

    step.begin(Phase::Update);
    step.kernel(Branch::After, kernels::adamw(memory)?);
    Ok(step)
}
