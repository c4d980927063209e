//! What a row asks of the driver, phase by phase.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::rc::Rc;

use crossover::device::Gpu;
use crossover::model::{FurtherGpu, GpuLink};
use crossover::suite::AnyGroup;

use crate::stand_in::{mark, restart_names};
use crate::suite;

/// Such as `gpu/cublas/64`, and the candidates of choices.
type RowWithChoices = (String, BTreeMap<String, String>);

/// The group that the first argument names, and rows of it, as `function/size`, with the choices that
/// follow each, as `choice = candidate`.
pub(crate) fn named() -> (AnyGroup, Vec<RowWithChoices>) {
    let mut arguments = std::env::args().skip(1).peekable();
    let name = arguments.next().expect("a group");
    let group = suite::groups()
        .into_iter()
        .find(|group| group.name() == name);
    let mut rows = Vec::new();
    while let Some(row) = arguments.next() {
        let choices = std::iter::from_fn(|| {
            let choice = arguments.next_if(|argument| argument.contains(" = "))?;
            let (choice, candidate) = choice.split_once(" = ")?;
            Some((choice.to_owned(), candidate.to_owned()))
        });
        let choices = choices.collect();
        rows.push((row, choices));
    }
    (group.expect("a group of the suite"), rows)
}

/// The first device, and the second one for rows that use several.
pub(crate) fn open() -> Rc<Gpu> {
    let second = FurtherGpu {
        ordinal: 1,
        name: String::new(),
        link: GpuLink::Nvlink,
    };
    let gpu = Gpu::open(0).expect("the recording driver opens");
    Rc::new(gpu.with_further(vec![second]))
}

/// The task of the process that was started again: runs rows.
pub(crate) fn run() -> ExitCode {
    let (group, rows) = named();
    // As in a run, a row takes what those before it chose.
    let mut known = BTreeMap::new();
    for (row, choices) in rows {
        known.extend(choices);
        // Tells which row ends the process, if one does.
        println!("{row}");
        let (function, size) = row.rsplit_once('/').expect("a size");
        if function == "gpu/first-transformer" {
            // Its child processes calibrate, and calibrations have no place in the texts.
            // SAFETY: no other thread of this process reads or writes the environment.
            unsafe { std::env::remove_var("RECORDING_DRIVER_LOG") };
        }
        let mut begin = |phase: &str| mark(&format!("{row}: {phase}"));
        // Names of its own, and a device: no row depends on what the one before has left.
        restart_names();
        begin("before");
        let gpu = open();
        let size = size.parse().expect("a number");
        let made = group.in_phases(function, size, &gpu, known.clone(), &mut begin);
        begin("after");
        drop(gpu);
        match made {
            Ok(made) => {
                for (choice, candidate) in &made {
                    begin(&format!("chosen {choice} = {candidate}"));
                }
                known.extend(made);
            }
            Err(error) => begin(&format!(
                "fails with {}",
                error.to_string().replace('\n', " ")
            )),
        }
    }
    mark("after all rows");
    ExitCode::SUCCESS
}
