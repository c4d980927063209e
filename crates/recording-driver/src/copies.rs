//! Allocating, pinning, copying and setting memory.

use std::sync::Arc;

use crate::fault::{Fault, code};
use crate::log;
use crate::memory::{Kind, Place};
use crate::objects::{Copy, Set, Work};
use crate::state::{Answer, State};

/// Which sides of a copy the caller says are the device's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToDevice,
    ToHost,
    OnDevice,
    /// By what the addresses are.
    Any,
}

/// One side of a copy of rows: where it begins, and the bytes from one row to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) address: u64,
    pub(crate) pitch: u64,
}

impl State {
    pub(crate) fn allocate(&mut self, bytes: u64) -> Answer<u64> {
        self.allocate_kind(Kind::Device, "cuMemAlloc", bytes)
    }

    pub(crate) fn allocate_managed(&mut self, bytes: u64) -> Answer<u64> {
        self.allocate_kind(Kind::Managed, "cuMemAllocManaged", bytes)
    }

    pub(crate) fn allocate_host(&mut self, bytes: u64) -> Answer<u64> {
        self.allocate_kind(Kind::Pinned, "cuMemHostAlloc", bytes)
    }

    fn allocate_kind(&mut self, kind: Kind, call: &str, bytes: u64) -> Answer<u64> {
        self.check_current()?;
        self.check_no_capture(call)?;
        if bytes == 0 {
            return Err(Fault::new(code::INVALID_VALUE, "0 B are asked for"));
        }
        if kind.on_device() {
            self.check_room(bytes)?;
        }
        let allocation = self
            .memory
            .allocate(kind, bytes, &mut self.names, self.given.take())?;
        log::call(format_args!(
            "allocate {} {bytes} B, awaited",
            allocation.name
        ));
        Ok(allocation.base)
    }

    pub(crate) fn register_host(&mut self, address: u64, bytes: u64) -> Answer {
        self.check_current()?;
        self.check_no_capture("cuMemHostRegister")?;
        let allocation = self.memory.register(address, bytes, &mut self.names)?;
        log::call(format_args!("pin {} {bytes} B", allocation.name));
        Ok(())
    }

    pub(crate) fn unregister_host(&mut self, address: u64) -> Answer {
        let pinned = self.memory.starting_at(address);
        if !pinned.is_ok_and(|a| a.kind == Kind::Registered) {
            let why = format!("{} was not pinned", self.memory.name_of(address));
            return Err(Fault::new(code::HOST_MEMORY_NOT_REGISTERED, why));
        }
        self.free_kind(address, "unpin", |kind| kind == Kind::Registered)
    }

    pub(crate) fn free(&mut self, address: u64) -> Answer {
        if address == 0 {
            return Ok(());
        }
        self.free_kind(address, "free", Kind::on_device)
    }

    pub(crate) fn free_host(&mut self, address: u64) -> Answer {
        self.free_kind(address, "free", |kind| kind == Kind::Pinned)
    }

    /// The driver waits for the whole context before it frees.
    fn free_kind(&mut self, address: u64, verb: &str, is: impl Fn(Kind) -> bool) -> Answer {
        self.check_current()?;
        self.check_no_capture("freeing memory")?;
        let allocation = self.memory.starting_at(address)?;
        let name = allocation.name.clone();
        if !is(allocation.kind) {
            let why = format!("{name} is another kind of memory than this call frees");
            return Err(Fault::new(code::INVALID_VALUE, why));
        }
        log::call(format_args!("{verb} {name}, awaited"));
        self.synchronize_context();
        self.memory.free(address);
        self.give_back(address);
        Ok(())
    }

    /// The address at which the device uses pinned memory, which is the host's.
    pub(crate) fn device_pointer(&mut self, address: u64) -> Answer<u64> {
        let place = self.memory.side(address, 1, false)?;
        match place.kind {
            Some(Kind::Pinned | Kind::Registered) => Ok(address),
            _ => {
                let why = format!("{} is not pinned", place.name);
                Err(Fault::new(code::INVALID_VALUE, why))
            }
        }
    }

