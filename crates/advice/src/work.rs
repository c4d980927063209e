//! Decisions for work that was never measured, from the limits of the machine.

use crate::advice::Advice;
use crate::decision::Reason;
use crate::thresholds::{Bandwidth, Choice, Limits, Link, Residency};

/// Time to wake the threads of a pool, ns: a few microseconds on the measured hosts.
const WAKE_NS: f64 = 5_000.0;

/// The shortest time of a call, ns.
const CALL_NS: f64 = 50.0;

/// Work by its amounts, each zero or more.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Floating-point operations in f32; a fused multiply-add counts as two.
    pub flop: f64,
    /// Lower bound on the bytes that must move through the memory that it works from.
    pub bytes: f64,
    /// Bytes to the device.
    pub upload: f64,
    /// Bytes back to the host.
    pub download: f64,
    /// Kernels; at least one is counted.
    pub launches: u32,
    /// Its time on the CPU now, if it is known.
    pub cpu_ns: Option<f64>,
}

/// A limit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// Arithmetic.
    Compute,
    /// The caches of the CPU, or the L2 cache of the GPU. Estimates of work that was never measured do not
    /// have this limit.
    Cache,
    /// Memory.
    Memory,
    /// Launching and waiting.
    Launch,
    /// Moving data between host and device.
    Link,
}

impl Limit {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Compute => "compute",
            Limit::Cache => "cache",
            Limit::Memory => "memory",
            Limit::Launch => "launch",
            Limit::Link => "link",
        }
    }
}

/// The least time that one limit allows, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Least {
    /// The limit.
    pub limit: Limit,
    /// The time, ns.
    pub ns: f64,
}

/// From the best to the typical: times in ns, or counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// As fast as the limits allow.
    pub best: f64,
    /// As fast as most measured code.
    pub typical: f64,
}

/// Estimated times of work on either side.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct OffloadEstimate {
    /// On the CPU: a range of its limits, or the time that was given.
    pub cpu: Range,
    /// On the GPU, with the data moved.
    pub gpu: Range,
    /// On the GPU, on data that are there.
    pub resident: Range,
    /// The least time for each limit of the CPU.
    pub cpu_least: [Least; 2],
    /// The least time for each limit of the GPU.
    pub gpu_least: [Least; 4],
    /// Who is faster, with the data moved each time.
    pub choice: Choice,
    /// Whether the limits are of another machine. Then the choice is [`Choice::Unsure`].
    pub other_machine: bool,
    /// Uses of the same data from which on the GPU is faster: for the best GPU code and typical CPU
    /// code, and the reverse. Infinite if the GPU is not faster on data that are there.
    pub uses: Range,
}

impl OffloadEstimate {
    /// Whether moving the data alone takes longer than the CPU.
    pub fn cannot_win(&self) -> bool {
        let mut link = self
            .gpu_least
            .iter()
            .filter(|least| least.limit == Limit::Link);
        link.any(|least| least.ns > self.cpu.typical)
    }
}

impl Limits {
    /// The time that the limits allow for work with its data there (`None`: on the CPU), at best and
    /// for plain code. Plain code launches its kernels one by one and copies before and after them; the
    /// best code replays a graph and copies while it computes. `None` if the copies of such data were
    /// not measured.
    pub fn bounds(&self, data: Option<Residency>, work: &Work) -> Option<Range> {
        let launches = f64::from(work.launches.max(1));
        let busy = (work.flop / self.gpu_flop).max(work.bytes / self.gpu_rate(work)) * 1e9;
        // The host waits for the first launch.
        let kernels = |of: f64, each: f64| busy.max(of * each);
        let awaited = |each: f64| self.awaited_ns + kernels(launches - 1.0, each);
        Some(match data {
            None => {
                let memory = work.bytes / bandwidth(&self.cpu_bandwidth, work.bytes);
                let one = (work.flop / self.core_flop).max(memory) * 1e9;
                let all = (work.flop / self.cpu_flop).max(memory) * 1e9 + WAKE_NS;
                let ns = one.min(all) + CALL_NS;
                Range {
                    best: ns,
                    typical: ns,
                }
            }
            Some(Residency::Queued) => Range {
                best: kernels(launches, self.kernel_ns),
                typical: kernels(launches, self.launch_ns),
            },
            Some(Residency::Awaited) => Range {
                best: awaited(self.kernel_ns),
                typical: awaited(self.launch_ns),
            },
            Some(data) => {
                let link = self.links.iter().find(|link| link.data == data)?;
                let copies = link_ns(link, work);
                let latencies = link.upload.latency_ns + link.download.latency_ns;
                let best = match data {
                    // A plain copy of ordinary memory blocks the host until it is done.
                    Residency::Ordinary => {
                        self.awaited_ns + copies.typical + kernels(launches - 1.0, self.kernel_ns)
                    }
                    _ => self.awaited_ns + copies.best.max(kernels(launches - 1.0, self.kernel_ns)),
                };
                Range {
                    best,
                    typical: latencies + copies.typical + kernels(launches, self.launch_ns),
                }
            }
        })
    }

