//! Allocating, pinning, copying and setting memory.

use crate::log;
use crate::memory::{Kind, Region};
use crate::objects::{Copy, Set, Work};
use crate::state::{Outcome, State};

/// One side of a copy: its address, whether the caller declares it device memory, and the bytes from
/// one row to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) address: u64,
    pub(crate) on_device: bool,
    pub(crate) pitch: u64,
}

impl Side {
    /// One side of a copy of one row.
    pub(crate) fn row(address: u64, on_device: bool) -> Self {
        Self {
            address,
            on_device,
            pitch: 0,
        }
    }
}

impl State {
    pub(crate) fn allocate(&mut self, kind: Kind, bytes: u64) -> Outcome<u64> {
        let device = self.current()?;
        self.check_no_capture("an allocation that waits")?;
        if kind == Kind::Device {
            self.check_room(device, bytes)?;
        }
        let allocation = (self.memory).allocate(kind, bytes, (device, None), &mut self.names)?;
        log!("allocate {} {bytes} B, awaited", allocation.name);
        Ok(allocation.base)
    }

    /// The driver waits for the whole context before it frees.
    pub(crate) fn free(&mut self, kind: Kind, address: u64) -> Outcome {
        if address == 0 {
            return Ok(());
        }
        self.current()?;
        self.check_no_capture("freeing memory")?;
        let allocation = self.memory.starting_at(address)?;
        let name = allocation.name.clone();
        if kind != allocation.kind {
            return Err(fault!(
                INVALID_VALUE,
                "{name} is another kind of memory than this call frees"
            ));
        }
        let device = allocation.device;
        log!("free {name}, awaited");
        self.synchronize_device(device);
        self.memory.free(address);
        self.memory.release(address);
        Ok(())
    }

    /// Free and total bytes of the current device.
    pub(crate) fn memory_info(&mut self) -> Outcome<(u64, u64)> {
        let device = self.current()?;
        let total = self.devices[device].description.memory_bytes;
        let taken = self.taken(device);
        Ok((total.saturating_sub(taken), total))
    }

    /// Copies rows of so many bytes, on a stream or with the host waiting.
    pub(crate) fn copy(
        &mut self,
        to: Side,
        from: Side,
        (width, rows): (u64, u64),
        stream: Option<u64>,
    ) -> Outcome {
        let handle = self.usable_stream(stream.unwrap_or(0))?;
        if stream.is_none() {
            self.check_no_capture("a copy that waits")?;
        }
        let extent = |side: Side| side.pitch * rows.saturating_sub(1) + width;
        let place = |side: Side| (self.memory).side(side.address, extent(side), side.on_device);
        let copy = Copy {
            from: place(from)?,
            to: place(to)?,
            width,
            rows,
            from_pitch: from.pitch,
            to_pitch: to.pitch,
        };
        let is_ordinary = |place: &Region| place.kind.is_none();
        let (from_ordinary, to_ordinary) = (is_ordinary(&copy.from), is_ordinary(&copy.to));
        let text = text(&copy, to.on_device, from.on_device);
        self.enqueue(handle, Work::Copy(copy), |on| match stream {
            Some(_) => format!("{text} on {on}"),
            None => format!("{text}, awaited"),
        })?;
        if self.streams[&handle].capture.is_some() {
            return Ok(());
        }
        // The driver reads ordinary memory before the call returns.
        if from_ordinary {
            self.advance(handle);
        }
        // A copy to ordinary memory returns only when it is done.
        if stream.is_none() || to_ordinary {
            self.finish(handle);
            let ended = self.streams[&handle].time;
            self.clock.wait_until(ended);
        }
        Ok(())
    }

    /// Writes values of so many bytes, so many times.
    pub(crate) fn set(
        &mut self,
        to: u64,
        value: u32,
        [unit, count]: [u64; 2],
        stream: u64,
    ) -> Outcome {
        let stream = self.usable_stream(stream)?;
        let bytes = unit * count;
        let to = self.memory.side(to, bytes, true)?;
        self.check_access(self.streams[&stream].device, to.base.unwrap_or_default())?;
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
}

fn text(copy: &Copy, to_device: bool, from_device: bool) -> String {
    if !log::enabled() {
        return String::new();
    }
    let direction = match (from_device, to_device) {
        (false, true) => "H2D",
        (true, false) => "D2H",
        _ => "D2D",
    };
    let (from, to) = (&copy.from.name, &copy.to.name);
    let (width, rows) = (copy.width, copy.rows);
    if rows == 1 {
        return format!("copy {direction} {width} B {from} -> {to}");
    }
    let (every, to_every) = (copy.from_pitch, copy.to_pitch);
    format!(
        "copy {direction} {rows} rows of {width} B {from} (every {every} B) -> {to} (every \
         {to_every} B)"
    )
}
