//! Faults on purpose: what a user does wrong, and what goes wrong beside the measurement, each by
//! its command, exit code and sentence, with the earlier results unharmed.

mod confirmed;
mod cut_short;
mod driven;
pub(crate) mod files;
mod ones;
pub(crate) mod run;
mod settings;
mod signals;
mod turns;

use std::rc::Rc;
use std::time::{Duration, Instant};

use crossover::model::Cost;
use crossover::suite::{AnyGroup, Group, Implementation, Sizes};
use crossover::workload::matmul::cpu;
use crossover::workload::simple::{compare, on_cpu};
use crossover::workload::{Routine, RoutineError};

use ones::Ones;

use crate::test::tests;

fn never<W: 'static>(name: &'static str) -> Implementation<W> {
    let clock = crossover::timing::Clock::Events;
    Implementation::gpu(name, clock, |_, _| Err("never made".into()))
}

pub(crate) fn groups() -> Vec<AnyGroup> {
    let sizes = || Sizes::new([4, 8, 16, 32], [4, 8, 16], [4]);
    let fill = |problem: &Rc<Ones>| {
        let n = problem.0;
        let check = move |y: &[f32]| compare(y, vec![1.0; n], 1.0, 0.0);
        Ok(on_cpu(n, |y| y.fill(1.0), check))
    };
    let sound = Group::new("sound", sizes(), None, |_| Cost::default())
        .with(Implementation::cpu("fill", fill))
        .with(never("none"))
        .with(never("neither"));
    let faulty = Group::new("faulty", sizes(), None, |_| Cost::default())
        .with(Implementation::cpu("set-up", |_: &Rc<Ones>| {
            panic!("no set-up")
        }))
        .with(Implementation::cpu("check", |problem: &Rc<Ones>| {
            let check = |_: &[f32]| panic!("no check");
            Ok(on_cpu(problem.0, |y| y.fill(1.0), check))
        }))
        .with(Implementation::cpu("last", fill));
    let choice = Group::new("choice", Sizes::new([4], [4], [4, 8]), None, |_| {
        Cost::default()
    })
    .with(Implementation::cpu("best", |problem| {
        cpu::best::<f32>(problem, 1)
    }))
    .with(never("none"));
    let modes = Group::new("modes", Sizes::new([4], [4], [4]), None, |_| {
        Cost::default()
    })
    .with(Implementation::cpu("two", two_modes));
    // By its cost, the second size takes 64 times as long as the first.
    let cost = |n| Cost {
        flop: Some((n as f64).powi(3)),
        ..Cost::default()
    };
    let long = Group::new("long", Sizes::new([4], [4], [4, 16, 64]), None, cost)
        .with(Implementation::cpu("sleeps", sleeps).one_thread());
    vec![
        sound.into(),
        faulty.into(),
        choice.into(),
        modes.into(),
        long.into(),
    ]
}

/// Takes 16 ms.
fn sleeps(problem: &Rc<Ones>) -> Result<Box<dyn Routine>, RoutineError> {
    let n = problem.0;
    let fill = |y: &mut [f32]| {
        std::thread::sleep(Duration::from_millis(16));
        y.fill(1.0);
    };
    let check = move |y: &[f32]| compare(y, vec![1.0; n], 1.0, 0.0);
    Ok(on_cpu(n, fill, check))
}

/// Takes 1 ms for a while, then 3 ms for a while.
fn two_modes(problem: &Rc<Ones>) -> Result<Box<dyn Routine>, RoutineError> {
    let (n, start) = (problem.0, Instant::now());
    let fill = move |y: &mut [f32]| {
        let is_long = start.elapsed().as_millis() / 150 % 2 == 1;
        std::thread::sleep(Duration::from_millis(if is_long { 3 } else { 1 }));
        y.fill(1.0);
    };
    let check = move |y: &[f32]| compare(y, vec![1.0; n], 1.0, 0.0);
    Ok(on_cpu(n, fill, check))
}

tests! {
    Beside bad_options_end_the_run_before_it_starts: settings::bad_options,
    Beside a_folder_that_cannot_be_written_to: files::unwritable_folder,
    Beside ceilings_below_those_of_an_earlier_run: files::low_ceilings,
    Beside a_page_that_is_larger_than_a_file_may_be: files::too_large_a_page,
    Beside a_folder_whose_name_is_no_text: files::name_that_is_no_text,
    Beside two_runs_in_one_folder: files::two_runs,
    Beside a_filter_that_selects_nothing: settings::selects_nothing,
    Beside a_device_that_was_asked_for: settings::device_asked_for,
    Beside the_commit_of_another_package: settings::commit_of_another,
    Beside a_folder_without_locks: files::no_locks,
    Alone a_busy_host: files::busy_host,
    Beside output_that_cannot_be_written: files::unwritable_output,
    Beside records_that_are_missing_or_lead_elsewhere: files::records,
    Beside a_closed_pipe: signals::closed_pipe,
    Beside signals_end_a_run_in_order: signals::signals,
    Alone a_signal_while_it_is_measured_once_more: signals::once_more,
    Beside a_killed_run_says_what_it_did_not_reach: signals::killed,
    Beside a_full_disk: cut_short::full_disk,
    Beside a_kill_between_any_two_bytes: cut_short::killed_at_a_byte,
    Beside an_interrupt_at_any_moment: cut_short::interrupted_at_a_moment,
    Beside two_sides_take_turns_without_what_failed: turns::in_turns,
    Beside what_is_undecided_is_run_again: turns::confirmed,
    Alone one_side_fails: turns::one_side_fails,
    Beside an_interrupt_between_turns: turns::interrupted,
    Beside only_what_it_is_told_to_run: driven::only,
    Beside a_run_that_need_not_verify: driven::unverified,
    Beside choices_are_said_and_taken: driven::choices,
    Beside answers_of_several_processes: confirmed::answered,
    Beside what_is_not_asked: confirmed::not_asked,
    Beside a_signal_while_processes_answer: confirmed::after_another,
    Beside a_small_container: settings::little_memory,
    Beside a_panic_is_one_failure_and_one_cause_one_line: settings::one_cause_one_line,
    Beside what_would_take_too_long_is_left_out: settings::too_long,
    Beside what_was_loaded_is_not_measured: settings::load_baseline,
}
