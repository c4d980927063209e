//! The product from and to host memory: on mapped memory, or in pieces that are uploaded, computed and
//! downloaded at the same time.

use std::ops::Range;
use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::{Format, Verified};
use crate::workload::matmul::problem::Matmul;
use crate::workload::prepare::{
    Block, Buffers, EndToEnd, HostMemory, Stage, Stages, Steps, end_to_end,
};
use crate::workload::product::{Element, GpuPlan, MATMUL, Matrix, Product, Shape, fitting};
use crate::workload::routine::{Candidates, Result, Routine, in_format};

/// Bytes of all matrices up to which a kernel may read the operands from the host's memory.
const MAPPED_BYTES: usize = 8 << 20;

/// Uploads the operands, multiplies by cuBLAS and downloads the result. The device memory is allocated
/// beforehand. It synchronises: time it on the wall clock.
///
/// From pinned memory in the fastest way: small products read and write the host's memory in place, large
/// ones begin when a quarter of the terms has arrived, and rows of the result are downloaded while later
/// ones are computed. A batch is cut into pieces of whole products.
///
/// # Errors
/// Errors of CUDA and cuBLAS, out of memory included.
pub fn from_host<T: Element>(
    gpu: &Rc<Gpu>,
    problem: &Rc<Matmul<T>>,
    memory: HostMemory,
) -> Result<Box<dyn Routine>> {
    end_to_end::from_host(gpu, problem, memory)
}

