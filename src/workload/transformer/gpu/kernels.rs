//! The kernels between the products, prepared to be launched.

use std::fmt;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::kernel::Source;
use crate::model::role;
use crate::timing::Launch;
use crate::workload::network::format::Format;
use crate::workload::network::kernels::on_fours;
use crate::workload::network::tensor::Element;
use crate::workload::network::tensor::Tensor;
use crate::workload::prepare::timed;
use crate::workload::routine::RoutineError;
use crate::workload::transformer::gpu::memory::{Matrices, Memory};
use crate::workload::transformer::model::{HEADS, Norm, SEQUENCE};
use crate::workload::transformer::source::{ATTENTION, TRANSFORMER};

/// Threads of a block, but of attention in f32: `THREADS` in both sources.
const THREADS: u32 = 256;
/// Rows that a block takes where a warp has each.
const ROWS: u32 = THREADS / 32;
/// The kernels of attention in f32, and on tensor cores.
const F32_ATTENTION: [Queries; 2] = [Queries(16, 128), Queries(32, 64)];
const ATTENTION_ON_TENSOR_CORES: [Queries; 2] = [Queries(32, THREADS), Queries(64, THREADS)];

/// A warp for each of so many rows, whose number is to be the last argument.
fn on_rows(memory: &Memory, name: &str, rows: usize) -> Result<(Launch, u32), RoutineError> {
    let rows = u32::try_from(rows)?;
    let function = memory.gpu.function(&TRANSFORMER, name)?;
    let blocks = rows.div_ceil(ROWS);
    Ok((Launch::new(function, (blocks, 1, 1), (THREADS, 1, 1)), rows))
}

/// A thread for every four values of `tensor`, whose number is to be the last argument.
fn on_values(memory: &Memory, name: &str, of: &Tensor) -> Result<(Launch, u32), RoutineError> {
    on_fours(&memory.gpu, &TRANSFORMER, name, of.len())
}

fn gain_and_bias(memory: &Memory, norm: &Norm) -> (CUdeviceptr, CUdeviceptr) {
    let parameters = |range| memory.parameters(Element::F32, range);
    (parameters(&norm.gain), parameters(&norm.bias))
}

/// Layer norm of one of the residuals.
pub(super) fn layer_norm(memory: &Memory, x: &Tensor, norm: &Norm) -> Result<Launch, RoutineError> {
    let name = format!("layer_norm_{}", memory.normed.element().suffix());
    let (launch, rows) = on_rows(memory, &name, memory.problem.rows())?;
    let (gain, bias) = gain_and_bias(memory, norm);
    let launch = launch.arg(x.address());
    let launch = launch.arg(gain).arg(bias);
    Ok(launch.arg(memory.normed.address()).arg(rows))
}

/// The embedding of each token, to the first residual, and its norm.
pub(super) fn embed_norm(memory: &Memory, norm: &Norm) -> Result<Launch, RoutineError> {
    let name = format!("embed_norm_{}", memory.normed.element().suffix());
    let (launch, rows) = on_rows(memory, &name, memory.problem.rows())?;
    let (gain, bias) = gain_and_bias(memory, norm);
    let table = &memory.problem.model.embedding;
    Ok(launch
        .arg(memory.tokens())
        .arg(memory.parameters(Element::F32, table))
        .arg(memory.residual[0].address())
        .arg(gain)
        .arg(bias)
        .arg(memory.normed.address())
        .arg(rows))
}

/// The embedding of each token, to the first residual.
pub(super) fn embed(memory: &Memory) -> Result<Launch, RoutineError> {
    let [to, _] = &memory.residual;
    let (launch, count) = on_values(memory, "embed", to)?;
    let table = &memory.problem.model.embedding;
    Ok(launch
        .arg(memory.tokens())
        .arg(memory.parameters(Element::F32, table))
        .arg(to.address())
        .arg(count))
}

/// The first residual in BF16, in the place of what a norm gives.
pub(super) fn narrow(memory: &Memory) -> Result<Launch, RoutineError> {
    let [from, _] = &memory.residual;
    let (launch, count) = on_values(memory, "narrow", from)?;
    let launch = launch.arg(from.address());
    Ok(launch.arg(memory.normed.address()).arg(count))
}

