//! Copies between host and device, by kind of host memory: what pageable memory costs, what
//! pinning saves, and what a copy costs however small it is.
//!
//! The size is the number of bytes. Every routine but those of [`enqueued`] synchronises the stream at
//! its end, since a copy from pageable memory returns before it has arrived, and all are timed on the
//! wall clock, so that they can be compared.

mod host;
mod problem;

use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::CopyDirection;
use crate::timing::CudaError;
use crate::workload::lessons::transfer::host::HostBuffer;
use crate::workload::lessons::transfer::problem::verified;
use crate::workload::prepare::{
    Block, Device, Downloads, HostMemory, Memory, On, Prepared, Stage, Staging, Steps, block_bytes,
    choose, threads_to_try,
};
use crate::workload::routine::{Made, Routine, RoutineError};

pub use host::Kind;
pub use problem::{TRANSFER, Transfer, cost};

/// A copy of every byte, from or to one kind of host memory; with [`CopyDirection::ToDevice`] also in several
/// pieces, each copied by itself. Managed memory is written by the host in each iteration, a byte
/// per page, before a kernel reads it.
///
/// # Errors
/// Errors of CUDA, out of memory included, and of the kernel's compilation; [`CopyDirection::InPlace`] from
/// pageable memory, and several pieces in any direction but to the device.
pub fn copy(
    gpu: &Rc<Gpu>,
    problem: &Rc<Transfer>,
    way: CopyDirection,
    kind: Kind,
    pieces: u32,
) -> Made {
    if pieces == 0 || pieces > 1 && way != CopyDirection::ToDevice {
        return Err(format!("no copy {way:?} has {pieces} pieces").into());
    }
    let piece = problem.pattern.len().div_ceil(pieces as usize);
    Ok(Box::new(copies(gpu, problem, way, kind, |_| piece)?))
}

/// As [`copy`] to the device in one piece, which nothing waits for.
///
/// # Errors
/// As [`copy`].
pub fn enqueued(gpu: &Rc<Gpu>, problem: &Rc<Transfer>, kind: Kind) -> Made {
    let mut work = copies(gpu, problem, CopyDirection::ToDevice, kind, |_| {
        problem.pattern.len()
    })?;
    work.waits = false;
    Ok(Box::new(work))
}

/// As [`copy`] to the device, in pieces as long as the tensors of a network's parameters.
///
/// # Errors
/// As [`copy`].
pub fn tensors(gpu: &Rc<Gpu>, problem: &Rc<Transfer>, kind: Kind, bytes: &[usize]) -> Made {
    if bytes.iter().sum::<usize>() != problem.pattern.len() {
        return Err("the tensors are not as long as what is copied".into());
    }
    Ok(Box::new(copies(
        gpu,
        problem,
        CopyDirection::ToDevice,
        kind,
        |i| bytes[i],
    )?))
}

/// The steps of a copy; `piece` gives the length of each piece of one to the device.
fn copies(
    gpu: &Rc<Gpu>,
    problem: &Rc<Transfer>,
    way: CopyDirection,
    kind: Kind,
    piece: impl Fn(usize) -> usize,
) -> Result<Prepared, RoutineError> {
    let len = problem.pattern.len();
    let mut work = Prepared::new(gpu)?;
    if way == CopyDirection::Both {
        work.steps = Steps::with_streams(gpu)?;
    }
    work.waits = true;
    let host = HostBuffer::owned(&mut work, kind, len)?;
    let (device, wrong) = there(&mut work, problem, way, host.bytes())?;
    let mut wrong = vec![wrong];
    // SAFETY: both sides hold as many bytes, and live in the routine.
    unsafe {
        match way {
            CopyDirection::ToDevice => {
                let (mut rest, mut to) = (&*host.bytes(), device.address);
                for i in 0.. {
                    let (bytes, after) = rest.split_at(piece(i).min(rest.len()));
                    work.steps.upload(On::Compute, bytes, to);
                    (rest, to) = (after, to + bytes.len() as CUdeviceptr);
                    if rest.is_empty() {
                        break;
                    }
                }
            }
            CopyDirection::ToHost => work
                .steps
                .download(On::Compute, device.address, host.bytes()),
            CopyDirection::Both => {
                let back = HostBuffer::owned(&mut work, kind, len)?.bytes();
                let (from, wrong_there) = there(&mut work, problem, CopyDirection::ToHost, back)?;
                wrong.push(wrong_there);
                work.steps.download(On::Down, from.address, back);
                work.steps.upload(On::Compute, host.bytes(), device.address);
                work.steps.wait(On::Down);
            }
            CopyDirection::InPlace => {
                let blocks = 4 * gpu.properties().multiprocessors;
                let read = (gpu.launch(&TRANSFER, "copy_bytes", blocks, 256)?)
                    .arg(device.address)
                    .arg(host.device_address()?)
                    .arg(len as u64);
                work.steps.call(move |_| {
                    host.touch();
                    host.prefetch()
                });
                work.steps.kernel(read);
            }
        }
    }
    work.check_by(move |memory| {
        let wrong = wrong.iter().map(|wrong| wrong(memory));
        Ok(verified(wrong.sum::<Result<_, _>>()?))
    });
    Ok(work)
}