/// A routine for every way that [`from_host`] chooses from in pinned memory, with its name. For tests.
///
/// # Errors
/// As [`from_host`].
pub fn from_pinned_ways(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Result<Candidates> {
    end_to_end::ways(gpu, problem)
}

// SAFETY: the pieces are cut out of the matrices of the shape, and `mapped` takes them whole.
unsafe impl<T: Element> EndToEnd for Matmul<T> {
    type Value = T;

    const POISON: T = T::NAN;

    fn words(&self) -> String {
        let Shape { batch, m, n, k } = self.shape;
        format!("{batch} products of {m} x {k} x {n}{}", in_format::<T>())
    }

    fn operands(&self) -> Vec<&[T]> {
        vec![&self.a, &self.b]
    }

    fn result(&self) -> usize {
        self.shape.c_len()
    }

    fn check(&self, result: &[T]) -> Verified {
        self.verified(self.error_of_rows(0, result))
    }

    fn may_be_mapped(&self) -> bool {
        size_of::<T>() * self.shape.elements() <= MAPPED_BYTES
    }

    /// A kernel fetches the operands, and the product writes to the host. In f32 our own kernel takes less
    /// time to start than cuBLAS.
    fn mapped(&self, gpu: &Rc<Gpu>, buffers: &Buffers<T>) -> Result<Steps> {
        const THREADS: usize = 256;
        let shape = self.shape;
        // The whole vectors of each operand, then its remaining values one by one.
        let items = |len: usize| len / 4 + len % 4;
        // The kernel fetches f32, and an f64 as two of them.
        let [a_len, b_len] = [shape.a_len(), shape.b_len()].map(|len| len * size_of::<T>() / 4);
        let items = items(a_len) + items(b_len);
        let most = 8 * gpu.properties().multiprocessors;
        let blocks = u32::try_from(items.div_ceil(THREADS))?.clamp(1, most);
        let fetch = gpu.launch(&MATMUL, "matmul_fetch", blocks, THREADS as u32)?;
        let host = buffers.mapped()?;
        let mut steps = Steps::new(gpu)?;
        let fetch = fetch
            .arg(buffers.device[0])
            .arg(host[0])
            .arg(a_len as u64)
            .arg(buffers.device[1])
            .arg(host[1])
            .arg(b_len as u64);
        // SAFETY: the kernel takes each operand's two buffers and their length; the routine owns both.
        unsafe { steps.kernel(fetch) };
        let addresses = [buffers.device[0], buffers.device[1], host[2]];
        let product = Product::whole(shape, T::FORMAT, addresses);
        let plan = if T::FORMAT == Format::F32 && shape == Shape::square(shape.n) {
            let tile = fitting(shape.n, gpu.properties().multiprocessors);
            GpuPlan::Own(tile.to_string(), tile.square(gpu, &product)?)
        } else {
            GpuPlan::cublas(gpu, &product)?
        };
        // SAFETY: three distinct matrices of this shape, which the routine owns.
        steps.call(move |stream| unsafe { plan.enqueue(stream) });
        Ok(steps)
    }

    fn stages(&self, gpu: &Rc<Gpu>, buffers: &Buffers<T>, pieces: usize) -> Stages {
        let parts = parts(self.shape, pieces).into_iter();
        parts
            .map(|part| stage(gpu, self.shape, buffers, part))
            .collect()
    }
}

/// A part of the work: products of the batch, rows of their results, and terms of the sums.
type ProductPart = [Range<usize>; 3];

/// Whole products of a batch. Of a single product, a quarter of the terms for all rows, then the other
/// terms for a block of rows after the other.
fn parts(shape: Shape, pieces: usize) -> Vec<ProductPart> {
    let Shape { batch, m, k, .. } = shape;
    if pieces == 1 || batch > 1 {
        let products = even(batch, pieces);
        return products.map(|products| [products, 0..m, 0..k]).collect();
    }
    // In steps of 64 terms: rows of a block then begin at 256 bytes where those of the matrix do.
    let first = (k / 4).next_multiple_of(64).min(k);
    let blocks = even(m, pieces).map(|rows| [0..1, rows, first..k]);
    let parts = [[0..1, 0..m, 0..first]].into_iter().chain(blocks);
    parts.filter(|[.., terms]| !terms.is_empty()).collect()
}

/// Consecutive ranges of about the same length up to `n`: as many as `pieces`, or fewer where some
/// would be empty.
fn even(n: usize, pieces: usize) -> impl Iterator<Item = Range<usize>> {
    let pieces = pieces.clamp(1, n.max(1));
    let edge = move |i: usize| n * i / pieces;
    (0..pieces).map(move |i| edge(i)..edge(i + 1))
}

/// The first rows upload B for all of them, and the last terms complete the rows.
fn stage<T: Element>(
    gpu: &Rc<Gpu>,
    shape: Shape,
    buffers: &Buffers<T>,
    [products, rows, terms]: ProductPart,
) -> Result<Stage> {
    // The matrices of a batch lie below each other.
    let below = |height: usize, part: &Range<usize>| {
        products.start * height + part.start..(products.end - 1) * height + part.end
    };
    let columns = 0..shape.n;
    let (of_a, of_b) = (below(shape.m, &rows), below(shape.k, &terms));
    let a = block(buffers, 0, shape.k, &of_a, &terms);
    let b = block(buffers, 1, shape.n, &of_b, &columns);
    let c = block(buffers, 2, shape.n, &of_a, &columns);
    let matrix = |block: Block, rows: usize, columns: usize, pitch: usize| Matrix {
        pitch,
        ..Matrix::new(block.device, T::FORMAT, rows, columns)
    };
    let matrices = [
        matrix(a, rows.len(), terms.len(), shape.k),
        matrix(b, terms.len(), shape.n, shape.n),
        matrix(c, rows.len(), shape.n, shape.n),
    ];
    let product = Product {
        batch: products.len(),
        added: (terms.start > 0).then_some(c.device),
        ..Product::new("a part", matrices)
    };
    let plan = GpuPlan::cublas(gpu, &product)?;
    let of_b = (rows.start == 0).then_some(b);
    let of_c = (terms.end == shape.k).then_some(c);
    Ok(Stage {
        uploads: [a].into_iter().chain(of_b).collect(),
        // SAFETY: the blocks lie within the buffers, which the caller of `of_stages` keeps.
        compute: Box::new(move |stream| unsafe { plan.enqueue(stream) }),
        downloads: of_c.into_iter().collect(),
    })
}

/// A block of a matrix with this many elements from one row to the next.
fn block<T>(
    buffers: &Buffers<T>,
    at: usize,
    pitch: usize,
    rows: &Range<usize>,
    columns: &Range<usize>,
) -> Block {
    let (first, float) = (rows.start * pitch + columns.start, size_of::<T>());
    let (width, rows) = if columns.len() == pitch {
        // Memory without gaps is one row.
        (rows.len() * pitch, 1)
    } else {
        (columns.len(), rows.len())
    };
    let host = buffers.host[at].values.cast::<T>().wrapping_add(first);
    Block {
        host: host.cast(),
        host_pitch: float * pitch,
        device: buffers.device[at] + (float * first) as CUdeviceptr,
        device_pitch: float * pitch,
        width: float * width,
        rows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_and_come_in_order() {
        let batch = Shape {
            batch: 3,
            ..Shape::square(9)
        };
        let of_few_terms = Shape {
            k: 8,
            ..Shape::square(1000)
        };
        let squares = [64, 1000, 2049].map(Shape::square);
        for shape in squares.into_iter().chain([batch, of_few_terms]) {
            for pieces in [1, 4, 8, 16] {
                let mut done = vec![vec![0; shape.m]; shape.batch];
                for [products, rows, terms] in parts(shape, pieces) {
                    assert!(!products.is_empty() && !rows.is_empty() && !terms.is_empty());
                    for product in products {
                        for row in rows.clone() {
                            assert_eq!(done[product][row], terms.start, "{shape:?}, {pieces}");
                            done[product][row] = terms.end;
                        }
                    }
                }
                assert!(done.iter().flatten().all(|done| *done == shape.k));
            }
        }
    }
}
