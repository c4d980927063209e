//! CUPTI's activity records, read by their first fields.
//!
//! Which struct a record has depends on the version of the library: each release adds fields at
//! the end of some. The fields that are read lie at the same places in all versions that
//! [`version`](super::version) accepts, so one reader serves them all; the tests assert that of
//! cudarc's bindings.

use std::ffi::{CStr, c_char};

use crossover_profile::recording::WorkRecord;
use crossover_profile::{Place, Work, name};

/// Kinds of activity, from `cupti_activity.h`.
const MEMCPY: u32 = 1;
const MEMSET: u32 = 2;
pub(super) const DRIVER: u32 = 4;
/// Some libraries launch through internal functions of the driver, of which CUPTI has no records. Then
/// only the call of the CUDA runtime is recorded.
const RUNTIME: u32 = 5;
/// Records kernels without keeping them from running at the same time. The kind `KERNEL` (3)
/// would serialise them.
const CONCURRENT_KERNEL: u32 = 10;
/// Copies between devices.
const MEMCPY2: u32 = 22;
const EXTERNAL_CORRELATION: u32 = 39;

/// Kinds of activity that are recorded.
pub(super) const KINDS: [u32; 7] = [
    DRIVER,
    RUNTIME,
    EXTERNAL_CORRELATION,
    MEMCPY,
    MEMCPY2,
    MEMSET,
    CONCURRENT_KERNEL,
];

/// Those of them that are work on a device.
pub(super) const WORK: &[u32] = &[MEMCPY, MEMCPY2, MEMSET, CONCURRENT_KERNEL];

#[repr(C)]
#[derive(Clone, Copy)]
struct Kernel {
    kind: u32,
    cache: [u8; 2],
    registers: u16,
    partitioned: [u32; 2],
    start: u64,
    end: u64,
    completed: u64,
    device: u32,
    context: u32,
    stream: u32,
    grid: [i32; 3],
    block: [i32; 3],
    static_shared: i32,
    dynamic_shared: i32,
    local: [u32; 2],
    correlation: u32,
    grid_id: i64,
    name: *const c_char,
}

/// A copy, or a memory set, which has its value in place of the kinds of memory.
#[repr(C)]
#[derive(Clone, Copy)]
struct Copy {
    kind: u32,
    copy_kind: u8,
    from: u8,
    to: u8,
    flags: u8,
    bytes: u64,
    start: u64,
    end: u64,
    device: u32,
    context: u32,
    stream: u32,
    correlation: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct PeerCopy {
    kind: u32,
    kinds: [u8; 4],
    bytes: u64,
    start: u64,
    end: u64,
    device: u32,
    context: u32,
    stream: u32,
    from_device: u32,
    from_context: u32,
    to_device: u32,
    to_context: u32,
    correlation: u32,
}

/// A call of the driver, such as `cuLaunchKernel`, or of the CUDA runtime, which libraries use, such as
/// `cudaLaunchKernel`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ApiCall {
    kind: u32,
    /// CUPTI's number of the function.
    pub(super) function: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    process: u32,
    pub(super) thread: u32,
    pub(super) correlation: u32,
}

