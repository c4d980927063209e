//! The same product in ever fewer bits, and in f32 put together from fewer: what does each
//! halving of precision buy, and what does it cost in error?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::EventsGated;
use crossover::timing::Rate;
use crossover::workload::matmul::precision::{self, Precision, gpu};

pub(crate) fn group() -> Group<Precision> {
    let sizes = Sizes::powers_of_two([8, 10], [10, 12, 13], 8..=14);
    let (half, quarter) = (precision::cost_half, precision::cost_quarter);
    Group::new(
        "precision",
        sizes,
        Rate::flop(|n| 2.0 * n.powi(3)),
        precision::cost,
    )
    .with(Implementation::gpu("f32", EventsGated, gpu::f32))
    .with(Implementation::gpu("tf32", EventsGated, gpu::tf32))
    .with(Implementation::gpu("fp16", EventsGated, gpu::fp16).cost(half))
    .with(Implementation::gpu("bf16", EventsGated, gpu::bf16).cost(half))
    .with(Implementation::gpu("fp8", EventsGated, gpu::fp8).cost(quarter))
    .with(Implementation::gpu("int8", EventsGated, gpu::int8).cost(quarter))
    .with(Implementation::gpu(
        "split-tf32x3",
        EventsGated,
        gpu::split_tf32x3,
    ))
    .with(Implementation::gpu(
        "split-tf32x3-k1024",
        EventsGated,
        gpu::split_tf32x3_k1024,
    ))
    .with(Implementation::gpu(
        "split-bf16x6-k2048",
        EventsGated,
        gpu::split_bf16x6_k2048,
    ))
}
