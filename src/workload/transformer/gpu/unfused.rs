//! A kernel for each step.

use std::rc::Rc;

use crate::workload::prepare::cublaslt::Workspace;
use crate::workload::routine::RoutineError;
use crate::workload::transformer::gpu::kernels::{
    add, embed, layer_norm, merge_heads, softmax, split_heads,
};
use crate::workload::transformer::gpu::memory::Memory;
use crate::workload::transformer::gpu::pass::{Pass, Then};

/// 75 kernels in f32: 18 per layer, the embedding, the logits and their bias.
pub(super) fn pass<'a>(
    memory: &'a Memory,
    workspace: &'a Rc<Workspace>,
) -> Result<Pass<'a>, RoutineError> {
    let matrices = memory.matrices.as_ref().ok_or("there are no matrices")?;
    let [x, change] = &memory.residual;
    let (normed, qkv, heads) = (&memory.normed, &memory.qkv, &memory.heads);
    let hidden = &memory.hidden;
    let model = &memory.problem.model;
    let mut pass = Pass::new(memory, workspace);
    // SAFETY: all kernels' arguments are made with them, and their memory is the pass's.
    unsafe {
        pass.kernel(embed(memory)?)?;
        for layer in &model.layers {
            pass.kernel(layer_norm(memory, x, &layer.before_attention)?)?;
            let name = "queries, keys and values";
            pass.linear_in_steps(name, &layer.qkv, [normed, qkv], Then::Bias)?;
            pass.kernel(split_heads(memory, matrices)?)?;
            pass.scores(matrices)?;
            pass.kernel(softmax(memory, matrices)?)?;
            pass.results(matrices)?;
            pass.kernel(merge_heads(memory, matrices)?)?;
            let projection = &layer.projection;
            pass.linear_in_steps("projection", projection, [heads, change], Then::Bias)?;
            pass.kernel(add(memory)?)?;

            pass.kernel(layer_norm(memory, x, &layer.before_hidden)?)?;
            let relu = Then::ReluBias;
            pass.linear_in_steps("way in", &layer.hidden, [normed, hidden], relu)?;
            pass.linear_in_steps("way back", &layer.back, [hidden, change], Then::Bias)?;
            pass.kernel(add(memory)?)?;
        }
    }
    pass.linear_in_steps("logits", &model.logits, [x, &memory.logits], Then::Bias)?;
    Ok(pass)
}
