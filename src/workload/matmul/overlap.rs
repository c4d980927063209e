//! The product end to end, uploading, computing and downloading at the same time.

use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream, result, sys};

use crate::device::calls::{copy_to_host, synchronize};
use crate::device::gpu::Gpu;
use crate::model::verified::Verified;
use crate::timing::CudaError;
use crate::workload::host_memory::HostMemory;
use crate::workload::matmul::problem::Matmul;
use crate::workload::matmul::schedule::Schedule;
use crate::workload::matmul::sgemm::{Matrix, Sgemm};
use crate::workload::matmul::shape::Shape;
use crate::workload::matmul::transfer::{Copies, HostSide, Matrices, transfer};
use crate::workload::routine::{Made, Routine, RoutineError};

/// Operands from pinned memory, cuBLAS SGEMM, the result to pinned memory. From order 2048
/// on the product begins when a first panel has arrived, and rows of the result leave while
/// later ones are computed; below, the three follow one another. Synchronises: time it on
/// the wall clock.
///
/// # Errors
/// As [`transfer`].
pub fn transfer_pinned(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Made {
    let n = problem.shape.n;
    let square = problem.shape == Shape::square(n);
    match square.then(|| Schedule::new(n)).flatten() {
        Some(schedule) => Ok(Box::new(Overlapped::new(gpu, problem, schedule)?)),
        None => transfer(gpu, problem, HostMemory::Pinned),
    }
}

/// Uploads and then a product that waits for them.
struct Step {
    uploads: Vec<Copy>,
    uploaded: CudaEvent,
    sgemm: Sgemm,
    download: Option<Download>,
}

/// A block of a matrix, from the host to the device.
struct Copy {
    operand: Operand,
    row: usize,
    column: usize,
    rows: usize,
    columns: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Operand {
    A,
    B,
}

/// Whole rows of C, when the product has completed them.
struct Download {
    computed: CudaEvent,
    row: usize,
    rows: usize,
}

struct Overlapped {
    gpu: Rc<Gpu>,
    problem: Rc<Matmul>,
    copies: Copies,
    host: HostSide,
    upload: Arc<CudaStream>,
    download: Arc<CudaStream>,
    /// The stream that is timed has come this far: what ran before has read its operands
    /// and fetched its result.
    begun: CudaEvent,
    downloaded: CudaEvent,
    steps: Vec<Step>,
    notes: Vec<String>,
}

impl Overlapped {
    fn new(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, schedule: Schedule) -> Result<Self, RoutineError> {
        let n = problem.shape.n;
        let copies = Copies::new(gpu, problem.shape)?;
        let whole = |address| Matrix { address, pitch: n };
        let [a, b, c] = copies.addresses(gpu).map(whole);
        let block = |operand, row, column, rows, columns| Copy {
            operand,
            row,
            column,
            rows,
            columns,
        };

        let mut steps = Vec::new();
        for terms in &schedule.panels {
            let (k, width) = (terms.start, terms.len());
            let shape = Shape {
                k: width,
                ..problem.shape
            };
            let beta = if k == 0 { 0.0 } else { 1.0 };
            steps.push(Step {
                uploads: vec![
                    block(Operand::B, k, 0, width, n),
                    block(Operand::A, 0, k, n, width),
                ],
                uploaded: gpu.new_event()?,
                sgemm: Sgemm::blocks(gpu, shape, a.at(0, k), b.at(k, 0), c, beta)?,
                download: None,
            });
        }
        let (k, width) = (schedule.rest.start, schedule.rest.len());
        for rows in &schedule.blocks {
            let shape = Shape {
                m: rows.len(),
                k: width,
                ..problem.shape
            };
            let (row, rows) = (rows.start, rows.len());
            let mut uploads = Vec::new();
            if row == 0 {
                uploads.push(block(Operand::B, k, 0, width, n));
            }
            uploads.push(block(Operand::A, row, k, rows, width));
            let (a, b, c) = (a.at(row, k), b.at(k, 0), c.at(row, 0));
            steps.push(Step {
                uploads,
                uploaded: gpu.new_event()?,
                sgemm: Sgemm::blocks(gpu, shape, a, b, c, 1.0)?,
                download: Some(Download {
                    computed: gpu.new_event()?,
                    row,
                    rows,
                }),
            });
        }
        Ok(Self {
            copies,
            host: HostSide::new(gpu, problem, HostMemory::Pinned)?,
            upload: gpu.new_stream()?,
            download: gpu.new_stream()?,
            begun: gpu.new_event()?,
            downloaded: gpu.new_event()?,
            notes: vec![format!(
                "overlapped: {} panels of terms, then {} blocks of rows",
                schedule.panels.len(),
                schedule.blocks.len()
            )],
            steps,
            gpu: Rc::clone(gpu),
            problem: Rc::clone(problem),
        })
    }
}

/// What a run borrows of [`Overlapped`], apart from the host's memory.
struct Queue<'a> {
    n: usize,
    addresses: [sys::CUdeviceptr; 3],
    timed: &'a CudaStream,
    upload: &'a CudaStream,
    download: &'a CudaStream,
    begun: &'a CudaEvent,
    downloaded: &'a CudaEvent,
    steps: &'a [Step],
}

impl Queue<'_> {
    /// Enqueues everything; the stream that is timed is done when all is.
    fn enqueue(&self, host: &mut Matrices<'_>) -> Result<(), CudaError> {
        record(self.begun, self.timed)?;
        wait(self.upload, self.begun)?;
        wait(self.download, self.begun)?;
        for step in self.steps {
            for copy in &step.uploads {
                self.send(copy, host)?;
            }
            record(&step.uploaded, self.upload)?;
            wait(self.timed, &step.uploaded)?;
            // SAFETY: the blocks lie in device matrices of n x n floats that the routine
            // owns and that outlive its wait; C is distinct from A and B.
            unsafe { step.sgemm.enqueue() }?;
            if let Some(rows) = &step.download {
                record(&rows.computed, self.timed)?;
                wait(self.download, &rows.computed)?;
                self.fetch(rows, host)?;
            }
        }
        record(self.downloaded, self.download)?;
        wait(self.timed, self.downloaded)
    }

    fn send(&self, copy: &Copy, host: &Matrices<'_>) -> Result<(), CudaError> {
        let [a, b, _] = self.addresses;
        let (from, to) = match copy.operand {
            Operand::A => (host.a, a),
            Operand::B => (host.b, b),
        };
        let float = size_of::<f32>();
        let pitch = self.n * float;
        let (x, y) = (copy.column * float, copy.row);
        let block = sys::CUDA_MEMCPY2D {
            srcXInBytes: x,
            srcY: y,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: from.as_ptr().cast(),
            srcDevice: 0,
            srcArray: std::ptr::null_mut(),
            srcPitch: pitch,
            dstXInBytes: x,
            dstY: y,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: std::ptr::null_mut(),
            dstDevice: to,
            dstArray: std::ptr::null_mut(),
            dstPitch: pitch,
            WidthInBytes: copy.columns * float,
            Height: copy.rows,
        };
        // SAFETY: source and destination are matrices of n x n floats with this pitch, the
        // block lies within them, and both outlive the wait in `run`.
        let status = unsafe { sys::cuMemcpy2DAsync_v2(&block, self.upload.cu_stream()) };
        CudaError::check("cuMemcpy2DAsync", status)
    }

    fn fetch(&self, rows: &Download, host: &mut Matrices<'_>) -> Result<(), CudaError> {
        let [_, _, c] = self.addresses;
        let first = rows.row * self.n;
        let to = &mut host.c[first..first + rows.rows * self.n];
        let from = c + (first * size_of::<f32>()) as sys::CUdeviceptr;
        // SAFETY: the rows lie within C, which outlives the wait in `run`, as `to` does.
        unsafe { copy_to_host(from, to, self.download) }
    }
}

