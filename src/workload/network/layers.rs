//! The layers of a network on the GPU, forward and backward: in one kernel per step or in few
//! kernels. It also prepares the launches of the kernels between products.

use std::ops::Range;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::device::kernel::Source;
use crate::model::Format;
use crate::timing::{CudaError, Launch};
use crate::workload::network::gpu::Network;
use crate::workload::network::model::{
    Activation, HEAD, HEADS, Kept, Layer, LayerKind, Linear, QKV, SEQUENCE, WIDTH,
};
use crate::workload::network::tensor::Tensor;
use crate::workload::prepare::{choose, kernels};
use crate::workload::product::{Matrix, Product};
use crate::workload::routine::{Result, RoutineError};

/// The kernels between the products of a transformer.
pub(crate) static TRANSFORMER: Source = kernels!("transformer.cu", after "values.cuh");

/// Attention of BF16, on tensor cores.
pub(crate) static ATTENTION: Source = kernels!("attention.cu", after "values.cuh", oldest(8, 0));

/// Threads per block, except of attention in f32: `THREADS` in both sources.
const THREADS: u32 = 256;
/// Rows per block in kernels with a warp per row.
const ROWS: u32 = THREADS / 32;
/// Queries and threads per block of attention: in f32, and on tensor cores.
const F32_ATTENTION: [[u32; 2]; 2] = [[16, 128], [32, 64]];
const ATTENTION_ON_TENSOR_CORES: [[u32; 2]; 2] = [[32, THREADS], [64, THREADS]];

impl Network {
    /// Allocates the activations behind these inputs or tokens and, if trained, their gradients.
    pub(crate) fn activations(&mut self, inputs: Tensor, trained: bool) -> Result<()> {
        self.bytes[1] += inputs.device.bytes();
        let (model, narrow) = (self.model.clone(), self.format);
        self.values = vec![inputs];
        self.of_values = vec![inputs];
        for Activation { width, kept, .. } in &model.activations[1..] {
            let format = if *kept == Kept::Wide {
                Format::F32
            } else {
                narrow
            };
            let values = self.rows_of(format, *width)?;
            self.values.push(values);
            if trained {
                let gradient = self.rows_of(narrow, *width)?;
                self.of_values.push(gradient);
            }
        }
        let attends = |layer: &Layer| matches!(layer.kind, LayerKind::Attention);
        if !self.fused && model.layers.iter().any(attends) {
            for width in [QKV, HEADS * SEQUENCE, WIDTH] {
                let matrices = self.rows_of(Format::F32, width)?;
                self.matrices.push(matrices);
            }
        }
        Ok(())
    }

    /// Adds the forward pass of all layers.
    pub(crate) fn forward(&mut self) -> Result<()> {
        let model = self.model.clone();
        (model.layers.iter()).try_for_each(|layer| self.layer(layer))
    }

    /// Adds a layer. If fused, an embedding becomes part of the next norm.
    pub(crate) fn layer(&mut self, layer: &Layer) -> Result<()> {
        let Layer { kind, x, y } = layer;
        let [from, to] = [x, y].map(|activation| self.values[activation.place]);
        match kind {
            LayerKind::Embed(table) => {
                let of_tokens = [from.address(), self.in_f32(table)];
                if self.fused {
                    self.embeds = Some(of_tokens);
                    return Ok(());
                }
                let [tokens, table] = of_tokens;
                self.on_values("embed", &to, &[tokens, table, to.address()])
            }
            LayerKind::Norm([gain, bias]) => {
                let embeds = self.embeds.take();
                let name = embeds.map_or("layer_norm", |_| "embed_norm");
                let name = format!("{name}_{}", to.suffix());
                let [gain, bias] = [gain, bias].map(|range| self.in_f32(range));
                let mut addresses = embeds.map_or(Vec::new(), Vec::from);
                addresses.extend([from.address(), gain, bias, to.address()]);
                self.on_rows(&name, self.rows, &addresses)
            }
            LayerKind::Linear(linear) => self.linear(linear, *x, *y),
            LayerKind::Attention => match self.matrices[..] {
                [qkv, scores, results] => self.attention_in_steps([from, qkv, scores, results, to]),
                _ => self.attention(from, to),
            },
            LayerKind::Narrow if from.format == to.format => {
                self.values[y.place] = from;
                Ok(())
            }
            LayerKind::Narrow => self.on_values("narrow", &from, &[from.address(), to.address()]),
        }
    }

    fn add(&mut self, kernels: impl IntoIterator<Item = Launch>) -> Result<()> {
        // SAFETY: the functions of this folder make each kernel with its arguments, of memory of the routine.
        Ok(unsafe { self.kernels(kernels) }?)
    }

