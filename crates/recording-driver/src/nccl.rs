//! Stands in for NCCL: sums over the devices of one process, or of a process each. A sum takes no time beside its
//! launch. A sum of several processes runs once each of them has made its call, which must be the same: a file
//! for each rank, in a folder that the unique id names, has the calls.
//! <https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html>

use std::ffi::{CStr, c_char, c_int};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::call::{Library, exported, put};
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

/// A process that has not made its call after this time never will.
const PATIENCE: Duration = Duration::from_secs(60);
/// A call in a file: the number of values, and whether the sums are written over them.
type Call = [u64; 2];
const CALL: usize = size_of::<Call>();
/// The first call of each rank.
const JOIN: Call = [0, 0];

/// `ncclUniqueId`: the path of a folder.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct UniqueId([u8; 128]);

/// The share of a device in sums.
#[derive(Debug)]
pub(crate) struct Communicator {
    name: String,
    device: usize,
    /// Has a file for each rank of other processes too, with its calls.
    folder: PathBuf,
    rank: usize,
    size: usize,
    /// Number of its own calls in the folder.
    made: AtomicU64,
}

impl Communicator {
    /// How many of the ranks this process has.
    fn of_this_process(&self, state: &State) -> usize {
        let communicators = state.communicators.values();
        communicators.filter(|it| it.folder == self.folder).count()
    }

    /// Makes this rank's next call, and returns its number. The first one creates the file.
    fn make(&self, [values, is_in_place]: Call) -> Outcome<u64> {
        let at = self.made.fetch_add(1, Ordering::Relaxed);
        let file = self.folder.join(self.rank.to_string());
        let open = || {
            fs::create_dir_all(&self.folder)?;
            let mut options = OpenOptions::new();
            options.append(true).create_new(at == 0).open(file)
        };
        let bytes = [values.to_le_bytes(), is_in_place.to_le_bytes()].concat();
        let written = open().and_then(|mut file| file.write_all(&bytes));
        let rank = self.rank;
        written.map_err(|error| Fault::invalid(format!("rank {rank} cannot join: {error}")))?;
        Ok(at)
    }

    /// Waits until all others have made call `at`.
    ///
    /// # Errors
    /// One of them has made another call, or none within `patience`.
    fn meet(&self, at: u64, call: Call, patience: Duration) -> Outcome {
        let begun = Instant::now();
        for other in (0..self.size).filter(|other| *other != self.rank) {
            let (file, mut theirs) = (self.folder.join(other.to_string()), [0; CALL]);
            let mut read = || File::open(&file)?.read_exact_at(&mut theirs, at * CALL as u64);
            while read().is_err() {
                if begun.elapsed() > patience {
                    return Err(Fault::corrupts(format!(
                        "rank {} would wait for ever: rank {other} has not made call {at}",
                        self.rank
                    )));
                }
                sleep(Duration::from_micros(50));
            }
            let theirs = [0, 8]
                .map(|from| u64::from_le_bytes(*theirs[from..].first_chunk().expect("eight")));
            if theirs != call {
                return Err(Fault::corrupts(format!(
                    "call {at} of rank {} is {call:?} (values, whether in place), and of rank {other} {theirs:?}",
                    self.rank
                )));
            }
        }
        Ok(())
    }
}

/// A sum of several processes that was enqueued.
#[derive(Clone, Debug)]
pub(crate) struct Joint {
    communicator: Arc<Communicator>,
    at: u64,
    call: Call,
}

impl Joint {
    /// Waits for the other ranks, and returns the number of operations.
    pub(crate) fn meet(&self) -> f64 {
        if let Err(fault) = self.communicator.meet(self.at, self.call, PATIENCE) {
            NCCL.refused("ncclAllReduce", &fault);
        }
        self.call[0] as f64
    }
}

/// A call between the start and the end of a group.
pub(crate) struct Sum {
    communicator: Arc<Communicator>,
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

    fn ncclGetUniqueId(state) -> UniqueId {
        let folder = std::env::temp_dir().join(format!("ranks-{}-{}", std::process::id(), state.made()));
        let path = folder.to_str().map(str::as_bytes).filter(|path| path.len() < 128);
        let path = path.ok_or_else(|| Fault::invalid("the temporary folder has a long name"))?;
        let mut id = [0; 128];
        id[..path.len()].copy_from_slice(path);
        Ok(UniqueId(id))
    }

