//! The work of a stream, and its execution.

use crate::clock::Time;
use crate::memory::{Kind, Place, Written, WrittenFrom};
use crate::objects::{Copy, Set, Work};
use crate::state::{State, refused};

impl State {
    /// Runs a piece of work that may start at `start`, and returns when it ends; `None` for a gate
    /// that is closed and not `forced`.
    pub(crate) fn run(&mut self, work: &Work, start: Time, forced: bool) -> Option<Time> {
        let took = match work {
            Work::Kernel {
                function,
                effect,
                used,
            } => {
                for &address in used {
                    if let Err(fault) = self.memory.check_there(address) {
                        let kernel = self.functions.get(function);
                        let name = kernel.map_or("a kernel", |f| f.kernel.name.as_str());
                        refused(&format!("{name} as it runs"), &fault);
                    }
                }
                return self.run_kernel(effect, start, forced);
            }
            Work::Library { flop, used } => {
                for used in used {
                    if let Err(fault) = self.memory.check_there(used.address) {
                        let what = format!("the {} of a library's kernel that runs", used.name);
                        refused(&what, &fault);
                    }
                }
                self.clock.computed(*flop)
            }
            Work::Copy(copy) => {
                self.copy_now(copy);
                self.copy_time(copy)
            }
            Work::Set(set) => {
                self.set_now(set);
                let bytes = set.unit * set.count;
                self.clock.moved(bytes, self.description.memory_bytes_per_s)
            }
            Work::Prefetch { bytes } => self.clock.moved(*bytes, self.description.pcie_bytes_per_s),
            Work::Record(record) => {
                record.reach(start);
                return Some(start);
            }
            Work::Wait(record) => return Some(start.max(record.time().unwrap_or(0))),
            Work::Free(base) => {
                self.give_back(*base);
                return Some(start);
            }
            Work::Graph(graph) => return Some(self.run_graph(graph, start)),
        };
        Some(start + self.clock.vary(took))
    }

    fn copy_time(&self, copy: &Copy) -> u64 {
        let description = self.description;
        let bytes = copy.width * copy.rows;
        match (copy.from.kind, copy.to.kind) {
            (Some(from), Some(to)) if from.on_device() && to.on_device() => {
                self.clock.moved(2 * bytes, description.memory_bytes_per_s)
            }
            (Some(_), Some(_)) => self.clock.moved(bytes, description.pcie_bytes_per_s),
            _ => self.clock.moved(bytes, description.pageable_bytes_per_s),
        }
    }

    fn copy_now(&mut self, copy: &Copy) {
        if self.is_written_already(copy) {
            return;
        }
        let staged = copy.staged.as_ref().map(|staged| staged.as_ptr() as usize);
        let from = staged.unwrap_or(copy.from.content);
        let from_pitch = if staged.is_some() {
            copy.width
        } else {
            copy.from_pitch
        };
        for row in 0..copy.rows {
            let from = from + (row * from_pitch) as usize;
            let to = copy.to.content + (row * copy.to_pitch) as usize;
            // SAFETY: both sides were checked when the copy was enqueued, and what is freed while
            // work is in flight keeps its content until that has run; ordinary memory is the
            // caller's promise. A copy within one allocation may overlap.
            unsafe {
                std::ptr::copy(from as *const u8, to as *mut u8, copy.width as usize);
            }
        }
    }

    /// Whether the device's memory holds what the copy would write: then it is left out, for large
    /// copies are made over and over while they are timed. Notes what the copy writes.
    fn is_written_already(&mut self, copy: &Copy) -> bool {
        let bytes = copy.width * copy.rows;
        let of_device = |place: &Place| {
            let own = matches!(place.kind, Some(Kind::Device | Kind::Pool(_)));
            place.base.filter(|_| own && copy.rows == 1)
        };
        let from = of_device(&copy.from).and_then(|base| {
            let source = self.memory.get_mut(base)?;
            let offset = offset(&copy.from, source.content());
            Some(WrittenFrom::Device(base, offset, source.version))
        });
        self.write_to(&copy.to, bytes, from)
    }

    /// Notes that device memory is written, and says whether the same was written last.
    fn write_to(&mut self, to: &Place, bytes: u64, from: Option<WrittenFrom>) -> bool {
        let Some(target) = to.base.and_then(|base| self.memory.get_mut(base)) else {
            return false;
        };
        let own = matches!(target.kind, Kind::Device | Kind::Pool(_));
        let offset = offset(to, target.content());
        let written = from.filter(|_| own).map(|from| Written {
            offset,
            bytes,
            from,
        });
        if written.is_some() && written == target.written {
            return true;
        }
        target.version += 1;
        target.written = written;
        false
    }

    fn set_now(&mut self, set: &Set) {
        let bytes = set.unit * set.count;
        if self.write_to(&set.to, bytes, Some(WrittenFrom::Value(set.value))) {
            return;
        }
        let to = set.to.content;
        match set.unit {
            // SAFETY: the range was checked when the set was enqueued.
            1 => unsafe { std::ptr::write_bytes(to as *mut u8, set.value as u8, bytes as usize) },
            // SAFETY: as above, of whole words.
            _ => unsafe {
                let words = std::slice::from_raw_parts_mut(to as *mut u32, set.count as usize);
                words.fill(set.value);
            },
        }
    }
}

fn offset(place: &Place, content: usize) -> u64 {
    (place.content - content) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::opened;

    #[test]
    fn a_copy_that_changes_nothing_is_left_out_and_none_else() {
        let (mut state, _) = opened();
        let stream = state.create_stream(true).unwrap();
        let (d1, d2) = (state.allocate(8).unwrap(), state.allocate(8).unwrap());
        let read = |state: &mut State| {
            let mut back = [0u8; 8];
            state.copy(d2, d1, 8, Some(stream)).unwrap();
            state
                .copy(back.as_mut_ptr() as u64, d2, 8, Some(stream))
                .unwrap();
            back[0]
        };
        for value in [1, 1, 2, 3] {
            state.set(d1, value, 1, 8, stream).unwrap();
            assert_eq!(u32::from(read(&mut state)), value);
            assert_eq!(u32::from(read(&mut state)), value);
        }
        state.set(d2, 9, 1, 4, stream).unwrap();
        assert_eq!(read(&mut state), 3, "d2 was written in between");
    }
}