// These two spare the question for the current context that cudarc's own put to the driver
// before each call: a run makes many.
fn record(event: &CudaEvent, stream: &CudaStream) -> Result<(), CudaError> {
    // SAFETY: event and stream are alive and of one context.
    unsafe { result::event::record(event.cu_event(), stream.cu_stream()) }
        .map_err(|e| CudaError::new("cuEventRecord", e))
}

fn wait(stream: &CudaStream, event: &CudaEvent) -> Result<(), CudaError> {
    let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
    // SAFETY: event and stream are alive and of one context.
    unsafe { result::stream::wait_event(stream.cu_stream(), event.cu_event(), flags) }
        .map_err(|e| CudaError::new("cuStreamWaitEvent", e))
}

impl Routine for Overlapped {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.host.matrices()?.c.fill(f32::NAN);
        Ok(self.copies.poison(&self.gpu)?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let queue = Queue {
            n: self.problem.shape.n,
            addresses: self.copies.addresses(&self.gpu),
            timed: self.gpu.stream(),
            upload: &self.upload,
            download: &self.download,
            begun: &self.begun,
            downloaded: &self.downloaded,
            steps: &self.steps,
        };
        let outcome = queue.enqueue(&mut self.host.matrices()?);
        // After an error the timed stream may not wait for the others, and what was enqueued
        // may still use the matrices.
        let others = match &outcome {
            Ok(()) => Ok(()),
            Err(_) => synchronize(&self.upload).and(synchronize(&self.download)),
        };
        let waited = self.gpu.synchronize();
        Ok(outcome.and(others).and(waited)?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let error = self.problem.error_of_rows(0, self.host.matrices()?.c);
        Ok(self.problem.verified(error))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
