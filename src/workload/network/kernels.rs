//! The kernels between products, prepared to be launched.

use cudarc::driver::sys::CUdeviceptr;

use crate::device::gpu::Gpu;
use crate::device::kernel::Source;
use crate::workload::network::source::with_values;
use crate::timing::Launch;
use crate::workload::network::tensor::{Element, Tensor};
use crate::workload::routine::RoutineError;

/// The kernels of this module.
pub(in crate::workload) static NETWORK: Source = Source {
    name: "network.cu",
    text: with_values!("network.cu"),
    options: &[],
    oldest: (7, 5),
};

/// Threads of a block, in each kernel: `SUM_THREADS` in the source.
const THREADS: u32 = 256;
/// Columns whose sums a block computes: four times `SUM_FOURS` in the source.
const SUM_COLUMNS: usize = 16;

/// A kernel of `source` with a thread for every four of `values`.
///
/// # Errors
/// Values that are no multiple of four or too many, errors of the compilation.
pub(in crate::workload) fn on_fours(
    gpu: &Gpu,
    source: &Source,
    name: &str,
    values: usize,
) -> Result<(Launch, u32), RoutineError> {
    if !values.is_multiple_of(4) {
        return Err(format!("{name} takes four values at a time, not {values}").into());
    }
    let count = u32::try_from(values / 4)?;
    let blocks = count.div_ceil(THREADS).max(1);
    let function = gpu.function(source, name)?;
    let launch = Launch::new(function, (blocks, 1, 1), (THREADS, 1, 1));
    Ok((launch, count))
}

fn suffix(element: Element) -> &'static str {
    match element {
        Element::F32 => "f32",
        Element::Bf16 => "bf16",
    }
}

/// Adds the bias at `bias`, of the type of `y`, to each row of `width` values.
pub(in crate::workload) fn add_bias(
    gpu: &Gpu,
    y: &Tensor,
    bias: CUdeviceptr,
    width: usize,
) -> Result<Launch, RoutineError> {
    let name = format!("add_bias_{}", suffix(y.element()));
    let (launch, count) = on_fours(gpu, &NETWORK, &name, y.len())?;
    let fours = u32::try_from(width / 4)?;
    Ok(launch.arg(y.address()).arg(bias).arg(fours).arg(count))
}

/// ReLU in place.
pub(in crate::workload) fn relu(gpu: &Gpu, y: &Tensor) -> Result<Launch, RoutineError> {
    let name = format!("relu_{}", suffix(y.element()));
    let (launch, count) = on_fours(gpu, &NETWORK, &name, y.len())?;
    Ok(launch.arg(y.address()).arg(count))
}

/// The derivative of ReLU in place, given what it gave; both f32.
pub(in crate::workload) fn relu_backward(
    gpu: &Gpu,
    gradient: &Tensor,
    y: &Tensor,
) -> Result<Launch, RoutineError> {
    let (launch, count) = on_fours(gpu, &NETWORK, "relu_backward_f32", y.len())?;
    Ok(launch.arg(gradient.address()).arg(y.address()).arg(count))
}

/// The sums over the rows of `x`, one for each of `width` columns, to f32 at `sums`.
pub(in crate::workload) fn sum_rows(
    gpu: &Gpu,
    x: &Tensor,
    sums: CUdeviceptr,
    width: usize,
) -> Result<Launch, RoutineError> {
    let launch = on_columns(gpu, &format!("sum_rows_{}", suffix(x.element())), width)?;
    let launch = launch.arg(x.address()).arg(sums);
    shaped(launch, x, width)
}

/// The derivative of ReLU in place, given what it gave, and the sums over its rows.
pub(in crate::workload) fn relu_backward_sums(
    gpu: &Gpu,
    gradient: &Tensor,
    y: &Tensor,
    sums: CUdeviceptr,
    width: usize,
) -> Result<Launch, RoutineError> {
    let name = format!("relu_backward_sums_{}", suffix(gradient.element()));
    let launch = on_columns(gpu, &name, width)?;
    let launch = launch.arg(gradient.address()).arg(y.address()).arg(sums);
    shaped(launch, gradient, width)
}

fn on_columns(gpu: &Gpu, name: &str, width: usize) -> Result<Launch, RoutineError> {
    if !width.is_multiple_of(SUM_COLUMNS) {
        return Err(format!("{name} takes {SUM_COLUMNS} columns at a time, not {width}").into());
    }
    let blocks = u32::try_from(width / SUM_COLUMNS)?;
    let function = gpu.function(&NETWORK, name)?;
    Ok(Launch::new(function, (blocks, 1, 1), (THREADS, 1, 1)))
}

/// With the rows, and the fours of a row.
fn shaped(launch: Launch, x: &Tensor, width: usize) -> Result<Launch, RoutineError> {
    let rows = u32::try_from(x.len() / width)?;
    Ok(launch.arg(rows).arg(u32::try_from(width / 4)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_are_those_of_the_source() {
        let threads = format!("SUM_THREADS = {THREADS}, SUM_FOURS = {}", SUM_COLUMNS / 4);
        assert!(NETWORK.text.contains(&threads));
    }
}
