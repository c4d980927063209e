//! The benchmarks of every profile on machines of several sizes, and their inputs.

use std::collections::{BTreeMap, BTreeSet};

use crossover_suite::suite::{AnyGroup, MachineMemory, Planned, SizeSet};
use rayon::{ThreadPool, ThreadPoolBuilder};
use sha2::{Digest, Sha256};

use crate::golden::{folder, hold_file};
use crate::suite;

const GIB: u64 = 1 << 30;

/// Machines that have a device of that memory, from a small laptop to a server.
const MEMORIES: [MachineMemory; 4] = [memory(2, 4), memory(8, 8), memory(24, 24), memory(128, 139)];

const fn memory(host: u64, device: u64) -> MachineMemory {
    MachineMemory {
        host: host * GIB,
        device: device * GIB,
    }
}

/// Numbers of cores to ask with: what is planned and made may depend on them.
const CORES: [usize; 3] = [1, 2, 16];

/// Above the smallest size, inputs of benchmarks that take more host memory have no digest here: making
/// them takes too long for a test.
const LARGEST_INPUT: u64 = 16 << 20;
/// Up to here the inputs are made on one core, too.
const SMALL_INPUT: u64 = 4 << 20;

fn pool(cores: usize) -> ThreadPool {
    ThreadPoolBuilder::new()
        .num_threads(cores)
        .build()
        .expect("threads can be started")
}

/// The lines of each group, a line per row.
fn lines() -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for group in suite::groups() {
        let in_set = |set| {
            let planned = group.planned(set).into_iter();
            planned
                .map(|planned| (planned.id.clone(), planned))
                .collect()
        };
        let [quick, default, full]: [BTreeMap<String, Planned>; 3] =
            [SizeSet::Quick, SizeSet::Default, SizeSet::Full].map(in_set);
        for (id, planned) in quick.iter().chain(&default) {
            assert_eq!(
                full.get(id),
                Some(planned),
                "it is the same in every profile"
            );
        }
        let mut lines = Vec::new();
        for function in group.functions() {
            let row = format!("{}/{function}", group.name());
            let of_row = |planned: &&Planned| planned.id == format!("{row}/{}", planned.size);
            let mut all_sizes: Vec<&Planned> = full.values().filter(of_row).collect();
            all_sizes.sort_by_key(|planned| planned.size);
            let size = |planned: &&Planned| {
                let mut size = planned.size.to_string();
                size.extend(quick.get(&planned.id).map(|_| 'q'));
                size.extend(default.get(&planned.id).map(|_| 'd'));
                size
            };
            let sizes: Vec<String> = all_sizes.iter().map(size).collect();
            lines.push(line(&row, &sizes.join(" "), &all_sizes));
        }
        all.insert(group.name().to_owned(), lines);
    }
    all
}

/// The line of a row, of its benchmarks from the smallest size to the largest.
fn line(row: &str, sizes: &str, all: &[&Planned]) -> String {
    let number = |n: Option<f64>| n.map_or("-".to_owned(), |n| format!("{n:?}"));
    let fits = MEMORIES.map(|memory| {
        let mut fitting = all.iter().filter(|planned| planned.lacks(memory).is_none());
        fitting
            .next_back()
            .map_or("-".to_owned(), |planned| planned.size.to_string())
    });
    let largest = all.last().expect("a row has a size");
    for planned in all {
        assert_eq!(
            (planned.clock, &planned.role),
            (largest.clock, &largest.role),
            "{}",
            planned.id
        );
    }
    let cost = &largest.cost;
    let throughput = largest
        .throughput
        .map(|(amount, unit)| format!("{amount:?} {unit}"));
    [
        row.to_owned(),
        largest.clock.name().to_owned(),
        sizes.to_owned(),
        fits.join(" "),
        throughput.unwrap_or("-".to_owned()),
        number(cost.flop),
        number(cost.bytes),
        number(cost.link_bytes.map(|bytes| bytes.to_device)),
        number(cost.link_bytes.map(|bytes| bytes.to_host)),
        number(cost.launches.map(f64::from)),
        serde_json::to_string(&largest.role).expect("a role is plain data"),
    ]
    .join("\t")
}

/// A line for each group: its sizes with the beginning of the digest of their inputs.
fn digests() -> Vec<String> {
    let of_group = |(at, group): (usize, &AnyGroup)| {
        let planned = group.planned(SizeSet::Full).into_iter();
        let sizes = planned.map(|planned| (planned.size, planned.host_bytes));
        // Of the implementations of a size the one that takes least memory.
        let mut smallest = BTreeMap::new();
        for (size, bytes) in sizes {
            let least: &mut u64 = smallest.entry(size).or_insert(bytes);
            *least = bytes.min(*least);
        }
        let mut line = Vec::new();
        for (at_size, (size, bytes)) in smallest.into_iter().enumerate() {
            if at_size > 0 && bytes > LARGEST_INPUT {
                continue;
            }
            let [one, .., most] = CORES;
            let hex = digest(at, size, most);
            if bytes <= SMALL_INPUT {
                assert_eq!(digest(at, size, one), hex, "{} on one core", group.name());
            }
            line.push(format!("{size}:{hex}"));
        }
        line.join(" ")
    };
    suite::groups().iter().enumerate().map(of_group).collect()
}

/// The digest of the inputs that the group with this index makes on so many cores. A group cannot
/// move to another thread, so the one of the pool makes its own list of groups.
fn digest(at: usize, size: u64, cores: usize) -> String {
    pool(cores).install(|| {
        let mut digest = Sha256::new();
        suite::groups()[at].visit_inputs(size, &mut |bytes| digest.update(bytes));
        let bytes = digest.finalize();
        bytes[..4]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    })
}

pub(crate) fn every_benchmark_and_input_is_what_it_was() {
    let now = pool(CORES[0]).install(lines);
    for cores in CORES {
        assert_eq!(pool(cores).install(lines), now, "with {cores} cores");
    }
    let folder = folder().expect("the sources have the folder");
    for (group, inputs) in suite::groups().iter().zip(digests()) {
        let inputs = ["", "[inputs]", &inputs].map(str::to_owned);
        let lines = [&["[benchmarks]".to_owned()], &*now[group.name()], &inputs].concat();
        hold_file(&folder.join(format!("{}.txt", group.name())), &lines);
    }
}

pub(crate) fn every_file_is_of_a_group() {
    let folder = folder().expect("the sources have the folder");
    let files = std::fs::read_dir(folder).expect("it can be read");
    let files = files.map(|file| file.expect("it can be read").file_name());
    let groups = suite::groups();
    let of_groups = groups
        .iter()
        .map(|group| format!("{}.txt", group.name()).into());
    assert_eq!(BTreeSet::from_iter(files), BTreeSet::from_iter(of_groups));
}
