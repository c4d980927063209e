//! One kernel of known duration, timed in five ways: what each way adds to the true time, or leaves
//! out.
//!
//! | way | what is in a time |
//! | --- | --- |
//! | `submit` | the launches alone, on the host's clock; the device works outside the window |
//! | `wall` | one call and the wait for it, on the host's clock: launch, device, and the host's waking |
//! | `events` | CUDA events around a batch of calls without a wait between them, divided by their number: the longer of launch and device |
//! | `events-gated` | the same behind a gate: the device alone, and the constant of a kernel in a stream |
//! | `events-cold` | an event pair around each call, the L2 cache flushed before it |
//!
//! The size is the true time in nanoseconds, by the device's own clock.

use std::rc::Rc;

use crate::device::{Gpu, kernel::Source};
use crate::model::Verified;
use crate::workload::prepare::{Prepared, kernels};
use crate::workload::routine::{Result, Routine, Workload};

/// Kernels of known duration: `empty()`, `spin(unsigned long long nanoseconds)`, and
/// `spin_timed(unsigned long long nanoseconds, unsigned long long *spun)`, each for a grid of
/// one block of one thread.
pub static SPIN: Source = kernels!("spin.cu");

/// A kernel that runs for a known time.
pub struct Spin {
    nanoseconds: u64,
}

impl Workload for Spin {
    fn new(size: u64) -> Self {
        Self { nanoseconds: size }
    }

    fn host_bytes(_: u64) -> u64 {
        0
    }

    fn device_bytes(_: u64) -> u64 {
        size_of::<u64>() as u64
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&SPIN] }
    }
}

/// A launch of the kernel that spins. It is only enqueued, since the clocks wait themselves.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
pub fn spin(gpu: &Rc<Gpu>, problem: &Rc<Spin>) -> Result<Box<dyn Routine>> {
    let nanoseconds = problem.nanoseconds;
    let mut work = Prepared::new(gpu)?;
    let launch = gpu.launch(&SPIN, "spin_timed", 1, 1)?;
    let spun = work.output::<u64>(1)?;
    // SAFETY: the kernel takes a time and the address of one 64-bit number.
    unsafe { work.steps.kernel(launch.arg(nanoseconds).arg(spun.address)) };
    work.check_values(None, spun, 0, move |spun| verify(spun[0], nanoseconds))?;
    Ok(Box::new(work))
}

/// Compares the time that a kernel spun with the time asked for. The kernel leaves its loop at the
/// first reading that is late enough: never early, and late by a step of the clock, which is up to
/// 1 µs on some devices, or by an interruption of the device, for which the bound allows a
/// hundredth of the time.
fn verify(spun: u64, asked: u64) -> Verified {
    Verified {
        error: if spun < asked {
            f64::INFINITY
        } else {
            (spun - asked) as f64
        },
        bound: (0.01 * asked as f64).max(2_000.0),
        method: "nanoseconds by the device's clock over the time asked for, infinite below it"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spin_is_never_short_and_hardly_late() {
        assert!(verify(1_000, 1_000).passed());
        assert!(verify(2_984, 1_000).passed());
        assert!(!verify(999, 1_000).passed(), "short by a nanosecond");
        assert!(!verify(3_001, 1_000).passed());
        assert!(verify(101_000_000, 100_000_000).passed());
        assert!(!verify(101_000_001, 100_000_000).passed());
        assert!(!verify(u64::MAX, 100_000_000).passed(), "never written");
        assert!(!verify(0, 1_000).passed());
    }
}