    fn gpu_rate(&self, work: &Work) -> f64 {
        // Each kernel is assumed to read an equal part.
        bandwidth(
            &self.gpu_bandwidth,
            work.bytes / f64::from(work.launches.max(1)),
        )
    }

    /// The time of code, from the best to the typical. `None` if nothing is known about code there.
    pub fn estimate(&self, data: Option<Residency>, work: &Work) -> Option<Range> {
        let reached = self.reached.iter().find(|reached| reached.data == data)?;
        let allowed = self.bounds(data, work)?;
        let range = Range {
            best: allowed.best * reached.best,
            typical: allowed.typical * reached.typical,
        };
        let is_sound = |ns: f64| ns.is_finite() && ns > 0.0;
        (is_sound(range.best) && is_sound(range.typical)).then_some(range)
    }
}

/// The time on the link: both directions at once, and one after the other.
fn link_ns(link: &Link, work: &Work) -> Range {
    let (up, down) = (
        work.upload / link.upload.rate,
        work.download / link.download.rate,
    );
    Range {
        best: up.max(down) * 1e9,
        typical: (up + down) * 1e9,
    }
}

/// The rate at a working set, or at the largest measured one if that is smaller.
fn bandwidth(curve: &[Bandwidth], set: f64) -> f64 {
    let below = curve.iter().take_while(|point| point.bytes <= set);
    below
        .last()
        .or(curve.first())
        .map_or(f64::NAN, |point| point.rate)
}

impl Advice {
    /// Estimates the times of work that was never measured, from the machine's limits and the times of
    /// measured code relative to them.
    ///
    /// # Errors
    /// [`Reason::NoAmounts`] if an amount is not a number from zero on, or if there is neither arithmetic
    /// nor memory traffic nor a time; [`Reason::NoLimits`] if the limits are not known, and
    /// [`Reason::NoPlace`] if the copies of such data are not.
    pub fn estimate_offload(
        &self,
        work: &Work,
        data: Residency,
    ) -> Result<OffloadEstimate, Reason> {
        let amounts = [work.flop, work.bytes, work.upload, work.download];
        let is_amount = |n: &f64| (0.0..=1e30).contains(n);
        let is_work = work.flop.max(work.bytes).max(work.cpu_ns.unwrap_or(0.0)) > 0.0;
        if !amounts.iter().chain(&work.cpu_ns).all(is_amount)
            || !is_work
            || work.cpu_ns == Some(0.0)
        {
            return Err(Reason::NoAmounts);
        }
        let limits = self.thresholds().limits.as_ref().ok_or(Reason::NoLimits)?;
        let cpu = match work.cpu_ns {
            Some(ns) => Range {
                best: ns,
                typical: ns,
            },
            None => limits.estimate(None, work).ok_or(Reason::NoLimits)?,
        };
        let gpu = limits.estimate(Some(data), work).ok_or(Reason::NoPlace)?;
        let resident = limits.estimate(Some(Residency::Awaited), work);
        let resident = resident.ok_or(Reason::NoLimits)?;
        let link = limits.links.iter().find(|link| link.data == data);
        let uses = |moved: f64, there: f64, cpu: f64| match cpu - there {
            saved if saved > 0.0 => ((moved - there) / saved).max(1.0).ceil(),
            _ => f64::INFINITY,
        };
        let uses = Range {
            best: uses(gpu.best, resident.best, cpu.typical),
            typical: uses(gpu.typical, resident.typical, cpu.best),
        };
        let least = |limit, ns| Least { limit, ns };
        let seconds = |limit, seconds: f64| least(limit, seconds * 1e9);
        let (low, high) = (cpu.best / gpu.typical, cpu.typical / gpu.best);
        Ok(OffloadEstimate {
            cpu,
            gpu,
            resident,
            cpu_least: [
                seconds(Limit::Compute, work.flop / limits.cpu_flop),
                seconds(
                    Limit::Memory,
                    work.bytes / bandwidth(&limits.cpu_bandwidth, work.bytes),
                ),
            ],
            gpu_least: [
                seconds(Limit::Compute, work.flop / limits.gpu_flop),
                seconds(Limit::Memory, work.bytes / limits.gpu_rate(work)),
                least(
                    Limit::Launch,
                    f64::from(work.launches.max(1)) * limits.kernel_ns,
                ),
                least(
                    Limit::Link,
                    link.map_or(0.0, |link| link_ns(link, work).best),
                ),
            ],
            choice: match self.is_other_machine {
                true => Choice::Unsure,
                false => Choice::of((low * high).sqrt(), low, high),
            },
            other_machine: self.is_other_machine,
            uses,
        })
    }
}
