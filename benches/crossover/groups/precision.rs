//! The same product from f32 down to FP8, and f32 emulated by products of BF16.

use std::rc::Rc;

use crossover_suite::model::{Format, Library, Split, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::EventsGated;
use crossover_suite::timing::Rate;
use crossover_suite::workload::matmul::precision::{self, Precision};
use crossover_suite::workload::matmul::{self, Shaped};

use super::shaped::cublas;

type Problem = Rc<Shaped<Precision>>;

/// Terms that a tensor core adds at a time. On an H200 at N = 8192 the product is then 2.1 times as fast as
/// SGEMM with nearly its error.
const RUN: u32 = 2048;

pub(crate) fn group() -> Group<Shaped<Precision>> {
    let sizes = Sizes::powers_of_two([8, 10], [10, 12, 13], 8..=14).odd([256, 257, 1000, 1008]);
    let product = |name, format| {
        Implementation::gpu(name, EventsGated, move |gpu, problem: &Problem| {
            precision::product(gpu, problem.matmul(), format)
        })
        .format(format)
        .cost(move |n| precision::cost(n, format))
        .library(Library::Cublas)
    };
    Group::new(
        "precision",
        sizes,
        Rate::flop(|n| 2.0 * n.powi(3)),
        matmul::cost,
    )
    .about(
        "Precision",
        "The same matrix product from f32 down to FP8, and f32 emulated by six products of BF16: how much faster \
         is each format, and how large is its error?",
    )
    .axis("N", "N, rows and columns of each matrix", Unit::Count)
    .words("the product", "kernel")
    .with(cublas("f32", EventsGated))
    .with(product("tf32", Format::Tf32))
    .with(product("fp16", Format::Fp16))
    .with(product("bf16", Format::Bf16))
    .with(product("fp8", Format::Fp8))
    .with(
        Implementation::gpu("split-bf16x6-k2048", EventsGated, |gpu, problem: &Problem| {
            precision::split(gpu, problem.matmul(), RUN as usize)
        })
        .cost(|n| precision::cost_split(n, RUN as usize))
        .split(
            Format::Bf16,
            Split {
                products: 6,
                run: Some(RUN),
            },
        )
        .library(Library::Cublas),
    )
}