impl ApiCall {
    pub(super) fn is_of_the_runtime(&self) -> bool {
        self.kind == RUNTIME
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Mark {
    kind: u32,
    external_kind: u32,
    external: u64,
    correlation: u32,
}

/// The content of a record.
#[derive(Debug, PartialEq)]
pub(super) enum Record {
    Work(WorkRecord),
    Call(ApiCall),
    /// The call was made in a range.
    InRange {
        correlation: u32,
        range: u64,
    },
    /// A kind that is not recorded here.
    Other,
}

/// Reads a record. Without `names` it does not read the name of a kernel.
///
/// # Safety
/// `record` must point to a whole activity record of one of the accepted versions. With `names`, a kernel's
/// name in it must point to a string that ends in zero, as while the kernel's module is loaded.
pub(super) unsafe fn read(record: *const u8, names: bool) -> Record {
    // SAFETY: every record begins with its kind.
    let kind: u32 = unsafe { record.cast::<u32>().read_unaligned() };
    macro_rules! fields {
        ($type:ty) => {
            // SAFETY: the caller answers for the record, and each kind is read as the struct of numbers and
            // pointers that the tests compare with NVIDIA's.
            unsafe { record.cast::<$type>().read_unaligned() }
        };
    }
    match kind {
        CONCURRENT_KERNEL => {
            let fields = fields!(Kernel);
            // SAFETY: the caller answers for the name.
            Record::Work(unsafe { kernel(&fields, names) })
        }
        MEMCPY => Record::Work(copy(&fields!(Copy))),
        MEMCPY2 => Record::Work(peer_copy(&fields!(PeerCopy))),
        MEMSET => Record::Work(set(&fields!(Copy))),
        DRIVER | RUNTIME => Record::Call(fields!(ApiCall)),
        EXTERNAL_CORRELATION => {
            let mark = fields!(Mark);
            Record::InRange {
                correlation: mark.correlation,
                range: mark.external,
            }
        }
        _ => Record::Other,
    }
}

/// A piece of work with the times, the device and the stream of its record.
macro_rules! work {
    ($record:ident, $work:expr) => {
        WorkRecord {
            work: $work,
            start: $record.start,
            end: $record.end,
            correlation: $record.correlation,
            device: $record.device,
            context: $record.context,
            stream: $record.stream,
        }
    };
}

/// # Safety
/// With `names`, the name must be null or point to a string that ends in zero.
unsafe fn kernel(k: &Kernel, names: bool) -> WorkRecord {
    let three = |v: [i32; 3]| v.map(|n| n.max(0) as u32);
    let symbol = if k.name.is_null() {
        "(a kernel without a name)".into()
    } else if names {
        // SAFETY: the caller answers for the string.
        unsafe { CStr::from_ptr(k.name) }.to_string_lossy()
    } else {
        "(a kernel; a module was unloaded, and names with it)".into()
    };
    let kernel = Work::Kernel {
        name: name::kernel(&symbol),
        grid: three(k.grid),
        block: three(k.block),
        registers: u32::from(k.registers),
        shared_bytes: (k.static_shared.max(0) + k.dynamic_shared.max(0)) as u32,
    };
    work!(k, kernel)
}

fn copy(c: &Copy) -> WorkRecord {
    let (from, to, bytes) = (place(c.from), place(c.to), c.bytes);
    work!(c, Work::Copy { from, to, bytes })
}

fn peer_copy(c: &PeerCopy) -> WorkRecord {
    // The other one of the two devices is the peer of the device that copies.
    let place = |device| {
        if device == c.device {
            Place::Device
        } else {
            Place::Peer
        }
    };
    let (from, to, bytes) = (place(c.from_device), place(c.to_device), c.bytes);
    work!(c, Work::Copy { from, to, bytes })
}

fn set(s: &Copy) -> WorkRecord {
    work!(s, Work::Set { bytes: s.bytes })
}

/// `CUpti_ActivityMemoryKind`
fn place(kind: u8) -> Place {
    match kind {
        1 => Place::Pageable,
        2 => Place::Pinned,
        // Memory, an array, a variable of a module.
        3 | 4 | 6 => Place::Device,
        5 | 7 => Place::Managed,
        _ => Place::Unknown,
    }
}

#[cfg(test)]
#[cfg(feature = "cupti-structs")]
mod tests {
    use std::mem::{offset_of, size_of};

    use cudarc::cupti::sys;
    use sys::CUpti_ActivityKind as Kind;

    use super::*;
    use crate::profiler::library::{MODULE_UNLOAD_STARTING, RESOURCE};

    /// Asserts that our fields lie where those of cudarc's bindings do.
    macro_rules! same_places {
        ($ours:ident as [$($theirs:ident),*]: $fields:tt) => {
            $(same_places!($ours as $theirs: $fields);)*
        };
        ($ours:ident as $theirs:ident: { $($our:ident = $their:ident),* $(,)? }) => {
            const _: () = {
                $(assert!(offset_of!($ours, $our) == offset_of!(sys::$theirs, $their));)*
                assert!(size_of::<$ours>() <= size_of::<sys::$theirs>());
            };
        };
    }

    // CUDA 11 to 12.9, and 13.0.
    same_places!(Kernel as [
        CUpti_ActivityKernel7, CUpti_ActivityKernel8, CUpti_ActivityKernel9, CUpti_ActivityKernel10
    ]: {
        kind = kind, registers = registersPerThread, start = start, end = end, device = deviceId,
        context = contextId, stream = streamId, grid = gridX, block = blockX, static_shared = staticSharedMemory,
        dynamic_shared = dynamicSharedMemory, correlation = correlationId, name = name,
    });
    same_places!(Copy as [CUpti_ActivityMemcpy5, CUpti_ActivityMemcpy6]: {
        kind = kind, copy_kind = copyKind, from = srcKind, to = dstKind, bytes = bytes, start = start,
        end = end, device = deviceId, context = contextId, stream = streamId, correlation = correlationId,
    });
    same_places!(PeerCopy as CUpti_ActivityMemcpyPtoP4: {
        kind = kind, bytes = bytes, start = start, end = end, device = deviceId, context = contextId, stream = streamId,
        from_device = srcDeviceId, to_device = dstDeviceId, correlation = correlationId,
    });
    same_places!(Copy as [CUpti_ActivityMemset3, CUpti_ActivityMemset4]: {
        kind = kind, bytes = bytes, start = start, end = end, device = deviceId, context = contextId, stream = streamId,
        correlation = correlationId,
    });
    same_places!(ApiCall as CUpti_ActivityAPI: {
        kind = kind, function = cbid, start = start, end = end, thread = threadId,
        correlation = correlationId,
    });
    same_places!(Mark as CUpti_ActivityExternalCorrelation: {
        kind = kind, external_kind = externalKind, external = externalId, correlation = correlationId,
    });

    /// The values read of a record with these fields, all others zero.
    macro_rules! read_of {
        ($names:expr, $ours:ident: $($field:ident = $value:expr),* $(,)?) => {{
            // SAFETY: it has numbers and pointers alone.
            let ours = $ours { $($field: $value,)* ..unsafe { std::mem::zeroed() } };
            // SAFETY: the record has all fields that are read, and a name that is read lies in the executable.
            unsafe { read((&raw const ours).cast(), $names) }
        }};
    }

    #[test]
    fn a_kernel_whose_name_is_read_while_its_module_is_there() {
        let gone = String::from("freed");
        let freed = gone.as_ptr().cast();
        drop(gone);
        let there = c"_Z4axpyIfEvT_PKS0_PS0_i".as_ptr();
        for (names, symbol, expected) in [
            (true, there, "axpy<float>"),
            (
                false,
                freed,
                "(a kernel; a module was unloaded, and names with it)",
            ),
        ] {
            let found = read_of!(names, Kernel:
                kind = CONCURRENT_KERNEL, registers = 40, start = 1_000, end = 1_800, device = 1, context = 4,
                stream = 13, grid = [2, 3, 4], block = [32, 0, 0], static_shared = 1024, dynamic_shared = 512,
                correlation = 77, name = symbol,
            );
            let expected = WorkRecord {
                work: Work::Kernel {
                    name: expected.to_owned(),
                    grid: [2, 3, 4],
                    block: [32, 0, 0],
                    registers: 40,
                    shared_bytes: 1536,
                },
                start: 1_000,
                end: 1_800,
                correlation: 77,
                device: 1,
                context: 4,
                stream: 13,
            };
            assert_eq!(found, Record::Work(expected));
        }
    }

    #[test]
    fn copies_sets_calls_and_marks() {
        let work = |record| match record {
            Record::Work(record) => record.work,
            other => panic!("{other:?}"),
        };
        let bytes = 64;
        let copy = |from, to| Work::Copy { from, to, bytes };
        let pinned = read_of!(true, Copy: kind = MEMCPY, from = 2, to = 3, bytes = bytes);
        assert_eq!(work(pinned), copy(Place::Pinned, Place::Device));
        let peer = read_of!(true, PeerCopy: kind = MEMCPY2, device = 1, from_device = 1, to_device = 2, bytes = bytes);
        assert_eq!(work(peer), copy(Place::Device, Place::Peer));
        let set = read_of!(true, Copy: kind = MEMSET, bytes = bytes);
        assert_eq!(work(set), Work::Set { bytes });
        let call = read_of!(true, ApiCall: kind = RUNTIME, function = 211);
        assert!(
            matches!(call, Record::Call(call) if call.function == 211),
            "{call:?}"
        );
        let (correlation, range) = (8, 6);
        let mark = read_of!(true, Mark: kind = EXTERNAL_CORRELATION, external = range, correlation = correlation);
        assert_eq!(mark, Record::InRange { correlation, range });
    }

    #[test]
    fn the_kinds_are_those_of_the_bindings_and_none_serialises() {
        let theirs = [
            Kind::CUPTI_ACTIVITY_KIND_DRIVER,
            Kind::CUPTI_ACTIVITY_KIND_RUNTIME,
            Kind::CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
            Kind::CUPTI_ACTIVITY_KIND_MEMCPY,
            Kind::CUPTI_ACTIVITY_KIND_MEMCPY2,
            Kind::CUPTI_ACTIVITY_KIND_MEMSET,
            Kind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        ];
        assert_eq!(KINDS, theirs.map(|k| k as u32));
        let unload = sys::CUpti_CallbackIdResource::CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING;
        assert_eq!(MODULE_UNLOAD_STARTING, unload as u32);
        let resource = sys::CUpti_CallbackDomain::CUPTI_CB_DOMAIN_RESOURCE;
        assert_eq!(RESOURCE, resource as u32);
        assert!(!KINDS.contains(&(Kind::CUPTI_ACTIVITY_KIND_KERNEL as u32)));
    }
}
