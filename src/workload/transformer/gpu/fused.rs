//! Few kernels.

use std::rc::Rc;

use crate::workload::network::tensor::Element;
use crate::workload::prepare::cublaslt::Workspace;
use crate::workload::routine::RoutineError;
use crate::workload::transformer::gpu::kernels::{attention, embed_norm, layer_norm, narrow};
use crate::workload::transformer::gpu::memory::Memory;
use crate::workload::transformer::gpu::pass::{Pass, Then};

/// 29 kernels: 7 per layer, of which the first norm of all has the embedding, and the logits. In
/// BF16 one more, since the residual is f32 and the product of the logits reads BF16.
pub(super) fn pass<'a>(
    memory: &'a Memory,
    workspace: &'a Rc<Workspace>,
) -> Result<Pass<'a>, RoutineError> {
    let [x, behind_attention] = &memory.residual;
    let (normed, qkv, heads) = (&memory.normed, &memory.qkv, &memory.heads);
    let hidden = &memory.hidden;
    let model = &memory.problem.model;
    let mut pass = Pass::new(memory, workspace);
    for (at, layer) in model.layers.iter().enumerate() {
        let norm = match at {
            0 => embed_norm(memory, &layer.before_attention)?,
            _ => layer_norm(memory, x, &layer.before_attention)?,
        };
        // SAFETY: the kernel's arguments are made with it, and its memory is the pass's.
        unsafe { pass.kernel(norm) }?;
        let name = "queries, keys and values";
        pass.linear(name, &layer.qkv, [normed, qkv], Then::Bias, None)?;
        let (launch, chosen) = attention(memory)?;
        pass.note(chosen);
        // SAFETY: as above.
        unsafe { pass.kernel(launch) }?;
        let rows = [heads, behind_attention];
        pass.linear("projection", &layer.projection, rows, Then::Bias, Some(x))?;

        let norm = layer_norm(memory, behind_attention, &layer.before_hidden)?;
        // SAFETY: as above.
        unsafe { pass.kernel(norm) }?;
        pass.linear(
            "way in",
            &layer.hidden,
            [normed, hidden],
            Then::ReluBias,
            None,
        )?;
        let added = Some(behind_attention);
        pass.linear("way back", &layer.back, [hidden, x], Then::Bias, added)?;
    }
    let from = match memory.logits.element() {
        Element::F32 => x,
        Element::Bf16 => {
            // SAFETY: as above.
            unsafe { pass.kernel(narrow(memory)?) }?;
            normed
        }
    };
    pass.linear(
        "logits",
        &model.logits,
        [from, &memory.logits],
        Then::Bias,
        None,
    )?;
    Ok(pass)
}
