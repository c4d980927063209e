//! The few kernels whose effects other code needs. Every other kernel takes a defined time and writes
//! nothing.

use std::ffi::CStr;

use crate::clock::Time;
use crate::device::Description;
use crate::memory::Memory;
use crate::nccl::Joint;
use crate::state::{Outcome, State};

/// The effect of a kernel, by its name. Addresses are those of the content on the host.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Only the time of a kernel, and of so many operations of a library's kernel.
    Operations(f64),
    /// A collective operation with other processes.
    Joint(Joint),
    /// `empty` and `crossover_empty`: the time of a kernel without work, with which the suite compares
    /// every other one.
    Empty,
    /// `crossover_gate(flag, timeout)` of the timing crate: the stream waits until the host has written
    /// a word; if the host itself waits, the timeout passes.
    Gate {
        words: usize,
        timeout: u64,
        /// Whether the word was written before the gate was enqueued.
        open: bool,
    },
    /// `spin(ns)`, `crossover_spin(ns)` and `spin_timed(ns, *spun)`: kernels of known duration, with
    /// which the suite checks its clocks. The last one writes its duration.
    Spin {
        nanoseconds: u64,
        spun: Option<usize>,
    },
}

impl Effect {
    /// The name of the kernel in the records.
    pub(crate) fn name(&self) -> &'static CStr {
        match self {
            Self::Gate { .. } => c"crossover_gate",
            Self::Spin { .. } => c"crossover_spin",
            Self::Empty => c"crossover_empty",
            Self::Operations(_) | Self::Joint(_) => c"kernel",
        }
    }

    /// The effect of kernel `name` with these arguments.
    pub(crate) fn of(name: &str, values: &[u64], memory: &Memory) -> Outcome<Self> {
        Ok(match (name, values) {
            ("empty" | "crossover_empty", []) => Self::Empty,
            ("crossover_gate", &[words, timeout]) => {
                let words = memory.check(words, 8)?.content;
                let open = is_open(words);
                Self::Gate {
                    words,
                    timeout,
                    open,
                }
            }
            ("spin" | "crossover_spin", &[nanoseconds]) => Self::Spin {
                nanoseconds,
                spun: None,
            },
            ("spin_timed", &[nanoseconds, spun]) => Self::Spin {
                nanoseconds,
                spun: Some(memory.check(spun, 8)?.content),
            },
            _ => Self::Operations(0.0),
        })
    }
}

fn is_open(words: usize) -> bool {
    // SAFETY: the address of pinned memory, checked at the launch; the host writes it as the gate
    // polls it.
    unsafe { (words as *const u32).read_volatile() != 0 }
}

impl State {
    /// The end of a kernel; `None` for a gate that is closed and not `forced`.
    pub(crate) fn run_kernel(
        &mut self,
        on: &Description,
        effect: &Effect,
        start: Time,
        forced: bool,
    ) -> Option<Time> {
        Some(match *effect {
            Effect::Joint(ref joint) => {
                let operations = Effect::Operations(joint.meet());
                return self.run_kernel(on, &operations, start, forced);
            }
            Effect::Operations(operations) => {
                let took = on.kernel_ns + (operations / on.flop_per_s as f64 * 1e9) as u64;
                start + self.clock.vary(on, took) + self.clock.longer
            }
            Effect::Empty => start + self.clock.vary(on, on.empty_kernel_ns) + self.clock.longer,
            Effect::Spin { nanoseconds, spun } => {
                let took = nanoseconds.max(on.empty_kernel_ns);
                if let Some(spun) = spun {
                    // SAFETY: eight bytes that were checked at the launch.
                    unsafe { (spun as *mut u64).write_unaligned(took) };
                }
                // The spin itself is exact; the time that its launch adds varies.
                start + took + self.clock.vary(on, on.empty_kernel_ns)
            }
            Effect::Gate { open: true, .. } => start + on.empty_kernel_ns,
            // The host has opened it meanwhile; on the virtual clock that is now.
            Effect::Gate { words, .. } if is_open(words) => {
                (start + on.empty_kernel_ns).max(self.clock.host)
            }
            Effect::Gate { words, timeout, .. } if forced => {
                let timed_out = words + size_of::<u32>();
                // SAFETY: the second word of the gate, in pinned memory.
                unsafe { (timed_out as *mut u32).write_volatile(1) };
                start + timeout
            }
            Effect::Gate { .. } => return None,
        })
    }
}
