//! Every way from host memory through an operation and back that a trial may choose: the suite
//! runs only the chosen one. Needs a device, cuBLAS and NVRTC.

use std::rc::Rc;

use crossover_suite::device::Gpu;
use crossover_suite::model::CopyDirection;
use crossover_suite::workload::HostMemory::{self, Pageable, Pinned};
use crossover_suite::workload::matmul::{Matmul, Shape, gpu};
use crossover_suite::workload::nested_sine::{self, NestedSine};
use crossover_suite::workload::transfer::{self, Transfer};
use crossover_suite::workload::{Result, Routine, Workload};

use crate::device::{error_after, one_at_a_time};

type Candidates = Vec<(String, Box<dyn Routine>)>;

/// Poisoned, run and checked, once and then three times in a row.
fn each_is_right(device: &Gpu, what: &str, candidates: Result<Candidates>) -> Result<()> {
    for (name, mut routine) in candidates? {
        for runs in [1, 3] {
            error_after(runs, device, &mut *routine, &format!("{what}, {name}"))?;
        }
        println!("{what}: {name}");
    }
    Ok(())
}

fn products(shapes: impl IntoIterator<Item = Shape>) -> Result<()> {
    let device = Rc::new(Gpu::open(0)?);
    for shape in shapes {
        let problem = Rc::new(Matmul::of(shape));
        let ways = gpu::from_pinned_ways(&device, &problem);
        each_is_right(&device, &format!("{shape:?}"), ways)?;
    }
    Ok(())
}

fn sines(sizes: impl IntoIterator<Item = u64>) -> Result<()> {
    let device = Rc::new(Gpu::open(0)?);
    for n in sizes {
        let problem = Rc::new(NestedSine::new(n));
        let ways = nested_sine::gpu::from_pinned_ways(&device, &problem);
        each_is_right(&device, &format!("{n} sines"), ways)?;
    }
    Ok(())
}

/// Copies are poisoned and compared in pieces of 4 MiB: what is wrong in any of them counts.
#[test]
#[ignore = "needs a CUDA device"]
fn every_byte_of_a_copy_is_poisoned_copied_and_compared() -> Result<()> {
    let _one = one_at_a_time();
    let bytes = 2 * (4 << 20) + 5;
    let device = Rc::new(Gpu::open(0)?);
    let problem = Rc::new(Transfer::new(bytes));
    let copy = |way, memory: HostMemory| transfer::copy(&device, &problem, way, memory, 1);
    let staged = |way| transfer::staged(&device, &problem, way);
    let copies = [
        ("to the device", 1, copy(CopyDirection::ToDevice, Pinned)?),
        ("to the host", 1, copy(CopyDirection::ToHost, Pageable)?),
        ("both ways", 2, copy(CopyDirection::Both, Pinned)?),
        ("staged to the device", 1, staged(CopyDirection::ToDevice)?),
        ("staged to the host", 1, staged(CopyDirection::ToHost)?),
    ];
    for (what, directions, mut routine) in copies {
        routine.poison()?;
        device.synchronize()?;
        let wrong = routine.check()?.error;
        assert_eq!(wrong, (directions * bytes) as f64, "{what}: all is wrong");
        routine.run()?;
        assert_eq!(routine.check()?.error, 0.0, "{what}");
    }
    Ok(())
}

/// Small enough for a sanitizer.
#[test]
#[ignore = "needs a CUDA device"]
fn every_way_of_a_small_product_or_few_sines_is_right() -> Result<()> {
    let _one = one_at_a_time();
    let squares = [1, 3, 8, 31, 64, 129, 256, 300].map(Shape::square);
    let batches = [3, 17, 64].map(|n| Shape {
        batch: 64,
        ..Shape::square(n)
    });
    products(squares.into_iter().chain(batches))?;
    sines([1, 3, 1000, 1025, (1 << 16) + 1, (1 << 18) + 5])
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_way_of_a_large_product_or_many_sines_is_right() -> Result<()> {
    let _one = one_at_a_time();
    let batch = Shape {
        batch: 64,
        ..Shape::square(512)
    };
    let squares = [512, 1000, 1024, 2048, 2050, 4096].map(Shape::square);
    products(squares.into_iter().chain([batch]))?;
    sines([(1 << 20) + 1, 1 << 22, (1 << 24) + 3])
}
