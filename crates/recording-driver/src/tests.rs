//! Mistakes that a host can make, and what the driver says of each.

use std::ffi::c_void;
use std::process::Command;

use crate::capture::*;
use crate::context::*;
use crate::copies::*;
use crate::cublas::{cublasCreate_v2, cublasSetStream_v2, cublasSgemmStridedBatched};
use crate::device::described;
use crate::event::*;
use crate::fault::code::*;
use crate::graph::{cuGraphInstantiateWithFlags, cuGraphLaunch};
use crate::kernels::COMPILED;
use crate::launch::cuLaunchKernel;
use crate::module::{cuModuleGetFunction, cuModuleLoadData};
use crate::pool::cuMemAllocAsync;
use crate::state::{Outcome, State};
use crate::stream::*;

/// A device's context, a stream of it, and eight bytes.
#[derive(Clone, Copy)]
struct Of {
    context: u64,
    stream: u64,
    memory: u64,
}

/// Two devices, the first of which is current, with s1 and s2, d1 and d2.
fn devices() -> (State, [Of; 2]) {
    let described = [(); 2].map(|()| described("h200").unwrap());
    let mut state = State::new(Vec::from(described).leak());
    let devices = [0, 1].map(|device| {
        let context = cuDevicePrimaryCtxRetain(&mut state, device).unwrap();
        cuCtxSetCurrent(&mut state, context).unwrap();
        Of {
            context,
            stream: cuStreamCreate(&mut state, 1).unwrap(),
            memory: cuMemAlloc_v2(&mut state, 8).unwrap(),
        }
    });
    cuCtxSetCurrent(&mut state, devices[0].context).unwrap();
    (state, devices)
}

/// The kernel `read_again` of the current device.
fn read_again(state: &mut State) -> Outcome<u64> {
    let image = format!("{COMPILED}limits.cu\0");
    let module = cuModuleLoadData(state, image.as_ptr().cast())?;
    cuModuleGetFunction(state, module, c"read_again".as_ptr())
}

/// Launches `read_again` on an address with this number of threads. Its module is of the current device.
fn read(state: &mut State, address: u64, threads: u32, stream: u64) -> Outcome {
    let kernel = read_again(state)?;
    launch(state, kernel, address, threads, stream)
}

fn launch(state: &mut State, kernel: u64, address: u64, threads: u32, stream: u64) -> Outcome {
    let (address, number) = ((&raw const address).cast(), (&raw const threads).cast());
    let arguments = [address, number, number, address];
    let arguments = arguments.as_ptr();
    cuLaunchKernel(
        state, kernel, 1, 1, 1, threads, 1, 1, 0, stream, arguments, 0,
    )
}

/// Multiplies a matrix of 2 x 2 elements in f32, with so many from one column to the next, with itself. The
/// results lie behind each other, from `at` on in the same allocation of so many bytes.
fn product(
    state: &mut State,
    stream: u64,
    [bytes, at]: [u64; 2],
    pitch: i32,
    batch: i32,
) -> Outcome {
    let a = cuMemAlloc_v2(state, bytes as usize)?;
    let handle = cublasCreate_v2(state)?;
    cublasSetStream_v2(state, handle, stream)?;
    let scalar = (&raw const ONE).cast::<c_void>();
    let c = a + at;
    cublasSgemmStridedBatched(
        state, handle, 0, 0, 2, 2, 2, scalar, a, pitch, 0, a, pitch, 0, scalar, c, 2, 4, batch,
    )
}

/// Copies two rows of three bytes within d1, from a byte of each row on, with so many from one row to the
/// next.
fn rows(state: &mut State, one: Of, x: usize, pitch: usize) -> Outcome {
    let side = Rectangle {
        x,
        memory_type: 2,
        device: one.memory,
        pitch,
        ..Rectangle::default()
    };
    let rows = Rows {
        from: side,
        to: side,
        width: 3,
        height: 2,
    };
    cuMemcpy2DAsync_v2(state, &raw const rows, one.stream)
}

/// Captures s1, with s3 and its work joined to it by an event.
fn forked(state: &mut State, one: Of) -> Outcome<(u64, u64)> {
    let (event, s3) = (cuEventCreate(state, 0)?, cuStreamCreate(state, 1)?);
    cuStreamBeginCapture_v2(state, one.stream, 0)?;
    cuEventRecord(state, event, one.stream)?;
    cuStreamWaitEvent(state, s3, event, 0)?;
    cuMemsetD8Async(state, one.memory, 0, 8, s3)?;
    Ok((event, s3))
}

static ONE: f32 = 1.0;

