//! Batched and skinny products on the GPU. Needs a device and cuBLAS.

mod device;

use std::rc::Rc;

use crossover::device::Gpu;
use crossover::timing::{Clock, CudaTime, GateMode};
use crossover::workload::HostMemory::{Pageable, Pinned};
use crossover::workload::matmul::{Batched, Shaped, Skinny, gpu};
use crossover::workload::{Routine, RoutineError, Workload};
use device::one_at_a_time;

type Make<W> = fn(&Rc<Gpu>, &Rc<W>) -> Result<Box<dyn Routine>, RoutineError>;

fn each_is_right<W: Workload>(
    sizes: &[u64],
    implementations: &[(&str, Make<W>)],
) -> Result<(), RoutineError> {
    let device = Rc::new(Gpu::open(0)?);
    for &size in sizes {
        let problem = Rc::new(W::new(size));
        for (name, make) in implementations {
            let mut routine = make(&device, &problem)?;
            for _ in 0..2 {
                routine.poison()?;
                device.synchronize()?;
                assert!(
                    !routine.check()?.passed(),
                    "{name} at {size}: poison passes"
                );
                routine.run()?;
                device.synchronize()?;
                let verified = routine.check()?;
                assert!(verified.passed(), "{name} at {size}: {verified:?}");
            }
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn batches() -> Result<(), RoutineError> {
    let _one = one_at_a_time();
    each_is_right::<Shaped<Batched>>(
        &[1, 3, 8, 17, 64, 100, 256, 512],
        &[
            ("cublas", |g, p| gpu::cublas(g, p.matmul())),
            ("transfer", |g, p| gpu::transfer(g, p.matmul(), Pageable)),
            ("transfer_pinned", |g, p| {
                gpu::transfer(g, p.matmul(), Pinned)
            }),
        ],
    )
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_few_rows() -> Result<(), RoutineError> {
    let _one = one_at_a_time();
    each_is_right::<Shaped<Skinny>>(
        &[1, 2, 7, 16, 64],
        &[
            ("cublas", |g, p| gpu::cublas(g, p.matmul())),
            ("transfer", |g, p| gpu::transfer(g, p.matmul(), Pageable)),
            ("transfer_pinned", |g, p| {
                gpu::transfer(g, p.matmul(), Pinned)
            }),
        ],
    )
}

/// The library may enqueue several kernels a call, and only about a thousand fit behind a gate.
#[test]
#[ignore = "needs a CUDA device"]
fn a_thousand_products_of_a_few_rows_are_timed_behind_gates() -> Result<(), RoutineError> {
    let _one = one_at_a_time();
    let device = Rc::new(Gpu::open(0)?);
    let time = CudaTime::on_stream(device.stream(), GateMode::Auto)?;
    assert_eq!(
        time.gate_off_reason(),
        None,
        "without a gate nothing is shown"
    );
    for m in 1..=8 {
        let problem = Shaped::<Skinny>::new(m);
        let mut routine = gpu::cublas(&device, problem.matmul())?;
        // Loads the kernels, which behind a gate would wait for what the gate holds.
        routine.run()?;
        device.synchronize()?;
        let launches = routine.launches();
        let mut measure = |clock| {
            let mut calls = 0;
            let ns = time.measure(clock, 1000, launches, || {
                calls += 1;
                routine.run()
            });
            assert_eq!(calls, 1000, "M = {m}, {clock}");
            ns
        };
        let gated = measure(Clock::EventsGated)?;
        let eager = measure(Clock::Events)?;
        println!(
            "M = {m}: {:.2} us, eager {:.2} us",
            gated / 1e6,
            eager / 1e6
        );
        // Device time is a part of what eager launching takes.
        assert!(
            gated <= 1.1 * eager,
            "M = {m}: {gated} ns behind gates, {eager} ns without"
        );
    }
    Ok(())
}
