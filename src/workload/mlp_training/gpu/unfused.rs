//! A step in a kernel for each part of it.

use std::rc::Rc;

use crate::workload::mlp_training::gpu::kernels;
use crate::workload::mlp_training::gpu::memory::Memory;
use crate::workload::mlp_training::gpu::step::{Branch, Phase, Products, Step, Which};
use crate::workload::mlp_training::model::{CLASSES, HIDDEN};
use crate::workload::network::kernels::{add_bias, relu, relu_backward, sum_rows};
use crate::workload::prepare::cublaslt::{Arithmetic, Workspace};
use crate::workload::routine::RoutineError;

/// 22 kernels in f32, one after the other.
pub(super) fn step(memory: &Memory, workspace: &Rc<Workspace>) -> Result<Step, RoutineError> {
    let gpu = &memory.gpu;
    let products = Products {
        memory,
        arithmetic: Arithmetic::Plain,
        own: false,
    };
    let product = |which| products.plain(workspace, which);
    let mut step = Step::new(gpu)?;
    let all = Branch::Before;

    step.product(all, product(Which::Hidden)?);
    step.kernel(all, add_bias(gpu, &memory.hidden, products.b1(), HIDDEN)?);
    step.kernel(all, relu(gpu, &memory.hidden)?);
    step.product(all, product(Which::Logits)?);
    step.kernel(all, add_bias(gpu, &memory.logits, products.b2(), CLASSES)?);
    for kernel in kernels::loss_in_parts(memory)? {
        // SAFETY: the arguments are those of the kernel; the memory is the step's. What follows
        // is calibrated on what this leaves.
        unsafe { kernel.launch(gpu.stream()) }?;
        gpu.synchronize()?;
        step.kernel(all, kernel);
    }

    step.begin(Phase::Backward);
    step.product(all, product(Which::OfW2)?);
    step.kernels(all, sum_rows(gpu, &memory.of_logits, memory.of_b2())?);
    step.product(all, product(Which::OfHidden)?);
    let back = relu_backward(gpu, &memory.of_hidden, &memory.hidden)?;
    step.kernel(all, back);
    step.product(all, product(Which::OfW1)?);
    step.kernels(all, sum_rows(gpu, &memory.of_hidden, memory.of_b1())?);

    step.begin(Phase::Update);
    for kernel in kernels::adamw_in_parts(memory)? {
        step.kernel(all, kernel);
    }
    Ok(step)
}
