//! Copies between host and device, by kind of host memory.

use crossover_suite::model::CopyDirection::{Both, InPlace, ToDevice, ToHost};
use crossover_suite::model::{Measures, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::{Submit, Wall};
use crossover_suite::timing::Rate;
use crossover_suite::workload::HostMemory::{Pageable, Pinned};
use crossover_suite::workload::mlp_training;
use crossover_suite::workload::transfer::{self, Transfer};

pub(crate) fn group() -> Group<Transfer> {
    let sizes = Sizes::powers_of_two([10, 20], [10, 20, 26], (10..=30).step_by(2)).odd([
        1,
        15,
        1 << 10,
        4097,
    ]);
    let cut = |name, way, memory, pieces| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            transfer::copy(gpu, problem, way, memory, pieces)
        })
        .cost(move |size| transfer::cost(way, size))
        .measures(Measures::Copies(way))
        .data(memory)
        .pieces(pieces)
    };
    let copy = |name, way, memory| cut(name, way, memory, 1);
    let staged = |name, way| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            transfer::staged(gpu, problem, way)
        })
        .cost(move |size| transfer::cost(way, size))
        .measures(Measures::Copies(way))
        .data(Pageable)
        .method("staged through pinned memory")
        .all_threads()
        .reference_only()
    };
    // The host's part of a copy that it does not wait for.
    let submitted = |name, memory| {
        Implementation::gpu(name, Submit, move |gpu, problem| {
            transfer::enqueued(gpu, problem, memory)
        })
        .measures(Measures::Copies(ToDevice))
        .data(memory)
        .sizes(Sizes::powers_of_two([], [20, 26], (10..=30).step_by(2)))
    };
    let tensors = mlp_training::tensor_bytes();
    let model: u64 = tensors.iter().map(|bytes| *bytes as u64).sum();
    let parameters = |name, memory| {
        let bytes = tensors.clone();
        Implementation::gpu(name, Wall, move |gpu, problem| {
            transfer::tensors(gpu, problem, memory, &bytes)
        })
        .measures(Measures::Copies(ToDevice))
        .data(memory)
        .pieces(tensors.len() as u32)
        .method("the parameters of a perceptron")
        .sizes(Sizes::new([], [model], [model]).odd([model]))
    };
    let cost = |size| transfer::cost(ToDevice, size);
    Group::new("transfer", sizes, Rate::bytes(|n| n), cost)
        .about(
            "Transfers",
            "Copies between host and device, by kind of host memory: what does pinning save, and what \
             does even the smallest copy cost?",
        )
        .axis("size", "size of the copy", Unit::Bytes)
        .no_winner()
        .with(copy("h2d-pageable", ToDevice, Pageable))
        .with(staged("h2d-staged", ToDevice))
        .with(copy("h2d-pinned", ToDevice, Pinned))
        .with(cut("h2d-many", ToDevice, Pinned, 64))
        .with(submitted("h2d-pageable-submit", Pageable))
        .with(submitted("h2d-pinned-submit", Pinned))
        .with(parameters("h2d-model-pageable", Pageable))
        .with(parameters("h2d-model-pinned", Pinned))
        .with(copy("d2h-pageable", ToHost, Pageable))
        .with(staged("d2h-staged", ToHost))
        .with(copy("d2h-pinned", ToHost, Pinned))
        .with(copy("both-pinned", Both, Pinned))
        .with(copy("zero-copy", InPlace, Pinned))
}
