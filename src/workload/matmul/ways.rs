//! The ways to try from pinned memory through a product and back.

use std::fmt;
use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::Format;
use crate::workload::matmul::schedule::{Schedule, batch_stages, cut_stages};
use crate::workload::prepare::{Buffers, Steps, TransferPlan};
use crate::workload::product::{Element, GpuPlan, MATMUL, Product, Shape, fitting};
use crate::workload::routine::{Done, RoutineError};

/// The code that multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Multiply {
    Cublas,
    Tiled,
}

/// Above this order a kernel that reads operands from the host's memory has no advantage left.
const MAPPED_TO: usize = 512;
/// Up to this order a product has few blocks of the tiled kernel: 16 of its smallest.
const IN_PLACE_TO: usize = 128;
/// Pieces of products below this order take longer to queue than the time that they hide.
const OVERLAP_FROM: usize = 256;
/// From this order on the product takes long enough for panels of terms to pay.
const PANELS_FROM: usize = 2048;
/// Up to this order queueing may take longer than the time that it hides, so graphs are tried.
const GRAPHS_TO: usize = 4096;
/// Bytes of a batch up to which a kernel may read them from the host's memory.
const MAPPED_BATCH: usize = 8 << 20;
/// Bytes of a batch from which on it is worth cutting.
const CUT_BATCH: usize = 1 << 20;

/// The ways to try for a shape.
pub(super) fn ways<T: Element>(shape: Shape) -> Vec<TransferPlan<'static, T>> {
    use Multiply::{Cublas, Tiled};
    let Shape { batch, n, .. } = shape;
    let square = shape == Shape::square(n);
    let bytes = size_of::<T>() * shape.elements();
    // The kernel has tiles of f32.
    let tiled = square && T::FORMAT == Format::F32;
    let mut ways = Vec::new();
    if !square || n < PANELS_FROM {
        ways.extend([false, true].map(|graph| copies(shape, Cublas, graph)));
    }
    if batch > 1 && bytes <= MAPPED_BATCH {
        ways.push(fetched(shape, Cublas, true));
    }
    if batch > 1 && bytes >= CUT_BATCH {
        ways.extend([4, 8, 16, 32].map(|pieces| batches(shape, pieces)));
    }
    if !square {
        return ways;
    }
    if tiled && n <= MAPPED_TO {
        ways.push(copies(shape, Tiled, true));
        ways.extend([false, true].map(|graph| fetched(shape, Tiled, graph)));
    }
    if n <= MAPPED_TO {
        ways.push(fetched(shape, Cublas, true));
    }
    if tiled && n <= IN_PLACE_TO {
        ways.push(in_place(shape));
    }
    if (OVERLAP_FROM..=GRAPHS_TO).contains(&n) {
        let halves = [2, 4, 8].map(|blocks| (blocks, Schedule::half(n, blocks)));
        let fit = halves.into_iter().filter(|(_, cut)| cut.is_worth_it());
        ways.extend(fit.map(|(blocks, cut)| {
            overlapped(shape, &format!("a half and {blocks} blocks"), true, cut)
        }));
    }
    let panels = |graph| overlapped(shape, "three panels and blocks", graph, Schedule::panels(n));
    if (PANELS_FROM..=GRAPHS_TO).contains(&n) {
        ways.push(panels(true));
    }
    if n >= PANELS_FROM {
        ways.push(panels(false));
    }
    ways
}

/// Suffix of the name of a way that is not a graph.
fn one_by_one(graph: bool) -> &'static str {
    if graph { "" } else { ", one by one" }
}

/// Two uploads, the product and a download, one after the other.
fn copies<T: Element>(shape: Shape, by: Multiply, graph: bool) -> TransferPlan<'static, T> {
    let name = format!("copies and {by}{}", one_by_one(graph));
    TransferPlan::new(name, graph, move |gpu, places| {
        places.copied(gpu, |steps, at| multiply::<T>(steps, gpu, shape, by, at))
    })
}

/// A kernel reads both operands from the host's memory, mapped into the device's address space, and
/// the product writes its result there.
fn fetched<T: Element>(shape: Shape, by: Multiply, graph: bool) -> TransferPlan<'static, T> {
    let name = format!("mapped memory and {by}{}", one_by_one(graph));
    TransferPlan::new(name, graph, move |gpu, places| {
        mapped(gpu, shape, by, places)
    })
}

/// The tiled kernel reads and writes the host's memory itself. Each block reads its own operands over
/// the link: for products of a few blocks.
fn in_place<T: Element>(shape: Shape) -> TransferPlan<'static, T> {
    TransferPlan::new(
        "tiles in registers on mapped memory",
        false,
        move |gpu, places| {
            let mut steps = Steps::new(gpu)?;
            multiply::<T>(&mut steps, gpu, shape, Multiply::Tiled, &places.mapped()?)?;
            Ok(steps)
        },
    )
}

