//! What a row asks of the driver, phase by phase.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::rc::Rc;

use crossover::device::Gpu;
use crossover::model::{FurtherGpu, GpuLink};

use crate::stand_in::{mark, restart_names};
use crate::suite;

/// What the process that was started again does: runs each row that its arguments name, as
/// `group/function/size`, with the choices that follow it, as `choice = candidate`.
pub(crate) fn run() -> ExitCode {
    let groups = suite::groups();
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
        if function == "gpu/first-transformer" {
            // Its child processes calibrate, and calibrations have no place in the texts.
            // SAFETY: no other thread of this process reads or writes the environment.
            unsafe { std::env::remove_var("RECORDING_DRIVER_LOG") };
        }
        // Names of its own, and a device: no row depends on what the one before has left.
        restart_names();
        mark(&format!("{id}: before"));
        let second = FurtherGpu {
            ordinal: 1,
            name: String::new(),
            link: GpuLink::Nvlink,
        };
        let gpu = Gpu::open(0).expect("the recording driver opens");
        let gpu = Rc::new(gpu.with_further(vec![second]));
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
            Err(error) => {
                let error = error.to_string().replace('\n', " ");
                mark(&format!("{id}: fails with {error}"));
            }
        }
    }
    mark("after all rows");
    ExitCode::SUCCESS
}
