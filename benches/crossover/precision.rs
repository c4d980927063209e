//! The same product in ever fewer bits, and in f32 put together from fewer: what does each
//! halving of precision buy, and what does it cost in error?

use crossover::model::{Format, Library, Split, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::EventsGated;
use crossover::timing::Rate;
use crossover::workload::matmul::precision::{self, Precision, gpu};

pub(crate) fn group() -> Group<Precision> {
    let sizes = Sizes::powers_of_two([8, 10], [10, 12, 13], 8..=14).odd([256, 257, 1000, 1008]);
    let (half, quarter) = (precision::cost_half, precision::cost_quarter);
    Group::new(
        "precision",
        sizes,
        Rate::flop(|n| 2.0 * n.powi(3)),
        precision::cost,
    )
    .about(
        "Precision",
        "The same matrix product in ever fewer bits, and in f32 put together from fewer: what does each \
         step buy, and what does it cost in error?",
    )
    .axis("N", "N, rows and columns of each matrix", Unit::Count)
    .words("the product", "kernel")
    .with(Implementation::gpu("f32", EventsGated, gpu::f32).library(Library::Cublas))
    .with(Implementation::gpu("tf32", EventsGated, gpu::tf32).format(Format::Tf32).library(Library::Cublas))
    .with(Implementation::gpu("fp16", EventsGated, gpu::fp16).format(Format::Fp16).library(Library::Cublas).cost(half))
    .with(Implementation::gpu("bf16", EventsGated, gpu::bf16).format(Format::Bf16).library(Library::Cublas).cost(half))
    .with(Implementation::gpu("fp8", EventsGated, gpu::fp8).format(Format::Fp8).library(Library::Cublas).cost(quarter))
    .with(Implementation::gpu("int8", EventsGated, gpu::int8).format(Format::Int8).library(Library::Cublas).cost(quarter))
    .with(Implementation::gpu(
        "split-tf32x3",
        EventsGated,
        gpu::split_tf32x3,
    ).split(Format::Tf32, Split { products: 3, run: None }).library(Library::Cublas))
    .with(Implementation::gpu(
        "split-tf32x3-k1024",
        EventsGated,
        gpu::split_tf32x3_k1024,
    ).split(Format::Tf32, Split { products: 3, run: Some(1024) }).library(Library::Cublas))
    .with(Implementation::gpu(
        "split-bf16x6-k2048",
        EventsGated,
        gpu::split_bf16x6_k2048,
    ).split(Format::Bf16, Split { products: 6, run: Some(2048) }).library(Library::Cublas))
}