/// Stands for the error of calls that the driver would accept, and memory would be corrupted.
const CORRUPTS: i32 = 0;

type Mistake = fn(&mut State, Of, Of) -> Outcome;

macro_rules! mistakes {
    ($($error:ident: $sentence:literal, $calls:expr;)*) => {
        /// The error of each last call, a part of its sentence, and the calls.
        const MISTAKES: &[(i32, &str, Mistake)] = &[$(($error, $sentence, $calls)),*];
    };
}

mistakes! {
    INVALID_VALUE: "9 B at d1 end 1 B past d1 of 8 B", |state, one, _| {
        cuMemsetD8Async(state, one.memory, 0, 9, one.stream)
    };
    INVALID_VALUE: "rows end at byte 4 of a pitch of 3 B", |state, one, _| {
        rows(state, one, 0, 3)?;
        rows(state, one, 1, 3)
    };
    INVALID_VALUE: "no allocation starts at d1 (freed)", |state, one, _| {
        cuMemFree_v2(state, one.memory)?;
        cuMemFree_v2(state, one.memory)
    };
    CORRUPTS: "read_again: d1 (freed) is used", |state, one, _| {
        cuMemFree_v2(state, one.memory)?;
        read(state, one.memory, 1, one.stream)
    };
    CORRUPTS: "ordinary memory of the host is used", |state, one, _| {
        read(state, &raw const one as u64, 1, one.stream)
    };
    // Memory of a pool follows the pool.
    CORRUPTS: "device 0 uses d3 of device 1", |state, one, two| {
        read(state, two.memory, 1, one.stream).unwrap_err();
        cuCtxEnablePeerAccess(state, two.context, 0)?;
        read(state, two.memory, 1, one.stream)?;
        let of_pool = cuMemAllocAsync(state, 8, two.stream)?;
        read(state, of_pool, 1, one.stream)
    };
    CORRUPTS: "d: 32 B at d4+0x10 end 1 B past d4", |state, one, _| {
        product(state, one.stream, [48, 16], 2, 2)?;
        product(state, one.stream, [47, 16], 2, 2)
    };
    // Two columns of two elements, the second of which begins three behind the first.
    CORRUPTS: "a: 20 B at d4 end 1 B past d4", |state, one, _| {
        product(state, one.stream, [36, 20], 3, 1)?;
        product(state, one.stream, [19, 0], 3, 1)
    };
    INVALID_HANDLE: "launched on device 1 while", |state, _, two| {
        read(state, two.memory, 1, two.stream)
    };
    INVALID_HANDLE: "read_again was loaded on device 0", |state, _, two| {
        let kernel = read_again(state)?;
        cuCtxSetCurrent(state, two.context)?;
        launch(state, kernel, two.memory, 1, two.stream)
    };
    LAUNCH_OUT_OF_RESOURCES: "257 threads, compiled for 256", |state, one, _| {
        read(state, one.memory, 257, one.stream)
    };
    INVALID_VALUE: "d2 is of device 1, and the context", |state, one, two| {
        let first = one.context;
        cuMemcpyPeerAsync(state, one.memory, first, two.memory, first, 8, one.stream)
    };
    INVALID_HANDLE: "e1 of device 0 is used", |state, _, two| {
        let event = cuEventCreate(state, 0)?;
        cuEventRecord(state, event, two.stream)
    };
    INVALID_HANDLE: "e1 of device 0 is used", |state, one, two| {
        let mut events = Vec::new();
        for on in [one, two] {
            cuCtxSetCurrent(state, on.context)?;
            let event = cuEventCreate(state, 0)?;
            cuEventRecord(state, event, on.stream)?;
            cuEventSynchronize(state, event)?;
            events.push(event);
        }
        cuEventElapsedTime_v2(state, events[0], events[1]).map(drop)
    };
    INVALID_VALUE: "no block [1025, 1, 1] threads", |state, one, _| {
        read(state, one.memory, 1025, one.stream)
    };
    PEER_ACCESS_ALREADY_ENABLED: "device 0 may already", |state, _, two| {
        cuCtxEnablePeerAccess(state, two.context, 0)?;
        cuCtxEnablePeerAccess(state, two.context, 0)
    };
    CAPTURE_UNSUPPORTED: "an allocation that waits", |state, one, _| {
        cuStreamBeginCapture_v2(state, one.stream, 0)?;
        cuMemAlloc_v2(state, 8).map(drop)
    };
    CAPTURE_UNMATCHED: "no capture was begun on s3", |state, one, _| {
        let (_, s3) = forked(state, one)?;
        cuStreamEndCapture(state, s3).map(drop)
    };
    CAPTURED_EVENT: "e1 was recorded in a capture", |state, one, _| {
        let (event, _) = forked(state, one)?;
        cuEventSynchronize(state, event)
    };
    CAPTURE_UNJOINED: "s3 joined the capture of s1", |state, one, _| {
        forked(state, one)?;
        cuStreamEndCapture(state, one.stream).map(drop)
    };
}

