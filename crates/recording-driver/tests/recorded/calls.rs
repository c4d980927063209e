//! The driver calls of each GPU row at its smallest size, and at sizes where it takes other code.

use std::collections::BTreeMap;
use std::rc::Rc;

use crossover_suite::device::Gpu;
use crossover_suite::model::Devices::{Divided, Gathered};
use crossover_suite::model::{FurtherGpu, GpuLink};
use crossover_suite::suite::{AnyGroup, Planned, SizeSet};

use crate::stand_in::{leave_out_children, mark, phases, plan};
use crate::suite;

/// A row at a size, and its calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowCalls {
    /// Such as `gpu/cublas`.
    pub(crate) function: String,
    pub(crate) size: u64,
    /// The candidate of each choice: handed over, or made.
    pub(crate) chosen: BTreeMap<String, String>,
    /// Their names and calls.
    phases: Vec<(String, Vec<String>)>,
}

impl RowCalls {
    /// The calls of a phase.
    fn phase(&self, name: &str) -> &[String] {
        let phase = self.phases.iter().find(|(of, _)| of == name);
        phase.map_or(&[], |(_, lines)| lines)
    }

    /// The calls of an iteration, and the nodes of the graphs that it launches.
    fn iteration(&self) -> Vec<String> {
        let mut calls = self.phase("iteration").to_vec();
        let (mut nodes, mut captured) = (Vec::new(), Vec::new());
        for line in self.phases.iter().flat_map(|(_, lines)| lines) {
            if line.starts_with("capture s") {
                captured.clear();
            } else if line.starts_with("node ") {
                captured.push(line.clone());
            } else if let Some(graph) = line.strip_prefix("end of capture: ") {
                let launch = format!("launch {graph} ");
                if calls.iter().any(|line| line.starts_with(&launch)) {
                    nodes.append(&mut captured);
                }
            }
        }
        calls.append(&mut nodes);
        calls
    }
}

/// Sizes at which rows take another way than at their smallest, some with a choice in place of a calibration.
const FURTHER: &str = "\
fft/gpu/cufft/10007
fft/gpu/transfer-pinned/4096
host_sync/gpu/async/4096
matmul/gpu/tiled/300
matmul/gpu/tiled/2048
matmul/gpu/best-eager/64 product of order 64 in device memory, calls queued = cuBLAS, as a graph
matmul/gpu/best-awaited/64 product of order 64 in device memory, each call awaited = tiles in registers, as a graph
matmul/gpu/transfer-pinned/64 1 products of 64 x 64 x 64 from pinned memory = mapped memory
matmul/gpu/transfer-pinned/1024 1 products of 1024 x 1024 x 1024 from pinned memory = 8 overlapping pieces
matmul_batched/gpu/transfer-pinned/256
matmul_skinny/gpu/best/64
nested_sine/gpu/fused/1048576
nested_sine/gpu/transfer-pinned/1000 nested sine of 1000 values from pinned memory = in sequence
nested_sine/gpu/transfer-pinned/600000 nested sine of 600000 values from pinned memory = 4 overlapping pieces
reduction/gpu/transfer-pinned/1048577 sum of 1048577 values from pinned memory = mapped memory
transfer/gpu/h2d-staged/1048576
transfer/gpu/d2h-staged/1048576";

/// The rows of a group at the sizes that are tested.
pub(crate) fn rows(group: &AnyGroup) -> Vec<RowCalls> {
    let planned = group.planned(SizeSet::Full);
    let smallest = |function: &String| {
        let id = |planned: &Planned| format!("{}/{function}/{}", group.name(), planned.size);
        let of_row = planned.iter().filter(|planned| planned.id == id(planned));
        // One row of a matrix cannot be divided among devices.
        let of_row = of_row.filter(|planned| planned.role.devices.is_none() || planned.size > 1);
        of_row.map(|planned| planned.size).min().expect("a size")
    };
    let functions = group.functions().into_iter();
    let on_gpu = functions.filter(|function| function.starts_with("gpu/"));
    let mut rows = Vec::from_iter(on_gpu.map(|function| RowCalls {
        size: smallest(&function),
        function,
        ..RowCalls::default()
    }));
    for line in FURTHER.lines() {
        let (id, choice) = line.split_once(' ').unwrap_or((line, ""));
        let (of, row) = id.split_once('/').expect("a group");
        if of == group.name() {
            let (function, size) = row.rsplit_once('/').expect("a size");
            let chosen = choice.split_once(" = ");
            rows.push(RowCalls {
                function: function.to_owned(),
                size: size.parse().expect("a number"),
                chosen: chosen
                    .iter()
                    .map(|(name, way)| [name, way].map(|it| (*it).to_owned()).into())
                    .collect(),
                ..RowCalls::default()
            });
        }
    }
    rows
}

/// The first device, and the second one for rows that use several.
pub(crate) fn open() -> Rc<Gpu> {
    let second = FurtherGpu {
        ordinal: 1,
        name: String::new(),
        link: GpuLink::Nvlink,
        broken_with: Vec::new(),
    };
    let gpu = Gpu::open(0).expect("the recording driver opens");
    Rc::new(gpu.with_further(vec![second]))
}

