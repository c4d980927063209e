//! The product from and to host memory, and how it is cut.

use std::ops::Range;
use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::Verified;
use crate::timing::Launch;
use crate::workload::matmul::element::Element;
use crate::workload::matmul::gemm::{Gemm, Matrix};
use crate::workload::matmul::problem::{MATMUL, Matmul};
use crate::workload::matmul::schedule::{Schedule, even};
use crate::workload::matmul::shape::Shape;
use crate::workload::matmul::tiles::tile;
use crate::workload::matmul::ways::{Multiply, ways};
use crate::workload::number::in_format;
use crate::workload::prepare::{
    Block, Downloads, EndToEnd, Places, Stage, Stages, Steps, Transfer, Way, end_to_end,
};
use crate::workload::routine::{Done, Made, RoutineError, Ways};

/// From this order on a product from ordinary memory is cut as from pinned memory; below it, into a
/// half and blocks.
const PANELS_FROM: usize = 2048;
/// From this order on such a product is worth cutting.
const CUT_FROM: usize = 512;
/// About the bytes of a piece of a batch from ordinary memory.
const PIECE: usize = 16 << 20;

/// Uploads the operands, multiplies by cuBLAS and downloads the result. The device memory is allocated
/// beforehand. It synchronises: time it on the wall clock.
///
/// From pinned memory in the fastest way, a small product may be one graph, or read and write the
/// host's memory in place. From order 256 on, the product may begin when a part of the operands has
/// arrived, while rows of the result are downloaded as later ones are computed; a batch likewise.
///
/// # Errors
/// Errors of CUDA and cuBLAS, out of memory included.
pub fn from_host<T: Element>(gpu: &Rc<Gpu>, problem: &Rc<Matmul<T>>, by: Transfer) -> Made {
    end_to_end::from_host(gpu, problem, by)
}

/// A routine for every way that [`from_host`] chooses from, with its name. For tests.
///
/// # Errors
/// As [`from_host`].
pub fn from_host_ways(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, by: Transfer) -> Ways {
    end_to_end::ways(gpu, problem, by)
}

// SAFETY: the pieces are cut out of the matrices of the shape.
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

    fn check(&self, result: &[T]) -> Result<Verified, RoutineError> {
        Ok(self.verified(self.error_of_rows(0, result)))
    }

    fn compute(&self, gpu: &Rc<Gpu>, steps: &mut Steps, at: &[CUdeviceptr]) -> Done {
        multiply::<T>(steps, gpu, self.shape, Multiply::Cublas, at)
    }

    fn ways(&self) -> Vec<Way<'_, T>> {
        ways(self.shape)
    }

    fn stages(&self, gpu: &Rc<Gpu>, places: &Places<T>, pieces: usize) -> Stages {
        batch_stages(gpu, self.shape, places, pieces)
    }

    fn staged(
        &self,
        gpu: &Rc<Gpu>,
        places: &Places<T>,
        _block: usize,
        _threads: usize,
    ) -> Result<(Vec<Stage>, Downloads), RoutineError> {
        let shape = self.shape;
        if shape != Shape::square(shape.n) || shape.n < CUT_FROM {
            let pieces = (self.bytes() / PIECE).max(1);
            return Ok((self.stages(gpu, places, pieces)?, Downloads::Between));
        }
        let schedule = match shape.n {
            n if n >= PANELS_FROM => Schedule::panels(n),
            n => Schedule::half(n, n / 256),
        };
        Ok((cut_stages(gpu, shape, places, &schedule)?, Downloads::Last))
    }
}

/// A kernel fetches the operands, and the product writes to the host.
pub(super) fn mapped<T: Element>(
    gpu: &Rc<Gpu>,
    shape: Shape,
    by: Multiply,
    places: &Places<T>,
) -> Result<Steps, RoutineError> {
    const THREADS: usize = 256;
    // Of each operand the whole vectors, and one by one the values that are left.
    let items = |len: usize| len / 4 + len % 4;
    // The kernel fetches f32, and an f64 as two of them.
    let [a_len, b_len] = [shape.a_len(), shape.b_len()].map(|len| len * size_of::<T>() / 4);
    let items = items(a_len) + items(b_len);
    let most = 8 * gpu.properties().multiprocessors;
    let blocks = u32::try_from(items.div_ceil(THREADS))?.clamp(1, most);
    let fetch = gpu.function(&MATMUL, "matmul_fetch")?;
    let host = places.mapped()?;
    let mut steps = Steps::new(gpu)?;
    let fetch = Launch::new(fetch, (blocks, 1, 1), (THREADS as u32, 1, 1))
        .arg(places.device[0])
        .arg(host[0])
        .arg(a_len as u64)
        .arg(places.device[1])
        .arg(host[1])
        .arg(b_len as u64);
    // SAFETY: the arguments are those of the kernel, and both sides have the operands' lengths.
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
) -> Result<(), RoutineError> {
    let &[a, b, c] = addresses else {
        return Err("a product has two operands and a result".into());
    };
    match by {
        Multiply::Tiled => {
            let tile = tile(shape.n as u64, gpu.properties().multiprocessors);
            // SAFETY: the matrices have the lengths of the shape, and live in the routine.
            unsafe { steps.kernel(tile.launch(gpu, shape.n, [a, b, c])?) };
        }
        Multiply::Cublas => {
            let gemm = Gemm::whole(gpu, T::CALL, shape, [a, b, c])?;
            // SAFETY: as above; C is distinct from A and B.
            steps.call(move |_| unsafe { gemm.enqueue() });
        }
    }
    Ok(())
}

