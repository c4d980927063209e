//! Stands in for NCCL: sums over the devices of one process. A sum takes no time beside its launch.
//! <https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html>

use std::ffi::{c_char, c_int};

use crate::call::{Library, exported, get, put};
use crate::effects::Effect;
use crate::fault::Fault;
use crate::objects::Used;
use crate::state::{Outcome, State, known, removed};

/// Numbers of ncclResult_t.
const NCCL: Library = Library {
    all: &[1, 2, 3, 4, 5],
    invalid: 4,
    no_memory: 1,
    failed: 1,
};

/// `NCCL_VERSION_CODE` of 2.28.9.
const VERSION: c_int = 22809;
/// `ncclFloat32` and `ncclSum`.
const SUM_OF_FLOATS: (c_int, c_int) = (7, 0);

/// The share of a device in sums.
pub(crate) struct Communicator {
    name: String,
    device: usize,
    /// Devices of the group.
    of: usize,
}

/// A call between the start and the end of a group.
pub(crate) struct Sum {
    communicator: u64,
    places: [u64; 2],
    values: u64,
    stream: u64,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclGetErrorString(_status: c_int) -> *const c_char {
    c"an error of NCCL".as_ptr()
}

exported! { NCCL:
    fn ncclGetVersion(_state) -> c_int {
        Ok(VERSION)
    }

    fn ncclCommInitAll(state, to: *mut u64, count: c_int, devices: *const c_int) {
        for at in 0..count as usize {
            let device = get(devices.wrapping_add(at))?;
            state.device(device)?;
            let (name, handle) = (state.names.next("comm"), state.made());
            log!("connect {name} of device {device}");
            let communicator = Communicator { name, device: device as usize, of: count as usize };
            state.communicators.insert(handle, communicator);
            put(to.wrapping_add(at), handle)?;
        }
        Ok(())
    }

    fn ncclCommDestroy(state, communicator: u64) {
        let communicator = removed(&mut state.communicators, communicator, "communicator")?;
        log!("destroy {}", communicator.name);
        Ok(())
    }

    fn ncclCommAbort(state, communicator: u64) {
        let communicator = removed(&mut state.communicators, communicator, "communicator")?;
        log!("abort {}", communicator.name);
        Ok(())
    }

    fn ncclGroupStart(state) {
        state.sums = Some(Vec::new());
        Ok(())
    }

    fn ncclAllReduce(
        state, from: u64, to: u64, values: usize, of: c_int, by: c_int,
        communicator: u64, stream: u64,
    ) {
        if (of, by) != SUM_OF_FLOATS {
            return Err(Fault::unknown("an operation but the sum of f32, such as", by));
        }
        known(&mut state.communicators, communicator, "communicator")?;
        let sum = Sum { communicator, places: [from, to], values: values as u64, stream };
        let group = state.sums.as_mut().ok_or_else(|| Fault::corrupts(
            "a device waits for the others, whose calls come later: make them in a group"
        ))?;
        group.push(sum);
        Ok(())
    }

    fn ncclGroupEnd(state) {
        let sums = state.sums.take().unwrap_or_default();
        let Some(&Sum { communicator, values, .. }) = sums.first() else {
            return Ok(());
        };
        let devices = known(&mut state.communicators, communicator, "communicator")?.of;
        if sums.len() != devices || sums.iter().any(|sum| sum.values != values) {
            return Err(Fault::corrupts("the devices would wait for ever: their calls differ"));
        }
        sums.iter().try_for_each(|sum| enqueue(state, sum))
    }
}

fn enqueue(state: &mut State, sum: &Sum) -> Outcome {
    let communicator = known(&mut state.communicators, sum.communicator, "communicator")?;
    let (name, device) = (communicator.name.clone(), communicator.device);
    let on = known(&mut state.streams, sum.stream, "stream")?.device;
    if on != device {
        return Err(Fault::corrupts(format!(
            "{name} is of device {device}, and the stream of device {on}"
        )));
    }
    let used = [("the values", 0), ("the sums", 1)].map(|(name, at)| Used {
        name,
        address: sum.places[at],
        bytes: 4 * sum.values,
    });
    state.memory.check_used(&used)?;
    let [from, to] = sum.places.map(|place| state.memory.name_of(place));
    let text = format!(
        "ncclAllReduce by {name}, {} f32: {from} -> {to}",
        sum.values
    );
    let effect = Effect::Operations(sum.values as f64);
    state.launch(sum.stream, effect, used.to_vec(), |on| {
        format!("{text} on {on}")
    })
}
