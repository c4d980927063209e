//! A bench executable: the loop over its groups and their benchmarks, then the report.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use criterion::{AxisScale, Bencher, BenchmarkId, Criterion, PlotConfiguration, Throughput};

use crate::Package;
use crate::device::collectives::HANGS;
use crate::model::record::Activity;
use crate::suite::arguments::{Arguments, Mode};
use crate::suite::benchmark::{Bench, GroupCache};
use crate::suite::confirm::driver::When;
use crate::suite::confirm::process;
use crate::suite::criterion_instance::complete_command_line;
use crate::suite::group::{AnyGroup, AnyRow};
use crate::suite::journal::Missing;
use crate::suite::profiles::Profiles;
use crate::suite::run::Run;
use crate::suite::sampling_plan::Plots;
use crate::timing::{BoxError, CudaTime, catch_panic};
use crate::workload::devices::follow;
use crate::workload::run_child;
use crossover_machine::nccl::switch_multicast_off;
use crossover_protocol::rank::Rank;
use crossover_protocol::settings::VARIABLES_IN_WORDS;
use crossover_protocol::turns::TurnMessage;
use crossover_report::report::{self, Options};
use crossover_report::{profile, write};
use crossover_results::store::folder::BenchmarkFolder;
use crossover_results::store::layout::{NEW, baselines};
use crossover_results::store::whole_file::sweep;
use crossover_system::interrupt;
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

/// Runs the groups: each size, each implementation, as far as filter, size set, machine
/// and memory allow, and names the rest with its reason. Then writes Criterion's summary
/// pages and the record of the run. Returns whether anything was measured and could be written.
fn measure_all(run: &mut Run, groups: &[AnyGroup], criterion: &mut Criterion<CudaTime>) -> bool {
    run.announce(groups);
    run.compile_ahead(groups);
    for group in groups {
        run.name_what_is_left_out(group);
        run.check_group(group);
        let mut plots = criterion.benchmark_group(group.name);
        plots.plot_config(PlotConfiguration::default().summary_scale(AxisScale::Logarithmic));
        let mut cache = GroupCache::default();
        let plan = group.plan(run.settings.size_set);
        for of_size in plan.chunk_by(|a, b| a.0 == b.0) {
            for (size, row) in of_size {
                benchmark(run, &mut plots, group, row, *size, &mut cache);
            }
            // Larger sizes need the memory.
            group.operation.forget_untimed();
        }
        // The child processes, and other sides in turns, need the memory.
        drop(cache);
        run.machine.release_pinned();
        (run.journal.spent).on(Activity::Analysis, || plots.finish());
        run.confirm(When::BetweenGroups);
    }
    if let Some(turns) = &run.turns {
        let choices = run.machine.choices.made();
        turns.say(&TurnMessage::Chose { choices });
    }
    run.confirm(When::AfterGroups);
    let has_room = run.journal.no_room.is_none();
    if has_room && run.turns.is_none() {
        let spent = &mut run.journal.spent;
        spent.on(Activity::Analysis, || criterion.final_summary());
    }
    let is_measured = run.complete() && has_room;
    if !has_room {
        sweep(&run.settings.results);
    }
    run.progress.end();
    is_measured
}

/// Measures one implementation at one size, if it is selected and can run here.
fn benchmark(
    run: &mut Run,
    plots: &mut Plots<'_>,
    group: &AnyGroup,
    row: &AnyRow,
    size: u64,
    cache: &mut GroupCache,
) {
    let id = group.id_of(row, size).to_string();
    let lists = run.arguments.mode == Mode::List;
    let is_selected = run.arguments.selects(&id);
    // Criterion need not keep another process's benchmarks in its plots.
    let is_of_another = is_selected && !run.is_wanted(&id);
    if interrupt::signal().is_some() || is_of_another {
        return;
    }
    if !lists && run.lacks_gpu(&id, group, row) {
        return;
    }
    if group.rate.is_some() {
        plots.throughput(Throughput::Elements(size));
    }
    if lists || !is_selected {
        // Criterion lists it, or keeps an earlier result of it in the group's plots; the
        // closure is never called.
        plots.bench_function(BenchmarkId::new(row.function(), size), |_| {});
        return;
    }
    if let Some(not_run) = &mut run.journal.no_room {
        *not_run += 1;
        return;
    }
    run.journal.selected = true;
    measure(run, plots, (group, row, size), cache, id);
}

/// Measures one benchmark, and notes its result or why there is none.
fn measure(
    run: &mut Run,
    plots: &mut Plots<'_>,
    (group, row, size): (&AnyGroup, &AnyRow, u64),
    cache: &mut GroupCache,
    id: String,
) {
    run.progress.begin(&id);
    let begun = Instant::now();
    let choices = run.machine.choices.clone();
    let mut bench = Bench::new(run, group, row, size, cache);
    let profiled_before = bench.folder.profiled_at();
    let measured = if bench.run.arguments.gave("load-baseline") {
        let criterion_id = BenchmarkId::new(row.function(), size);
        load(&bench.run.arguments, &bench.folder, criterion_id, plots).map(|()| None)
    } else {
        choices.during(|| bench.measure(plots))
    };
    bench.spent.set_up_since(begun);
    let Bench { folder, spent, .. } = bench;
    run.journal.spent.include(spent);
    let missing = match measured {
        Ok(result) => {
            if let Some(result) = result {
                run.progress.measured(&id, &result);
                run.journal.own.insert(id.clone(), result);
            }
            if run.arguments.mode == Mode::Profile {
                run.profiles
                    .add(&id, row.is_gpu(), &folder, profiled_before);
            }
            // An error after its samples, or of its destructors, must not be attributed to the next benchmark.
            run.check_device().err()
        }
        Err(missing) => Some(missing),
    };
    // After a signal any failure is due to it, such as that of a child process that got it too.
    if let Some(missing) = missing.filter(|_| interrupt::signal().is_none()) {
        run.note(id, row.is_gpu(), missing);
    }
}

/// Has Criterion compare two saved results; nothing is run.
fn load(
    arguments: &Arguments,
    folder: &BenchmarkFolder,
    id: BenchmarkId,
    plots: &mut Plots<'_>,
) -> Result<(), Missing> {
    let needed = ["load-baseline", "baseline"].map(|option| arguments.value(option));
    let lacks = (needed.into_iter().flatten()).find(|name| !folder.has(name));
    if let Some(lacks) = lacks {
        let reason = format!("baseline {lacks} has no result of it");
        return Err(Missing::Absent(reason.into()));
    }
    let never = |_: &mut Bencher<'_, CudaTime>| {};
    Ok(catch_panic(|| {
        plots.bench_function(id, never);
    })?)
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
