//! Every kernel source compiles for each architecture it claims and keeps its values in
//! registers. Needs NVRTC and no GPU.

use crossover::device::kernel::{Cubin, Source};
use crossover::device::present;
use crossover::workload::kernels;

/// One compute capability of each generation that CUDA 13 compiles for.
const ARCHITECTURES: [(u32, u32); 7] = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)];

/// Whether NVRTC is there. Where CI asks for it, its absence is a failure.
fn nvrtc() -> bool {
    let there = present::nvrtc();
    if !there {
        let required = std::env::var_os("CROSSOVER_REQUIRE_NVRTC").is_some_and(|v| v == "1");
        assert!(
            !required,
            "CROSSOVER_REQUIRE_NVRTC=1, but {}; is its folder on LD_LIBRARY_PATH?",
            crossover::device::kernel::NO_NVRTC
        );
        eprintln!("skipped: {}", crossover::device::kernel::NO_NVRTC);
    }
    there
}

fn compile(source: &Source, arch: (u32, u32)) -> Cubin {
    source
        .compile(arch)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Names of the kernels that a source defines.
fn defined(source: &Source) -> Vec<&'static str> {
    source
        .text
        .split("__global__")
        .skip(1)
        .map(|rest| {
            let head = rest.split_once('{').map_or(rest, |(head, _)| head);
            // `__launch_bounds__(…)` has parentheses too and may stand before the name.
            let head = match head.split_once("__launch_bounds__") {
                Some((_, rest)) => rest.split_once(')').map_or(rest, |(_, rest)| rest),
                None => head,
            };
            head.split('(')
                .next()
                .and_then(|head| head.split_whitespace().next_back())
                .unwrap_or_else(|| panic!("{}: a kernel without a name", source.name))
        })
        .collect()
}

#[test]
fn every_source_compiles_for_each_architecture_it_claims() {
    if !nvrtc() {
        return;
    }
    for source in kernels::ALL {
        let claimed = ARCHITECTURES.iter().filter(|&&arch| arch >= source.oldest);
        assert!(claimed.clone().count() > 0, "{} claims none", source.name);
        for &arch in claimed {
            assert!(!compile(source, arch).image.is_empty());
        }
    }
}

#[test]
fn no_kernel_spills_on_hopper() {
    if !nvrtc() {
        return;
    }
    for source in kernels::ALL {
        let cubin = compile(source, (9, 0));
        let resources = cubin.resources();
        let mut found: Vec<&str> = resources.iter().map(|r| r.kernel.as_str()).collect();
        let mut expected = defined(source);
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{}: {}", source.name, cubin.log);
        for kernel in resources {
            assert!(kernel.registers > 0, "{kernel:?}");
            assert_eq!(
                (kernel.spill_stores, kernel.spill_loads),
                (0, 0),
                "{}: {kernel:?}",
                source.name
            );
        }
    }
}

#[test]
fn spills_are_seen_where_there_are_some() {
    if !nvrtc() {
        return;
    }
    let spilling = Source {
        name: "spilling.cu",
        text: "extern \"C\" __global__ void __launch_bounds__(1024, 2) spilling(float *p) {
            float r[64];
            #pragma unroll
            for (int i = 0; i < 64; i++) r[i] = p[i * 1024 + threadIdx.x];
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < 64; i++) p[i * 1024 + threadIdx.x] = r[63 - i] * r[i * 7 % 64];
        }",
        options: &[],
        oldest: (7, 5),
    };
    let resources = compile(&spilling, (9, 0)).resources();
    assert_eq!(resources.len(), 1);
    assert_eq!(resources[0].kernel, defined(&spilling)[0]);
    assert!(resources[0].spill_stores > 0, "{resources:?}");
    assert!(resources[0].spill_loads > 0, "{resources:?}");
}

#[test]
fn a_rejected_source_shows_the_compilers_words() {
    if !nvrtc() {
        return;
    }
    let wrong = Source {
        name: "wrong.cu",
        text: "extern \"C\" __global__ void wrong() { nothing_of_that_name(); }",
        options: &[],
        oldest: (7, 5),
    };
    let error = wrong
        .compile((9, 0))
        .expect_err("it calls nothing")
        .to_string();
    assert!(
        error.contains("wrong.cu") && error.contains("nothing_of_that_name"),
        "{error}"
    );
}

#[test]
fn names_are_unique_since_modules_are_kept_by_name() {
    let mut names: Vec<&str> = kernels::ALL.iter().map(|source| source.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// A source in the folder but not in the list would be compiled by no test.
#[test]
fn every_file_of_the_folder_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            !name.ends_with(".cu") || kernels::ALL.iter().any(|source| source.name == name),
            "kernels/{name} is not in crossover::workload::kernels::ALL"
        );
    }
}
