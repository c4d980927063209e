//! The kernels that `gpu/tiled` chooses from, which have no rows of their own. Needs a device and NVRTC.

use std::rc::Rc;

use crossover_suite::device::Gpu;
use crossover_suite::workload::RoutineError;
use crossover_suite::workload::matmul::{Matmul, gpu};

use crate::device::{error_after, one_at_a_time};

/// Poisons, runs and checks twice; the error must be the same. The largest error in float64 serves
/// as a digest: two different results have the same one only by a rare chance.
fn each_is_right_twice_at(orders: &[u64]) -> Result<(), RoutineError> {
    let device = Rc::new(Gpu::open(0)?);
    for &n in orders {
        let problem = Rc::new(Matmul::new(n));
        for side in [32, 64, 128] {
            let what = format!("tiles of {side} at {n}");
            let mut routine = gpu::tiled_by(&device, &problem, side)?;
            let mut error = || error_after(1, &device, &mut *routine, &what);
            assert_eq!(error()?, error()?, "{what}");
        }
    }
    Ok(())
}

/// Small enough for a sanitizer.
#[test]
#[ignore = "needs a CUDA device"]
fn every_kernel_is_right_around_its_tiles() -> Result<(), RoutineError> {
    let _one = one_at_a_time();
    each_is_right_twice_at(&[
        1, 2, 3, 4, 7, 16, 17, 31, 63, 64, 65, 127, 128, 129, 132, 255, 257,
    ])
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_kernel_is_right_at_large_orders() -> Result<(), RoutineError> {
    let _one = one_at_a_time();
    each_is_right_twice_at(&[511, 1000, 1031, 2047, 2048, 2304, 3001])
}
