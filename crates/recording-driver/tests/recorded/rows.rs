//! What a row asks of the driver, phase by phase.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::rc::Rc;

use crossover::device::Gpu;
use crossover::device::kernel::Source;
use crossover::timing::Launch;
use crossover::timing::cudarc::driver::DevicePtr;

use crate::stand_in::{StandIn, mark, restart_names, said};
use crate::suite;

static FILL: Source = Source {
    name: "fill.cu",
    text: "extern \"C\" __global__ void fill(float *x, float value, unsigned int n) {}",
    options: &[],
    oldest: (7, 5),
};

/// What the process that was started again does: runs each row that its arguments name, as
/// `group/function/size`, with the choices that follow it, as `choice = candidate`.
pub(crate) fn run() -> ExitCode {
    let groups = suite::groups();
    // A real device takes long to make a context: it stays.
    let real = std::env::var("RECORDING_DRIVER_REAL").unwrap_or_default();
    let _kept = (!real.is_empty()).then(|| Gpu::open(0));
    // As in a run, a row takes what those before it chose.
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let mut arguments = std::env::args().skip(1).peekable();
    while let Some(id) = arguments.next() {
        let choices = std::iter::from_fn(|| {
            let choice = arguments.next_if(|argument| argument.contains(" = "))?;
            let (choice, candidate) = choice.split_once(" = ")?;
            Some((choice.to_owned(), candidate.to_owned()))
        });
        let choices: Vec<(String, String)> = choices.collect();
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
        known.extend(choices);
        let made = group.in_phases(function, size, &gpu, known.clone(), &mut begin);
        mark(&format!("{id}: after"));
        drop(gpu);
        match made {
            Ok(made) => {
                for (choice, candidate) in &made {
                    mark(&format!("{id}: chosen {choice} = {candidate}"));
                }
                known.extend(made);
            }
            Err(error) => mark(&format!("{id}: fails with {error}")),
        }
    }
    mark("after all rows");
    ExitCode::SUCCESS
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