    /// Free and total bytes of the current device.
    pub(crate) fn memory_info(&mut self) -> Answer<(u64, u64)> {
        let total = self.description.memory_bytes;
        self.check_current()?;
        let taken = self.taken();
        Ok((total.saturating_sub(taken), total))
    }

    /// Copies on a stream, or with the host waiting.
    #[cfg(test)]
    pub(crate) fn copy(&mut self, to: u64, from: u64, bytes: u64, stream: Option<u64>) -> Answer {
        self.copy_bytes(Direction::Any, to, from, bytes, stream)
    }

    pub(crate) fn copy_bytes(
        &mut self,
        direction: Direction,
        to: u64,
        from: u64,
        bytes: u64,
        stream: Option<u64>,
    ) -> Answer {
        let side = |address| Side {
            address,
            pitch: bytes,
        };
        self.copy_rows(direction, side(to), side(from), (bytes, 1), stream)
    }

    /// Copies rows of so many bytes, so many of them.
    pub(crate) fn copy_rows(
        &mut self,
        direction: Direction,
        to: Side,
        from: Side,
        (width, rows): (u64, u64),
        stream: Option<u64>,
    ) -> Answer {
        let handle = self.usable_stream(stream.unwrap_or(0))?;
        if stream.is_none() {
            self.check_no_capture("a copy that waits")?;
        }
        if rows > 1 && (to.pitch < width || from.pitch < width) {
            let why = format!("rows of {width} B lie closer together than that");
            return Err(Fault::new(code::INVALID_VALUE, why));
        }
        let any = direction == Direction::Any;
        let is_device = |side: Side| {
            let place = self.memory.side(side.address, 1, false);
            place.is_ok_and(|place| place.kind.is_some_and(Kind::on_device))
        };
        let to_device =
            matches!(direction, Direction::ToDevice | Direction::OnDevice) || any && is_device(to);
        let from_device =
            matches!(direction, Direction::ToHost | Direction::OnDevice) || any && is_device(from);
        let extent = |side: Side| side.pitch * rows.saturating_sub(1) + width;
        let (to_place, from_place) = (
            self.memory.side(to.address, extent(to), to_device)?,
            self.memory.side(from.address, extent(from), from_device)?,
        );
        let text = text(
            &to_place,
            &from_place,
            (to, from),
            (width, rows),
            (to_device, from_device),
        );
        let ordinary_target = to_place.kind.is_none();
        let captured = self.streams[&handle].capture.is_some();
        // The driver reads ordinary memory before the call returns: at once, where it can.
        let read_now = from_place.kind.is_none() && !captured;
        let staged = match read_now && !self.advance(handle) {
            true => Some(stage(&from_place, from.pitch, (width, rows))),
            false => None,
        };
        let copy = Copy {
            from: from_place,
            to: to_place,
            width,
            rows,
            from_pitch: from.pitch,
            to_pitch: to.pitch,
            staged,
        };
        self.enqueue(handle, Work::Copy(copy), |on| match stream {
            Some(_) => format!("{text} on {on}"),
            None => format!("{text}, awaited"),
        })?;
        if read_now {
            self.advance(handle);
        }
        // A copy to ordinary memory returns once it is done.
        if (stream.is_none() || ordinary_target) && !captured {
            self.finish(handle);
            let ended = self.streams[&handle].time;
            self.clock.wait_until(ended);
        }
        Ok(())
    }

