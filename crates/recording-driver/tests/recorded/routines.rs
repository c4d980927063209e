//! Routines by themselves: memory of one that is dropped, in the hands of another or kept for it, and waits
//! between devices that are missing.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crossover_suite::device::Gpu;
use crossover_suite::model::Exchange;
use crossover_suite::timing::cudarc::driver::{DriverError, sys::CUresult};
use crossover_suite::workload::devices::{Path, peer_copy};
use crossover_suite::workload::transfer::Transfer;
use crossover_suite::workload::{Device, HostMemory, Prepared, Routine, RoutineError, Workload};

use crate::calls::open;
use crate::stand_in::{mark, phases, plan};
use crate::suite;

/// More values than the other routine has, so that nobody else gets their memory.
const FREED: usize = 1 << 20;

type Use = fn(&mut Prepared, own: Device<f32>, freed: Device<f32>) -> Result<(), RoutineError>;

/// Every way to hand memory to a routine, with the name that is printed.
const USES: &[(&str, Use)] = &[
    ("poison", |work, _, freed| {
        work.poison_by(freed, 0);
        Routine::poison(work)
    }),
    ("restore to", |work, own, freed| {
        work.restore(freed, own);
        Routine::restore(work)
    }),
    ("restore from", |work, own, freed| {
        work.restore(own, freed);
        Routine::restore(work)
    }),
    ("read", |work, _, freed| {
        work.check_values(None, freed, 0.0, |_| unreachable!("it is refused before"))?;
        work.check().map(drop)
    }),
    ("copy", |work, _, freed| {
        let to = Some(HostMemory::Pageable);
        Ok(work.check_values(to, freed, 0.0, |_| unreachable!("it is refused before"))?)
    }),
];

/// Each use ends with a panic that names the cause, before the driver is called.
pub(crate) fn refused() {
    let gpu = open();
    for (name, each) in USES {
        let freed = Prepared::new(&gpu).unwrap().output(FREED).unwrap();
        let mut work = Prepared::new(&gpu).unwrap();
        let own = work.output(1).unwrap();
        let ended = catch_unwind(AssertUnwindSafe(|| each(&mut work, own, freed)));
        let panic = ended.expect_err(name).downcast::<String>().expect(name);
        assert!(panic.contains("are another routine's"), "{name}: {panic}");
    }
}

/// Copies that this driver carries out, and the last wait of an iteration. Through the host a wait comes
/// before the pieces, and one with each of the eight.
const COPIES: [(Exchange, Path, Option<u32>); 3] = [
    (Exchange::OneWay, Path::Engine, None),
    (Exchange::BothWays, Path::Engine, Some(2)),
    (Exchange::OneWay, Path::Host, Some(10)),
];

/// The host waits for the timed stream alone. Without the wait of that stream for another device, the bytes
/// arrive too late.
pub(crate) fn waits() {
    let gpu = open();
    let bytes = Rc::new(Transfer::new(1 << 20));
    let arrives = |way, path, left_out: Option<u32>| {
        let mut copy = peer_copy(&gpu, &bytes, way, path).unwrap();
        copy.poison().unwrap();
        gpu.synchronize().unwrap();
        assert!(!copy.check().unwrap().passed(), "nothing was copied");
        // An error 0 leaves a call out.
        plan(&left_out.map_or(String::new(), |nth| {
            format!("cuStreamWaitEvent:{nth}:0:iteration")
        }));
        mark("iteration");
        copy.run().unwrap();
        gpu.synchronize().unwrap();
        mark("check");
        let passed = copy.check().unwrap().passed();
        copy.poison().unwrap();
        gpu.synchronize().unwrap();
        // One value in 256 is that of the poison.
        let poisoned = copy.check().unwrap().error;
        assert!(poisoned > 0.99 * f64::from(1 << 20), "{poisoned} bytes");
        passed
    };
    for (way, path, last) in COPIES {
        assert!(arrives(way, path, None));
        if let Some(last) = last {
            assert!(!arrives(way, path, Some(last)));
            assert!(arrives(way, path, Some(last + 1)));
        }
    }
}

/// Nothing is left when a device is closed, its streams included.
pub(crate) fn closed() {
    let gpu = open();
    mark("closed");
    drop(gpu);
    let lines = phases().pop().expect("a mark").1;
    let is_left = |line: &String| line.contains("the context ends with");
    assert!(!lines.is_empty() && !lines.iter().any(is_left), "{lines:?}");
}

/// Steps run on their device while another one's context is current.
pub(crate) fn other_context() {
    let gpu = open();
    let bytes = Rc::new(Transfer::new(1 << 10));
    let mut copy = peer_copy(&gpu, &bytes, Exchange::OneWay, Path::Kernel).unwrap();
    let other = Rc::new(Gpu::open(1).unwrap());
    Prepared::new(&other).unwrap();
    copy.run().unwrap();
    gpu.synchronize().unwrap();
}

