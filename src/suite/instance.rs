//! Criterion, configured for a run. A second instance measures unsteady benchmarks again, since one
//! instance takes an id only once.

use std::path::Path;

use criterion::{AxisScale, BenchmarkGroup, Criterion, PlotConfiguration, PlottingBackend};

use crate::suite::sampling_plan::SamplingPlan;
use crate::timing::CudaTime;

/// A group of Criterion's.
pub(super) type Plots<'a> = BenchmarkGroup<'a, CudaTime>;

/// A Criterion that samples as planned, unless the command line says otherwise. An option that
/// Criterion does not know ends the process with Criterion's message.
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

/// The same with the recorder of profiles for `--profile-time`, where this was built with it.
#[cfg(feature = "profiler")]
pub(super) fn profiled(criterion: Criterion<CudaTime>, time: &CudaTime) -> Criterion<CudaTime> {
    use crate::timing::profiler::CudaProfiler;

    // The tables are printed together at the end of the run.
    criterion.with_profiler(CudaProfiler::new(time).quiet())
}

/// Returns it unchanged: without the feature nothing is recorded.
#[cfg(not(feature = "profiler"))]
pub(super) fn profiled(criterion: Criterion<CudaTime>, _time: &CudaTime) -> Criterion<CudaTime> {
    criterion
}

/// Whether this was built with the recorder of profiles.
pub(super) const RECORDS: bool = cfg!(feature = "profiler");

/// Criterion's group of this name, whose summary is drawn on logarithmic axes.
pub(super) fn plots_of<'a>(criterion: &'a mut Criterion<CudaTime>, group: &str) -> Plots<'a> {
    let mut plots = criterion.benchmark_group(group);
    plots.plot_config(PlotConfiguration::default().summary_scale(AxisScale::Logarithmic));
    plots
}