    /// Writes `count` values of `unit` bytes.
    pub(crate) fn set(
        &mut self,
        to: u64,
        value: u32,
        unit: u64,
        count: u64,
        stream: u64,
    ) -> Answer {
        let stream = self.usable_stream(stream)?;
        let bytes = unit * count;
        let to = self.memory.side(to, bytes, true)?;
        if !(to.content as u64).is_multiple_of(unit) {
            let why = format!("{} is not aligned to {unit} B", to.name);
            return Err(Fault::new(code::INVALID_VALUE, why));
        }
        let digits = 2 * unit as usize;
        let text = format!("set {bytes} B of {} to 0x{value:0digits$x}", to.name);
        let set = Set {
            to,
            value,
            unit,
            count,
        };
        self.enqueue(stream, Work::Set(set), |on| format!("{text} on {on}"))
    }

    /// Moves managed memory to the device or to the host.
    pub(crate) fn prefetch(
        &mut self,
        address: u64,
        bytes: u64,
        to_device: bool,
        stream: u64,
    ) -> Answer {
        let stream = self.usable_stream(stream)?;
        let place = self.memory.side(address, bytes, true)?;
        if place.kind != Some(Kind::Managed) {
            let why = format!("{} is not managed memory", place.name);
            return Err(Fault::new(code::INVALID_VALUE, why));
        }
        let to = if to_device { "the device" } else { "the host" };
        let text = format!("prefetch {bytes} B of {} to {to}", place.name);
        self.enqueue(stream, Work::Prefetch { bytes }, |on| {
            format!("{text} on {on}")
        })
    }
}

/// What lies in ordinary memory now.
fn stage(from: &Place, pitch: u64, (width, rows): (u64, u64)) -> Arc<Vec<u8>> {
    let mut staged = Vec::with_capacity((width * rows) as usize);
    for row in 0..rows {
        let row = from.content + (row * pitch) as usize;
        // SAFETY: the caller's memory, which it promises to be alive during the call.
        let row = unsafe { std::slice::from_raw_parts(row as *const u8, width as usize) };
        staged.extend_from_slice(row);
    }
    Arc::new(staged)
}

fn text(
    to: &Place,
    from: &Place,
    (to_side, from_side): (Side, Side),
    (width, rows): (u64, u64),
    (to_device, from_device): (bool, bool),
) -> String {
    if !log::enabled() {
        return String::new();
    }
    let direction = match (from_device, to_device) {
        (false, true) => "H2D",
        (true, false) => "D2H",
        (true, true) => "D2D",
        (false, false) => "H2H",
    };
    let (from, to) = (&from.name, &to.name);
    if rows == 1 {
        return format!("copy {direction} {width} B {from} -> {to}");
    }
    let (from_pitch, to_pitch) = (from_side.pitch, to_side.pitch);
    format!(
        "copy {direction} {rows} rows of {width} B {from} (every {from_pitch} B) -> {to} (every \
         {to_pitch} B)"
    )
}

#[cfg(test)]
mod tests {
    use crate::testing::opened;

    #[test]
    fn ordinary_memory_is_read_at_the_call_and_pinned_memory_later() {
        let (mut state, _) = opened();
        let stream = state.create_stream(true).unwrap();
        let d1 = state.allocate(8).unwrap();
        let pinned = state.allocate_host(8).unwrap() as *mut u8;
        let mut ordinary = [1u8; 8];
        let mut back = [0u8; 8];
        state
            .copy(d1, ordinary.as_ptr() as u64, 8, Some(stream))
            .unwrap();
        ordinary.fill(2);
        state
            .copy(back.as_mut_ptr() as u64, d1, 8, Some(stream))
            .unwrap();
        assert_eq!(back, [1; 8]);
        // SAFETY: pinned memory of eight bytes.
        unsafe { pinned.write_bytes(3, 8) };
        state.copy(d1, pinned as u64, 8, Some(stream)).unwrap();
        // SAFETY: as above.
        unsafe { pinned.write_bytes(4, 8) };
        state
            .copy(back.as_mut_ptr() as u64, d1, 8, Some(stream))
            .unwrap();
        assert_eq!(back, [4; 8], "the host has changed it before the copy ran");
        assert_eq!(ordinary, [2; 8]);
    }
}
