//! The few kernels whose effects other code needs. Every other kernel takes a defined time and writes
//! nothing.

use crate::clock::Time;
use crate::device::Description;
use crate::memory::Region;
use crate::objects::KernelEffect;
use crate::state::State;

impl KernelEffect {
    /// The effect of kernel `name` with these arguments; `place` has the memory of one.
    pub(crate) fn of(name: &str, values: &[u64], place: impl Fn(usize) -> Option<Region>) -> Self {
        match (name, values) {
            ("empty" | "crossover_empty", []) => Self::Empty,
            ("crossover_gate", &[_, timeout]) => match place(0) {
                Some(words) => Self::Gate {
                    words: words.content,
                    timeout,
                    open: is_open(words.content),
                },
                None => Self::Nothing,
            },
            ("spin" | "crossover_spin", &[nanoseconds]) => Self::Spin {
                nanoseconds,
                spun: None,
            },
            ("spin_timed", &[nanoseconds, _]) => Self::Spin {
                nanoseconds,
                spun: place(1),
            },
            _ => Self::Nothing,
        }
    }
}

fn is_open(words: usize) -> bool {
    // SAFETY: the address of pinned memory, checked at the launch; the host writes it as the gate
    // polls it.
    unsafe { (words as *const u32).read_volatile() != 0 }
}

impl State {
    pub(crate) fn run_kernel(
        &mut self,
        on: &Description,
        effect: &KernelEffect,
        start: Time,
        forced: bool,
    ) -> Option<Time> {
        match effect {
            KernelEffect::Nothing => Some(start + self.clock.vary(on, on.kernel_ns)),
            KernelEffect::Empty => Some(start + self.clock.vary(on, on.empty_kernel_ns)),
            KernelEffect::Spin { nanoseconds, spun } => {
                let took = nanoseconds.max(&on.empty_kernel_ns);
                // The spin itself is exact; the time that its launch adds varies.
                let added = self.clock.vary(on, on.empty_kernel_ns);
                if let Some(spun) = spun {
                    // SAFETY: eight bytes that were checked at the launch.
                    unsafe { (spun.content as *mut u64).write_unaligned(*took) };
                    self.memory.overwrite(spun, None);
                }
                Some(start + took + added)
            }
            KernelEffect::Gate {
                words,
                timeout,
                open,
            } => {
                let passing = start + on.empty_kernel_ns;
                if *open {
                    return Some(passing);
                }
                if is_open(*words) {
                    // The host has opened it meanwhile; on the virtual clock that is now.
                    return Some(passing.max(self.clock.host));
                }
                if !forced {
                    return None;
                }
                let timed_out = *words + size_of::<u32>();
                // SAFETY: the second word of the gate, in pinned memory.
                unsafe { (timed_out as *mut u32).write_volatile(1) };
                Some(start + timeout)
            }
        }
    }
}
