//! Allocating, pinning, copying and setting memory.

use crate::call::{DRIVER, exported, put};
use crate::fault::Fault;
use crate::log;
use crate::memory::{Kind, Region};
use crate::objects::{Copy, Set, Work};
use crate::state::{Outcome, State};
use crate::stream::default_stream;

/// One side of a copy: its address, whether the caller declares it device memory, and the bytes from
/// one row to the next.
#[derive(Clone, Copy, Debug)]
struct Side {
    address: u64,
    on_device: bool,
    pitch: u64,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
pub(crate) struct Rows {
    pub(crate) from: Rectangle,
    pub(crate) to: Rectangle,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// One side of the copy.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Rectangle {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) memory_type: u32,
    pub(crate) host: u64,
    pub(crate) device: u64,
    pub(crate) array: u64,
    pub(crate) pitch: usize,
}

/// `CU_MEMORYTYPE_HOST`; that of device memory is the next number.
const HOST: u32 = 1;

/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`.
const MEMORY_TYPE: u32 = 2;

impl Rectangle {
    fn side(&self) -> Side {
        let on_device = self.memory_type != HOST;
        let begin = if on_device { self.device } else { self.host };
        Side {
            address: begin + (self.y * self.pitch + self.x) as u64,
            on_device,
            pitch: self.pitch as u64,
        }
    }
}

/// Memory of the host that is copied in one row, and memory of a device.
fn host(address: u64) -> Side {
    let (on_device, pitch) = (false, 0);
    Side {
        address,
        on_device,
        pitch,
    }
}

fn device(address: u64) -> Side {
    Side {
        on_device: true,
        ..host(address)
    }
}

exported! { DRIVER:
    fn cuMemGetInfo_v2(state, free: *mut usize, total: *mut usize) {
        let device = state.current()?;
        let bytes = state.devices[device].description.memory_bytes;
        put(free, bytes.saturating_sub(state.taken(device)) as usize)?;
        put(total, bytes as usize)
    }

    fn cuPointerGetAttribute(state, attribute: u32, address: u64) -> u32 {
        match state.memory.side(address, 1, false)?.kind {
            Some(kind) if attribute == MEMORY_TYPE => Ok(HOST + u32::from(kind == Kind::Device)),
            _ => Err(Fault::invalid("the memory is ordinary, or the attribute another one")),
        }
    }

    // The device's address of pinned memory equals the host's.
    fn cuMemHostGetDevicePointer_v2(state, address: u64, _flags: u32) -> u64 {
        let place = state.memory.side(address, 1, false)?;
        match place.kind {
            Some(Kind::Pinned) => Ok(address),
            _ => Err(fault!(INVALID_VALUE, "{} is not pinned", place.name)),
        }
    }

    fn cuMemAlloc_v2(state, bytes: usize) -> u64 {
        state.allocate_awaited(Kind::Device, bytes)
    }

    fn cuMemHostAlloc(state, bytes: usize, _flags: u32) -> u64 {
        state.allocate_awaited(Kind::Pinned, bytes)
    }

    fn cuMemFree_v2(state, address: u64) {
        state.free(Kind::Device, address)
    }

    fn cuMemFreeHost(state, address: u64) {
        state.free(Kind::Pinned, address)
    }

    fn cuMemcpyHtoD_v2(state, to: u64, from: u64, bytes: usize) {
        state.copy(device(to), host(from), (bytes, 1), None)
    }

    fn cuMemcpyDtoH_v2(state, to: u64, from: u64, bytes: usize) {
        state.copy(host(to), device(from), (bytes, 1), None)
    }

    fn cuMemcpyHtoDAsync_v2(state, to: u64, from: u64, bytes: usize, stream: u64) {
        state.copy(device(to), host(from), (bytes, 1), Some(stream))
    }

    fn cuMemcpyDtoHAsync_v2(state, to: u64, from: u64, bytes: usize, stream: u64) {
        state.copy(host(to), device(from), (bytes, 1), Some(stream))
    }

    fn cuMemcpyDtoDAsync_v2(state, to: u64, from: u64, bytes: usize, stream: u64) {
        state.copy(device(to), device(from), (bytes, 1), Some(stream))
    }

    fn cuMemcpyPeerAsync(
        state, to: u64, of_to: u64, from: u64, of_from: u64, bytes: usize, stream: u64,
    ) {
        state.check_owner(to, of_to)?;
        state.check_owner(from, of_from)?;
        state.copy(device(to), device(from), (bytes, 1), Some(stream))
    }

    fn cuMemcpy2DAsync_v2(state, rows: *const Rows, stream: u64) {
        // SAFETY: the caller promises that the description is valid.
        let rows = unsafe { &*rows };
        for Rectangle { x, pitch, .. } in [&rows.from, &rows.to] {
            let end = x + rows.width;
            if *pitch < end {
                return Err(fault!(INVALID_VALUE, "rows end at byte {end} of a pitch of {pitch} B"));
            }
        }
        state.copy(rows.to.side(), rows.from.side(), (rows.width, rows.height), Some(stream))
    }

    fn cuMemsetD8Async(state, to: u64, value: u8, count: usize, stream: u64) {
        state.set(to, value.into(), [1, count as u64], stream)
    }

    fn cuMemsetD32Async(state, to: u64, value: u32, count: usize, stream: u64) {
        state.set(to, value, [4, count as u64], stream)
    }
}

impl State {
    /// Address and name of new memory of a device, or of its pool.
    pub(crate) fn allocate(
        &mut self,
        kind: Kind,
        bytes: usize,
        of: (usize, Option<u64>),
    ) -> Outcome<(u64, &str)> {
        let bytes = bytes as u64;
        let on = self.devices[of.0].description;
        let free = on.memory_bytes.saturating_sub(self.taken(of.0));
        if kind == Kind::Device && bytes > free {
            return Err(fault!(
                OUT_OF_MEMORY,
                "{bytes} B are asked for and {free} B are free"
            ));
        }
        let allocation = self.memory.allocate(kind, bytes, of, &mut self.names)?;
        Ok((allocation.base, &allocation.name))
    }

    fn allocate_awaited(&mut self, kind: Kind, bytes: usize) -> Outcome<u64> {
        let device = self.current()?;
        self.check_no_capture("an allocation that waits")?;
        let (address, name) = self.allocate(kind, bytes, (device, None))?;
        log!("allocate {name} {bytes} B, awaited");
        Ok(address)
    }

    /// The driver waits for the whole context before it frees.
    fn free(&mut self, kind: Kind, address: u64) -> Outcome {
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
        self.finish_device(device);
        self.memory.free(address);
        self.memory.release(address);
        Ok(())
    }

    /// Copies rows of so many bytes, on a stream or with the host waiting.
    fn copy(
        &mut self,
        to: Side,
        from: Side,
        (width, rows): (usize, usize),
        stream: Option<u64>,
    ) -> Outcome {
        let handle = match stream {
            Some(stream) => self.usable_stream(stream)?,
            None => {
                self.check_no_capture("a copy that waits")?;
                default_stream(self.current()?)
            }
        };
        let (width, rows) = (width as u64, rows as u64);
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
        }
        Ok(())
    }

    /// Writes values of so many bytes, so many times.
    fn set(&mut self, to: u64, value: u32, [unit, count]: [u64; 2], stream: u64) -> Outcome {
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
