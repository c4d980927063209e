//! Criterion, configured for a run.

use std::path::Path;
use std::time::Duration;

use criterion::{AxisScale, BenchmarkGroup, Criterion, PlotConfiguration, PlottingBackend};

use crate::suite::sampling_plan::{Sampling, SamplingPlan};
use crate::timing::CudaTime;

/// A group of Criterion's.
pub(super) type Plots<'a> = BenchmarkGroup<'a, CudaTime>;

/// A Criterion that samples as planned, unless the command line says otherwise. An option that
/// Criterion does not know ends the process with Criterion's message. If `profiles`, it has the recorder of
/// profiles, where this was built with it.
#[cfg_attr(not(feature = "profiler"), expect(unused_variables))]
pub(super) fn instance(
    results: &Path,
    sampling: &SamplingPlan,
    time: &CudaTime,
    takes_turns: bool,
    profiles: bool,
) -> Criterion<CudaTime> {
    let mut criterion = Criterion::default()
        .with_measurement(time.clone())
        .output_directory(results)
        .plotting_backend(PlottingBackend::Plotters)
        .warm_up_time(sampling.warm_up)
        .measurement_time(sampling.measurement)
        .sample_size(sampling.samples)
        .nresamples(sampling.resamples)
        .configure_from_args();
    if takes_turns {
        criterion = criterion.without_plots();
    }
    #[cfg(feature = "profiler")]
    if profiles {
        // The tables are printed together at the end of the run.
        let profiler = crate::timing::profiler::CudaProfiler::new(time).quiet();
        criterion = criterion.with_profiler(profiler);
    }
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

/// Has Criterion take the samples of its next benchmark in this group as planned.
pub(super) fn sample_as_planned(plots: &mut Plots<'_>, plan: &Sampling) {
    plots.sampling_mode(plan.mode).sample_size(plan.samples);
    plots.measurement_time(plan.measurement);
    plots.warm_up_time(plan.warm_up.max(Duration::from_nanos(1)));
}
