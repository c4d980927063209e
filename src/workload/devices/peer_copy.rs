//! Copies between the first two devices.

use std::rc::Rc;

use crate::device::Gpu;
use crate::model::Exchange;
use crate::workload::devices::OnDevices;
use crate::workload::prepare::{Device, HostMemory, Stream};
use crate::workload::routine::{Result, Routine};
use crate::workload::transfer::{TRANSFER, Transfer, verified};

/// Pieces of a copy through the host, whose two halves overlap.
const PIECES: usize = 8;
/// Shorter copies through the host are whole.
const CUT_FROM: usize = 1 << 19;

/// How a copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// By `cuMemcpyPeerAsync`, from the memory of one device to that of the other.
    Engine,
    /// By a kernel on the receiving device, which reads the other device's memory.
    Kernel,
    /// Into pinned host memory and from there, in pieces that overlap.
    Host,
}

/// A copy of every byte between the first two devices.
///
/// # Errors
/// There is one device, or no peer access where the path needs it; errors of CUDA and of the kernel's
/// compilation; both ways through the host.
pub fn peer_copy(
    gpu: &Rc<Gpu>,
    problem: &Rc<Transfer>,
    way: Exchange,
    path: Path,
) -> Result<Box<dyn Routine>> {
    if path != Path::Host {
        gpu.require_peers(1)?;
    }
    let mut work = OnDevices::new(gpu)?;
    let both = way == Exchange::BothWays;
    // The timed stream belongs to the first device, which sends or, by a kernel, receives.
    let (own, other) = match path {
        Path::Kernel => ((1, 0), (0, 1)),
        Path::Engine | Path::Host => ((0, 1), (1, 0)),
    };
    let one = sides(&mut work, problem, own)?;
    match path {
        Path::Engine | Path::Kernel if both => {
            let back = sides(&mut work, problem, other)?;
            work.fork([OnDevices::work(1)].into_iter())?;
            step(&mut work, path, 1, other, back)?;
            step(&mut work, path, 0, own, one)?;
            work.join([OnDevices::work(1)].into_iter())?;
        }
        Path::Engine | Path::Kernel => step(&mut work, path, 0, own, one)?,
        Path::Host if both => return Err("no copy through the host is made both ways".into()),
        Path::Host => through_host(&mut work, one)?,
    }
    Ok(Box::new(work.ready()?))
}

/// The pattern on one device, and the place on the other that it is copied to, which is compared.
fn sides(
    work: &mut OnDevices,
    problem: &Rc<Transfer>,
    (from, to): (usize, usize),
) -> Result<[Device<u8>; 2]> {
    let source = work.parts[from].upload(&problem.pattern)?;
    let target = work.parts[to].output(problem.pattern.len())?;
    let problem = problem.clone();
    work.parts[to]
        .check_by(move |memory| Ok(verified(problem.differences_on_device(memory, target)?)));
    Ok([source, target])
}

/// Adds a copy on the working stream of device `on`.
fn step(
    work: &mut OnDevices,
    path: Path,
    on: usize,
    (from, to): (usize, usize),
    [source, target]: [Device<u8>; 2],
) -> Result<()> {
    let (bytes, stream) = (target.bytes(), OnDevices::work(on));
    if path == Path::Engine {
        let places = [(from, source.address), (to, target.address)];
        // SAFETY: both sides have as many bytes, and the routine owns them.
        unsafe { work.steps().peer_copy(stream, places, bytes) };
        return Ok(());
    }
    let gpu = &work.gpus[on];
    let blocks = 4 * gpu.properties().multiprocessors;
    let read = (gpu.launch(&TRANSFER, "copy_bytes", blocks, 256)?)
        .arg(target.address)
        .arg(source.address)
        .arg(bytes as u64);
    // SAFETY: the kernel takes two addresses and the number of bytes, which both sides have.
    unsafe { work.steps().kernels(stream, [read]) };
    Ok(())
}

/// Adds a copy from the first device to the second through pinned memory.
fn through_host(work: &mut OnDevices, [source, target]: [Device<u8>; 2]) -> Result<()> {
    let bytes = target.bytes();
    let pieces = if bytes < CUT_FROM { 1 } else { PIECES };
    let buffer = work.parts[0].host_output(HostMemory::Pinned, 0xFFu8, bytes)?;
    let (steps, receiver) = (work.steps(), OnDevices::work(1));
    steps.order(Stream::Compute, receiver)?;
    for piece in super::split(bytes, pieces) {
        let part = buffer.part(piece.start, piece.len());
        // SAFETY: the piece lies within both, which the routine owns.
        unsafe { steps.download(Stream::Compute, source.at(piece.start), part) };
        steps.order(Stream::Compute, receiver)?;
        // SAFETY: as above, and this copy waits for the other one.
        unsafe { steps.upload(receiver, part, target.at(piece.start)) };
    }
    Ok(steps.order(receiver, Stream::Compute)?)
}
