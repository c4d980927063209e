//! Mistakes that a host can make, and what the driver says of each.

use std::ffi::c_void;

use crate::capture::{cuStreamBeginCapture_v2, cuStreamEndCapture};
use crate::context::{cuCtxEnablePeerAccess, cuCtxSetCurrent, cuDevicePrimaryCtxRetain};
use crate::copies::{cuMemAlloc_v2, cuMemFree_v2, cuMemcpyPeerAsync, cuMemsetD8Async};
use crate::cublas::{cublasCreate_v2, cublasSetStream_v2, cublasSgemmStridedBatched};
use crate::device::described;
use crate::event::{cuEventCreate, cuEventRecord, cuStreamWaitEvent};
use crate::kernels::COMPILED;
use crate::launch::cuLaunchKernel;
use crate::module::{cuModuleGetFunction, cuModuleLoadData};
use crate::pool::cuMemAllocAsync;
use crate::state::{Outcome, State};
use crate::stream::{cuStreamCreate, cuStreamSynchronize};

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

/// Launches `read_again` on an address with so many threads. Its module is of the current device.
fn read(state: &mut State, address: u64, threads: u32, stream: u64) -> Outcome {
    let image = format!("{COMPILED}ceilings.cu\0");
    let module = cuModuleLoadData(state, image.as_ptr().cast())?;
    let read = cuModuleGetFunction(state, module, c"read_again".as_ptr())?;
    let (address, number) = ((&raw const address).cast(), (&raw const threads).cast());
    let arguments = [address, number, number, address];
    let arguments = arguments.as_ptr();
    cuLaunchKernel(state, read, 1, 1, 1, threads, 1, 1, 0, stream, arguments, 0)
}

/// Multiplies a matrix of 2 x 2 elements in f32 with itself. The results lie behind each other, from `at` on
/// in the same allocation of so many bytes.
fn product(state: &mut State, stream: u64, [bytes, at]: [u64; 2], batch: i32) -> Outcome {
    let a = cuMemAlloc_v2(state, bytes as usize)?;
    let handle = cublasCreate_v2(state)?;
    cublasSetStream_v2(state, handle, stream)?;
    let scalar = (&raw const ONE).cast::<c_void>();
    let c = a + at;
    cublasSgemmStridedBatched(
        state, handle, 0, 0, 2, 2, 2, scalar, a, 2, 0, a, 2, 0, scalar, c, 2, 4, batch,
    )
}

static ONE: f32 = 1.0;

type Mistake = fn(&mut State, Of, Of) -> Outcome;

const MISTAKES: &[(&str, Mistake)] = &[
    ("9 B at d1 end 1 B past d1 of 8 B", |state, one, _| {
        cuMemsetD8Async(state, one.memory, 0, 9, one.stream)
    }),
    ("no allocation starts at d1 (freed)", |state, one, _| {
        cuMemFree_v2(state, one.memory)?;
        cuMemFree_v2(state, one.memory)
    }),
    ("d1 (freed) is used after it was freed", |state, one, _| {
        cuMemFree_v2(state, one.memory)?;
        read(state, one.memory, 1, one.stream)
    }),
    ("ordinary memory of the host is used", |state, one, _| {
        read(state, &raw const one as u64, 1, one.stream)
    }),
    (
        "a block of 257 threads, compiled for 256",
        |state, one, _| read(state, one.memory, 257, one.stream),
    ),
    ("no block [1025, 1, 1] threads", |state, one, _| {
        read(state, one.memory, 1025, one.stream)
    }),
    ("read_again was loaded on device 0", |state, _, two| {
        read(state, two.memory, 1, two.stream)
    }),
    ("device 0 uses d2 of device 1", |state, one, two| {
        read(state, two.memory, 1, one.stream)
    }),
    // Memory of a pool follows the pool.
    ("device 0 uses d3 of device 1", |state, one, two| {
        cuCtxEnablePeerAccess(state, two.context, 0)?;
        read(state, two.memory, 1, one.stream)?;
        let of_pool = cuMemAllocAsync(state, 8, two.stream)?;
        read(state, of_pool, 1, one.stream)
    }),
    ("d2 is of device 1, and the context", |state, one, two| {
        let first = one.context;
        cuMemcpyPeerAsync(state, one.memory, first, two.memory, first, 8, one.stream)
    }),
    ("e1 of device 0 is used", |state, _, two| {
        let event = cuEventCreate(state, 0)?;
        cuEventRecord(state, event, two.stream)
    }),
    ("an allocation that waits", |state, one, _| {
        cuStreamBeginCapture_v2(state, one.stream, 0)?;
        cuMemAlloc_v2(state, 8).map(drop)
    }),
    ("the capture of s1 was spoiled", |state, one, _| {
        cuStreamBeginCapture_v2(state, one.stream, 0)?;
        cuStreamSynchronize(state, one.stream).unwrap_err();
        cuStreamEndCapture(state, one.stream).map(drop)
    }),
    ("s3 joined the capture of s1", |state, one, _| {
        let (event, s3) = (cuEventCreate(state, 0)?, cuStreamCreate(state, 1)?);
        cuStreamBeginCapture_v2(state, one.stream, 0)?;
        cuEventRecord(state, event, one.stream)?;
        cuStreamWaitEvent(state, s3, event, 0)?;
        cuMemsetD8Async(state, one.memory, 0, 8, s3)?;
        cuStreamEndCapture(state, one.stream).map(drop)
    }),
    (
        "d: 32 B at d4+0x10 end 1 B past d4 of 47 B",
        |state, one, _| {
            product(state, one.stream, [48, 16], 2)?;
            product(state, one.stream, [47, 16], 2)
        },
    ),
    ("the result at d3+0xc lies in a", |state, one, _| {
        product(state, one.stream, [48, 12], 1)
    }),
];

#[test]
fn each_mistake_is_refused() {
    for (sentence, mistake) in MISTAKES {
        let (mut state, [one, two]) = devices();
        let why = mistake(&mut state, one, two).expect_err(sentence).why;
        assert!(why.contains(sentence), "{why}");
    }
}