/// A batch by cuBLAS in pieces of whole products.
pub(super) fn batch_stages<T: Element>(
    gpu: &Rc<Gpu>,
    shape: Shape,
    places: &Places<T>,
    pieces: usize,
) -> Stages {
    let [a, b, c] = matrices(shape, places);
    let stage = |products: Range<usize>| -> Result<Stage, RoutineError> {
        let of = |rows: usize| products.start * rows..products.end * rows;
        let part = Shape {
            batch: products.len(),
            ..shape
        };
        let at =
            |place: &Place<T>, rows: usize| place.device.at::<T>(products.start * rows, 0).address;
        let addresses = [at(&a, shape.m), at(&b, shape.k), at(&c, shape.m)];
        let gemm = Gemm::whole(gpu, T::CALL, part, addresses)?;
        Ok(Stage {
            uploads: vec![
                a.block(&of(shape.m), &(0..shape.k)),
                b.block(&of(shape.k), &(0..shape.n)),
            ],
            // SAFETY: the piece lies within the places, which whoever runs the stages vouches for.
            compute: Some(Box::new(move |_| unsafe { gemm.enqueue() })),
            downloads: vec![c.block(&of(shape.m), &(0..shape.n))],
        })
    };
    even(shape.batch, pieces).map(stage).collect()
}

/// A square product by cuBLAS in panels of terms and blocks of rows: it begins when a first panel has
/// arrived, and rows of the result leave while later ones are computed.
pub(super) fn cut_stages<T: Element>(
    gpu: &Rc<Gpu>,
    shape: Shape,
    places: &Places<T>,
    schedule: &Schedule,
) -> Stages {
    let [a, b, c] = matrices(shape, places);
    let all = 0..shape.n;
    let panels = schedule.panels.iter().map(|terms| (&all, terms));
    let blocks = schedule.blocks.iter().map(|rows| (rows, &schedule.rest));
    let stage = |(at, (rows, terms)): (usize, (&Range<usize>, &Range<usize>))| {
        let part = Shape {
            m: rows.len(),
            k: terms.len(),
            ..shape
        };
        let of_a = a.device.at::<T>(rows.start, terms.start);
        let of_b = b.device.at::<T>(terms.start, 0);
        let of_c = c.device.at::<T>(rows.start, 0);
        let gemm = Gemm::new(gpu, T::CALL, part, [of_a, of_b, of_c], terms.start > 0)?;
        let mut uploads = vec![a.block(rows, terms)];
        if rows.start == 0 {
            uploads.insert(0, b.block(terms, &all));
        }
        Ok(Stage {
            uploads,
            // SAFETY: as in `batch_stages`.
            compute: Some(Box::new(move |_| unsafe { gemm.enqueue() })),
            downloads: match at < schedule.panels.len() {
                true => Vec::new(),
                false => vec![c.block(rows, &all)],
            },
        })
    };
    panels.chain(blocks).enumerate().map(stage).collect()
}

/// Where a matrix lies on the host and on the device.
struct Place<T> {
    host: *mut T,
    device: Matrix,
}

fn matrices<T>(shape: Shape, places: &Places<T>) -> [Place<T>; 3] {
    let pitches = [shape.k, shape.n, shape.n];
    std::array::from_fn(|at| Place {
        host: places.host[at].values.cast(),
        device: Matrix {
            address: places.device[at],
            pitch: pitches[at],
        },
    })
}

impl<T> Place<T> {
    fn block(&self, rows: &Range<usize>, columns: &Range<usize>) -> Block {
        let pitch = self.device.pitch;
        let host = self.host.wrapping_add(rows.start * pitch + columns.start);
        let device = self.device.at::<T>(rows.start, columns.start).address;
        let float = size_of::<T>();
        let whole = columns.len() == pitch;
        Block {
            host: host.cast(),
            host_pitch: float * pitch,
            device,
            device_pitch: float * pitch,
            // Memory without gaps is one row.
            width: float
                * if whole {
                    rows.len() * pitch
                } else {
                    columns.len()
                },
            rows: if whole { 1 } else { rows.len() },
        }
    }
}
