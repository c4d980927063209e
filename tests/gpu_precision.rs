//! The product in every precision. Needs a device, cuBLAS and NVRTC; what needs a younger
//! device is named and left out.

mod device;

use std::rc::Rc;

use crossover::device::{Absence, Gpu};
use crossover::timing::{Clock, CudaTime, GateMode};
use crossover::workload::matmul::Matmul;
use crossover::workload::matmul::gpu::cublas;
use crossover::workload::matmul::precision::{Format, Scheme, product, split};
use crossover::workload::{Routine, RoutineError};
use device::one_at_a_time;

type Made = Result<Box<dyn Routine>, RoutineError>;
type Make = fn(&Rc<Gpu>, &Rc<Matmul>) -> Made;

const SPLITS: [(&str, Make); 4] = [
    ("split-tf32x3-k2048", |g, p| {
        split(g, p, Scheme::Tf32x3, 2048)
    }),
    ("split-tf32x3-k512", |g, p| split(g, p, Scheme::Tf32x3, 512)),
    ("split-bf16x6-k2048", |g, p| {
        split(g, p, Scheme::Bf16x6, 2048)
    }),
    ("split-bf16x9-k2048", |g, p| {
        split(g, p, Scheme::Bf16x9, 2048)
    }),
];

/// What was made, or `None` and a line where the device is too old for it.
fn unless_too_old(name: &str, made: Made) -> Result<Option<Box<dyn Routine>>, RoutineError> {
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

/// The error of one run, after poison that must not pass.
fn error_of(device: &Gpu, routine: &mut dyn Routine, what: &str) -> Result<f64, RoutineError> {
    routine.poison()?;
    device.synchronize()?;
    assert!(!routine.check()?.passed(), "{what}: poison passes");
    routine.run()?;
    device.synchronize()?;
    let verified = routine.check()?;
    assert!(verified.passed(), "{what}: {verified:?}");
    Ok(verified.error)
}

/// Those that the group has no row for, and orders larger than its tests have.
#[test]
#[ignore = "needs a CUDA device"]
fn every_split_is_within_its_bound() -> Result<(), RoutineError> {
    let _one = one_at_a_time();
    let device = Rc::new(Gpu::open(0)?);
    for n in [256, 257, 1000, 1031, 2048, 2304] {
        let problem = Rc::new(Matmul::new(n));
        for (name, make) in SPLITS {
            let what = format!("{name} at {n}");
            let Some(mut routine) = unless_too_old(&what, make(&device, &problem))? else {
                continue;
            };
            let first = error_of(&device, &mut *routine, &what)?;
            let second = error_of(&device, &mut *routine, &what)?;
            assert_eq!(first, second, "{what} differs from run to run");
            println!("{what}: error {first:.2e}");
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn an_order_that_the_library_does_not_take_is_named() -> Result<(), RoutineError> {
    let _one = one_at_a_time();
    let device = Rc::new(Gpu::open(0)?);
    let problem = Rc::new(Matmul::new(257));
    let Err(error) = product(&device, &problem, Format::Int8) else {
        panic!("INT8 takes 257");
    };
    assert!(error.to_string().contains("multiple of 4"), "{error}");
    Ok(())
}

/// Which way of splitting is best: prints speed and error of each beside SGEMM.
#[test]
#[ignore = "needs a CUDA device"]
fn adding_runs_in_f32_recovers_the_accuracy_of_f32() -> Result<(), RoutineError> {
    let _one = one_at_a_time();
    const N: u64 = 8192;
    let device = Rc::new(Gpu::open(0)?);
    let time = CudaTime::on_stream(device.stream(), GateMode::Auto)?;
    let problem = Rc::new(Matmul::new(N));
    let measure = |routine: &mut dyn Routine, what: &str| -> Result<(f64, f64), RoutineError> {
        let error = error_of(&device, routine, what)?;
        let launches = routine.launches();
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let total = time.measure(Clock::EventsGated, 3, launches, || routine.run())?;
            best = best.min(total / 3.0);
        }
        Ok((error, best))
    };
    let (sgemm, sgemm_time) = measure(&mut *cublas(&device, &problem)?, "f32")?;
    println!(
        "SGEMM at {N}: {:.2} ms, error {sgemm:.2e}",
        sgemm_time / 1e6
    );
    for scheme in [Scheme::Tf32x3, Scheme::Bf16x6, Scheme::Bf16x9] {
        for chunk in [8192, 4096, 2048, 1024, 512, 256] {
            let what = format!("{scheme:?}, runs of {chunk}");
            let made = split(&device, &problem, scheme, chunk);
            let Some(mut routine) = unless_too_old(&what, made)? else {
                break;
            };
            let (error, took) = measure(&mut *routine, &what)?;
            println!(
                "{what}: {:.2} ms, {:.2} times SGEMM's speed; error {error:.2e}, {:.2} times",
                took / 1e6,
                sgemm_time / took,
                error / sgemm
            );
            if chunk <= 1024 {
                assert!(error <= 4.0 * sgemm, "{what}: {error:.2e} of {sgemm:.2e}");
            }
        }
    }
    Ok(())
}
