//! The kernels between products, prepared to be launched.

use cudarc::driver::sys::CUdeviceptr;

use crate::device::{Gpu, kernel::Source};
use crate::timing::Launch;
use crate::workload::network::tensor::Tensor;
use crate::workload::prepare::kernels;
use crate::workload::routine::RoutineError;

/// The kernels of this module.
pub(crate) static NETWORK: Source = kernels!("network.cu", after "values.cuh");

/// Threads per block of each kernel: `SUM_THREADS` in the source.
const THREADS: u32 = 256;
/// Columns that a block sums: four times `SUM_FOURS` in the source.
const SUM_COLUMNS: usize = 16;
/// Rows that a block sums: `SUM_AT_ONCE` times `SUM_ROWS` in the source.
const SUM_ROWS: usize = 256;

/// A kernel of `source` with one thread per four values.
///
/// # Errors
/// A number of values that is not a multiple of four or too large, and errors of the compilation.
pub(crate) fn on_fours(
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
    Ok((gpu.launch(source, name, blocks, THREADS)?, count))
}

/// As [`on_fours`], with these addresses and, last, the number of fours as arguments.
pub(crate) fn elementwise(
    gpu: &Gpu,
    source: &Source,
    name: &str,
    values: usize,
    addresses: &[CUdeviceptr],
) -> Result<Launch, RoutineError> {
    let (launch, count) = on_fours(gpu, source, name, values)?;
    let launch = addresses.iter().fold(launch, |launch, &at| launch.arg(at));
    Ok(launch.arg(count))
}

/// Adds the bias at `bias`, of the type of `y`, to each row of `width` values.
pub(crate) fn add_bias(
    gpu: &Gpu,
    y: &Tensor,
    bias: CUdeviceptr,
    width: usize,
) -> Result<Launch, RoutineError> {
    let name = format!("add_bias_{}", y.suffix());
    let (launch, count) = on_fours(gpu, &NETWORK, &name, y.len)?;
    let fours = u32::try_from(width / 4)?;
    Ok(launch.arg(y.address()).arg(bias).arg(fours).arg(count))
}

/// Sums over rows, one for each of `width` columns, to f32 at `to`.
#[derive(Clone, Copy)]
pub(crate) struct Sums {
    pub(crate) width: usize,
    pub(crate) to: CUdeviceptr,
    /// Room for [`partial_sums`] rows of f32.
    pub(crate) partial: CUdeviceptr,
}

/// Rows of partial sums for `rows` rows: one for each row of blocks.
pub(crate) fn partial_sums(rows: usize) -> usize {
    rows.div_ceil(SUM_ROWS)
}

/// The sums over the rows of `x`: two kernels if `x` has more rows than a block sums. With `y`, the
/// derivative of ReLU, whose output `y` is, is first applied to `x` in place.
pub(crate) fn sum_rows(
    gpu: &Gpu,
    x: &Tensor,
    y: Option<&Tensor>,
    Sums { width, to, partial }: Sums,
) -> Result<Vec<Launch>, RoutineError> {
    let name = y.map_or("sum_rows", |_| "relu_backward_sums");
    let name = format!("{name}_{}", x.suffix());
    if !width.is_multiple_of(SUM_COLUMNS) {
        return Err(format!("{name} takes {SUM_COLUMNS} columns at a time, not {width}").into());
    }
    let columns = u32::try_from(width / SUM_COLUMNS)?;
    let fours = u32::try_from(width / 4)?;
    let rows = u32::try_from(x.len / width)?;
    let of_rows = u32::try_from(partial_sums(x.len / width))?;
    let on = |name: &str, rows_of_blocks: u32| -> Result<Launch, RoutineError> {
        let function = gpu.function(&NETWORK, name)?;
        let blocks = (columns, rows_of_blocks, 1);
        Ok(Launch::new(function, blocks, (THREADS, 1, 1)))
    };
    let first_to = if of_rows == 1 { to } else { partial };
    let mut first = on(&name, of_rows)?.arg(x.address());
    if let Some(y) = y {
        first = first.arg(y.address());
    }
    let mut launches = vec![first.arg(first_to).arg(rows).arg(fours)];
    if of_rows > 1 {
        let last = on("sum_rows_f32", 1)?.arg(partial).arg(to);
        launches.push(last.arg(of_rows).arg(fours));
    }
    Ok(launches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_are_those_of_the_source() {
        let threads = format!("SUM_THREADS = {THREADS}, SUM_FOURS = {}", SUM_COLUMNS / 4);
        assert!(NETWORK.text.contains(&threads));
        let at_once = SUM_ROWS / (THREADS as usize / (SUM_COLUMNS / 4));
        let at_once = format!("SUM_AT_ONCE = {at_once};");
        assert!(NETWORK.text.contains(&at_once));
    }
}
