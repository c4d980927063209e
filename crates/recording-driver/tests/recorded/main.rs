//! The suite with the recording driver in place of NVIDIA's: this executable starts itself again with
//! the driver's library on `LD_LIBRARY_PATH`.

mod devices;
mod faults;
mod golden;
mod prepared;
mod rows;
mod stand_in;
mod text;
mod timing;
mod whole;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use stand_in::TASK;

/// A group's file of what must not change.
#[path = "../../../../tests/groups/golden/part.rs"]
mod part;

/// The suite's own list of groups.
#[allow(dead_code, reason = "its main function is the bench executable's")]
#[path = "../../../../benches/crossover/main.rs"]
mod suite;

type Test = Box<dyn Fn() + Send>;

fn trial(name: String, test: Test) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// Tests by the names of their functions.
macro_rules! named {
    ($($test:path,)*) => { vec![$(trial(stringify!($test).to_owned(), Box::new($test))),*] };
}

fn main() -> ExitCode {
    if let Some(code) = crossover::workload::run_child() {
        return code;
    }
    match std::env::var(TASK).as_deref() {
        // The processes that the suite starts inherit the task.
        Ok("bench") => return crossover::suite::bench(crossover::package!(), suite::groups),
        Ok("devices") => return devices::run(),
        Ok("counted") => {
            let code = crossover::suite::bench(crossover::package!(), suite::groups);
            eprintln!("{}", stand_in::plan(""));
            return code;
        }
        Ok("ignored") => return faults::ignored(),
        Ok("timing") => return timing::run(),
        Ok("rows") => return rows::run(),
        Ok("prepared") => return prepared::run(),
        Ok(other) => panic!("no task is called {other}"),
        Err(_) => {}
    }
    // What takes longest comes first, so that no core waits for it at the end.
    let mut trials: Vec<Trial> = named![
        faults::selected,
        whole::page,
        whole::streams,
        devices::answers,
        devices::absences,
        devices::waits,
        timing::known,
        timing::counted,
        timing::stored,
        timing::tracked,
        prepared::refused,
        whole::incomplete,
        whole::confirmed,
        whole::profiled,
    ];
    // The second stage of CI runs these.
    let at_length =
        |name: &str, test| trial(format!("every_call::{name}"), test).with_ignored_flag(true);
    trials.push(at_length("of_a_run", Box::new(faults::all)));
    let ends = |task: &'static timing::Task| {
        trial(
            format!("timing::{}", task.0),
            Box::new(|| timing::ends(task)),
        )
    };
    trials.extend(timing::TASKS.iter().map(ends));
    for (at, group) in suite::groups().iter().enumerate() {
        let name = group.name();
        let golden = Box::new(move || golden::group(at));
        trials.push(trial(format!("golden::{name}"), golden));
        // Its calls are those of other processes.
        if name != "cold_start" {
            trials.push(at_length(name, Box::new(move || faults::of_group(name))));
        }
    }
    let mut arguments = Arguments::from_args();
    // Their processes wait for some of their time.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(2 * cores);
    libtest_mimic::run(&arguments, trials).exit_code()
}
