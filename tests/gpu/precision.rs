//! The product in every precision. Needs a device, cuBLAS and NVRTC; what needs a younger
//! device is named and left out.

use std::rc::Rc;

use crossover_suite::device::{Absence, Gpu};
use crossover_suite::model::Format;
use crossover_suite::timing::Launch;
use crossover_suite::timing::cudarc::driver::DevicePtr;
use crossover_suite::workload::matmul::Matmul;
use crossover_suite::workload::matmul::precision::{PRECISION, product, split};
use crossover_suite::workload::{Result, Routine, Value};

use crate::device::{error_after, one_at_a_time, stream};

/// The routine, or `None` and a line of output where the device is too old for it.
fn unless_too_old(name: &str, made: Result<Box<dyn Routine>>) -> Result<Option<Box<dyn Routine>>> {
    match made {
        Ok(routine) => Ok(Some(routine)),
        Err(error) => match error.downcast_ref() {
            Some(absence @ Absence::DeviceLacks { .. }) => {
                println!("skipped {name}: {absence}");
                Ok(None)
            }
            _ => Err(error),
        },
    }
}

/// At orders larger than in the tests of groups.
#[test]
#[ignore = "needs a CUDA device"]
fn the_split_is_within_its_bound() -> Result<()> {
    let _one = one_at_a_time();
    let device = Rc::new(Gpu::open(0)?);
    for n in [256, 257, 1000, 1031, 2048, 2304] {
        let problem = Rc::new(Matmul::new(n));
        let what = format!("split-bf16x6-k2048 at {n}");
        let Some(mut routine) = unless_too_old(&what, split(&device, &problem, 2048))? else {
            continue;
        };
        let first = error_after(1, &device, &mut *routine, &what)?;
        let second = error_after(1, &device, &mut *routine, &what)?;
        assert_eq!(first, second, "{what} differs from run to run");
        println!("{what}: error {first:.2e}");
    }
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
        assert!(
            widened[..4].iter().all(|v| v.is_nan()),
            "{kernel}: {widened:?}"
        );
        let infinite = [f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY];
        assert_eq!(widened[4..7], infinite, "{kernel}");
        assert_eq!(widened[7..], [0.0, 1.0, -1.0], "{kernel}");
        assert!(widened[7].is_sign_negative(), "{kernel}");
    }
    // 448 is the largest of E4M3 and 0x7f its NaN; the kernel multiplies by 256.
    let scaled = [
        1.75,
        1.8125,
        1.82,
        2.0,
        f32::MAX,
        f32::INFINITY,
        -2.0,
        f32::NAN,
        1.0,
    ];
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
    let values = [
        f32::MAX,
        -f32::MAX,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1.0 / 3.0,
        -1e-3,
        0.0,
    ];
    let n = values.len();
    let stream = stream(&device);
    let from = stream.clone_htod(&values)?;
    let split = |kernel: &str, parts: usize, bytes: usize| -> Result<Vec<u8>> {
        let to = stream.alloc_zeros::<u8>(parts * n * bytes)?;
        device.bind()?;
        let launch = Launch::new(device.function(&PRECISION, kernel)?, (1, 1, 1), (256, 1, 1))
            .arg(from.device_ptr(stream).0)
            .arg(to.device_ptr(stream).0)
            .arg(n as u64)
            .arg(n as u64)
            .arg(0u64)
            .arg(n as i64);
        // SAFETY: every split takes a row of so many floats and room for the parts.
        unsafe { launch.launch(stream) }?;
        Ok(stream.clone_dtoh(&to)?)
    };
    let add = |parts: Vec<f32>| -> Vec<f64> {
        let part = |i: usize| parts.iter().skip(i).step_by(n).map(|v| f64::from(*v));
        (0..n).map(|i| part(i).sum()).collect()
    };
    let bf16 = split("split_bf16_any", 3, 2)?;
    let bf16 = bf16.chunks(2).map(|b| {
        let bits = u16::from_le_bytes(b.try_into().unwrap());
        f32::from_bits(u32::from(bits) << 16)
    });
    // Three parts of 8 bits each.
    let sums = add(bf16.collect());
    for (sum, value) in sums.into_iter().zip(values.map(f64::from)) {
        let close = (sum - value).abs() <= value.abs() * 2f64.powi(-23);
        assert!(
            close || sum == value || sum.is_nan() && value.is_nan(),
            "{sum:e} for {value:e}"
        );
    }
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn an_order_that_the_library_does_not_take_is_named() -> Result<()> {
    let _one = one_at_a_time();
    let device = Rc::new(Gpu::open(0)?);
    let problem = Rc::new(Matmul::new(257));
    let Err(error) = product(&device, &problem, Format::Fp8) else {
        panic!("FP8 takes 257");
    };
    assert!(error.to_string().contains("multiple of 16"), "{error}");
    Ok(())
}
