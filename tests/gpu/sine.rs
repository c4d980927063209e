//! Nested sine on a real device.

use std::rc::Rc;

use crossover_arithmetic::sine::Stores;
use crossover_suite::device::{Gpu, Graph};
use crossover_suite::timing::{CudaError, Launch};
use crossover_suite::workload::nested_sine::{self, NESTED_SINE, NestedSine};
use crossover_suite::workload::{RoutineError, Workload};
use cudarc::driver::{DevicePtr, DevicePtrMut};

use crate::device::{one_at_a_time, stream};

/// A gate counts on the number of launches that a routine declares, so it must be the true one.
#[test]
#[ignore = "needs a CUDA device"]
fn a_routine_knows_its_launches() -> Result<(), RoutineError> {
    let _one = one_at_a_time();
    use nested_sine::gpu::{fused, graph, per_kernel};
    let gpu = Rc::new(Gpu::open(0)?);
    let sine = Rc::new(NestedSine::new(1000));
    assert_eq!(per_kernel(&gpu, &sine)?.launches(), 4);
    assert_eq!(graph(&gpu, &sine)?.launches(), 4);
    assert_eq!(fused(&gpu, &sine)?.launches(), 1);
    // Where launches are not declared a capture counts them, so it has to count these right.
    for (mut routine, count) in [(per_kernel(&gpu, &sine)?, 4), (fused(&gpu, &sine)?, 1)] {
        let to_cuda = |error: RoutineError| CudaError::with_message("run", error.to_string());
        let enqueue = || routine.run().map_err(to_cuda);
        assert_eq!(Graph::count(stream(&gpu), enqueue)?.launches, count);
    }
    assert_eq!(Graph::count(stream(&gpu), || Ok(()))?.all(), 0);
    let failed = || Err(CudaError::with_message("run", "no"));
    assert!(Graph::count(stream(&gpu), failed).is_err());
    gpu.synchronize()?;
    Ok(())
}

/// Runs a kernel of the source over `x`.
fn apply(gpu: &Gpu, kernel: &str, vectors: u64, x: &[f32]) -> Result<Vec<f32>, RoutineError> {
    gpu.bind()?;
    let stream = stream(gpu);
    let source = stream.clone_htod(x)?;
    let mut target = stream.clone_htod(&vec![f32::NAN; x.len()])?;
    let n = x.len() as u64;
    let blocks = u32::try_from(n.div_ceil(4 * vectors * 128))?;
    let function = gpu.function(&NESTED_SINE, kernel)?;
    let launch = Launch::new(function, (blocks, 1, 1), (128, 1, 1))
        .arg(source.device_ptr(stream).0)
        .arg(target.device_ptr_mut(stream).0)
        .arg(n);
    // SAFETY: the arguments are those of the kernel, both slices hold n elements and outlive
    // the download, and the context is bound.
    unsafe { launch.launch(stream)? };
    Ok(stream.clone_dtoh(&target)?)
}

/// Every 61st float32, denser where four sines live, and the adversarial elements.
fn dense() -> Vec<f32> {
    (0..=u32::MAX)
        .step_by(61)
        .chain((0.125f32.to_bits()..=1.6f32.to_bits()).step_by(7))
        .map(f32::from_bits)
        .chain(NestedSine::adversarial())
        .collect()
}

/// The kernels take the operations of the vectorised CPU code in the same order, so they agree to
/// the bit, and its bounds are theirs.
#[test]
#[ignore = "needs a CUDA device"]
fn kernels_and_vectors_agree_to_the_bit() -> Result<(), RoutineError> {
    let _one = one_at_a_time();
    let isa = nested_sine::Isa::best();
    let gpu = Gpu::open(0)?;
    let x = dense();
    let mut y = vec![0.0; x.len()];
    let equal = |a: &[f32], b: &[f32]| {
        let mut pairs = a.iter().zip(b);
        pairs.all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
    };
    isa.sine(&x, &mut y);
    for pass in ["sine_pass", "sine_pass_backwards"] {
        assert!(equal(&y, &apply(&gpu, pass, 1, &x)?), "{pass}");
    }
    isa.nested_sine(&x, &mut y, Stores::Cached);
    assert!(equal(&y, &apply(&gpu, "sine_fused", 2, &x)?));
    Ok(())
}