/// Runs each row of a group, holds it to the cost that it declares, and to [`ASKED`].
pub(crate) fn group(at: usize) {
    let group = &suite::groups()[at];
    let planned = group.planned(SizeSet::Full);
    for mut row in rows(group) {
        let id = format!("{}/{}/{}", group.name(), row.function, row.size);
        // Tells which row ends the process, if one does.
        println!("{id}");
        if row.function == "gpu/first-transformer" {
            leave_out_children();
        }
        // Names of its own, and a device: no row depends on the calls of the one before.
        plan("");
        mark("before");
        let gpu = open();
        let made = group.in_phases(&row.function, row.size, &gpu, row.chosen, &mut |phase| {
            mark(phase)
        });
        drop(gpu);
        row.chosen = made.unwrap_or_else(|error| panic!("{id}: {error}"));
        row.phases = phases();
        if let Some(planned) = planned.iter().find(|planned| planned.id == id) {
            check_cost(planned, &row);
        }
        let calls = row.iteration();
        for line in ASKED.lines() {
            let [of, count, call] = line.splitn(3, " | ").collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let made = calls.iter().filter(|made| made.contains(call)).count();
            let is_made = of != id || made.to_string() == count;
            assert!(is_made, "{made}: {line}\n{}", calls.join("\n"));
        }
    }
}

/// Calls of an iteration that no declared cost and no result on this driver holds, with their number: arguments,
/// grids, streams and waits. In `mlp_training` the moments are in d3, the gradients in d6, and the parameters in d8.
const ASKED: &str = "\
fft/gpu/cufft/8 | 1 | cufftExecC2C by fft1, 64 of 8 forward: d1 -> d2 on s1
host_sync/gpu/async/4096 | 64 | launch step grid (4,1,1) block (256,1,1)
host_sync/gpu/async/4096 | 64 | , 0.96875, 0.03125, 4096)
host_sync/gpu/async/4096 | 1 | wait for s1
host_sync/gpu/read-each/1024 | 64 | copy D2H 4 B
host_sync/gpu/read-each/1024 | 65 | wait for s1
loader/gpu/pageable/16384 | 32 | copy H2D 16384 B host -> d1
loader/gpu/pageable/16384 | 32 | wait for s1
loader/gpu/pinned/16384 | 32 | wait for s1
mlp_training/gpu/eager/16 | 1 | launch adamw_first grid (3075,1,1) block (256,1,1) shared 0 on s1 (d3, d6, 787072)
mlp_training/gpu/eager/16 | 1 | launch adamw_decay grid (3075,1,1) block (256,1,1) shared 0 on s1 (d8, 787072)
mlp_training/gpu/forward-sync-each/16 | 2 | wait for s1
reduction/gpu/last-block/1024 | 1 | launch sum_last_block grid (1,1,1) block (256,1,1) shared 0 on s1 (d1, 1024, d2, d4, d3)
streams/gpu/sequence/65536 | 1 | wait for s1
streams/gpu/sequence/65536 | 1 | wait for s2
streams/gpu/sequence/65536 | 1 | wait for s3
transfer/gpu/both-pinned/1024 | 1 | copy D2H 1024 B d2 -> pinned2 on s3
transfer/gpu/both-pinned/1024 | 1 | copy H2D 1024 B pinned1 -> d1 on s1
transfer/gpu/both-pinned/1024 | 1 | wait for s3";

/// A row declares what an iteration asks: bytes over the link, and kernels. Kernels on the host's memory copy
/// nothing, a choice may cut the work into more kernels, and each of several devices launches as many.
fn check_cost(planned: &Planned, row: &RowCalls) {
    let (cost, on_both) = (planned.cost, [Some(Divided), Some(Gathered)]);
    let devices = 1 + u32::from(on_both.contains(&planned.role.devices));
    let calls = row.iteration();
    let copied = ["copy H2D ", "copy D2H "].map(|direction| copied(&calls, direction));
    let made = kernels(&calls) / devices;
    let is_copied = cost
        .link_bytes
        .is_none_or(|bytes| copied == [bytes.to_device, bytes.to_host]);
    let is_made = |n| n == made || n < made && !row.chosen.is_empty();
    let is_right = (is_copied || copied == [0.0; 2]) && cost.launches.is_none_or(is_made);
    let id = &planned.id;
    assert!(
        is_right,
        "{id} copies {copied:?} B, launches {made} kernels, and declares {cost:?}"
    );
}

/// The bytes that calls copy in a direction: `4096 B d1 -> host`, or `8 rows of 512 B`.
fn copied(calls: &[String], direction: &str) -> f64 {
    let sizes = calls
        .iter()
        .filter_map(|line| line.split_once(direction)?.1.split_once(" B "));
    let number = |n: &str| n.parse::<f64>().expect("a number");
    let bytes = sizes.map(|(size, _)| size.split(" rows of ").map(number).product::<f64>());
    bytes.sum()
}

/// The kernels that calls launch, a library's call as one.
fn kernels(calls: &[String]) -> u32 {
    let is_kernel = |line: &&String| {
        let is_library = ["cublas", "cufft"].iter().any(|name| line.contains(name));
        is_library || line.contains("launch ") && !line.contains("launch graph")
    };
    calls.iter().filter(is_kernel).count() as u32
}
