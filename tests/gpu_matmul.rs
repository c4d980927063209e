//! Every product on the GPU, at orders around the tile sizes. Needs a device, cuBLAS and
//! NVRTC.

use std::rc::Rc;

use crossover::device::Gpu;
use crossover::workload::matmul::{Matmul, gpu};
use crossover::workload::{HostMemory, Routine, RoutineError};

type Make = fn(&Rc<Gpu>, &Rc<Matmul>) -> Result<Box<dyn Routine>, RoutineError>;

const IMPLEMENTATIONS: [(&str, Make); 10] = [
    ("naive", gpu::naive),
    ("shared", gpu::shared),
    ("tiled", gpu::tiled),
    ("tiled 32", |gpu, problem| gpu::tiled_by(gpu, problem, 32)),
    ("tiled 64", |gpu, problem| gpu::tiled_by(gpu, problem, 64)),
    ("tiled 128", |gpu, problem| gpu::tiled_by(gpu, problem, 128)),
    ("cublas", gpu::cublas),
    ("transfer", |gpu, problem| {
        gpu::transfer(gpu, problem, HostMemory::Pageable)
    }),
    ("transfer_pinned_sequence", |gpu, problem| {
        gpu::transfer(gpu, problem, HostMemory::Pinned)
    }),
    ("transfer_pinned", gpu::transfer_pinned),
];

fn each_is_right_at(orders: &[u64]) -> Result<(), RoutineError> {
    let device = Rc::new(Gpu::open(0)?);
    for &n in orders {
        let problem = Rc::new(Matmul::new(n));
        for (name, make) in IMPLEMENTATIONS {
            let what = || format!("{name} at {n}");
            let mut routine = make(&device, &problem)?;
            // Twice: what a routine reads, it must not have written.
            for _ in 0..2 {
                routine.poison()?;
                device.synchronize()?;
                let poisoned = routine.check()?;
                assert!(!poisoned.passed(), "{}: poison passes", what());
                routine.run()?;
                device.synchronize()?;
                let verified = routine.check()?;
                assert!(verified.passed(), "{}: {verified:?}", what());
            }
        }
    }
    Ok(())
}

/// Small enough for a sanitizer.
#[test]
#[ignore = "needs a CUDA device"]
fn every_implementation_is_right_around_its_tiles() -> Result<(), RoutineError> {
    each_is_right_at(&[
        1, 2, 3, 4, 7, 16, 17, 31, 63, 64, 65, 127, 128, 129, 132, 255, 257,
    ])
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_implementation_is_right_at_large_orders() -> Result<(), RoutineError> {
    each_is_right_at(&[511, 1000, 1031, 2047, 2048, 3001])
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_second_run_gives_the_same_bits() -> Result<(), RoutineError> {
    let device = Rc::new(Gpu::open(0)?);
    for n in [65, 512, 1031, 2304, 4096] {
        let problem = Rc::new(Matmul::new(n));
        for (name, make) in IMPLEMENTATIONS {
            let mut routine = make(&device, &problem)?;
            let mut errors = [0.0; 2];
            for error in &mut errors {
                routine.poison()?;
                routine.run()?;
                device.synchronize()?;
                *error = routine.check()?.error;
            }
            // The largest error in float64 is a digest of the result that tells apart all but
            // contrived differences.
            assert_eq!(errors[0], errors[1], "{name} at {n}");
        }
    }
    Ok(())
}
