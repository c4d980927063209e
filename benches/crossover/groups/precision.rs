//! The same product from f32 down to FP8 and INT8, and f32 emulated in lower precision.

use std::rc::Rc;

use crossover::model::{Library, Split, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::EventsGated;
use crossover::timing::Rate;
use crossover::workload::matmul::precision::{self, Format, Precision, Scheme};
use crossover::workload::matmul::{self, Shaped};

use super::shaped::cublas;

type Problem = Rc<Shaped<Precision>>;

pub(crate) fn group() -> Group<Shaped<Precision>> {
    let sizes = Sizes::powers_of_two([8, 10], [10, 12, 13], 8..=14).odd([256, 257, 1000, 1008]);
    let (half, quarter) = (precision::cost_half, precision::cost_quarter);
    let product = |name, format| {
        Implementation::gpu(name, EventsGated, move |gpu, problem: &Problem| {
            precision::product(gpu, problem.matmul(), format)
        })
        .format(format)
        .library(Library::Cublas)
    };
    let split = |name, scheme: Scheme, run: Option<u32>| {
        let terms = run.map_or(usize::MAX, |terms| terms as usize);
        let products = scheme.products();
        Implementation::gpu(name, EventsGated, move |gpu, problem: &Problem| {
            precision::split(gpu, problem.matmul(), scheme, terms)
        })
        .split(scheme.format(), Split { products, run })
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
        "The same matrix product from f32 down to FP8 and INT8, and f32 emulated in lower precision: how much \
         faster is each format, and how large is its error?",
    )
    .axis("N", "N, rows and columns of each matrix", Unit::Count)
    .words("the product", "kernel")
    .with(cublas("f32", EventsGated))
    .with(product("tf32", Format::Tf32))
    .with(product("fp16", Format::Fp16).cost(half))
    .with(product("bf16", Format::Bf16).cost(half))
    .with(product("fp8", Format::Fp8).cost(quarter))
    .with(product("int8", Format::Int8).cost(quarter))
    .with(split("split-tf32x3", Scheme::Tf32x3, None))
    .with(split("split-tf32x3-k1024", Scheme::Tf32x3, Some(1024)))
    .with(split("split-bf16x6-k2048", Scheme::Bf16x6, Some(2048)))
}
