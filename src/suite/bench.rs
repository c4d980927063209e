//! A bench executable: runs its groups, then refreshes the report.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;

use crate::Package;
use crate::device::collectives::HANGS;
use crate::suite::arguments::Mode;
use crate::suite::confirm::process;
use crate::suite::criterion_instance::complete_command_line;
use crate::suite::group::AnyGroup;
use crate::suite::measure::measure_all;
use crate::suite::profiles::Profiles;
use crate::suite::run::Run;
use crate::timing::BoxError;
use crate::workload::devices::follow;
use crate::workload::run_child;
use crossover_machine::nccl::switch_multicast_off;
use crossover_protocol::rank::Rank;
use crossover_protocol::settings::VARIABLES_IN_WORDS;
use crossover_report::report::{self, Options};
use crossover_report::{profile, write};
use crossover_results::store::layout::{NEW, baselines};
use crossover_system::output;
use crossover_system::process::end_at_once;
use crossover_words::text::{visible_lines, with_causes};

/// Runs the groups as the settings and the command line say, writes the report, and returns the
/// exit code: 0; 1 if a benchmark or the GPU that was asked for failed, or the report or what was
/// printed could not be written; 2 where nothing could be done (a bad setting or option, a folder that
/// cannot be written to, a group that contradicts itself); 128 plus the signal's number where one ended the run.
///
/// `package` is the one that the executable belongs to, [`package!()`](crate::package): the results
/// carry its commit. `groups` is called once, and not at all in the child processes that the executable starts to
/// measure the start of a process. Call this first in `main`, since these must not do anything
/// before:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use crossover_suite::suite::AnyGroup;
///
/// fn groups() -> Vec<AnyGroup> {
///     Vec::new() // vec![my_group().into()]
/// }
///
/// fn main() -> ExitCode {
///     crossover_suite::suite::bench(crossover_suite::package!(), groups)
/// }
/// ```
pub fn bench(package: Package, groups: impl FnOnce() -> Vec<AnyGroup>) -> ExitCode {
    switch_multicast_off();
    if let Some(code) = run_child() {
        return code;
    }
    let mut groups = Some(groups);
    let mut groups = || groups.take().map_or_else(Vec::new, |groups| groups());
    if let Some(code) = process::answer(&mut groups) {
        return code;
    }
    if let Err(error) = complete_command_line() {
        eprintln!(
            "error: this executable could not restart itself to hide Criterion's lines: {error}; \
             with --quiet or --verbose it need not"
        );
        return ExitCode::from(2);
    }
    let code = run(package, groups).unwrap_or_else(|error| {
        eprintln!("error: {}", visible_lines(&with_causes(&*error)));
        ExitCode::from(2)
    });
    if HANGS.load(Relaxed) {
        let _ = io::stdout().flush();
        let is_it = |number: &u8| ExitCode::from(*number) == code;
        end_at_once((0..=u8::MAX).find(is_it).unwrap_or(1).into());
    }
    code
}

/// Measures the groups one after the other, and reports the results. Another rank than 0 follows rank 0.
///
/// # Errors
/// Why the run does not start, in a sentence.
fn run(package: Package, groups: impl FnOnce() -> Vec<AnyGroup>) -> Result<ExitCode, BoxError> {
    if let Some(odd) = std::env::args_os().find(|argument| argument.to_str().is_none()) {
        return Err(format!("the argument {odd:?} is not UTF-8; give another filter").into());
    }
    let rank = Rank::from_env()?;
    if let Some(other) = rank.as_ref().filter(|rank| rank.rank > 0) {
        return Ok(follow(other));
    }
    // Another rank must say why it ends.
    output::end_with_the_reader();
    crossover_system::end_where_output_fails(1);
    if std::env::args().any(|argument| matches!(&*argument, "--help" | "-h")) {
        println!("{VARIABLES_IN_WORDS}\n");
    }
    let (mut run, mut criterion) = Run::from_env(package, rank.as_ref())?;
    let mut groups = groups();
    groups.retain(|group| run.has_devices_for(group));
    let mut names = BTreeSet::new();
    for group in &groups {
        let name = group.name();
        let twice = format!("two groups are named {name}; rename one of them");
        let twice = Some(twice).filter(|_| !names.insert(name));
        if let Some(contradiction) = group.contradictions().into_iter().chain(twice).next() {
            return Err(contradiction.into());
        }
        run.journal.record.groups.push(group.topic.clone());
    }
    let is_measured = measure_all(&mut run, &groups, &mut criterion);
    let mut code = run.close(&groups);
    let (results, out) = (&*run.settings.results, run.settings.report_folder());
    let stored = run.journal.results();
    // In turns, `ab` reports.
    if is_measured && !stored.benchmarks.is_empty() && run.turns.is_none() {
        // Results are already on disk: a failure here loses nothing.
        let report = report::of_results(stored, results, out, &Options::default());
        match report.and_then(|report| write::write(&report, results, out)) {
            Ok(written) => println!("\n{written}"),
            Err(error) => {
                let error = visible_lines(&error.to_string());
                eprintln!("error: no report was written: {error}");
                if code == ExitCode::SUCCESS {
                    code = ExitCode::FAILURE;
                }
            }
        }
    }
    if run.arguments.mode == Mode::Profile {
        show(&run.profiles, results, out);
    }
    Ok(code)
}

/// Prints the table of each profile, and has the page show them where there are results.
fn show(profiles: &Profiles, results: &Path, out: &Path) {
    for (profile, dir) in profiles.made() {
        println!("\n{}", profile::text(profile, dir));
    }
    for remark in profiles.remarks() {
        eprintln!("note: {}", visible_lines(&remark));
    }
    if profiles.made().len() == 0 {
        return;
    }
    if !baselines(results).contains(NEW) {
        println!("`cargo bench` and then `crossover report` draw them as timelines on a page");
        return;
    }
    let report = report::read(results, out, &Options::default());
    match report.and_then(|report| write::write(&report, results, out)) {
        Ok(written) => println!("report: {}", visible_lines(&written.page.to_string_lossy())),
        Err(error) => {
            let error = visible_lines(&error.to_string());
            eprintln!("note: the report does not show them: {error}");
        }
    }
}
