//! What the driver does with work: when it runs, and what a capture does not allow.

use crate::context;
use crate::copies::Side;
use crate::device::{Description, descriptions};
use crate::fault::code;
use crate::kernels::COMPILED;
use crate::launch::Shape;
use crate::memory::Kind;
use crate::state::{Outcome, State};

/// A driver whose context is current on this thread, and a stream.
pub(crate) fn opened() -> (State, u64) {
    let mut state = State::new(descriptions());
    let context = state.retain(0).unwrap();
    context::set_current(context);
    let stream = state.create_stream(true).unwrap();
    (state, stream)
}

/// Launches `fill` with an address, or `empty`, of a module of the current device.
fn launched(state: &mut State, kernel: &str, address: u64, stream: u64) -> Outcome {
    let sources = [("fill", "cold_start.cu"), ("empty", "spin.cu")];
    let (_, source) = sources.iter().find(|(name, _)| *name == kernel).unwrap();
    let module = state.load_module(&format!("{COMPILED}{source}")).unwrap();
    let function = state.function(module, kernel).unwrap();
    let shape = Shape {
        grid: [1; 3],
        block: [1; 3],
        shared: 0,
    };
    let number = 1u32;
    let arguments = [
        (&raw const address).cast(),
        (&raw const number).cast(),
        (&raw const number).cast(),
    ];
    // SAFETY: the kernels have at most these parameters.
    unsafe { state.launch(function, shape, stream, arguments.as_ptr()) }
}

fn device(address: u64) -> Side {
    Side::row(address, true)
}

fn host(address: u64) -> Side {
    Side::row(address, false)
}

/// Copies eight bytes.
fn copied(state: &mut State, to: Side, from: Side, stream: u64) {
    state.copy(to, from, (8, 1), Some(stream)).unwrap();
}

/// The content of the device's memory, once the host has waited.
fn read(state: &mut State, from: u64, stream: u64) -> [u8; 8] {
    let mut back = [0u8; 8];
    let to = host(back.as_mut_ptr() as u64);
    copied(state, to, device(from), stream);
    back
}

#[test]
fn ordinary_memory_is_read_at_the_call_and_pinned_memory_later() {
    let (mut state, stream) = opened();
    let d1 = state.allocate(Kind::Device, 8).unwrap();
    let pinned = state.allocate(Kind::Pinned, 8).unwrap() as *mut u8;
    let mut ordinary = [1u8; 8];
    let from = host(ordinary.as_ptr() as u64);
    copied(&mut state, device(d1), from, stream);
    ordinary.fill(2);
    assert_eq!(read(&mut state, d1, stream), [1; 8]);
    assert_eq!(ordinary, [2; 8]);
    // SAFETY: pinned memory of eight bytes.
    unsafe { pinned.write_bytes(3, 8) };
    let from = host(pinned as u64);
    copied(&mut state, device(d1), from, stream);
    // SAFETY: the same eight bytes, which nobody else writes.
    unsafe { pinned.write_bytes(4, 8) };
    let changed_before_it_ran = [4; 8];
    assert_eq!(read(&mut state, d1, stream), changed_before_it_ran);
}

#[test]
fn work_runs_when_the_host_waits_and_not_before() {
    let (mut state, stream) = opened();
    let d1 = state.allocate(Kind::Device, 16).unwrap();
    state.set(d1, 0x0101_0101, [4, 4], stream).unwrap();
    let content = state.memory.check(d1, 16).unwrap().content as *const u32;
    // SAFETY: the content of d1, which is alive.
    assert_eq!(unsafe { content.read_volatile() }, 0);
    state.synchronize_stream(stream).unwrap();
    // SAFETY: d1 is still alive.
    assert_eq!(unsafe { content.read_volatile() }, 0x0101_0101);
}

#[test]
fn a_set_that_changes_nothing_is_left_out_and_none_else() {
    let (mut state, stream) = opened();
    let [d1, d2] = [(); 2].map(|()| state.allocate(Kind::Device, 8).unwrap());
    state.set(d2, 9, [1, 8], stream).unwrap();
    for value in [1, 1, 2] {
        state.set(d1, value, [1, 8], stream).unwrap();
        assert_eq!(read(&mut state, d1, stream), [value as u8; 8]);
    }
    copied(&mut state, device(d1), device(d2), stream);
    assert_eq!(read(&mut state, d1, stream), [9; 8]);
    state.set(d1, 2, [1, 8], stream).unwrap();
    assert_eq!(read(&mut state, d1, stream), [2; 8], "a copy came between");
    state.set(d1, 2, [1, 4], stream).unwrap();
    state.set(d1, 3, [1, 4], stream).unwrap();
    assert_eq!(read(&mut state, d1, stream), [3, 3, 3, 3, 2, 2, 2, 2]);
}

#[test]
fn a_forbidden_address_is_named() {
    let (mut state, stream) = opened();
    let d1 = state.allocate(Kind::Device, 4096).unwrap();
    assert!(state.memory.check(d1 + 4095, 1).is_ok());
    let host = &raw const state as u64;
    for (address, bytes, why) in [
        (d1 + 4, 4096, "4096 B at d1+0x4 end 4 B past d1 of 4096 B"),
        (d1 + 4096, 4, "d1+0x1000 is used on the device"),
        (host, 4, "ordinary memory of the host is used on the device"),
    ] {
        let fault = state.memory.check(address, bytes).unwrap_err();
        assert_eq!((fault.corrupts, &*fault.why), (true, why));
    }
    launched(&mut state, "fill", d1, stream).unwrap();
    state.free(Kind::Device, d1).unwrap();
    let fault = launched(&mut state, "fill", d1, stream).unwrap_err();
    let why = "argument 1 of fill: d1 (freed) is used after it was freed";
    assert_eq!((fault.corrupts, &*fault.why), (true, why));
}

