//! Square f32 matrix product, N by N: from which N on does the GPU win, with the data on the
//! device and with the data on the host?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock, Rate};
use crossover::workload::HostMemory;
use crossover::workload::matmul::{self, Matmul, cpu, gpu};

pub(crate) fn group() -> Group<Matmul> {
    let sizes = Sizes::powers_of_two(
        [3, 5, 7, 8, 9, 10, 11],
        [0, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13],
        0..=15,
    );
    // A sample takes ten iterations at the least: the CPU stops where that takes seconds.
    let cpu_sizes = sizes.up_to(512, 2048, 1 << 14);
    #[cfg(feature = "blas")]
    let blas_sizes = cpu_sizes.clone();
    let ndarray_sizes = sizes.up_to(512, 1024, 1 << 14);
    let slow_cpu_sizes = sizes.up_to(128, 512, 1 << 12);
    let one_thread_sizes = Sizes::powers_of_two([8], [6, 8, 10], 0..=13);
    let naive_sizes = sizes.up_to(2048, 2048, 1 << 14);
    let copied = |n| matmul::cost_transfer(n);

    let group = Group::new(
        "matmul",
        sizes,
        Rate::flop(|n| 2.0 * n.powi(3)),
        matmul::cost,
    )
    .with(Implementation::cpu("naive", cpu::naive).sizes(slow_cpu_sizes))
    .with(Implementation::cpu("ndarray", cpu::ndarray).sizes(ndarray_sizes))
    .with(Implementation::cpu("rayon", cpu::rayon).sizes(cpu_sizes.clone()))
    .with(
        Implementation::cpu("best", |problem| {
            cpu::best(problem, rayon::current_num_threads())
        })
        .sizes(cpu_sizes),
    )
    .with(
        Implementation::cpu("best-1-thread", |problem| cpu::best(problem, 1))
            .sizes(one_thread_sizes),
    )
    .with(Implementation::gpu("naive", Clock::EventsGated, gpu::naive).sizes(naive_sizes))
    .with(Implementation::gpu("tiled", Clock::EventsGated, gpu::tiled))
    .with(Implementation::gpu(
        "cublas",
        Clock::EventsGated,
        gpu::cublas,
    ))
    .with(Implementation::gpu(
        "cublas-eager",
        Clock::Events,
        gpu::cublas,
    ))
    .with(
        Implementation::gpu("transfer", Clock::Wall, |gpu, problem| {
            gpu::transfer(gpu, problem, HostMemory::Pageable)
        })
        .cost(copied),
    )
    .with(
        Implementation::gpu("transfer-pinned-sequence", Clock::Wall, |gpu, problem| {
            gpu::transfer(gpu, problem, HostMemory::Pinned)
        })
        .cost(copied),
    )
    .with(Implementation::gpu("transfer-pinned", Clock::Wall, gpu::transfer_pinned).cost(copied))
    .with(Implementation::gpu("submit", Clock::Submit, gpu::cublas));
    #[cfg(feature = "blas")]
    let group = group.with(Implementation::cpu("blas", cpu::blas).sizes(blas_sizes));
    group
}
