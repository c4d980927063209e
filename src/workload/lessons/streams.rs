//! Nested sine from and to host memory, in pieces: what overlapping the upload, the kernel and the
//! download saves, and what overlapping needs.
//!
//! The size is the number of f32 values. Host memory is pinned, unless a row is named `ordinary`. The
//! limit is the time of the longer one-way copy: the link carries both directions at once.

use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::Launches;
use crate::timing::Launch;
use crate::workload::nested_sine::{self, NestedSine};
use crate::workload::prepare::end_to_end::cut;
use crate::workload::prepare::{HostMemory, Prepared, Steps, Stream};
use crate::workload::routine::{Result, Routine};

/// Upload, kernel and download of at most `pieces` pieces, each stage on a stream of its own. With
/// one piece the stages follow each other. With [`Launches::Synchronised`] the host waits after
/// each stage of each piece: the streams are the same, and nothing overlaps.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
///
/// # Panics
/// If `pieces` is 0.
pub fn pieces(
    gpu: &Rc<Gpu>,
    problem: &Rc<NestedSine>,
    memory: HostMemory,
    pieces: u32,
    launching: Launches,
) -> Result<Box<dyn Routine>> {
    let awaited = |_| launching == Launches::Synchronised;
    staged(gpu, problem, memory, pieces, awaited)
}

/// As [`pieces`] with one piece, and the host waits for the kernel before it asks for the download.
///
/// # Errors
/// As [`pieces`].
pub fn awaited_before_download(
    gpu: &Rc<Gpu>,
    problem: &Rc<NestedSine>,
    memory: HostMemory,
) -> Result<Box<dyn Routine>> {
    staged(gpu, problem, memory, 1, |on| on == Stream::Compute)
}

/// The host waits for the stages whose streams are `awaited`.
fn staged(
    gpu: &Rc<Gpu>,
    problem: &Rc<NestedSine>,
    memory: HostMemory,
    pieces: u32,
    awaited: impl Fn(Stream) -> bool,
) -> Result<Box<dyn Routine>> {
    let wait = |steps: &mut Steps, on| {
        if awaited(on) {
            steps.wait(on);
        }
    };
    cut_up(gpu, problem, memory, pieces, |steps, _, piece| {
        // SAFETY: `cut_up` makes pieces of memory that the routine owns, and the steps of a piece wait for
        // one another.
        unsafe {
            steps.upload(Stream::Up, piece.from, piece.x);
            steps.order(Stream::Up, Stream::Compute)?;
            wait(steps, Stream::Up);
            steps.kernel(piece.kernel);
            steps.order(Stream::Compute, Stream::Down)?;
            wait(steps, Stream::Compute);
            steps.download(Stream::Down, piece.y, piece.to);
            wait(steps, Stream::Down);
        }
        Ok(())
    })
}

/// Pieces, and streams, of [`a_stream_each`].
pub const STREAMS: u32 = 3;

/// At most three pieces from pinned memory, each with all its stages on a stream of its own. With
/// [`Launches::Synchronised`] the host waits for each stream before it uses the next.
///
/// # Errors
/// As [`pieces`].
pub fn a_stream_each(
    gpu: &Rc<Gpu>,
    problem: &Rc<NestedSine>,
    launching: Launches,
) -> Result<Box<dyn Routine>> {
    cut_up(
        gpu,
        problem,
        HostMemory::Pinned,
        STREAMS,
        |steps, at, piece| {
            let on = ALL[at];
            // SAFETY: `cut_up` makes pieces of memory that the routine owns, and all steps of a piece are on
            // one stream.
            unsafe {
                steps.upload(on, piece.from, piece.x);
                steps.kernels(on, [piece.kernel]);
                steps.download(on, piece.y, piece.to);
            }
            if launching == Launches::Synchronised {
                steps.wait(on);
            }
            Ok(())
        },
    )
}

const ALL: [Stream; STREAMS as usize] = [Stream::Up, Stream::Compute, Stream::Down];

/// A piece: where it is copied from and to on both sides, and its kernel.
struct Piece {
    from: *mut [f32],
    to: *mut [f32],
    x: CUdeviceptr,
    y: CUdeviceptr,
    kernel: Launch,
}

/// A routine that waits for all streams after the steps that `add` adds for each piece.
fn cut_up(
    gpu: &Rc<Gpu>,
    problem: &Rc<NestedSine>,
    memory: HostMemory,
    pieces: u32,
    add: impl Fn(&mut Steps, usize, Piece) -> Result<()>,
) -> Result<Box<dyn Routine>> {
    let mut work = Prepared::new(gpu)?;
    let n = problem.len();
    let x = work.output::<f32>(n)?;
    let y = work.output::<f32>(n)?;
    let from = work.host_input(memory, problem, |problem| problem.input())?;
    let to = work.host_output(memory, nested_sine::POISON, n)?;
    for (at, (first, len)) in cut(n, pieces as usize).enumerate() {
        let [from, to] = [from, to].map(|host| host.part(first, len));
        let [x, y] = [x.at(first), y.at(first)];
        let kernel = nested_sine::FUSED.launch(gpu, x, y, len as u64)?;
        let piece = Piece {
            from,
            to,
            x,
            y,
            kernel,
        };
        add(&mut work.steps, at, piece)?;
    }
    for stream in ALL {
        work.steps.wait(stream);
    }
    // The other streams are not ordered behind the GPU's.
    work.poison(|memory| Ok(memory.gpu.synchronize()?));
    let problem = problem.clone();
    work.check_by(move |memory| Ok(problem.check_output(memory.values(to))));
    // Nor are they behind the allocation of the memory, which they use first.
    gpu.synchronize()?;
    Ok(Box::new(work))
}
