//! The benchmarks of every profile on machines of several sizes, and their inputs.

use std::collections::BTreeMap;

use crossover::suite::{Memory, Planned, Profile};
use rayon::{ThreadPool, ThreadPoolBuilder};
use sha2::{Digest, Sha256};

use crate::golden::golden_lines;
use crate::suite;

const PROFILES: [(char, Profile); 3] = [
    ('q', Profile::Quick),
    ('d', Profile::Default),
    ('f', Profile::Full),
];

const GIB: u64 = 1 << 30;

/// Machines that have a device of that memory, from a small laptop to a server.
const MEMORIES: [(char, Memory); 4] = [
    ('1', memory(2, 4)),
    ('2', memory(8, 8)),
    ('3', memory(24, 24)),
    ('4', memory(128, 139)),
];

const fn memory(host: u64, device: u64) -> Memory {
    Memory {
        host: host * GIB,
        device: device * GIB,
    }
}

/// Numbers of cores to ask with: what is planned and made may depend on them.
const CORES: [usize; 3] = [1, 2, 16];

/// Inputs of benchmarks that take more host memory have no digest here: making them takes too
/// long for a test.
const LARGEST_INPUT: u64 = 150 << 20;
/// Up to here the inputs are made with each number of cores.
const SMALL_INPUT: u64 = 4 << 20;

fn pool(cores: usize) -> ThreadPool {
    ThreadPoolBuilder::new()
        .num_threads(cores)
        .build()
        .expect("threads can be started")
}

/// A line per benchmark, tab-separated.
fn lines() -> Vec<String> {
    let mut benchmarks: BTreeMap<String, (String, Planned)> = BTreeMap::new();
    for group in suite::groups() {
        for (letter, profile) in PROFILES {
            for planned in group.planned(profile) {
                let entry = benchmarks
                    .entry(planned.id.clone())
                    .or_insert_with(|| (String::new(), planned.clone()));
                assert_eq!(entry.1, planned, "it is the same in every profile");
                entry.0.push(letter);
            }
        }
    }
    benchmarks
        .values()
        .map(|(profiles, planned)| match planned.untried {
            true => line(&format!("{profiles}, untried"), planned),
            false => line(profiles, planned),
        })
        .collect()
}

fn line(profiles: &str, planned: &Planned) -> String {
    let number = |n: Option<f64>| n.map_or("-".to_owned(), |n| format!("{n:?}"));
    let fits: String = MEMORIES
        .iter()
        .filter(|(_, memory)| planned.lacks(*memory).is_none())
        .map(|(letter, _)| letter)
        .collect();
    let cost = &planned.cost;
    [
        planned.id.clone(),
        profiles.to_owned(),
        if fits.is_empty() { "-".into() } else { fits },
        planned.clock.name().to_owned(),
        planned.throughput.map_or("-".to_owned(), |(amount, unit)| {
            format!("{amount:?} {unit}")
        }),
        number(cost.flop),
        number(cost.bytes),
        number(cost.link_bytes.map(|bytes| bytes.to_device)),
        number(cost.link_bytes.map(|bytes| bytes.to_host)),
        number(cost.launches.map(f64::from)),
        planned.directory.display().to_string(),
        serde_json::to_string(&planned.role).expect("a role is plain data"),
    ]
    .join("\t")
}

const HEADER: &str = "id\tprofiles\tfits\tclock\tthroughput\tflop\tbytes\tto device\tto host\tlaunches\tfolder\trole";

pub(crate) fn every_benchmark_is_what_it_was() {
    let now = pool(CORES[0]).install(lines);
    for cores in CORES {
        assert_eq!(pool(cores).install(lines), now, "with {cores} cores");
    }
    let mut file = vec![HEADER.to_owned()];
    file.extend(now.iter().cloned());
    let golden = golden_lines("benchmarks.tsv", &file);
    assert!(golden.len() > 1000, "{}", golden.len());
    for golden in &golden[1..] {
        let (id, _) = golden.split_once('\t').expect("a line has columns");
        let id = format!("{id}\t");
        let found = now.iter().find(|line| line.starts_with(&id));
        assert_eq!(found, Some(golden), "\n{HEADER}");
    }
}

/// The digest of each group's inputs by size.
fn digests() -> Vec<String> {
    let mut lines = Vec::new();
    for (at, group) in suite::groups().iter().enumerate() {
        let mut sizes: Vec<(u64, u64)> = PROFILES
            .iter()
            .flat_map(|(_, profile)| group.planned(*profile))
            .filter(|planned| planned.host_bytes <= LARGEST_INPUT)
            .map(|planned| (planned.size, planned.host_bytes))
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        for (size, bytes) in sizes {
            let hex = digest(at, size, CORES[1]);
            if bytes <= SMALL_INPUT {
                for cores in CORES {
                    let same = digest(at, size, cores);
                    assert_eq!(same, hex, "{} with {cores} cores", group.name());
                }
            }
            lines.push(format!("{}\t{size}\t{hex}", group.name()));
        }
    }
    lines
}

/// The digest of the inputs that the group with this index makes on so many cores. A group cannot
/// move to another thread, so the one of the pool makes its own list of groups.
fn digest(at: usize, size: u64, cores: usize) -> String {
    pool(cores).install(|| {
        let mut digest = Sha256::new();
        suite::groups()[at].visit_inputs(size, &mut |bytes| digest.update(bytes));
        let bytes = digest.finalize();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    })
}

pub(crate) fn every_input_is_what_it_was() {
    let now = digests();
    for golden in golden_lines("inputs.tsv", &now) {
        assert!(now.contains(&golden), "{golden}");
    }
}
