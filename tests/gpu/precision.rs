//! The kernels that round and split numbers, where they go wrong first. Needs a device, cuBLAS and NVRTC.

use std::rc::Rc;

use crossover_suite::device::{Absence, Gpu};
use crossover_suite::model::Format;
use crossover_suite::timing::Launch;
use crossover_suite::timing::cudarc::driver::DevicePtr;
use crossover_suite::workload::matmul::Matmul;
use crossover_suite::workload::matmul::precision::{PRECISION, product, split};
use crossover_suite::workload::{Result, Value};

use crate::device::{error_after, one_at_a_time, stream};

/// At orders larger than in the tests of groups, the last with a run that is cut off.
#[test]
#[ignore = "needs a CUDA device"]
fn the_split_is_within_its_bound() -> Result<()> {
    let _one = one_at_a_time();
    let device = Rc::new(Gpu::open(0)?);
    for n in [257, 2304] {
        let problem = Rc::new(Matmul::new(n));
        let mut routine = match split(&device, &problem, 2048) {
            Err(error) if matches!(error.downcast_ref(), Some(Absence::DeviceLacks { .. })) => {
                println!("skipped: {error}");
                return Ok(());
            }
            made => made?,
        };
        error_after(1, &device, &mut *routine, &format!("the split at {n}"))?;
    }
    let refused = product(&device, &Rc::new(Matmul::new(257)), Format::Fp8);
    assert!(refused.is_err_and(|error| error.to_string().contains("multiple of 16")));
    Ok(())
}

/// The output of a kernel of the precision group for these values.
fn rounded<T: Value>(device: &Rc<Gpu>, kernel: &str, values: &[f32]) -> Result<Vec<T>> {
    let stream = stream(device);
    let from = stream.clone_htod(values)?;
    let to = stream.alloc_zeros::<T>(values.len())?;
    device.bind()?;
    let launch = Launch::new(device.function(&PRECISION, kernel)?, (1, 1, 1), (256, 1, 1))
        .arg(from.device_ptr(stream).0)
        .arg(to.device_ptr(stream).0)
        .arg(1u64)
        .arg(values.len() as u64)
        .arg(0u64);
    // SAFETY: every conversion takes a row of so many floats and the place of its result.
    unsafe { launch.launch(stream) }?;
    Ok(stream.clone_dtoh(&to)?)
}

/// Where rounding in integer arithmetic goes wrong first: NaN, infinity, the ends of a range.
#[test]
#[ignore = "needs a CUDA device"]
fn special_values_are_rounded_correctly() -> Result<()> {
    let _one = one_at_a_time();
    let device = Rc::new(Gpu::open(0)?);
    let nans = [0x7fff_ffff, 0xffff_ffff, 0x7f80_0001, 0x7fc0_0000].map(f32::from_bits);
    let values: Vec<f32> = nans
        .into_iter()
        .chain([f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0, 1.0, -1.0])
        .collect();
    for (kernel, widened) in [
        ("to_tf32", rounded::<f32>(&device, "to_tf32", &values)?),
        (
            "to_bf16",
            rounded::<u16>(&device, "to_bf16", &values)?
                .into_iter()
                .map(|bits| f32::from_bits(u32::from(bits) << 16))
                .collect(),
        ),
    ] {
        let mut of_nans = widened[..4].iter();
        assert!(of_nans.all(|value| value.is_nan()), "{kernel}: {widened:?}");
        let infinite = [f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY];
        assert_eq!(widened[4..7], infinite, "{kernel}");
        assert_eq!(widened[7..], [0.0, 1.0, -1.0], "{kernel}");
        assert!(widened[7].is_sign_negative(), "{kernel}");
    }
    // 448 is the largest of E4M3 and 0x7f its NaN; the kernel multiplies by 256.
    let (max, infinity, nan) = (f32::MAX, f32::INFINITY, f32::NAN);
    let scaled = [1.75, 1.8125, 1.82, 2.0, max, infinity, -2.0, nan, 1.0];
    let codes = [0x7e, 0x7e, 0x7e, 0x7e, 0x7e, 0x7e, 0xfe, 0x7f, 0x78];
    assert_eq!(rounded::<u8>(&device, "to_e4m3", &scaled)?, codes);
    Ok(())
}

/// The parts of a number add up to it, also where the first of them would be infinite.
#[test]
#[ignore = "needs a CUDA device"]
fn parts_add_up_at_the_ends_of_the_range() -> Result<()> {
    let _one = one_at_a_time();
    let device = Rc::new(Gpu::open(0)?);
    let (max, infinity, nan) = (f32::MAX, f32::INFINITY, f32::NAN);
    let values = [max, -max, infinity, -infinity, nan, 1.0 / 3.0, -1e-3, 0.0];
    let n = values.len();
    let stream = stream(&device);
    let from = stream.clone_htod(&values)?;
    let to = stream.alloc_zeros::<u16>(3 * n)?;
    device.bind()?;
    let function = device.function(&PRECISION, "split_bf16_any")?;
    let launch = Launch::new(function, (1, 1, 1), (256, 1, 1))
        .arg(from.device_ptr(stream).0)
        .arg(to.device_ptr(stream).0)
        .arg(n as u64)
        .arg(n as u64)
        .arg(0u64)
        .arg(n as i64);
    // SAFETY: the split takes a row of so many floats and room for the parts.
    unsafe { launch.launch(stream) }?;
    let parts = stream.clone_dtoh(&to)?;
    let wide = |bits: &u16| f64::from(f32::from_bits(u32::from(*bits) << 16));
    // Three parts of 8 bits each.
    for (at, value) in values.map(f64::from).into_iter().enumerate() {
        let sum: f64 = parts.iter().skip(at).step_by(n).map(wide).sum();
        let close = (sum - value).abs() <= value.abs() * 2f64.powi(-23);
        assert!(
            close || sum == value || sum.is_nan() && value.is_nan(),
            "{sum:e} for {value:e}"
        );
    }
    Ok(())
}