/// How many queries a block of attention has, and its threads.
#[derive(Clone, Copy)]
struct Queries(u32, u32);

impl fmt::Display for Queries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} queries per block", self.0)
    }
}

/// The source of attention, how the names of its kernels end, and how many queries they have.
fn attention_kernels(format: Format) -> (&'static Source, &'static str, [Queries; 2]) {
    match format {
        Format::F32 => (&TRANSFORMER, "f32", F32_ATTENTION),
        Format::Tf32 => (&ATTENTION, "tf32", ATTENTION_ON_TENSOR_CORES),
        Format::Bf16 => (&ATTENTION, "bf16", ATTENTION_ON_TENSOR_CORES),
    }
}

fn attention_by(
    memory: &Memory,
    Queries(queries, threads): Queries,
) -> Result<Launch, RoutineError> {
    let (source, suffix, _) = attention_kernels(memory.format);
    let name = format!("attention_{queries}_{suffix}");
    let function = memory.gpu.function(source, &name)?;
    let blocks = u32::try_from(memory.problem.rows() * HEADS)? / queries;
    let launch = Launch::new(function, (blocks, 1, 1), (threads, 1, 1));
    Ok(launch.arg(memory.qkv.address()).arg(memory.heads.address()))
}

/// Attention in one kernel, with a note on how many queries a block of it takes. With more queries
/// a load of a key or value from shared memory serves more multiply-adds; with fewer a small batch
/// has blocks for more multiprocessors. A calibration chooses, so queries, keys and values must
/// hold numbers.
pub(super) fn attention(memory: &Memory) -> Result<(Launch, String), RoutineError> {
    let gpu = &memory.gpu;
    let (_, _, candidates) = attention_kernels(memory.format);
    let launches = [
        attention_by(memory, candidates[0])?,
        attention_by(memory, candidates[1])?,
    ];
    let (batch, format) = (
        memory.problem.batch,
        role::Format::from(memory.format).name(),
    );
    let device = &gpu.properties().name;
    let choice = format!("attention, {batch} sequences in {format}, on {device}");
    let chosen = timed::fastest(gpu, &choice, &candidates, |queries| {
        let launch = match queries.0 == candidates[0].0 {
            true => &launches[0],
            false => &launches[1],
        };
        // SAFETY: the arguments are those that the kernel declares, and memory of the pass;
        // `timed` waits for what it enqueues.
        unsafe { launch.launch(gpu.stream()) }
    })?;
    Ok((
        attention_by(memory, chosen)?,
        format!("attention: {chosen}"),
    ))
}

/// Queries, keys and values of each head as matrices.
pub(super) fn split_heads(memory: &Memory, to: &Matrices) -> Result<Launch, RoutineError> {
    let (launch, count) = on_values(memory, "split_heads", &memory.qkv)?;
    let launch = launch.arg(memory.qkv.address()).arg(to.qkv.address());
    Ok(launch.arg(count))
}

/// What the heads gave, side by side.
pub(super) fn merge_heads(memory: &Memory, from: &Matrices) -> Result<Launch, RoutineError> {
    let (launch, count) = on_values(memory, "merge_heads", &memory.heads)?;
    let launch = launch.arg(from.results.address());
    Ok(launch.arg(memory.heads.address()).arg(count))
}

/// The softmax of scaled scores, in place.
pub(super) fn softmax(memory: &Memory, of: &Matrices) -> Result<Launch, RoutineError> {
    let (launch, rows) = on_rows(memory, "softmax", of.scores.len() / SEQUENCE)?;
    Ok(launch.arg(of.scores.address()).arg(rows))
}

