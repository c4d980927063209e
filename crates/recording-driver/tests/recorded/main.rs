//! The suite with the recording driver in place of NVIDIA's: this executable starts itself again with
//! the driver's library on `LD_LIBRARY_PATH`.

mod calls;
mod faults;
mod ranks;
mod routines;
mod stand_in;
mod timing;
mod whole;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use crossover_machine::nccl::switch_multicast_off;
use libtest_mimic::{Arguments, Trial};
use stand_in::{StandIn, TASK, TWO, said};

/// The suite's own list of groups.
#[allow(dead_code, reason = "its main function is the bench executable's")]
#[path = "../../../../benches/crossover/main.rs"]
mod suite;

/// The last line of a process that did its task.
const DONE: &str = "the task is done";

/// A test in a process of its own, in which the recording driver is loaded. The process says each of
/// `sentences` once.
pub(crate) fn inside(
    name: &str,
    devices: &'static str,
    sentences: &'static [&'static str],
    body: impl Fn() + Send + 'static,
) -> Trial {
    let task = name.to_owned();
    Trial::test(name, move || {
        if std::env::var_os(TASK).is_some() {
            let ended = catch_unwind(AssertUnwindSafe(&body));
            ended.iter().for_each(|()| println!("{DONE}"));
            std::process::exit(i32::from(ended.is_err()));
        }
        let stand_in = StandIn::default();
        let mut command = stand_in.command(&task, devices);
        // The last one is for the clocks too, which then look at one iteration of a benchmark more closely.
        command.args([
            "--exact",
            &task,
            "--include-ignored",
            "--test-threads=1",
            "--test",
        ]);
        let output = command.output()?;
        let said = said(&output);
        // How many there were is of interest in a good run too.
        let faults = said.lines().filter(|line| line.ends_with(" faults"));
        faults.for_each(|line| println!("{line}"));
        let is_once = |sentence: &&str| said.matches(sentence).count() == 1;
        let mut missing = [sentences, &[DONE]].concat();
        missing.retain(|sentence| !is_once(sentence));
        if output.status.success() && missing.is_empty() {
            return Ok(());
        }
        let ended = output.status;
        Err(format!("it ends with {ended}; not said, or not once: {missing:?}\n{said}").into())
    })
}

fn main() -> ExitCode {
    switch_multicast_off();
    if let Some(code) = crossover_suite::workload::run_child() {
        let fails = std::env::var_os(stand_in::CHILDREN_FAIL).is_some();
        return if fails { ExitCode::FAILURE } else { code };
    }
    // The processes that the suite starts inherit the task.
    if let Ok(task @ ("bench" | "counted")) = std::env::var(TASK).as_deref() {
        let code = crossover_suite::suite::bench(crossover_suite::package!(), suite::groups);
        if task == "counted" {
            eprintln!("{}", stand_in::plan(""));
        }
        return code;
    }
    let outside = |name: &str, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    // What takes longest comes first, so that no core waits for it at the end.
    let mut trials = vec![
        outside("faults::selected", faults::selected),
        outside("whole::page", whole::page),
        outside("whole::streams", whole::streams),
        outside("whole::absences", whole::absences),
        outside("whole::incomplete", whole::incomplete),
        outside("whole::aborted", whole::aborted),
        outside("whole::launches", whole::launches),
        outside("whole::kept", whole::kept),
        outside("whole::submitted", whole::submitted),
        outside("ranks::results", ranks::results),
        outside("ranks::ends", ranks::ends),
        outside("ranks::frees", ranks::frees),
    ];
    let bodies: [(_, fn()); 11] = [
        ("faults::on_several", faults::on_several),
        ("routines::waits", routines::waits),
        ("routines::refused", routines::refused),
        ("routines::host_memory", routines::host_memory_in_use),
        ("routines::closed", routines::closed),
        ("routines::other_context", routines::other_context),
        ("routines::unawaited", routines::unawaited),
        ("routines::asked_once", routines::asked_once),
        ("routines::kept_error", routines::kept_error),
        ("routines::held_up", routines::held_up),
        ("routines::pinned", routines::pinned_memory),
    ];
    trials.extend(bodies.map(|(name, body)| inside(name, TWO, &[], body)));
    trials.extend(timing::tests());
    // The second stage of CI runs these.
    let streams = outside("every_stream::of_default", whole::streams_at_length);
    trials.push(streams.with_ignored_flag(true));
    trials.push(outside("every_call::of_a_run", faults::all).with_ignored_flag(true));
    for (at, group) in suite::groups().iter().enumerate() {
        let name = group.name();
        let calls = move || calls::group(at);
        trials.push(inside(&format!("calls::{name}"), TWO, &[], calls));
        // Its calls are those of other processes.
        if name != "cold_start" {
            let faults = move || faults::of_group(at);
            let trial = inside(&format!("every_call::{name}"), TWO, &[], faults);
            trials.push(trial.with_ignored_flag(true));
        }
    }
    let mut arguments = Arguments::from_args();
    // Their processes wait for some of their time.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(2 * cores);
    libtest_mimic::run(&arguments, trials).exit_code()
}
