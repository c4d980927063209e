//! Copies between host and device, by kind of host memory: what pageable memory costs, what
//! pinning saves, and what a copy costs however small it is.
//!
//! The size is the number of bytes. All rows are timed on the wall clock, so that they can be compared.
//! Every routine except those of [`enqueued`] synchronises the stream at its end, because a copy from
//! pageable memory returns before it has arrived.

mod problem;
mod staging;

use std::cell::RefCell;
use std::rc::Rc;

use crate::device::Gpu;
use crate::model::CopyDirection;
use crate::timing::CudaError;
use crate::workload::lessons::transfer::staging::{Staging, threads_to_try};
use crate::workload::prepare::{
    Device, Direction, Host, HostMemory, Memory, Prepared, Stream, choose,
};
use crate::workload::routine::{Result, Routine};

pub(crate) use problem::verified;
pub use problem::{TRANSFER, Transfer, cost};

/// A copy of every byte, from or to one kind of host memory; with [`CopyDirection::ToDevice`] also in several
/// pieces, each copied by itself.
///
/// # Errors
/// Errors of CUDA, out of memory included, and of the kernel's compilation; [`CopyDirection::InPlace`] from
/// pageable memory, and several pieces in any direction but to the device.
pub fn copy(
    gpu: &Rc<Gpu>,
    problem: &Rc<Transfer>,
    way: CopyDirection,
    memory: HostMemory,
    pieces: u32,
) -> Result<Box<dyn Routine>> {
    if pieces == 0 || pieces > 1 && way != CopyDirection::ToDevice {
        return Err(format!("no copy {way:?} has {pieces} pieces").into());
    }
    let piece = problem.pattern.len().div_ceil(pieces as usize);
    let pieces = problem.pattern.chunks(piece).map(<[u8]>::len);
    Ok(Box::new(copies(gpu, problem, way, memory, pieces)?))
}

/// As [`copy`] to the device in one piece, without waiting for it.
///
/// # Errors
/// As [`copy`].
pub fn enqueued(
    gpu: &Rc<Gpu>,
    problem: &Rc<Transfer>,
    memory: HostMemory,
) -> Result<Box<dyn Routine>> {
    let (way, whole) = (CopyDirection::ToDevice, problem.pattern.len());
    let mut work = copies(gpu, problem, way, memory, [whole])?;
    work.waits = false;
    Ok(Box::new(work))
}

/// As [`copy`] to the device, in pieces as long as the tensors of a network's parameters.
///
/// # Errors
/// As [`copy`].
pub fn tensors(
    gpu: &Rc<Gpu>,
    problem: &Rc<Transfer>,
    memory: HostMemory,
    bytes: &[usize],
) -> Result<Box<dyn Routine>> {
    if bytes.iter().sum::<usize>() != problem.pattern.len() {
        return Err("the tensors are not as long as what is copied".into());
    }
    let (way, pieces) = (CopyDirection::ToDevice, bytes.iter().copied());
    Ok(Box::new(copies(gpu, problem, way, memory, pieces)?))
}

/// The steps of a copy; one to the device has pieces of these lengths.
fn copies(
    gpu: &Rc<Gpu>,
    problem: &Rc<Transfer>,
    way: CopyDirection,
    memory: HostMemory,
    pieces: impl IntoIterator<Item = usize>,
) -> Result<Prepared> {
    let len = problem.pattern.len();
    let mut work = Prepared::new(gpu)?;
    work.waits = true;
    let host = work.host_copy(memory, &problem.pattern)?;
    let (device, wrong) = there(&mut work, problem, way, host)?;
    let mut wrong = vec![wrong];
    match way {
        CopyDirection::ToDevice => {
            let mut first = 0;
            for bytes in pieces {
                let (from, to) = (host.part(first, bytes), device.at(first));
                // SAFETY: `part` stays within the pattern, which both sides have room for.
                unsafe { work.steps.upload(Stream::Compute, from, to) };
                first += bytes;
            }
        }
        CopyDirection::ToHost => {
            let from = device.address;
            // SAFETY: both sides have the length of the pattern, and the routine waits for the copy.
            unsafe { work.steps.download(Stream::Compute, from, host.values) };
        }
        CopyDirection::Both => {
            let back = work.host_copy(memory, &problem.pattern)?;
            let (from, wrong_there) = there(&mut work, problem, CopyDirection::ToHost, back)?;
            wrong.push(wrong_there);
            let to = device.address;
            // SAFETY: four different places with the length of the pattern; the steps wait for both copies.
            unsafe {
                work.steps.download(Stream::Down, from.address, back.values);
                work.steps.upload(Stream::Compute, host.values, to);
            }
            work.steps.wait(Stream::Down);
        }
        CopyDirection::InPlace => {
            let blocks = 4 * gpu.properties().multiprocessors;
            let read = (gpu.launch(&TRANSFER, "copy_bytes", blocks, 256)?)
                .arg(device.address)
                .arg(host.mapped()?)
                .arg(len as u64);
            // SAFETY: the kernel takes two addresses and the number of bytes, which both sides have.
            unsafe { work.steps.kernel(read) };
        }
    }
    work.check_by(move |memory| {
        let wrong = wrong.iter().map(|wrong| wrong(memory));
        Ok(verified(wrong.sum::<Result<_, _>>()?))
    });
    Ok(work)
}

