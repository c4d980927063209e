//! What a row asks of the driver, phase by phase.

use std::process::ExitCode;
use std::rc::Rc;

use crossover::device::Gpu;
use crossover::device::kernel::Source;
use crossover::timing::Launch;
use crossover::timing::cudarc::driver::DevicePtr;

use crate::stand_in::{StandIn, expect, mark, restart_names, said};
use crate::suite;

static FILL: Source = Source {
    name: "fill.cu",
    text: "extern \"C\" __global__ void fill(float *x, float value, unsigned int n) {}",
    options: &[],
    oldest: (7, 5),
};

/// What the process that was started again does: runs each row that its arguments name, as
/// `group/function/size`.
pub(crate) fn run() -> ExitCode {
    let groups = suite::groups();
    for id in std::env::args().skip(1) {
        let (function, size) = id.rsplit_once('/').expect("an id");
        let (group, function) = function.split_once('/').expect("an id");
        let group = (groups.iter())
            .find(|g| g.name() == group)
            .expect("a group of the suite");
        // Names of its own, and a device: no row depends on what the one before has left.
        restart_names();
        mark(&format!("{id}: before"));
        let gpu = Rc::new(Gpu::open(0).expect("the recording driver opens"));
        let mut begin = |phase| mark(&format!("{id}: {phase}"));
        let size = size.parse().expect("a size");
        if let Err(error) = group.in_phases(function, size, &gpu, &mut begin) {
            println!("{id}: {error}");
        }
        mark(&format!("{id}: after"));
    }
    ExitCode::SUCCESS
}

pub(crate) fn text() {
    let stand_in = StandIn::new();
    let rows = [
        "nested_sine_uniform/gpu/per-kernel/1000",
        "matmul/gpu/cublas/64",
    ];
    let said = expect(stand_in.logged("rows", "h200").args(rows), 0);
    assert_eq!(said, "");
    let phases = stand_in.phases();
    let is = |row: usize, phase: &str, lines: &[&str]| {
        assert_eq!(phases[&format!("{}: {phase}", rows[row])], lines, "{phase}");
    };
    let kernels = [
        "launch sine_pass grid (2,1,1) block (128,1,1) shared 0 on s1 (d1, d2, 1000)",
        "launch sine_pass_backwards grid (2,1,1) block (128,1,1) shared 0 on s1 (d2, d2, 1000)",
        "launch sine_pass grid (2,1,1) block (128,1,1) shared 0 on s1 (d2, d2, 1000)",
        "launch sine_pass_backwards grid (2,1,1) block (128,1,1) shared 0 on s1 (d2, d2, 1000)",
    ];
    is(0, "iteration", &kernels);
    let checked = [
        "wait for s1",
        "copy D2H 4000 B d2 -> host on s1",
        "wait for s1",
    ];
    is(0, "verification", &checked);
    is(0, "drop", &["free d1 on s1", "free d2 on s1"]);
    // The context ends with nothing in it.
    is(0, "after", &["destroy s1"]);
    let product = "cublasSgemm_v2 64 x 64 x 64 32F: d = 1 a b, a f32 64 x 64 ld 64 at d2, \
                   b f32 64 x 64 ld 64 at d1, d f32 64 x 64 ld 64 at d3 on s1";
    is(1, "iteration", &[product]);
    is(1, "after", &["destroy blas1", "destroy s1"]);
}

pub(crate) fn fault() {
    let row = "nested_sine_uniform/gpu/per-kernel/1000";
    let stand_in = StandIn::new();
    let said = |faults: &str| {
        let mut command = stand_in.command("rows", "h200");
        expect(command.arg(row).env("RECORDING_DRIVER_FAULTS", faults), 0)
    };
    let third = said(&format!("cuLaunchKernel:3:719:{row}: iteration"));
    assert!(
        third.starts_with(&format!("{row}: cuLaunchKernel failed: ")),
        "{third}"
    );
    assert!(third.contains("LAUNCH_FAILED"), "{third}");
    let full = said("cuMemAllocAsync:2:2");
    assert!(
        full.contains("cuMemAllocAsync") && full.contains("OUT_OF_MEMORY"),
        "{full}"
    );
    assert_eq!(said("cuMemAllocAsync:3:2"), "", "there is no third");
}

/// What the process that was started again does: uses memory that was freed.
pub(crate) fn corrupt() -> ExitCode {
    let gpu = Gpu::open(0).expect("the recording driver opens");
    let y = gpu.alloc::<f32>(16).expect("there is room");
    let (address, _) = y.device_ptr(gpu.stream());
    let fill = gpu.function(&FILL, "fill").expect("the kernel compiles");
    let launch = Launch::new(fill, (1, 1, 1), (16, 1, 1));
    let launch = launch.arg::<u64>(address).arg(1.0f32).arg(16u32);
    drop(y);
    // SAFETY: none; this is what must not be done.
    let launched = unsafe { launch.launch(gpu.stream()) };
    println!("went on with {launched:?}");
    ExitCode::SUCCESS
}

pub(crate) fn corrupted() {
    let stand_in = StandIn::new();
    let output = stand_in.command("corrupts", "h200").output();
    let output = output.expect("this executable runs");
    let said = said(&output);
    assert!(!output.status.success(), "{said}");
    let sentence = "the recording driver ends the process at cuLaunchKernel: argument 1 of fill: \
                    d1 (freed) is used after it was freed";
    assert!(said.contains(sentence), "{said}");
}