    /// Adds products of operands of the routine, of which C is none of the others.
    fn multiply(&mut self, name: &'static str, operands: [Matrix; 3], batch: usize) -> Result<()> {
        let product = Product {
            batch,
            own: self.fused,
            ..Product::new(name, operands)
        };
        // SAFETY: the callers, in this file, make operands of the routine's tensors, with their sizes.
        unsafe { self.product(product) }
    }

    /// Adds a kernel with a warp per row, given these addresses and the number of rows.
    fn on_rows(&mut self, name: &str, rows: usize, addresses: &[CUdeviceptr]) -> Result<()> {
        let rows = u32::try_from(rows)?;
        let launch = (self.gpu).launch(&TRANSFORMER, name, rows.div_ceil(ROWS), THREADS)?;
        let launch = addresses.iter().fold(launch, |launch, &at| launch.arg(at));
        self.add([launch.arg(rows)])
    }

    /// Adds a kernel with a thread for every four values, given these addresses and the number of
    /// fours.
    fn on_values(&mut self, name: &str, of: &Tensor, addresses: &[CUdeviceptr]) -> Result<()> {
        // All networks share the kernels of ReLU.
        let source = if name.starts_with("relu") {
            &NETWORK
        } else {
            &TRANSFORMER
        };
        let kernel = elementwise(&self.gpu, source, name, of.len, addresses)?;
        self.add([kernel])
    }

    fn in_f32(&self, range: &Range<usize>) -> CUdeviceptr {
        self.parameters(Format::F32, range.start)
    }

    /// A linear layer with its bias and what follows: in one kernel of the library or our own, or in a
    /// kernel for each step. If no way has this epilogue, more kernels follow, and a note reports it.
    fn linear(&mut self, linear: &Linear, x: Activation, y: Activation) -> Result<()> {
        let (name, fused) = (linear.name, self.fused);
        let [from, onto] = [x, y].map(|activation| self.values[activation.place]);
        let to = self.values[linear.spare.unwrap_or(y.place)];
        let weights = self.weights(linear, from.format, [y, x]);
        let [a, c] = [(from, x), (to, y)].map(|(tensor, like)| self.matrix(&tensor, like.width));
        // A bias has the type of the values that it is added to.
        let bias = self.parameters(to.format, linear.bias.start);
        let plain = Product {
            added: (fused && linear.spare.is_some()).then(|| onto.address()),
            own: fused,
            ..Product::new(name, [a, weights.t(), c])
        };
        let whole = Product {
            bias: Some(bias),
            relu: y.relu(),
            ..plain
        };
        // SAFETY: the operands are tensors of the routine with their sizes, and `to` is none of the others.
        if !(fused && unsafe { self.chosen(whole) }?) {
            if fused {
                self.note(format!(
                    "{name}: the library has no such epilogue here; kernels follow it"
                ));
            }
            // SAFETY: the operands are tensors of the routine with their sizes, and `to` is none of the others.
            unsafe { self.product(plain) }?;
            self.add([add_bias(&self.gpu, &to, bias, y.width)?])?;
            if y.relu() {
                self.on_values(&format!("relu_{}", to.suffix()), &to, &[to.address()])?;
            }
        }
        match linear.spare {
            None => Ok(()),
            // The sum is in `spare`, and its old place is free for the next one.
            Some(spare) if fused => {
                self.values.swap(y.place, spare);
                Ok(())
            }
            Some(_) => self.on_values("add", &onto, &[onto.address(), to.address()]),
        }
    }

    /// Attention in one kernel, with a note on the queries per block. More queries use each key or
    /// value loaded from shared memory for more multiply-adds; fewer give a small batch more blocks. A
    /// calibration chooses, so queries, keys and values must hold numbers.
    fn attention(&mut self, qkv: Tensor, heads: Tensor) -> Result<()> {
        let gpu = self.gpu.clone();
        let (source, candidates): (&Source, _) = match self.format {
            Format::F32 => (&TRANSFORMER, F32_ATTENTION),
            _ => (&ATTENTION, ATTENTION_ON_TENSOR_CORES),
        };
        let launch = |[queries, threads]: [u32; 2]| -> Result<Launch> {
            let name = format!("attention_{queries}_{}", qkv.suffix());
            let blocks = u32::try_from(self.rows * HEADS)? / queries;
            let launch = gpu.launch(source, &name, blocks, threads)?;
            Ok(launch.arg(qkv.address()).arg(heads.address()))
        };
        let launches = [launch(candidates[0])?, launch(candidates[1])?];
        let format = self.format.name();
        let (sequences, device) = (self.rows / SEQUENCE, &gpu.properties().name);
        let choice = format!("attention, {sequences} sequences in {format}, on {device}");
        let names = candidates.map(|[queries, _]| format!("{queries} queries per block"));
        let chosen = choose::on_gpu(&gpu, &choice, &names, |at| {
            // SAFETY: the arguments are those that the kernel declares, and memory of the routine;
            // `choose` waits for what it enqueues.
            unsafe { launches[at].launch(gpu.stream()) }
        })?;
        let kernel = launch(candidates[chosen])?;
        self.note(format!("attention: {}", names[chosen]));
        self.add([kernel])
    }