/// A copy of every byte from or to ordinary memory by several threads, whose number a trial chooses.
///
/// # Errors
/// Errors of CUDA, and any direction but [`CopyDirection::ToDevice`] and [`CopyDirection::ToHost`].
pub fn staged(
    gpu: &Rc<Gpu>,
    problem: &Rc<Transfer>,
    way: CopyDirection,
) -> Result<Box<dyn Routine>> {
    let (direction, words) = match way {
        CopyDirection::ToDevice => (Direction::Up, "to the device"),
        CopyDirection::ToHost => (Direction::Down, "to the host"),
        _ => return Err(format!("no copy {way:?} is staged").into()),
    };
    let bytes = problem.pattern.len();
    let choice = format!("copy of {bytes} bytes of ordinary memory {words}");
    let threads = threads_to_try(bytes, rayon::current_num_threads());
    let names: Vec<String> = (threads.iter()).map(|n| format!("{n} threads")).collect();
    let make = |at: usize| {
        let mut work = Prepared::new(gpu)?;
        let host = work.host_copy(HostMemory::Pageable, &problem.pattern)?;
        let (device, wrong) = there(&mut work, problem, way, host)?;
        work.check_by(move |memory| Ok(verified(wrong(memory)?)));
        let (values, to) = (host.values, device.address);
        // SAFETY: both sides have the length of the pattern, and the routine drops this before them.
        let staging = unsafe { Staging::new(gpu, direction, values, to, threads[at]) }?;
        let staging = RefCell::new(staging);
        work.steps.call(move |_| staging.borrow_mut().run());
        // Copies are on streams of their own.
        work.poison(|memory| Ok(memory.gpu.synchronize()?));
        Ok(work)
    };
    let run = |work: &mut Prepared, times| (0..times).try_for_each(|_| work.run());
    let (chosen, mut work) = choose::build_fastest(&choice, &names, make, run)?;
    work.notes.push(chosen);
    Ok(Box::new(work))
}

/// Counts the wrong bytes at the destination of a copy.
type Wrong = Box<dyn Fn(&Memory) -> Result<usize, CudaError>>;

/// The device's side of a copy; the other side is `host`, a copy of the pattern. The destination is
/// poisoned and compared.
fn there(
    work: &mut Prepared,
    problem: &Rc<Transfer>,
    way: CopyDirection,
    host: Host<u8>,
) -> Result<(Device<u8>, Wrong)> {
    let (poisoned, judge) = (problem.clone(), problem.clone());
    if way == CopyDirection::ToHost {
        let device = work.upload(&problem.pattern)?;
        work.poison(move |memory| {
            let host = memory.values_mut(host).ok_or("the copy is the problem's")?;
            poisoned.poison_host(host);
            Ok(())
        });
        let wrong = move |memory: &Memory| Ok(judge.differences(memory.values(host)));
        return Ok((device, Box::new(wrong)));
    }
    let device = work.alloc(problem.pattern.len())?;
    work.poison(move |memory| Ok(poisoned.poison_device(memory, device)?));
    let wrong = move |memory: &Memory| judge.differences_on_device(memory, device);
    Ok((device, Box::new(wrong)))
}