/// Adds the second residual to the first.
pub(super) fn add(memory: &Memory) -> Result<Launch, RoutineError> {
    let [x, y] = &memory.residual;
    let (launch, count) = on_values(memory, "add", x)?;
    Ok(launch.arg(x.address()).arg(y.address()).arg(count))
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::device::gpu::Gpu;
    use crate::workload::routine::Workload;
    use crate::workload::transformer::model::{HEAD, WIDTH};
    use crate::workload::transformer::problem::Inference;

    #[test]
    fn the_lengths_are_those_of_the_source() {
        let lengths =
            format!("WIDTH = 256, HEADS = {HEADS}, HEAD = {HEAD}, SEQUENCE = {SEQUENCE};");
        for constant in [&*lengths, &format!("THREADS = {THREADS}, ROWS")] {
            assert!(TRANSFORMER.text.contains(constant), "{constant}");
        }
        for Queries(queries, threads) in F32_ATTENTION {
            let kernel = format!(
                "__launch_bounds__({threads})\nattention_{queries}_f32(const float *qkv, float *heads) \
                 {{\n    attention<{}, {}>",
                queries * 32 / threads,
                threads / 32
            );
            assert!(TRANSFORMER.text.contains(&kernel), "{kernel}");
        }
        for constant in [&*lengths, &format!("THREADS = {THREADS}, WARPS")] {
            assert!(ATTENTION.text.contains(constant), "{constant}");
        }
    }

    /// Softmax of scaled scores times values, of one query of one head, in float64.
    fn expected(qkv: &[f32], row: usize, head: usize) -> Vec<f64> {
        let at = |row: usize, which: usize, column: usize| {
            f64::from(qkv[row * 3 * WIDTH + which * WIDTH + head * HEAD + column])
        };
        let first = row / SEQUENCE * SEQUENCE;
        let scores: Vec<f64> = (first..first + SEQUENCE)
            .map(|key| {
                let score: f64 = (0..HEAD).map(|i| at(row, 0, i) * at(key, 1, i)).sum();
                (score / (HEAD as f64).sqrt()).exp()
            })
            .collect();
        let all: f64 = scores.iter().sum();
        (0..HEAD)
            .map(|i| {
                let weighted = scores.iter().enumerate();
                let sum: f64 = weighted.map(|(key, s)| s * at(first + key, 2, i)).sum();
                sum / all
            })
            .collect()
    }

    // Without the library's products, whose kernels racecheck of compute-sanitizer fails on.
    #[test]
    #[ignore = "needs a CUDA device"]
    fn attention_is_right_in_every_format_with_any_number_of_queries() {
        let gpu = Rc::new(Gpu::open(0).unwrap());
        gpu.bind().unwrap();
        let problem = Rc::new(Inference::new(3));
        // Scores of up to a few units, so that the largest ones rule.
        let value = |i: usize| ((i * 7919 % 1009) as f32 / 504.5 - 1.0) * 1.5;
        let values: Vec<f32> = (0..problem.rows() * 3 * WIDTH).map(value).collect();
        for format in [Format::F32, Format::Tf32, Format::Bf16] {
            let memory = Memory::new(&gpu, &problem, format, true).unwrap();
            let given = Tensor::of(&gpu, memory.qkv.element(), &values).unwrap();
            memory.qkv.copy_from(&given).unwrap();
            // As they lie there: in BF16 they are rounded.
            let qkv = memory.qkv.values().unwrap();
            // Rounding of a score changes its share by as much, and so does that of a share and a
            // value; the result is a mean of values up to 1.5.
            let bound = 1.5 * 2.0 * format.unit(HEAD) + 1e-5;
            for queries in attention_kernels(format).2 {
                memory.heads.poison().unwrap();
                let launch = attention_by(&memory, queries).unwrap();
                // SAFETY: the arguments are those that the kernel declares; the values below wait.
                unsafe { launch.launch(gpu.stream()) }.unwrap();
                let found = memory.heads.values().unwrap();
                for row in 0..problem.rows() {
                    for head in 0..HEADS {
                        let expected = expected(&qkv, row, head);
                        let found = &found[row * WIDTH + head * HEAD..][..HEAD];
                        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                            // Not the other way round: a NaN is no match.
                            let right = (f64::from(*found) - expected).abs() <= bound;
                            assert!(
                                right,
                                "{format:?}, {queries}: {found} for {expected} at row {row}, head \
                                 {head}, {i}"
                            );
                        }
                    }
                }
            }
        }
    }
}
