//! Work on several devices: copies between two, sums over all, and products whose rows are divided.
//!
//! One host thread enqueues the work of all devices. Their streams wait for the first device's timed stream,
//! and that stream waits for them, by events, in each iteration. So the clock of the first device times the
//! work of all. In sums the streams wait for the timed stream in a sample's first iteration alone: NCCL orders the
//! others. Sums may have a process for each device instead (`ranks.rs`).

#![warn(clippy::multiple_unsafe_ops_per_block)]

mod all_reduce;
mod peer_copy;
mod product;
mod ranks;

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use cudarc::driver::CudaEvent;

use crate::device::Gpu;
use crate::device::copies_and_events::order;
use crate::model::Verified;
use crate::model::record::DEVICES;
use crate::timing::{Announce, CudaError, DeviceMemory};
use crate::workload::prepare::{PeerStream, Prepared, Steps, Stream};
use crate::workload::routine::{Alteration, Result, Routine};

pub use all_reduce::{AllReduce, Results};
pub use peer_copy::{Path, peer_copy};
pub use product::{gathered, in_place};
use ranks::RankParts;
pub use ranks::all_reduce;
pub(crate) use ranks::{LaunchRequest, follow, launches_of_ranks};

/// A routine on the devices of a run.
pub(crate) struct OnDevices {
    gpus: Vec<Rc<Gpu>>,
    /// Memory of each device. The first one has the steps of all.
    parts: Vec<Prepared>,
    /// One of each device, to order its memory.
    events: Vec<CudaEvent>,
    /// Whether the steps do not fork, because the operation itself orders the devices.
    orders_itself: bool,
    /// Whether memory was changed since the last run.
    is_changed: bool,
    /// The parts of other processes.
    others: Option<RankParts>,
}

impl OnDevices {
    /// A routine without memory and steps.
    ///
    /// # Errors
    /// There is one device, or another cannot be opened; the driver's errors.
    pub(crate) fn new(first: &Rc<Gpu>) -> Result<Self> {
        let gpus = [first].into_iter().chain(first.beside()?);
        let gpus: Vec<_> = gpus.cloned().collect();
        let beside = gpus[1..].iter().map(Prepared::beside);
        let parts: Result<Vec<_>, _> = [Prepared::new(first)].into_iter().chain(beside).collect();
        let events: Result<Vec<_>, _> = gpus.iter().map(|gpu| gpu.new_event()).collect();
        first.bind()?;
        let (mut parts, devices) = (parts?, gpus.len() as f64);
        parts[0].figures.insert(DEVICES.to_owned(), devices);
        Ok(Self {
            gpus,
            parts,
            events: events?,
            orders_itself: false,
            is_changed: false,
            others: None,
        })
    }

    /// The stream that works on a device.
    pub(crate) fn work(at: usize) -> Stream {
        match at {
            0 => Stream::Compute,
            at => Stream::Beside(at, PeerStream::Work),
        }
    }

    /// The steps of an iteration, on all devices.
    pub(crate) fn steps(&mut self) -> &mut Steps {
        &mut self.parts[0].steps
    }

    /// Makes these streams wait for the timed stream.
    pub(crate) fn fork(&mut self, mut streams: impl Iterator<Item = Stream>) -> Result<()> {
        Ok(streams.try_for_each(|on| self.steps().order(Stream::Compute, on))?)
    }

    /// Makes the timed stream wait for these streams.
    pub(crate) fn join(&mut self, mut streams: impl Iterator<Item = Stream>) -> Result<()> {
        Ok(streams.try_for_each(|on| self.steps().order(on, Stream::Compute))?)
    }

    /// The routine, once all devices have their memory.
    pub(crate) fn ready(self) -> Result<Self, CudaError> {
        for gpu in self.gpus.iter().rev() {
            gpu.synchronize()?;
        }
        self.gpus[0].bind()?;
        Ok(self)
    }

    /// Changes memory of each device in the order of the timed stream, although on streams on which no step
    /// runs. A step that does not wait for the timed stream comes before the change, which overwrites its
    /// result.
    fn in_order(&mut self, mut change: impl FnMut(&mut Prepared) -> Result<()>) -> Result<()> {
        self.is_changed = true;
        self.others.as_ref().map_or(Ok(()), RankParts::poison)?;
        let timed = self.gpus[0].stream().clone();
        change(&mut self.parts[0])?;
        for (part, event) in self.parts.iter_mut().zip(&self.events).skip(1) {
            order(&self.events[0], &timed, &part.memory.stream)?;
            change(part)?;
            order(event, &part.memory.stream, &timed)?;
        }
        Ok(())
    }

