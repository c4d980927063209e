//! Stands in for CUPTI: records the work that runs, by the virtual clock, and hands the records over when it is asked
//! to. <https://docs.nvidia.com/cupti/>

use std::collections::BTreeSet;
use std::ffi::{c_char, c_void};

use crate::call::{Library, exported, get, put};
use crate::clock::Time;
use crate::fault::Fault;
use crate::objects::Work;
use crate::state::State;

/// `CUPTI_ERROR_MAX_LIMIT_REACHED`.
const NO_MORE: i32 = 12;
const CUPTI: Library = Library {
    all: &[1, 7, 8, NO_MORE, 14, 35, 39, 999],
    invalid: 1,
    no_memory: 8,
    failed: 999,
};

/// The kind of a kernel's record.
const KERNEL: u32 = 10;
/// The kind of record that has the number which marks a call.
const MARK: u32 = 39;

/// Words of a record, as many for each kind.
const WORDS: usize = 14;
const RECORD: usize = WORDS * size_of::<u64>();

type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// What the tool that is attached asked for.
#[derive(Default)]
pub(crate) struct Tool {
    buffers: Option<(Request, Complete)>,
    kinds: BTreeSet<u32>,
    records: Vec<[u64; WORDS]>,
    dropped: usize,
    /// The numbers that mark the calls of a thread; here the calls of all threads.
    ranges: Vec<u64>,
    launches: u32,
}

impl Tool {
    /// The number of a launch. A record has the number that marks it.
    pub(crate) fn launched(&mut self) -> u32 {
        self.launches += 1;
        let range = self.ranges.last();
        if let Some(&range) = range.filter(|_| self.kinds.contains(&MARK)) {
            let mut record = [0; WORDS];
            record[..3].copy_from_slice(&[MARK.into(), range, self.launches.into()]);
            self.records.push(record);
        }
        self.launches
    }
}

exported! { CUPTI:
    fn cuptiGetVersion(_state) => u32 {
        // That of CUDA 13.0.
        Ok(130_000)
    }

    fn cuptiGetResultString(_state, _status: u32) => *const c_char {
        Ok(c"an error of the recording driver".as_ptr())
    }

    fn cuptiGetTimestamp(state) => Time {
        Ok(state.clock.host)
    }

    fn cuptiGetCallbackName(_state, _domain: u32, _function: u32) => *const c_char {
        Ok(c"cuFunction".as_ptr())
    }

    fn cuptiSubscribe(_state, _callback: u64, _data: u64) -> u64 {
        Ok(1)
    }

    fn cuptiUnsubscribe(_state, _tool: u64) {
        Ok(())
    }

    fn cuptiEnableCallback(_state, _enable: u32, _tool: u64, _domain: u32, _event: u32) {
        Ok(())
    }

    fn cuptiActivityRegisterCallbacks(state, request: Request, complete: Complete) {
        state.tool.buffers = Some((request, complete));
        Ok(())
    }

    fn cuptiActivityEnable(state, kind: u32) {
        state.tool.kinds.insert(kind);
        Ok(())
    }

    fn cuptiActivityDisable(state, kind: u32) {
        state.tool.kinds.remove(&kind);
        Ok(())
    }

    fn cuptiActivityFlushAll(state, _flags: u32) {
        let records = std::mem::take(&mut state.tool.records);
        let (request, complete) = state.tool.buffers.ok_or_else(|| Fault::invalid("no buffers"))?;
        let mut left = &records[..];
        while !left.is_empty() {
            let (mut buffer, mut size, mut most) = (std::ptr::null_mut(), 0, 0);
            // SAFETY: the tool promised that it writes to these three.
            unsafe { request(&mut buffer, &mut size, &mut most) };
            let (filled, rest) = left.split_at(left.len().min(size / RECORD));
            left = rest;
            let valid = size_of_val(filled);
            // SAFETY: the tool's buffer has `size` bytes, and `filled` fits.
            unsafe { std::ptr::copy_nonoverlapping(filled.as_ptr().cast(), buffer, valid) };
            // SAFETY: the buffer is the tool's own, and goes back once.
            unsafe { complete(std::ptr::null_mut(), 0, buffer, size, valid) };
        }
        Ok(())
    }

    fn cuptiActivityGetNextRecord(_state, buffer: *mut u8, valid: usize, record: *mut *mut u8) {
        let last = get(record)?;
        let next = if last.is_null() { buffer } else { last.wrapping_add(RECORD) };
        if next >= buffer.wrapping_add(valid) {
            return Err(Fault::new(NO_MORE, "no more records"));
        }
        put(record, next)
    }

    fn cuptiActivityGetNumDroppedRecords(state, _context: u64, _stream: u32) => usize {
        Ok(std::mem::take(&mut state.tool.dropped))
    }

    fn cuptiActivityPushExternalCorrelationId(state, _kind: u32, id: u64) {
        state.tool.ranges.push(id);
        Ok(())
    }

    fn cuptiActivityPopExternalCorrelationId(state, _kind: u32) => u64 {
        state.tool.ranges.pop().ok_or_else(|| Fault::invalid("no number was pushed"))
    }
}

impl State {
    /// Writes a record of work that has run, if its kind is recorded.
    pub(crate) fn record_activity(&mut self, work: &Work, times: [Time; 2]) {
        // The number of a kind, and the word at which its device lies; the stream lies in the next.
        let (kind, device_at) = match work {
            Work::Kernel { .. } => (KERNEL, 5),
            Work::Copy(_) => (1, 4),
            Work::Set(_) => (2, 4),
            _ => return,
        };
        if !self.tool.kinds.contains(&kind) {
            return;
        }
        let device = self.streams[&self.running].device;
        if self.tool.records.len() >= self.devices[device].description.activity_records {
            self.tool.dropped += 1;
            return;
        }
        let mut record = [0; WORDS];
        record[0] = u64::from(kind);
        record[2..4].copy_from_slice(&times);
        record[device_at] = device as u64;
        record[device_at + 1] = self.running;
        if let Work::Kernel {
            effect,
            correlation,
            ..
        } = work
        {
            record[11] = u64::from(*correlation) << u32::BITS;
            record[13] = effect.name().as_ptr().addr() as u64;
        }
        self.tool.records.push(record);
    }
}