    /// Attention in a kernel for each step.
    fn attention_in_steps(
        &mut self,
        [qkv, split, scores, results, heads]: [Tensor; 5],
    ) -> Result<()> {
        self.on_values("split_heads", &qkv, &[qkv.address(), split.address()])?;
        let matrix = |address, columns| Matrix::new(address, Format::F32, SEQUENCE, columns);
        let values_of_each = self.rows * WIDTH;
        let [queries, keys, values] =
            [0, 1, 2].map(|which| matrix(split.at(which * values_of_each), HEAD));
        let [of_scores, of_results] = [(scores, SEQUENCE), (results, HEAD)]
            .map(|(tensor, columns)| matrix(tensor.address(), columns));
        let count = self.rows / SEQUENCE * HEADS;
        self.multiply("scores", [queries, keys.t(), of_scores], count)?;
        let rows = scores.len / SEQUENCE;
        self.on_rows("softmax", rows, &[scores.address()])?;
        let weighted = [of_scores, values, of_results];
        self.multiply("shares of values", weighted, count)?;
        let both = [results.address(), heads.address()];
        self.on_values("merge_heads", &heads, &both)
    }

    /// Memory for sums over some of the rows of each activation behind the inputs.
    pub(crate) fn partial_sums(&mut self) -> Result<Vec<Tensor>, CudaError> {
        let (model, sums) = (self.model.clone(), partial_sums(self.rows));
        let widths = model.activations[1..]
            .iter()
            .map(|activation| activation.width);
        widths
            .map(|width| self.values(Format::F32, sums * width))
            .collect()
    }

    /// Adds the backward pass: the gradients of all parameters, from that of the last activation. All
    /// layers are linear. `names` has for each layer, the last one first, the names of the products that
    /// give the gradients of its weights and of its inputs; `partial` comes from
    /// [`partial_sums`](Self::partial_sums).
    pub(crate) fn backward(
        &mut self,
        names: &[[&'static str; 2]],
        gradients: Tensor,
        partial: &[Tensor],
    ) -> Result<()> {
        let (model, gpu) = (self.model.clone(), self.gpu.clone());
        self.phase = "backward";
        for ((linear, x, y), [of_weights, of_inputs]) in model.linears().rev().zip(names) {
            let [of_x, of_y] = [x, y].map(|activation| self.of_values[activation.place]);
            let sums = Sums {
                width: y.width,
                to: gradients.at(linear.bias.start),
                partial: partial[y.place - 1].address(),
            };
            let values = self.values[y.place];
            let summed = y.relu() && self.fused;
            if summed {
                self.add(sum_rows(&gpu, &of_y, Some(&values), sums)?)?;
            } else if y.relu() {
                let both = [of_y.address(), values.address()];
                self.on_values("relu_backward_f32", &values, &both)?;
            }
            let rows = self.matrix(&of_y, y.width);
            let inputs = self.matrix(&self.values[x.place], x.width);
            let place = gradients.at(linear.weights.start);
            let to = Matrix::new(place, Format::F32, y.width, x.width);
            self.multiply(of_weights, [rows.t(), inputs, to], 1)?;
            if !summed {
                self.add(sum_rows(&gpu, &of_y, None, sums)?)?;
            }
            if x.place > 0 {
                let weights = self.weights(linear, self.format, [y, x]);
                let to = self.matrix(&of_x, x.width);
                self.multiply(of_inputs, [rows, weights, to], 1)?;
            }
        }
        Ok(())
    }
}

/// The kernels between the products of a network.
pub(crate) static NETWORK: Source = kernels!("network.cu", after "values.cuh");

/// Threads per block, which the sums are compiled for: `SUM_THREADS` in the source.
const SUM_THREADS: u32 = 256;
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
    let blocks = count.div_ceil(SUM_THREADS).max(1);
    Ok((gpu.launch(source, name, blocks, SUM_THREADS)?, count))
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
        Ok(Launch::new(function, blocks, (SUM_THREADS, 1, 1)))
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
        let threads = format!(
            "SUM_THREADS = {SUM_THREADS}, SUM_FOURS = {}",
            SUM_COLUMNS / 4
        );
        assert!(NETWORK.text.contains(&threads));
        let at_once = SUM_ROWS / (SUM_THREADS as usize / (SUM_COLUMNS / 4));
        let at_once = format!("SUM_AT_ONCE = {at_once};");
        assert!(NETWORK.text.contains(&at_once));
    }
}
