//! C = A B of f32 on several devices, each of which computes some rows of C by cuBLAS.

use std::ops::Range;
use std::rc::Rc;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::Format;
use crate::timing::CudaError;
use crate::workload::devices::{OnDevices, split};
use crate::workload::matmul::Matmul;
use crate::workload::prepare::{Device, PeerAddress, PeerStream, Stream, choose, launches};
use crate::workload::product::{GpuPlan, Matrix, Product};
use crate::workload::routine::{Result, Routine};

/// Rows are divided among all devices, whose operands and results stay where they are.
///
/// # Errors
/// There is one device; errors of CUDA and cuBLAS.
pub fn in_place(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Result<Box<dyn Routine>> {
    let mut work = OnDevices::new(gpu)?;
    let (n, devices) = (problem.shape().n, work.gpus.len());
    let rows: Vec<_> = split(n, devices).collect();
    work.fork((1..devices).map(OnDevices::work))?;
    // Work of the first device would delay that of the others.
    for at in (1..devices).chain([0]) {
        let rows = rows[at].clone();
        if rows.is_empty() {
            continue;
        }
        let part = &mut work.parts[at];
        let a = part.upload(&problem.a()[rows.start * n..rows.end * n])?;
        let b = part.upload(problem.b())?;
        let c = checked(&mut work, problem, at, rows.clone())?;
        let places = [a, b, c].map(|matrix| matrix.address);
        multiply(&mut work, at, (rows.len(), n), places)?;
    }
    work.join((1..devices).map(OnDevices::work))?;
    Ok(Box::new(work.ready()?))
}

/// Pieces that the rows of a device beside the first are cut into, and the rows of the first, as a
/// multiple of an equal share.
const WAYS: [(usize, f64); 4] = [(1, 1.0), (4, 1.0), (4, 1.1), (4, 1.25)];
/// Below this order the rows are not cut.
const CUT_FROM: usize = 1024;

/// Operands and result are on the first device: B and rows of A are copied to the others, and rows of C from
/// there, in pieces that overlap with the products. The fastest of several divisions.
///
/// # Errors
/// There is one device, or no peer access; errors of CUDA and cuBLAS.
pub fn gathered(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Result<Box<dyn Routine>> {
    gpu.require_peers(usize::MAX)?;
    let n = problem.shape().n;
    // All ways are made before one is chosen, each with three matrices on the first device.
    let bytes = (WAYS.len() * 3 * size_of::<f32>() * n * n) as u64;
    let fits = bytes < gpu.properties().memory_bytes / 10 * 9;
    let ways = if n < CUT_FROM || !fits {
        &WAYS[..1]
    } else {
        &WAYS
    };
    let devices = 1 + gpu.beside()?.len();
    let names = ways.iter().map(|(pieces, share)| {
        format!("{pieces} pieces for each other device, {share} shares of the rows for the first")
    });
    let names: Vec<String> = names.collect();
    let choice =
        format!("product of order {n} on {devices} devices, operands and result on the first");
    let run = |work: &mut OnDevices, times| {
        (0..times).try_for_each(|_| work.steps().enqueue())?;
        Ok(work.gpus[0].synchronize()?)
    };
    let (way, mut work) =
        choose::build_fastest(&choice, &names, |at| divided(gpu, problem, ways[at]), run)?;
    work.parts[0].notes.push(way);
    Ok(Box::new(work))
}

fn divided(
    gpu: &Rc<Gpu>,
    problem: &Rc<Matmul>,
    (pieces, share): (usize, f64),
) -> Result<OnDevices> {
    let mut work = OnDevices::new(gpu)?;
    let (n, devices) = (problem.shape().n, work.gpus.len());
    let first = &mut work.parts[0];
    let (a, b) = (first.upload(problem.a())?, first.upload(problem.b())?);
    let c = checked(&mut work, problem, 0, 0..n)?;
    let own = ((share * n as f64 / devices as f64).ceil() as usize).min(n);
    work.fork((1..devices).map(|at| Stream::Beside(at, PeerStream::In)))?;
    let places = [a, b, c].map(|matrix| matrix.address);
    multiply(&mut work, 0, (own, n), places)?;
    for (at, rows) in (1..).zip(split(n - own, devices - 1)) {
        if rows.is_empty() {
            continue;
        }
        let [inward, working, outward] = [PeerStream::In, PeerStream::Work, PeerStream::Out]
            .map(|lane| Stream::Beside(at, lane));
        let part = &mut work.parts[at];
        let mut output = |rows: usize| part.output::<f32>(rows * n);
        let (a_there, b_there, c_there) = (output(rows.len())?, output(n)?, output(rows.len())?);
        let copy = |work: &mut OnDevices, on, places: [PeerAddress; 2], rows: usize| {
            let bytes = size_of::<f32>() * rows * n;
            // SAFETY: so many rows from both addresses on are memory of the routine, and the steps order the
            // streams that use them.
            unsafe { work.steps().peer_copy(on, places, bytes) };
        };
        let b_in = [(0, b.address), (at, b_there.address)];
        copy(&mut work, inward, b_in, n);
        for piece in split(rows.len(), pieces).filter(|piece| !piece.is_empty()) {
            let (len, from) = (piece.len(), piece.start * n);
            let row = (own + rows.start + piece.start) * n;
            let a_in = [(0, a.at(row)), (at, a_there.at(from))];
            copy(&mut work, inward, a_in, len);
            work.steps().order(inward, working)?;
            let places = [a_there.at(from), b_there.address, c_there.at(from)];
            multiply(&mut work, at, (len, n), places)?;
            work.steps().order(working, outward)?;
            let c_out = [(at, c_there.at(from)), (0, c.at(row))];
            copy(&mut work, outward, c_out, len);
        }
    }
    // A device without rows has received nothing.
    let copies = |at| [PeerStream::In, PeerStream::Out].map(|lane| Stream::Beside(at, lane));
    work.join((1..devices).flat_map(copies))?;
    Ok(work.ready()?)
}

/// Memory of a device for these rows of C, which are compared.
fn checked(
    work: &mut OnDevices,
    problem: &Rc<Matmul>,
    at: usize,
    rows: Range<usize>,
) -> Result<Device<f32>, CudaError> {
    let (part, problem) = (&mut work.parts[at], problem.clone());
    let c = part.output(rows.len() * problem.shape().n)?;
    part.check_by(move |memory| Ok(problem.verified(problem.error_from(memory, c, rows.start)?)));
    Ok(c)
}

/// Adds the product of `rows` rows of A with B, of `n` columns, at these places of a device.
fn multiply(
    work: &mut OnDevices,
    at: usize,
    (rows, n): (usize, usize),
    [a, b, c]: [CUdeviceptr; 3],
) -> Result<()> {
    let matrices = [(a, rows), (b, n), (c, rows)];
    let matrices = matrices.map(|(address, rows)| Matrix::new(address, Format::F32, rows, n));
    let gpu = &work.gpus[at];
    let plan = GpuPlan::cublas(gpu, &Product::new("rows of a product", matrices))?;
    // SAFETY: the three places are memory of the routine, and the steps order the streams that use them.
    let enqueue = move |stream: &CudaStream| unsafe { plan.enqueue(stream) };
    let launches = launches(gpu, || enqueue(gpu.stream()));
    work.gpus[0].bind()?;
    (work.steps()).call_on(OnDevices::work(at), launches?, enqueue);
    Ok(())
}