/// A copy of every byte from or to ordinary memory, by the number of threads that is fastest in a
/// trial.
///
/// # Errors
/// Errors of CUDA, and any direction but [`CopyDirection::ToDevice`] and [`CopyDirection::ToHost`].
pub fn staged(gpu: &Rc<Gpu>, problem: &Rc<Transfer>, way: CopyDirection) -> Made {
    let words = match way {
        CopyDirection::ToDevice => "to the device",
        CopyDirection::ToHost => "to the host",
        _ => return Err(format!("no copy {way:?} is staged").into()),
    };
    let bytes = problem.pattern.len();
    let choice = format!("copy of {bytes} bytes of ordinary memory {words}");
    let threads = threads_to_try(bytes);
    let names: Vec<String> = (threads.iter()).map(|n| format!("{n} threads")).collect();
    let make = |at: usize| {
        let mut work = Prepared::new(gpu)?;
        let host = work
            .host_copy(HostMemory::Pageable, &problem.pattern)?
            .values;
        let (device, wrong) = there(&mut work, problem, way, host)?;
        work.check_by(move |memory| Ok(verified(wrong(memory)?)));
        let block = Block::whole(host, device.address);
        let (uploads, downloads) = match way {
            CopyDirection::ToHost => (Vec::new(), vec![block]),
            _ => (vec![block], Vec::new()),
        };
        let stages = vec![Stage {
            uploads,
            compute: None,
            downloads,
        }];
        let (threads, bytes) = (threads[at], block_bytes(bytes, threads[at]));
        // SAFETY: both sides hold as many bytes, and live in the routine.
        let staging = unsafe { Staging::new(gpu, stages, Downloads::Last, threads, bytes) }?;
        work.run_staging(staging);
        Ok(work)
    };
    let run = |work: &mut Prepared, times| (0..times).try_for_each(|_| work.run());
    let (chosen, mut work) = choose::made_by(&choice, &names, make, run)?;
    work.notes.push(chosen);
    Ok(Box::new(work))
}

/// The number of bytes that are wrong where a copy ends.
type Wrong = Box<dyn Fn(&Memory) -> Result<usize, CudaError>>;

/// The device's side of a copy. The pattern lies where the copy starts, and is poisoned and compared
/// where it ends.
fn there(
    work: &mut Prepared,
    problem: &Rc<Transfer>,
    way: CopyDirection,
    host: *mut [u8],
) -> Result<(Device<u8>, Wrong), RoutineError> {
    let (poisoned, judge) = (problem.clone(), problem.clone());
    if way == CopyDirection::ToHost {
        let device = work.upload(&problem.pattern)?;
        work.poison(move |_| {
            // SAFETY: the memory is the routine's, and idle.
            let host = unsafe { &mut *host };
            poisoned.poison_host(host);
            Ok(())
        });
        let wrong = move |_: &Memory| {
            // SAFETY: as above.
            let host = unsafe { &*host };
            Ok(judge.differences(host))
        };
        return Ok((device, Box::new(wrong)));
    }
    // SAFETY: as above.
    unsafe { (*host).copy_from_slice(&problem.pattern) };
    let device = work.alloc(problem.pattern.len())?;
    work.poison(move |memory| Ok(poisoned.poison_device(memory, device)?));
    let wrong = move |memory: &Memory| judge.differences_on_device(memory, device);
    Ok((device, Box::new(wrong)))
}
