//! Criterion, configured for a run. A second instance measures again what the first was not
//! steady at: one instance takes an id once.

use std::path::Path;

use criterion::{AxisScale, BenchmarkGroup, Criterion, PlotConfiguration, PlottingBackend};

use crate::suite::sampling::SamplingPlan;
use crate::timing::CudaTime;

/// A group of Criterion's.
pub(super) type Plots<'a> = BenchmarkGroup<'a, CudaTime>;

/// A Criterion with the options of the command line, which overrule `sampling`. An option that
/// Criterion does not know ends the process with its own message.
pub(super) fn instance(
    results: &Path,
    sampling: &SamplingPlan,
    time: &CudaTime,
    takes_turns: bool,
) -> Criterion<CudaTime> {
    let criterion = Criterion::default()
        .with_measurement(time.clone())
        .output_directory(results)
        .plotting_backend(PlottingBackend::Plotters)
        .warm_up_time(sampling.warm_up)
        .measurement_time(sampling.measurement)
        .sample_size(sampling.samples)
        .nresamples(sampling.resamples)
        .configure_from_args();
    match takes_turns {
        true => criterion.without_plots(),
        false => criterion,
    }
}

/// The same, with what records the device under `--profile-time`, where this was built with it.
#[cfg(feature = "profiler")]
pub(super) fn profiled(criterion: Criterion<CudaTime>, time: &CudaTime) -> Criterion<CudaTime> {
    use crate::timing::profiler::CudaProfiler;

    // The tables are printed together, when all is over.
    criterion.with_profiler(CudaProfiler::new(time).quiet())
}

/// The same: nothing is recorded without the feature.
#[cfg(not(feature = "profiler"))]
pub(super) fn profiled(criterion: Criterion<CudaTime>, _time: &CudaTime) -> Criterion<CudaTime> {
    criterion
}

/// Whether this was built with what records the device.
pub(super) const RECORDS: bool = cfg!(feature = "profiler");

/// The group of that name, its summary drawn on logarithmic axes.
pub(super) fn plots<'a>(criterion: &'a mut Criterion<CudaTime>, group: &str) -> Plots<'a> {
    let mut plots = criterion.benchmark_group(group);
    plots.plot_config(PlotConfiguration::default().summary_scale(AxisScale::Logarithmic));
    plots
}
