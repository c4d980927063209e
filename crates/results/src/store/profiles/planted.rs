//! Profiles as a recorder leaves them, made of planted times: an iteration is told as calls of the host
//! and work on the device, and analysed as a recording is.

use std::path::{Path, PathBuf};

use crate::model::id::Id;
use crate::store::layout::{PROFILE, PROFILE_FILE};
use crate::store::whole_file::write_json;
use crossover_profile::recording::planted::{call, window, work};
use crossover_profile::recording::{Raw, Recording, WorkRecord};
use crossover_profile::{Profile, Work, analyse};
use crossover_words::Clock;

/// An iteration in the making; times in ns from its start.
#[derive(Default)]
struct Iteration(Raw);

/// A kernel of 4 blocks of 256 threads.
pub fn kernel(name: &str) -> Work {
    Work::Kernel {
        name: name.to_owned(),
        grid: [4, 1, 1],
        block: [256, 1, 1],
        registers: 16,
        shared_bytes: 0,
    }
}

impl Iteration {
    /// Gives its end.
    fn call(&mut self, name: &str, start: f64, length: f64) -> f64 {
        let end = start + length;
        let correlation = self.0.calls.len() as u32 + 1;
        (self.0.calls).push(call(name, start as u64, end as u64, correlation));
        end
    }

    /// Gives its end.
    fn run(&mut self, stream: u32, of: Work, start: f64, length: f64) -> f64 {
        let end = start + length;
        // No call has this number: the work is of the window in which it runs.
        let record = work(of, start as u64, end as u64, 0);
        self.0.work.push(WorkRecord { stream, ..record });
        end
    }

    fn profile(self, id: &str, length_ns: f64) -> Profile {
        let length = length_ns as u64;
        let whole = || window(&[(0, length, Some(length))]);
        let recording = Recording {
            steady: whole(),
            singles: vec![whole()],
            raw: self.0,
            unrecorded_ns: 0.9 * length_ns,
            ..Recording::default()
        };
        let described = Profile {
            benchmark: id.to_owned(),
            clock: Clock::Wall.name().to_owned(),
            gpu: "NVIDIA H200".to_owned(),
            cupti: "13.0".to_owned(),
            recorded: "2026-11-22T10:00:00Z".to_owned(),
            ..Profile::default()
        };
        analyse(&recording, described)
    }
}

/// A chain of 32 short kernels, each launched by itself.
pub fn eager(id: &str) -> Profile {
    let mut it = Iteration::default();
    let (mut host, mut device) = (0.0, 0.0);
    for _ in 0..32 {
        host = it.call("cuLaunchKernel", host, 2_100.0) + 300.0;
        let start = f64::max(host + 4_000.0, device + 700.0);
        device = it.run(13, kernel("scale_add"), start, 1_180.0);
    }
    let end = it.call("cuStreamSynchronize", host, device - host + 2_000.0);
    it.profile(id, end)
}

/// Writes a profile to its place under `root`; gives the benchmark's folder.
pub fn plant(root: &Path, profile: &Profile) -> PathBuf {
    let id: Id = profile.benchmark.parse().expect("an id");
    let dir = root.join(id.directory());
    let path = dir.join(PROFILE).join(PROFILE_FILE);
    write_json(&path, profile).expect("a temporary folder can be written");
    dir
}
