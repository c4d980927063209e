//! Every source compiles for each architecture it claims, and keeps its values in registers.

use std::collections::{BTreeMap, BTreeSet};

use crossover_suite::device::kernel::{ARCHITECTURES, Cubin, Source};

use crate::golden::kernels::{HOPPER, PLANTED, compile, sources};

/// Spills are accepted of the tiled products and the linear layers on Blackwell alone: NVRTC 13.0
/// schedules them for a few more registers there than their launch bounds, or a thread, can have,
/// and nobody has measured whether fewer blocks at once, or smaller tiles, would be better.
fn may_spill(kernel: &str, arch: (u32, u32)) -> bool {
    let products = ["matmul_tiled_", "linear_"];
    products.iter().any(|name| kernel.starts_with(name)) && arch >= (10, 0)
}

/// Names of the kernels in the machine code: each has a section for its arguments, whose name
/// stands in the tables of sections and of symbols.
fn kernels_of(cubin: &Cubin) -> BTreeSet<String> {
    (cubin.image.split(|&byte| byte == 0))
        .filter_map(|text| text.strip_prefix(b".nv.constant0."))
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

/// Bytes that each kernel spills and reads back, from the log that `--ptxas-options=-v` leaves. What follows
/// a kernel's line belongs to it and to the functions that it calls.
fn spills(log: &str) -> BTreeMap<&str, u32> {
    let (mut spills, mut kernel) = (BTreeMap::new(), "");
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            kernel = rest.split('\'').next().unwrap_or_default();
            spills.insert(kernel, 0);
        }
        for bytes in line
            .split(", ")
            .filter(|item| item.contains(" bytes spill "))
        {
            let (bytes, _) = bytes.split_once(' ').expect("a number");
            *spills.entry(kernel).or_default() += bytes.parse::<u32>().expect("a number");
        }
    }
    spills
}

pub(crate) fn every_source_compiles_for_each_architecture_it_claims_and_does_not_spill() {
    for source in sources() {
        let claimed = ARCHITECTURES.iter().filter(|&&arch| arch >= source.oldest);
        assert!(claimed.clone().count() > 0, "{} claims none", source.name);
        for &arch in claimed {
            let cubin = compile(source, arch);
            let spills = spills(&cubin.log);
            let found: BTreeSet<String> = spills.keys().map(|name| (*name).to_owned()).collect();
            assert!(!found.is_empty(), "{} has no kernel", source.name);
            assert_eq!(found, kernels_of(&cubin), "{}", source.name);
            for (kernel, bytes) in spills {
                let is_good = bytes == 0 || may_spill(kernel, arch);
                assert!(is_good, "{arch:?}: {kernel} spills {bytes} bytes");
            }
        }
    }
}

pub(crate) fn spills_are_seen_where_there_are_some() {
    let cubin = compile(&PLANTED, HOPPER);
    assert!(spills(&cubin.log)["planted"] > 0, "{}", cubin.log);
}

pub(crate) fn a_rejected_source_shows_the_compilers_words() {
    let wrong = Source {
        name: "wrong.cu",
        text: "extern \"C\" __global__ void wrong() { nothing_of_that_name(); }",
        options: &[],
        oldest: (7, 5),
    };
    let error = wrong
        .compile(HOPPER)
        .expect_err("it calls nothing")
        .to_string();
    assert!(
        error.contains("wrong.cu") && error.contains("nothing_of_that_name"),
        "{error}"
    );
}

/// Every source in the folder belongs to a group, or no test would compile it, and has a name of its own, by which
/// modules are kept.
pub(crate) fn every_file_of_the_folder_is_of_a_group_or_of_the_limits_once() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let of_name = sources()
            .iter()
            .filter(|source| source.name == name)
            .count();
        assert!(
            !name.ends_with(".cu") || of_name == 1,
            "kernels/{name} is {of_name} times in Workload::kernels of a listed group or among the limits"
        );
    }
}