#[test]
fn a_waiting_call_invalidates_a_capture() {
    let waits: [fn(&mut State, u64) -> Outcome; 3] = [
        |state, stream| state.synchronize_stream(stream),
        |state, _| state.allocate(Kind::Device, 64).map(drop),
        |state, _| state.allocate(Kind::Pinned, 64).map(drop),
    ];
    for wait in waits {
        let (mut state, stream) = opened();
        state.begin_capture(stream).unwrap();
        let waited = wait(&mut state, stream);
        assert_eq!(error(waited), code::CAPTURE_UNSUPPORTED);
        let ended = state.end_capture(stream);
        assert_eq!(error(ended), code::CAPTURE_INVALIDATED);
        state.synchronize_stream(stream).unwrap();
    }
}

#[test]
fn a_stream_that_joined_must_be_waited_for() {
    let (mut state, stream_1) = opened();
    let stream_2 = state.create_stream(true).unwrap();
    let event = state.create_event(2).unwrap();
    state.begin_capture(stream_1).unwrap();
    state.record(event, stream_1).unwrap();
    state.wait_event(stream_2, event).unwrap();
    launched(&mut state, "empty", 0, stream_2).unwrap();
    let waited = state.synchronize_event(event);
    assert_eq!(error(waited), code::CAPTURED_EVENT);
    let other = state.end_capture(stream_2);
    assert_eq!(error(other), code::CAPTURE_UNMATCHED);
    let fault = state.end_capture(stream_1).unwrap_err();
    let why = "s2 joined the capture of s1 and s1 does not wait for it";
    assert_eq!((fault.code, &*fault.why), (code::CAPTURE_UNJOINED, why));
}

/// The error of a call; 0 if there is none.
fn error<T>(outcome: Outcome<T>) -> i32 {
    outcome.err().map_or(0, |fault| fault.code)
}

/// Two devices whose contexts are retained, the first one current, and a stream of each.
fn two() -> (State, [u64; 2], [u64; 2]) {
    let described = Description::parse(include_str!("../devices/h200.txt")).unwrap();
    let mut state = State::new(vec![described.clone(), described].leak());
    let contexts = [0, 1].map(|ordinal| state.retain(ordinal).unwrap());
    let [second, first] = [contexts[1], contexts[0]].map(|context| {
        context::set_current(context);
        state.create_stream(true).unwrap()
    });
    (state, contexts, [first, second])
}

#[test]
fn each_device_has_a_context_memory_and_streams_of_its_own() {
    let (mut state, [first, second], streams) = two();
    let whole = state.memory_info().unwrap();
    context::set_current(second);
    let d1 = state.allocate(Kind::Device, 1 << 30).unwrap();
    assert_eq!(state.memory_info().unwrap(), (whole.0 - (1 << 30), whole.1));
    context::set_current(first);
    assert_eq!(state.memory_info().unwrap(), whole, "the other device's");
    // A wait for the first device leaves the work of the second one.
    state.set(d1, 1, [1, 8], streams[1]).unwrap();
    for (device, left) in [(0, 1), (1, 0)] {
        state.synchronize_device(device);
        assert_eq!(state.streams[&streams[1]].queue.len(), left);
    }
    state.release(1).unwrap();
    assert!(state.usable_stream(streams[0]).is_ok());
    let gone = state.usable_stream(streams[1]);
    assert_eq!(error(gone), code::INVALID_HANDLE);
    assert!(state.memory.check(d1, 1).is_err());
    context::set_current(second);
    assert_eq!(error(state.current()), code::INVALID_CONTEXT);
}

#[test]
fn what_is_of_one_device_is_refused_on_the_other() {
    let (mut state, [first, second], streams) = two();
    let d1 = state.allocate(Kind::Device, 64).unwrap();
    let d2 = state.allocate_async(None, 64, streams[0]).unwrap();
    let event = state.create_event(0).unwrap();
    let elsewhere = state.record(event, streams[1]);
    assert_eq!(error(elsewhere), code::INVALID_HANDLE);
    let fault = launched(&mut state, "empty", 0, streams[1]).unwrap_err();
    let why = "empty was loaded on device 0, and the stream is of device 1";
    assert_eq!((fault.code, &*fault.why), (code::INVALID_HANDLE, why));
    // A stream may wait for the other device, whose events are not timed against its own.
    state.record(event, streams[0]).unwrap();
    state.wait_event(streams[1], event).unwrap();
    context::set_current(second);
    let end = state.create_event(0).unwrap();
    state.record(end, streams[1]).unwrap();
    state.synchronize_event(end).unwrap();
    let between = state.elapsed(event, end);
    assert_eq!(error(between), code::INVALID_HANDLE);
    let fault = launched(&mut state, "fill", d1, streams[1]).unwrap_err();
    let why = "device 1 uses d1 of device 0, and has no access to it";
    assert_eq!((fault.corrupts, &*fault.why), (true, why));
    // Copies need no access.
    let d3 = state.allocate(Kind::Device, 64).unwrap();
    copied(&mut state, device(d3), device(d1), streams[1]);
    assert_eq!(error(state.enable_peer(second)), code::INVALID_DEVICE);
    state.enable_peer(first).unwrap();
    let again = state.enable_peer(first);
    assert_eq!(error(again), code::PEER_ACCESS_ALREADY_ENABLED);
    launched(&mut state, "fill", d1, streams[1]).unwrap();
    // Memory of a pool follows the pool.
    assert!(launched(&mut state, "fill", d2, streams[1]).is_err());
    let pool = state.default_pool(0);
    state.pools.get_mut(&pool).unwrap().peers.insert(1);
    launched(&mut state, "fill", d2, streams[1]).unwrap();
}
