//! The kernels between the products, prepared to be launched.

use cudarc::driver::sys::CUdeviceptr;

use crate::timing::Launch;
use crate::workload::network::kernels::on_fours;
use crate::workload::network::tensor::{Element, Tensor};
use crate::workload::routine::RoutineError;
use crate::workload::transformer::gpu::memory::{Matrices, Memory};
use crate::workload::transformer::model::{HEADS, Norm, SEQUENCE};
use crate::workload::transformer::source::{ATTENTION_BF16, TRANSFORMER};

/// Threads of a block, but in attention: `THREADS` in the source.
const THREADS: u32 = 256;
/// Rows that a block takes where a warp has each.
const ROWS: u32 = THREADS / 32;
/// Threads of a block of attention: `ATTENTION_THREADS` in one source, `THREADS` in the other.
const ATTENTION_THREADS: u32 = 128;
/// Queries of a block of attention in BF16: `QUERIES` in its source.
const BF16_QUERIES: usize = 64;

fn suffix(element: Element) -> &'static str {
    match element {
        Element::F32 => "f32",
        Element::Bf16 => "bf16",
    }
}

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
    let name = format!("layer_norm_{}", suffix(memory.normed.element()));
    let (launch, rows) = on_rows(memory, &name, memory.problem.rows())?;
    let (gain, bias) = gain_and_bias(memory, norm);
    let launch = launch.arg(x.address()).arg(gain).arg(bias);
    Ok(launch.arg(memory.normed.address()).arg(rows))
}

/// The embedding of each token, to the first residual, and its norm.
pub(super) fn embed_norm(memory: &Memory, norm: &Norm) -> Result<Launch, RoutineError> {
    let name = format!("embed_norm_{}", suffix(memory.normed.element()));
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
    let launch = launch.arg(from.address()).arg(memory.normed.address());
    Ok(launch.arg(count))
}

/// Attention in one kernel.
pub(super) fn attention(memory: &Memory) -> Result<Launch, RoutineError> {
    let (gpu, rows) = (&memory.gpu, memory.problem.rows());
    let (function, queries) = match memory.qkv.element() {
        Element::F32 => {
            let queries = queries(rows, gpu.properties().multiprocessors as usize);
            let name = format!("attention_{queries}_f32");
            (gpu.function(&TRANSFORMER, &name)?, queries)
        }
        Element::Bf16 => {
            let function = gpu.function(&ATTENTION_BF16, "attention_bf16")?;
            (function, BF16_QUERIES)
        }
    };
    let blocks = u32::try_from(rows / queries * HEADS)?;
    let launch = Launch::new(function, (blocks, 1, 1), (ATTENTION_THREADS, 1, 1));
    Ok(launch.arg(memory.qkv.address()).arg(memory.heads.address()))
}

/// Queries that a block of attention in f32 has: with 32 a load of a key or value from shared memory
/// serves twice as many multiply-adds as with 16, but that needs a block for each multiprocessor.
fn queries(rows: usize, multiprocessors: usize) -> usize {
    match rows / 32 * HEADS >= multiprocessors {
        true => 32,
        false => 16,
    }
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
    use super::*;
    use crate::workload::transformer::model::HEAD;

    #[test]
    fn the_lengths_are_those_of_the_source() {
        let lengths =
            format!("WIDTH = 256, HEADS = {HEADS}, HEAD = {HEAD}, SEQUENCE = {SEQUENCE};");
        for constant in [
            &*lengths,
            &format!("THREADS = {THREADS}, ROWS"),
            &format!("ATTENTION_THREADS = {ATTENTION_THREADS},"),
        ] {
            assert!(TRANSFORMER.text.contains(constant), "{constant}");
        }
        let block = format!("THREADS = {ATTENTION_THREADS}, QUERIES = {BF16_QUERIES};");
        for constant in [&lengths, &block] {
            assert!(ATTENTION_BF16.text.contains(constant), "{constant}");
        }
    }

    #[test]
    fn small_batches_are_cut_into_more_blocks() {
        // Of the 132 multiprocessors of an H200.
        let of = |batch: usize| queries(batch * SEQUENCE, 132);
        assert_eq!([1, 8, 9, 64].map(of), [16, 16, 32, 32]);
    }
}
