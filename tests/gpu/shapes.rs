//! Products of a few rows behind gates. Needs a device and cuBLAS.

use std::rc::Rc;

use crossover_suite::device::Gpu;
use crossover_suite::timing::{Clock, CudaTime, GateMode};
use crossover_suite::workload::matmul::{Shaped, Skinny, gpu};
use crossover_suite::workload::{RoutineError, Workload};

use crate::device::{one_at_a_time, stream};

/// The library may enqueue several kernels per call, and only about a thousand fit behind a gate.
#[test]
#[ignore = "needs a CUDA device"]
fn a_thousand_products_of_a_few_rows_are_timed_behind_gates() -> Result<(), RoutineError> {
    let _one = one_at_a_time();
    let device = Rc::new(Gpu::open(0)?);
    let time = CudaTime::on_stream(stream(&device), GateMode::Auto)?;
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
            let ns = time.measure_launches(clock, 1000, launches, || {
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
