//! The work of a stream, and its execution.

use std::fmt::Arguments;

use crate::call::DRIVER;
use crate::clock::{Time, moved};
use crate::device::Description;
use crate::memory::Kind::Device;
use crate::objects::{Copy, Set, Work};
use crate::state::State;

impl State {
    /// Runs a piece of work that may start at `start`, and returns when it ends; `None` for a gate
    /// that is closed and not `forced`.
    pub(crate) fn run(
        &mut self,
        on: &Description,
        work: &Work,
        start: Time,
        forced: bool,
    ) -> Option<Time> {
        let check = |what: Arguments<'_>, address: Option<u64>| {
            let there = address.map_or(Ok(()), |address| self.memory.check_there(address));
            if let Err(fault) = there {
                DRIVER.refused(&what.to_string(), &fault);
            }
        };
        let took = match work {
            Work::Kernel { effect, used, .. } => {
                for used in used {
                    let name = used.name;
                    check(
                        format_args!("a kernel that runs ({name})"),
                        Some(used.address),
                    );
                }
                let end = self.run_kernel(on, effect, start, forced)?;
                self.record_activity(work, [start, end]);
                return Some(end);
            }
            Work::Copy(copy) => {
                for side in [&copy.from, &copy.to] {
                    check(format_args!("a copy that runs"), side.base);
                }
                copy_now(copy);
                copy_time(on, copy)
            }
            Work::Set(set) => {
                check(format_args!("a set that runs"), set.to.base);
                let bytes = set.unit * set.count;
                // A set of twice the L2 cache is a flush, which nobody reads.
                if bytes < 2 * on.l2_bytes as u64 {
                    set_now(set);
                }
                moved(on, bytes, on.memory_bytes_per_s)
            }
            Work::Record(record) => {
                record.reach(start);
                return Some(start);
            }
            Work::Wait(record) => return Some(start.max(record.time().unwrap_or(0))),
            Work::Free(base) => {
                self.memory.release(*base);
                return Some(start);
            }
            Work::Allocation(_) | Work::FreeAllocation(_) => return Some(start),
            Work::Graph(graph) => return Some(self.run_graph(on, graph, start)),
        };
        let end = start + self.clock.vary(on, took);
        self.record_activity(work, [start, end]);
        Some(end)
    }
}

fn copy_now(copy: &Copy) {
    for row in 0..copy.rows {
        let from = copy.from.content + (row * copy.from_pitch) as usize;
        let to = copy.to.content + (row * copy.to_pitch) as usize;
        // SAFETY: both sides were checked when the copy was enqueued, and `run` has checked that they
        // still exist; ordinary memory is the caller's promise. A copy within one allocation may
        // overlap.
        unsafe {
            std::ptr::copy(from as *const u8, to as *mut u8, copy.width as usize);
        }
    }
}

fn set_now(set: &Set) {
    let to = set.to.content;
    match set.unit {
        // SAFETY: the range was checked when the set was enqueued.
        1 => unsafe {
            std::ptr::write_bytes(to as *mut u8, set.value as u8, set.count as usize);
        },
        // SAFETY: the range was checked then as whole words.
        _ => unsafe {
            let words = std::slice::from_raw_parts_mut(to as *mut u32, set.count as usize);
            words.fill(set.value);
        },
    }
}

fn copy_time(on: &Description, copy: &Copy) -> u64 {
    let bytes = copy.width * copy.rows;
    match (copy.from.kind, copy.to.kind) {
        (Some(Device), Some(Device)) => moved(on, 2 * bytes, on.memory_bytes_per_s),
        (Some(_), Some(_)) => moved(on, bytes, on.pcie_bytes_per_s),
        _ => moved(on, bytes, on.pageable_bytes_per_s),
    }
}
