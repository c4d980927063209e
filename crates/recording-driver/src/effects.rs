//! The few kernels whose effect others depend on. Every other kernel takes the device's stated time
//! and writes nothing.

use crate::clock::Time;
use crate::memory::Place;
use crate::state::State;

/// What a kernel does, by its name.
#[derive(Clone, Debug)]
pub(crate) enum KernelEffect {
    /// Any kernel.
    Nothing,
    /// `empty` and `crossover_empty`: what remains is the time of a kernel without work, which the
    /// suite holds every other one against.
    Empty,
    /// `crossover_gate(flag, timeout)` of the timing crate: the stream waits until the host has
    /// written a word, and a wait of the host itself lets its time-out pass.
    Gate {
        words: usize,
        timeout: u64,
        /// Whether the word was written before the gate was enqueued.
        open: bool,
    },
    /// `spin(ns)`, `crossover_spin(ns)` and `spin_timed(ns, *spun)`: kernels of known duration, which
    /// the suite checks its clocks against. The last writes how long it took.
    Spin {
        nanoseconds: u64,
        spun: Option<Place>,
    },
}

impl KernelEffect {
    /// The effect of kernel `name` with these arguments, of which `places` are the memory.
    pub(crate) fn of(name: &str, values: &[u64], places: &[Option<Place>]) -> Self {
        let place = |at: usize| places.get(at).cloned().flatten();
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
        effect: &KernelEffect,
        start: Time,
        forced: bool,
    ) -> Option<Time> {
        match effect {
            KernelEffect::Nothing => Some(start + self.clock.vary(self.description.kernel_ns)),
            KernelEffect::Empty => Some(start + self.clock.vary(self.description.empty_kernel_ns)),
            KernelEffect::Spin { nanoseconds, spun } => {
                let took = nanoseconds.max(&self.description.empty_kernel_ns);
                // The spin itself is exact; what launching it adds varies.
                let added = self.clock.vary(self.description.empty_kernel_ns);
                if let Some(spun) = spun {
                    // SAFETY: eight bytes that were checked at the launch.
                    unsafe { (spun.content as *mut u64).write_unaligned(*took) };
                    if let Some(written) = spun.base.and_then(|base| self.memory.get_mut(base)) {
                        written.version += 1;
                        written.written = None;
                    }
                }
                Some(start + took + added)
            }
            KernelEffect::Gate {
                words,
                timeout,
                open,
            } => {
                let passing = start + self.description.empty_kernel_ns;
                if *open {
                    return Some(passing);
                }
                if is_open(*words) {
                    // The host has opened it since; by the virtual clock that is now.
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