    fn ncclCommInitRank(state, to: *mut u64, size: c_int, id: UniqueId, rank: c_int) {
        let device = state.current()?;
        if std::env::var_os("NCCL_NVLS_ENABLE").is_none_or(|value| value != "0") {
            return Err(fault!(INVALID_VALUE, "NVLink multicast was not switched off before the first thread"));
        }
        let (name, handle) = (state.names.next("comm"), state.made());
        log!("connect {name} of device {device}, rank {rank} of {size}");
        let folder = CStr::from_bytes_until_nul(&id.0).map_or("", |path| path.to_str().unwrap_or(""));
        let communicator = Communicator {
            name, device, folder: folder.into(), rank: rank as usize, size: size as usize, made: AtomicU64::new(0),
        };
        state.communicators.insert(handle, Arc::new(communicator));
        put(to, handle)
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
        let communicator = known(&mut state.communicators, communicator, "communicator")?.clone();
        let sum = Sum { communicator, places: [from, to], values: values as u64, stream };
        let group = state.sums.as_mut().ok_or_else(|| Fault::corrupts(
            "a device waits for the others, whose calls come later: make them in a group"
        ))?;
        group.push(sum);
        Ok(())
    }

    fn ncclGroupEnd(state) {
        let sums = state.sums.take().unwrap_or_default();
        for new in state.communicators.values().filter(|it| it.made.load(Ordering::Relaxed) == 0) {
            if new.of_this_process(state) < new.size {
                new.meet(new.make(JOIN)?, JOIN, PATIENCE)?;
            }
        }
        let Some(Sum { communicator, values, .. }) = sums.first() else {
            return Ok(());
        };
        let devices = communicator.of_this_process(state);
        if sums.len() != devices || sums.iter().any(|sum| sum.values != *values) {
            return Err(Fault::corrupts("the devices would wait for ever: their calls differ"));
        }
        sums.into_iter().try_for_each(|sum| enqueue(state, sum))
    }
}

fn enqueue(state: &mut State, sum: Sum) -> Outcome {
    let communicator = sum.communicator;
    let on = known(&mut state.streams, sum.stream, "stream")?.device;
    if on != communicator.device {
        return Err(Fault::corrupts(format!(
            "{} is of device {}, and the stream of device {on}",
            communicator.name, communicator.device
        )));
    }
    let used = [("the values", 0), ("the sums", 1)].map(|(name, at)| Used {
        name,
        address: sum.places[at],
        bytes: 4 * sum.values,
    });
    state.memory.check_used(&used)?;
    let [from, to] = sum.places.map(|place| state.memory.name_of(place));
    let (name, values) = (&communicator.name, sum.values);
    let text = format!("ncclAllReduce by {name}, {values} f32: {from} -> {to}");
    let call = [values, u64::from(sum.places[0] == sum.places[1])];
    let effect = if communicator.of_this_process(state) < communicator.size {
        Effect::Joint(Joint {
            at: communicator.make(call)?,
            communicator,
            call,
        })
    } else {
        Effect::Operations(values as f64)
    };
    state.launch(sum.stream, effect, used.to_vec(), |on| {
        format!("{text} on {on}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_make_the_same_calls() {
        let folder = tempfile::tempdir().unwrap();
        let rank = |rank| Communicator {
            name: String::new(),
            device: 0,
            folder: folder.path().to_owned(),
            rank,
            size: 2,
            made: AtomicU64::new(0),
        };
        let ranks = [rank(0), rank(1)];
        let meet = |at, call| {
            let met = ranks[0].meet(at, call, Duration::ZERO);
            met.map_err(|fault| (fault.corrupts, fault.why))
        };
        let (whole, short, in_place) = ([256, 0], [255, 0], [256, 1]);
        for (at, theirs) in [whole, short, in_place].into_iter().enumerate() {
            let at = at as u64;
            let made = [ranks[0].make(whole), ranks[1].make(theirs)];
            assert_eq!(made.map(Result::unwrap), [at; 2]);
            assert_eq!(meet(at, whole).is_ok(), theirs == whole, "{theirs:?}");
        }
        let words =
            "call 1 of rank 0 is [256, 0] (values, whether in place), and of rank 1 [255, 0]";
        assert_eq!(meet(1, whole), Err((true, words.to_owned())));
        let missing = "rank 0 would wait for ever: rank 1 has not made call 3";
        let at = ranks[0].make(whole).unwrap();
        assert_eq!(meet(at, whole), Err((true, missing.to_owned())));
        assert!(rank(1).make(whole).is_err(), "the rank is taken");
    }
}