/// A copy from pinned memory, which is kept for others, when a panic drops the routine before anybody waits.
pub(crate) fn unawaited() {
    let gpu = open();
    let values = Rc::new(vec![1.0f32; 1 << 18]);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let mut work = Prepared::new(&gpu).unwrap();
        let from = Some(HostMemory::Pinned);
        work.input(from, &values, |values| values).unwrap();
        work.run().unwrap();
        mark("dropped");
        panic!("nobody has waited");
    }));
    assert!(Result::<(), _>::is_err(&ended));
    let lines = phases().pop().expect("a mark").1;
    assert!(
        lines.iter().any(|line| line == "wait for the context"),
        "{lines:?}"
    );
}

/// A caller's function may give more values at its second call: the copy would not fit.
pub(crate) fn asked_once() {
    let gpu = open();
    let values = Rc::new(vec![1.0f32; 1 << 12]);
    for from in [None, Some(HostMemory::Pageable), Some(HostMemory::Pinned)] {
        let calls = Cell::new(0);
        let mut work = Prepared::new(&gpu).unwrap();
        work.input(from, &values, |values| {
            calls.set(calls.get() + 1);
            &values[..calls.get() << 10]
        })
        .unwrap();
        work.run().unwrap();
        gpu.synchronize().unwrap();
        assert_eq!(calls.get(), 1, "{from:?}");
    }
}

/// An error that an earlier call could not return is reported once the device is idle, not in place of the wait.
pub(crate) fn kept_error() {
    let gpu = open();
    let keep = || {
        let error = DriverError(CUresult::CUDA_ERROR_NOT_FOUND);
        // SAFETY: nothing is enqueued.
        let stream = unsafe { gpu.timed_stream() };
        stream.context().record_err::<()>(Err(error));
    };
    let waits = |of: &str| {
        let lines = phases().pop().expect("a mark").1;
        let wait = format!("wait for {of}");
        assert!(
            lines.iter().any(|line| line.starts_with(&wait)),
            "{lines:?}"
        );
    };
    let values = Rc::new(vec![1.0f32; 1 << 10]);
    let mut work = Prepared::new(&gpu).unwrap();
    let from = Some(HostMemory::Pinned);
    work.input(from, &values, |values| values).unwrap();
    work.run().unwrap();
    keep();
    mark("awaited");
    let error = gpu.synchronize().unwrap_err().to_string();
    assert!(error.contains("CUDA_ERROR_NOT_FOUND"), "{error}");
    waits("s1");
    work.run().unwrap();
    keep();
    mark("dropped");
    drop(work);
    waits("the context");
}

/// Steps may use host memory when the outputs on devices are poisoned: the bytes of the iteration before are
/// still in the buffer when no copy to it is made.
pub(crate) fn host_memory_in_use() {
    let gpu = open();
    let bytes = Rc::new(Transfer::new(1 << 20));
    let mut copy = peer_copy(&gpu, &bytes, Exchange::OneWay, Path::Host).unwrap();
    copy.poison().unwrap();
    copy.run().unwrap();
    gpu.synchronize().unwrap();
    plan("cuMemcpyDtoHAsync_v2:*:0:iteration");
    mark("iteration");
    copy.restore().unwrap();
    copy.run().unwrap();
    gpu.synchronize().unwrap();
    mark("check");
    assert!(copy.check().unwrap().passed());
}

/// The pinned memory of a routine that was dropped serves one that needs less, and not much less.
pub(crate) fn pinned_memory() {
    let groups = suite::groups().into_iter();
    let group = (groups.filter(|group| group.name() == "transfer").last()).unwrap();
    let gpu = open();
    let allocates = |bytes| {
        plan("");
        let row = "gpu/h2d-pinned";
        group
            .in_phases(row, bytes, &gpu, BTreeMap::new(), &mut mark)
            .unwrap();
        plan("").contains("\tcuMemHostAlloc\t")
    };
    for (bytes, is_new) in [(4 << 20, true), (2 << 20, false), (1 << 16, true)] {
        assert_eq!(allocates(bytes), is_new, "{bytes}");
    }
}

/// The clock's device is held up while the other is free, and the other way round: held up for longer, the
/// other would hide that it does not wait.
pub(crate) fn held_up() {
    let mut groups = suite::groups().into_iter();
    let group = groups.find(|group| group.name() == "peer_copy").unwrap();
    mark("verified");
    group.verify("gpu/engine-both", Some(&open())).unwrap();
    let (mut held, mut are_awaited) = (Vec::new(), true);
    for line in phases().pop().expect("a mark").1 {
        if line.starts_with("launch spin") {
            assert!(are_awaited, "both are held up: {line}");
            are_awaited = false;
            let stream = line
                .split(" on ")
                .nth(1)
                .and_then(|on| on.split(' ').next());
            held.push(stream.expect("a stream").to_owned());
        }
        are_awaited |= line.starts_with("wait for");
    }
    assert!(held.len() >= 2 && held[0] != held[1], "{held:?}");
}
