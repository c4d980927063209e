//! The loop over the groups of a run and their benchmarks.

use std::time::Instant;

use criterion::{Bencher, BenchmarkId, Criterion, Throughput};

use crate::model::record::Activity;
use crate::suite::arguments::{Arguments, Mode};
use crate::suite::benchmark::{Bench, GroupCache};
use crate::suite::confirm::driver::When;
use crate::suite::criterion_instance::{Plots, plots_of};
use crate::suite::group::{AnyGroup, AnyRow};
use crate::suite::journal::Missing;
use crate::suite::run::Run;
use crate::timing::{CudaTime, catch_panic};
use crossover_protocol::turns::TurnMessage;
use crossover_results::store::folder::BenchmarkFolder;
use crossover_results::store::whole_file::sweep;
use crossover_system::interrupt;

/// Runs the groups: each size, each implementation, as far as filter, size set, machine
/// and memory allow, and names the rest with its reason. Then writes Criterion's summary
/// pages and the record of the run. Returns whether anything was measured and could be written.
pub(super) fn measure_all(
    run: &mut Run,
    groups: &[AnyGroup],
    criterion: &mut Criterion<CudaTime>,
) -> bool {
    run.announce(groups);
    run.compile_ahead(groups);
    for group in groups {
        run.name_what_is_left_out(group);
        run.check_group(group);
        let mut plots = plots_of(criterion, group.name);
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
