//! The kernels of the loss and the update, prepared to be launched.

use crate::device::gpu::Gpu;
use crate::timing::Launch;
use crate::workload::mlp_training::gpu::memory::Memory;
use crate::workload::mlp_training::model::PARAMETERS;
use crate::workload::mlp_training::source::MLP_TRAINING;
use crate::workload::network::kernels::on_fours;
use crate::workload::routine::RoutineError;

/// Threads of a block: `THREADS` in the source.
const THREADS: u32 = 256;
/// Rows of logits that a block takes, a warp each.
const ROWS: u32 = THREADS / 32;

/// The loss, its gradient, and the step counter.
pub(super) fn cross_entropy(memory: &Memory) -> Result<Launch, RoutineError> {
    let name = format!("cross_entropy_{}", memory.of_logits.element().suffix());
    let (launch, rows) = on_rows(memory, &name)?;
    Ok(launch
        .arg(memory.logits.address())
        .arg(memory.labels())
        .arg(rows)
        .arg(share(memory))
        .arg(memory.of_logits.address())
        .arg(memory.partial_losses())
        .arg(memory.loss())
        .arg(memory.arrived())
        .arg(memory.counter()))
}

/// The loss in three kernels: the logarithms of the softmax take the place of the gradient, which
/// the last one makes of them.
pub(super) fn loss_in_parts(memory: &Memory) -> Result<[Launch; 3], RoutineError> {
    let (softmax, rows) = on_rows(memory, "log_softmax")?;
    let logarithms = memory.of_logits.address();
    let softmax = softmax
        .arg(memory.logits.address())
        .arg(logarithms)
        .arg(rows);
    let mean = memory.gpu.function(&MLP_TRAINING, "mean_loss")?;
    let mean = Launch::new(mean, (1, 1, 1), (THREADS, 1, 1))
        .arg(logarithms)
        .arg(memory.labels())
        .arg(rows)
        .arg(share(memory))
        .arg(memory.loss());
    let values = memory.of_logits.len();
    let (gradient, count) = on_fours(&memory.gpu, &MLP_TRAINING, "loss_gradient", values)?;
    let gradient = gradient
        .arg(logarithms)
        .arg(memory.labels())
        .arg(count)
        .arg(share(memory))
        .arg(logarithms);
    Ok([softmax, mean, gradient])
}

/// AdamW over all parameters.
pub(super) fn adamw(memory: &Memory) -> Result<Launch, RoutineError> {
    let name = match memory.copies() {
        None => "adamw_f32",
        Some(_) => "adamw_bf16",
    };
    let (launch, count) = on_parameters(&memory.gpu, name)?;
    let launch = launch
        .arg(memory.parameters(0))
        .arg(memory.gradients.address())
        .arg(memory.first())
        .arg(memory.second());
    let launch = match memory.copies() {
        None => launch,
        Some(copies) => launch.arg(copies),
    };
    Ok(launch.arg(memory.counter()).arg(count))
}

/// AdamW in a kernel for each operation, the step counter first.
pub(super) fn adamw_in_parts(memory: &Memory) -> Result<Vec<Launch>, RoutineError> {
    let gpu = &memory.gpu;
    let root = memory.root.as_ref().ok_or("there is no buffer for roots")?;
    let root = root.address();
    let (w, g) = (memory.parameters(0), memory.gradients.address());
    let (m, v) = (memory.first(), memory.second());
    let counter = memory.counter();
    let each = |name| on_parameters(gpu, name);
    let advance = gpu.function(&MLP_TRAINING, "adamw_advance")?;
    let (decay, count) = each("adamw_decay")?;
    Ok(vec![
        Launch::new(advance, (1, 1, 1), (1, 1, 1)).arg(counter),
        decay.arg(w).arg(count),
        each("adamw_first")?.0.arg(m).arg(g).arg(count),
        each("adamw_age")?.0.arg(v).arg(count),
        each("adamw_second")?.0.arg(v).arg(g).arg(count),
        each("adamw_root")?.0.arg(v).arg(root).arg(count),
        (each("adamw_denominator")?.0)
            .arg(root)
            .arg(counter)
            .arg(count),
        (each("adamw_move")?.0)
            .arg(w)
            .arg(m)
            .arg(root)
            .arg(counter)
            .arg(count),
    ])
}

fn on_parameters(gpu: &Gpu, name: &str) -> Result<(Launch, u32), RoutineError> {
    on_fours(gpu, &MLP_TRAINING, name, PARAMETERS)
}

/// A warp for each row of the batch.
fn on_rows(memory: &Memory, name: &str) -> Result<(Launch, u32), RoutineError> {
    let rows = u32::try_from(memory.batch())?;
    let function = memory.gpu.function(&MLP_TRAINING, name)?;
    let blocks = rows.div_ceil(ROWS);
    Ok((Launch::new(function, (blocks, 1, 1), (THREADS, 1, 1)), rows))
}

/// What a row adds to the mean.
fn share(memory: &Memory) -> f32 {
    1.0 / memory.batch() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_are_those_of_the_source() {
        let threads = format!("THREADS = {THREADS},");
        assert!(MLP_TRAINING.text.contains(&threads));
    }
}