#[test]
fn each_mistake_is_refused() {
    for &(error, sentence, calls) in MISTAKES {
        let (mut state, [one, two]) = devices();
        let fault = calls(&mut state, one, two).expect_err(sentence);
        assert!(fault.why.contains(sentence), "{}", fault.why);
        let code = if fault.corrupts { CORRUPTS } else { fault.code };
        assert_eq!(code, error, "{sentence}");
    }
}

/// A graph of the work that `capture` puts into a stream.
fn instantiated(
    state: &mut State,
    stream: u64,
    capture: impl FnOnce(&mut State) -> Outcome,
) -> u64 {
    cuStreamBeginCapture_v2(state, stream, 0).unwrap();
    capture(state).unwrap();
    let graph = cuStreamEndCapture(state, stream).unwrap();
    cuGraphInstantiateWithFlags(state, graph, 0).unwrap()
}

/// In a graph, an upload and a download that nobody orders run in the order opposite to that of the calls. Outside of
/// graphs `recorded` leaves waits out.
#[test]
fn a_missing_wait_shows_in_a_graph() {
    for upload_first in [true, false] {
        let (mut state, [one, _]) = devices();
        let state = &mut state;
        let [from, to] = [7u8, 1].map(|value| {
            let pinned = cuMemHostAlloc(state, 8, 0).unwrap();
            // SAFETY: it has eight bytes, which nobody else uses.
            unsafe { (pinned as *mut u8).write_bytes(value, 8) };
            pinned
        });
        let graph = instantiated(state, one.stream, |state| {
            let (event, later) = (cuEventCreate(state, 0)?, cuStreamCreate(state, 1)?);
            cuEventRecord(state, event, one.stream)?;
            cuStreamWaitEvent(state, later, event, 0)?;
            if upload_first {
                cuMemcpyHtoDAsync_v2(state, one.memory, from, 8, one.stream)?;
                cuMemcpyDtoHAsync_v2(state, to, one.memory, 8, later)?;
            } else {
                cuMemcpyDtoHAsync_v2(state, to, one.memory, 8, one.stream)?;
                cuMemcpyHtoDAsync_v2(state, one.memory, from, 8, later)?;
            }
            cuEventRecord(state, event, later)?;
            cuStreamWaitEvent(state, one.stream, event, 0)
        });
        cuGraphLaunch(state, graph, one.stream).unwrap();
        cuCtxSynchronize(state).unwrap();
        // SAFETY: one of its eight bytes.
        let read = unsafe { *(to as *const u8) };
        assert_eq!(read, if upload_first { 0 } else { 7 });
    }
}

/// In processes of their own, which end.
#[test]
fn a_graph_of_memory_that_was_given_back_ends_the_process() {
    const CASE: &str = "RECORDING_DRIVER_TEST_CASE";
    for (freed, work) in [("d1", "set"), ("pinned1", "copy")] {
        if std::env::var_os(CASE).is_some_and(|chosen| chosen == freed) {
            let (mut state, [one, _]) = devices();
            let pinned = cuMemHostAlloc(&mut state, 8, 0).unwrap();
            let graph = instantiated(&mut state, one.stream, |state| match work {
                "set" => cuMemsetD8Async(state, one.memory, 1, 8, one.stream),
                _ => cuMemcpyHtoDAsync_v2(state, one.memory, pinned, 8, one.stream),
            });
            if freed == "d1" {
                cuMemFree_v2(&mut state, one.memory).unwrap();
            } else {
                cuMemFreeHost(&mut state, pinned).unwrap();
                // Its address must not pass to other memory.
                cuMemHostAlloc(&mut state, 8, 0).unwrap();
            }
            cuGraphLaunch(&mut state, graph, one.stream).unwrap();
            cuStreamSynchronize(&mut state, one.stream).unwrap();
            std::process::exit(0);
        }
        let name = "tests::a_graph_of_memory_that_was_given_back_ends_the_process";
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture"]);
        let output = command.env(CASE, freed).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        let sentence = format!("a {work} that runs: {freed} (freed)");
        assert!(errors.contains(&sentence), "{sentence}: {errors}");
    }
}