/// Pieces of a product that is uploaded, computed and downloaded at the same time.
fn overlapped<T: Element>(
    shape: Shape,
    cut: &str,
    graph: bool,
    by: Schedule,
) -> TransferPlan<'static, T> {
    let name = format!("overlapped, {cut}{}", one_by_one(graph));
    TransferPlan::new(name, graph, move |gpu, places| {
        // SAFETY: `cut_stages` stays within the places, which the routine owns.
        Ok(unsafe { Steps::of_stages(gpu, cut_stages(gpu, shape, places, &by)?) }?)
    })
}

/// Pieces of a batch, likewise.
fn batches<T: Element>(shape: Shape, pieces: usize) -> TransferPlan<'static, T> {
    TransferPlan::new(
        format!("overlapped, {pieces} pieces"),
        true,
        move |gpu, places| {
            // SAFETY: `batch_stages` stays within the places, which the routine owns.
            Ok(unsafe { Steps::of_stages(gpu, batch_stages(gpu, shape, places, pieces)?) }?)
        },
    )
}

/// A kernel fetches the operands, and the product writes to the host.
fn mapped<T: Element>(
    gpu: &Rc<Gpu>,
    shape: Shape,
    by: Multiply,
    places: &Buffers<T>,
) -> Result<Steps, RoutineError> {
    const THREADS: usize = 256;
    // The whole vectors of each operand, then its remaining values one by one.
    let items = |len: usize| len / 4 + len % 4;
    // The kernel fetches f32, and an f64 as two of them.
    let [a_len, b_len] = [shape.a_len(), shape.b_len()].map(|len| len * size_of::<T>() / 4);
    let items = items(a_len) + items(b_len);
    let most = 8 * gpu.properties().multiprocessors;
    let blocks = u32::try_from(items.div_ceil(THREADS))?.clamp(1, most);
    let fetch = gpu.launch(&MATMUL, "matmul_fetch", blocks, THREADS as u32)?;
    let host = places.mapped()?;
    let mut steps = Steps::new(gpu)?;
    let fetch = fetch
        .arg(places.device[0])
        .arg(host[0])
        .arg(a_len as u64)
        .arg(places.device[1])
        .arg(host[1])
        .arg(b_len as u64);
    // SAFETY: the kernel takes each operand's two places and their length; the routine owns both.
    unsafe { steps.kernel(fetch) };
    let addresses = [places.device[0], places.device[1], host[2]];
    multiply::<T>(&mut steps, gpu, shape, by, &addresses)?;
    Ok(steps)
}

/// The product of the matrices at these addresses.
pub(super) fn multiply<T: Element>(
    steps: &mut Steps,
    gpu: &Rc<Gpu>,
    shape: Shape,
    by: Multiply,
    addresses: &[CUdeviceptr],
) -> Done {
    let product = Product::whole(shape, T::FORMAT, addresses.try_into()?);
    let plan = match by {
        Multiply::Tiled => {
            fitting(shape.n, gpu.properties().multiprocessors).square(gpu, &product)?
        }
        Multiply::Cublas => GpuPlan::cublas(gpu, &product)?,
    };
    // SAFETY: the callers, `Matmul` and `mapped`, give three distinct places of this shape.
    steps.call(move |stream| unsafe { plan.enqueue(stream) });
    Ok(())
}

impl fmt::Display for Multiply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Multiply::Cublas => "cuBLAS",
            Multiply::Tiled => "tiles in registers",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(shape: Shape) -> Vec<String> {
        let ways = super::ways::<f32>(shape).into_iter();
        ways.map(|way| way.name).collect()
    }

    #[test]
    fn every_shape_has_a_way_and_no_two_of_the_same_name() {
        let squares = (0..=15).map(|e| Shape::square(1 << e));
        let odd = [3, 17, 129, 257, 300, 2049].map(Shape::square);
        let batches = [1, 8, 64, 1024].map(|n| Shape {
            batch: 64,
            ..Shape::square(n)
        });
        let skinny = Shape {
            m: 16,
            ..Shape::square(4096)
        };
        for shape in squares.chain(odd).chain(batches).chain([skinny]) {
            let names = names(shape);
            assert!(!names.is_empty(), "{shape:?}");
            let different: BTreeSet<&String> = names.iter().collect();
            assert_eq!(names.len(), different.len(), "{shape:?}");
        }
    }

    #[test]
    fn small_products_read_mapped_memory_and_large_ones_are_cut_without_a_trial() {
        let names = |n| names(Shape::square(n));
        let in_place = "tiles in registers on mapped memory".to_owned();
        assert!(names(8).contains(&in_place) && !names(256).contains(&in_place));
        let overlaps = |n| names(n).iter().any(|name| name.starts_with("overlapped"));
        assert!(!overlaps(128) && overlaps(512) && overlaps(1024));
        let only = "overlapped, three panels and blocks, one by one";
        assert_eq!(names(8192), [only]);
    }
}
