//! The emulated devices, each described by a text file.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Names each device, with commas between: `h200` or `t4`, and the properties that differ, as in
/// `h200:memory_bytes=1073741824:variation_ppm=0`. One `h200` without it.
pub const DEVICES: &str = "RECORDING_DRIVER_DEVICES";

macro_rules! description {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// The properties of a device that the stand-ins report, and the time of its work on the
        /// virtual clock.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Description {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Description {
            /// Reads lines `key = value`; `#` begins a comment.
            ///
            /// # Errors
            /// A sentence about the key that is missing, unknown or not understood.
            pub fn parse(text: &str) -> Result<Self, String> {
                let lines = text.lines().filter(|line| !line.starts_with('#'));
                let pairs = lines.map(|line| line.split_once(" = ").unwrap_or((line, "")));
                let mut values: BTreeMap<&str, &str> = pairs.collect();
                let described = Self {
                    $($field: (values.remove(stringify!($field)))
                        .and_then(|value| value.parse().ok())
                        .ok_or(concat!("a device needs a good `", stringify!($field), "`"))?,)*
                };
                match values.keys().next() {
                    None => Ok(described),
                    Some(unknown) => Err(format!("a device has no `{unknown}`")),
                }
            }
        }
    };
}

description! {
    /// Name, such as `NVIDIA H200`.
    name: String,
    /// Compute capability, the part before the point.
    compute_capability_major: i32,
    /// The part behind it.
    compute_capability_minor: i32,
    /// CUDA version that the driver supports, 1000 times the major and 10 times the minor one.
    driver: i32,
    /// Number of streaming multiprocessors.
    multiprocessors: i32,
    /// Memory in bytes.
    memory_bytes: u64,
    /// Bytes of it that a context takes.
    context_bytes: u64,
    /// L2 cache in bytes.
    l2_bytes: i32,
    /// Bytes of shared memory that a block may have without asking.
    shared_per_block: i32,
    /// Bytes of it that a kernel may ask for.
    shared_per_block_optin: i32,
    /// Highest clock of the multiprocessors.
    sm_clock_mhz: u32,
    /// Clock of the memory.
    memory_clock_mhz: u32,
    /// Width of the bus of the memory, bits.
    memory_bus_bits: i32,
    /// Its bus.
    pci_bus: i32,
    /// Nanoseconds that a kernel takes.
    kernel_ns: u64,
    /// Nanoseconds that a kernel without any work takes.
    empty_kernel_ns: u64,
    /// Nanoseconds of host time that a launch takes.
    launch_ns: u64,
    /// Nanoseconds between two ticks of the clock of events.
    event_tick_ns: u64,
    /// Nanoseconds that a copy or a set takes beside its bytes.
    copy_ns: u64,
    /// Rate of copies between pinned memory and the device.
    pcie_bytes_per_s: u64,
    /// Rate of copies between ordinary memory and the device.
    pageable_bytes_per_s: u64,
    /// Rate of the device's memory, bytes read plus written.
    memory_bytes_per_s: u64,
    /// Rate of a library's kernels, whose work is known.
    flop_per_s: u64,
    /// How much these times vary, in millionths to either side. With 0 every sample of Criterion is the
    /// same.
    variation_ppm: u64,
    /// Number of streams that can run kernels before every kernel takes longer, until a second context was destroyed.
    short_streams: usize,
    /// Nanoseconds that a kernel then takes longer.
    long_launch_ns: u64,
    /// Bytes of the L2 cache that the primary context sets aside for persisting lines. Any other context has 3/16 of
    /// it.
    persisting_bytes: usize,
    /// Whether it uses the memory of other devices that may, over NVLink.
    peer_access: bool,
    /// How many records CUPTI keeps between two flushes.
    activity_records: usize,
    /// How many pieces of work a stream holds before an enqueueing call waits.
    queue_depth: usize,
}

/// The UUID of the first device; the last byte of others is larger.
pub(crate) const UUID: [u8; 16] = *b"recording device";

/// The devices of this process.
pub(crate) fn descriptions() -> &'static [Description] {
    static OF_PROCESS: LazyLock<Vec<Description>> = LazyLock::new(|| {
        let names = std::env::var(DEVICES).unwrap_or_else(|_| "h200".to_owned());
        let devices: Result<Vec<_>, String> = names.split(',').map(described).collect();
        devices.unwrap_or_else(|error| {
            eprintln!("the recording driver has no device: {error}");
            std::process::abort();
        })
    });
    &OF_PROCESS
}

pub(crate) fn described(name: &str) -> Result<Description, String> {
    let mut parts = name.split(':');
    let text = match parts.next() {
        Some("h200") => include_str!("../devices/h200.txt"),
        Some("t4") => include_str!("../devices/t4.txt"),
        _ => return Err(format!("none is called {name}")),
    };
    let differing = parts.map(|part| part.replace('=', " = ") + "\n");
    Description::parse(&format!("{text}{}", differing.collect::<String>()))
}