    fn all_of<'a>(
        &'a self,
        of: impl Fn(&'a Prepared) -> Vec<DeviceMemory<'a>>,
    ) -> Vec<DeviceMemory<'a>> {
        // The clock reads them on the first device.
        let is_read = |at: usize| at == 0 || self.gpus[0].has_access(at - 1);
        let parts = self.parts.iter().enumerate();
        let parts = parts.filter(|(at, _)| is_read(*at));
        parts.flat_map(|(_, part)| of(part)).collect()
    }

    /// The worst verdict of all devices; `None` where none compares anything.
    fn verdict(&self, altered: Option<Alteration>) -> Result<Option<Verified>> {
        let own = || {
            let verdicts = self.parts.iter().map(|part| part.verdict(altered));
            let verdicts: Result<Vec<_>, _> = verdicts.collect();
            self.gpus[0].bind()?;
            Ok(worst(verdicts?.into_iter().flatten()))
        };
        match &self.others {
            Some(others) => others.verdict(altered, own),
            None => own(),
        }
    }
}

/// The verdict with the largest error above its bound.
fn worst(verdicts: impl Iterator<Item = Verified>) -> Option<Verified> {
    let share = |verdict: &Verified| match verdict.error {
        error if error.is_nan() => f64::INFINITY,
        error => error - verdict.bound,
    };
    verdicts.max_by(|a, b| share(a).total_cmp(&share(b)))
}

impl Routine for OnDevices {
    fn poison(&mut self) -> Result<()> {
        // Steps may use host memory until then.
        self.gpus[0].synchronize()?;
        self.in_order(Routine::poison)
    }

    fn restore(&mut self) -> Result<()> {
        // Finds steps that do not wait for the timed stream.
        self.in_order(Prepared::poison_device)
    }

    fn run(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_changed) && self.orders_itself {
            // Its first iteration waits for the change, and for the clock.
            for gpu in &self.gpus[1..] {
                order(&self.events[0], self.gpus[0].stream(), gpu.stream())?;
            }
            self.gpus[0].bind()?;
        }
        let first = &mut self.parts[0];
        match &self.others {
            Some(others) => others.run(|| first.run()),
            None => first.run(),
        }
    }

    fn announcer(&self) -> Option<Announce> {
        self.others.as_ref().map(RankParts::announcer)
    }

    fn wait_for_each(&mut self) -> Result<()> {
        self.parts[0].wait_for_each()
    }

    fn check(&mut self) -> Result<Verified> {
        Ok(self.verdict(None)?.ok_or("nothing compares the result")?)
    }

    fn check_altered(&mut self, by: Alteration) -> Result<Option<Verified>> {
        self.verdict(Some(by))
    }

    fn inputs(&self) -> Vec<DeviceMemory<'_>> {
        self.all_of(Prepared::inputs)
    }

    fn outputs(&self) -> Vec<DeviceMemory<'_>> {
        self.all_of(Prepared::outputs)
    }

    fn launches(&self) -> u32 {
        self.parts[0].launches()
    }

    fn extra(&mut self) -> Result<BTreeMap<String, f64>> {
        self.parts[0].extra()
    }

    fn notes(&self) -> Vec<String> {
        self.parts[0].notes()
    }
}

impl Drop for OnDevices {
    fn drop(&mut self) {
        drop(self.others.take());
        // A device may still use the memory of another.
        self.gpus[0].wait_for_all();
        // The steps go first, with the part of the first device.
        self.parts.clear();
        self.events.clear();
        let _ = self.gpus[0].bind();
    }
}

/// As equal parts of `total` as there are, in order; some are empty where there are more than values.
fn split(total: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    (0..parts).map(move |at| total * at / parts..total * (at + 1) / parts)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn parts_cover_everything_once() {
        for (total, parts) in [(1, 2), (7, 2), (8192, 3), (4, 4)] {
            let covered: Vec<usize> = split(total, parts).flatten().collect();
            assert_eq!(covered, (0..total).collect::<Vec<_>>());
        }
    }
}
