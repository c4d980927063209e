//! The product end to end, uploading, computing and downloading at the same time.

use std::ops::Range;
use std::rc::Rc;

use cudarc::driver::sys;

use crate::device::gpu::Gpu;
use crate::workload::matmul::schedule::{Schedule, even};
use crate::workload::matmul::sgemm::{Matrix, Sgemm};
use crate::workload::matmul::shape::Shape;
use crate::workload::matmul::transfer::Matrices;
use crate::workload::prepare::queue::{On, Queue};
use crate::workload::routine::RoutineError;

/// A product by cuBLAS, cut as `schedule` says: it begins when a first panel has arrived, and rows
/// of the result leave while later ones are computed.
pub(super) fn product(
    gpu: &Rc<Gpu>,
    shape: Shape,
    schedule: &Schedule,
    device: [sys::CUdeviceptr; 3],
    host: &mut Matrices<'_>,
) -> Result<Queue, RoutineError> {
    let mut queue = Queue::overlapped(gpu)?;
    let [a, b, c] = places(shape, device);
    let all = 0..shape.n;
    for terms in &schedule.panels {
        send(&mut queue, host.b, b, terms, &all);
        send(&mut queue, host.a, a, &(0..shape.m), terms);
        queue.order(On::Up, On::Compute)?;
        let part = Shape {
            k: terms.len(),
            ..shape
        };
        let beta = if terms.start == 0 { 0.0 } else { 1.0 };
        let (a, b) = (a.at(0, terms.start), b.at(terms.start, 0));
        multiply(&mut queue, Sgemm::blocks(gpu, part, a, b, c, beta)?);
    }
    let rest = &schedule.rest;
    for rows in &schedule.blocks {
        if rows.start == 0 {
            send(&mut queue, host.b, b, rest, &all);
        }
        send(&mut queue, host.a, a, rows, rest);
        queue.order(On::Up, On::Compute)?;
        let part = Shape {
            m: rows.len(),
            k: rest.len(),
            ..shape
        };
        let (a, b) = (a.at(rows.start, rest.start), b.at(rest.start, 0));
        let block = c.at(rows.start, 0);
        multiply(&mut queue, Sgemm::blocks(gpu, part, a, b, block, 1.0)?);
        queue.order(On::Compute, On::Down)?;
        fetch(&mut queue, host, block, rows);
    }
    queue.join()?;
    Ok(queue)
}

/// A batch by cuBLAS in pieces of whole products, which overlap likewise.
pub(super) fn batch(
    gpu: &Rc<Gpu>,
    shape: Shape,
    pieces: usize,
    device: [sys::CUdeviceptr; 3],
    host: &mut Matrices<'_>,
) -> Result<Queue, RoutineError> {
    let mut queue = Queue::overlapped(gpu)?;
    let [a, b, c] = places(shape, device);
    for products in even(shape.batch, pieces) {
        let of = |rows: usize| products.start * rows..products.end * rows;
        send(&mut queue, host.a, a, &of(shape.m), &(0..shape.k));
        send(&mut queue, host.b, b, &of(shape.k), &(0..shape.n));
        queue.order(On::Up, On::Compute)?;
        let part = Shape {
            batch: products.len(),
            ..shape
        };
        let at = |matrix: Matrix, rows: usize| matrix.at(products.start * rows, 0).address;
        let sgemm = Sgemm::new(gpu, part, at(a, shape.m), at(b, shape.k), at(c, shape.m))?;
        multiply(&mut queue, sgemm);
        queue.order(On::Compute, On::Down)?;
        let rows = of(shape.m);
        fetch(&mut queue, host, c.at(rows.start, 0), &rows);
    }
    queue.join()?;
    Ok(queue)
}

/// Whole matrices.
fn places(shape: Shape, [a, b, c]: [sys::CUdeviceptr; 3]) -> [Matrix; 3] {
    let whole = |address, pitch| Matrix { address, pitch };
    [whole(a, shape.k), whole(b, shape.n), whole(c, shape.n)]
}

fn multiply(queue: &mut Queue, sgemm: Sgemm) {
    // SAFETY: the caller of `Queue::run` vouches for the memory; the blocks lie within it, and C is
    // distinct from A and B.
    queue.call(move || unsafe { sgemm.enqueue() });
}

/// Uploads a block of `from` to its place in `to`.
///
/// # Panics
/// Where the block does not lie within `from`.
fn send(queue: &mut Queue, from: &[f32], to: Matrix, rows: &Range<usize>, columns: &Range<usize>) {
    let pitch = to.pitch;
    assert!(columns.end <= pitch && rows.end * pitch <= from.len());
    let address = to.at(rows.start, columns.start).address;
    if columns.len() == pitch {
        let from = &from[rows.start * pitch..rows.end * pitch];
        return queue.upload(On::Up, from, address);
    }
    let float = size_of::<f32>();
    queue.block(
        On::Up,
        sys::CUDA_MEMCPY2D {
            srcXInBytes: columns.start * float,
            srcY: rows.start,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: from.as_ptr().cast(),
            srcDevice: 0,
            srcArray: std::ptr::null_mut(),
            srcPitch: pitch * float,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: std::ptr::null_mut(),
            dstDevice: address,
            dstArray: std::ptr::null_mut(),
            dstPitch: pitch * float,
            WidthInBytes: columns.len() * float,
            Height: rows.len(),
        },
    );
}

/// Downloads whole rows of C.
fn fetch(queue: &mut Queue, host: &mut Matrices<'_>, from: Matrix, rows: &Range<usize>) {
    let n = from.pitch;
    let to = &mut host.c[rows.start * n..rows.end * n];
    queue.download(On::Down, from.address, to);
}
