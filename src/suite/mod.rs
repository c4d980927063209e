//! Walks a group's sizes, verifies before timing, names what it skips and why, and writes
//! the sidecar beside Criterion's own files.
//!
//! A bench executable makes a [`Suite`], adds [`Group`]s, and returns what [`Suite::run`]
//! says:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use crossover::suite::Suite;
//!
//! fn main() -> ExitCode {
//!     let mut suite = match Suite::from_env() {
//!         Ok(suite) => suite,
//!         Err(error) => {
//!             eprintln!("error: {error}");
//!             return ExitCode::from(2);
//!         }
//!     };
//!     // suite.add(my_group());
//!     suite.run()
//! }
//! ```

mod arguments;
mod effort;
mod extra;
mod group;
mod journal;
mod machine;
mod missing;
mod plan;
mod progress;
mod results;
mod session;

use std::cell::OnceCell;
use std::process::ExitCode;

use criterion::{AxisScale, Criterion, PlotConfiguration, PlottingBackend};

pub use arguments::{Arguments, Mode};
pub use group::{AnyGroup, Group, Implementation, Sizes};
pub use plan::{Memory, Planned};

use crate::settings::{Settings, SettingsError};
use crate::timing::CudaTime;
use crate::workload::Workload;

use effort::{Effort, Pace};
use session::Session;

/// A run of benchmark groups: settings, command line, machine and results.
pub struct Suite {
    // Apart from the rest, because a group borrows it while the session works.
    criterion: Criterion<CudaTime>,
    session: Session,
    /// In the order in which they were added.
    groups: Vec<AnyGroup>,
}

impl Suite {
    /// Reads the settings and the command line. Opens no device.
    ///
    /// # Errors
    /// A setting with a bad value. Bad options end the process with Criterion's own message.
    pub fn from_env() -> Result<Self, SettingsError> {
        let settings = Settings::from_env()?;
        let effort = Effort::of(settings.profile);
        let time = CudaTime::host_only();
        let criterion = Criterion::default()
            .with_measurement(time.clone())
            .output_directory(&settings.results)
            .plotting_backend(PlottingBackend::Plotters)
            .warm_up_time(effort.warm_up)
            .measurement_time(effort.measurement)
            .sample_size(effort.samples)
            .nresamples(effort.resamples)
            .configure_from_args();
        Ok(Self {
            criterion,
            session: Session::new(settings, Arguments::from_env(), effort, time),
            groups: Vec::new(),
        })
    }

    /// Adds a group to the run.
    pub fn add(&mut self, group: impl Into<AnyGroup>) {
        let group = group.into();
        group.0.expect(self);
        self.groups.push(group);
    }

    /// Runs the groups: each size, each implementation, as far as filter, profile, machine
    /// and memory allow, and names the rest with its reason. Then writes Criterion's summary
    /// pages and says what was left out and what failed. The exit code is 1 if a benchmark
    /// failed, else 0.
    pub fn run(mut self) -> ExitCode {
        for group in std::mem::take(&mut self.groups) {
            group.0.run(&mut self);
        }
        self.criterion.final_summary();
        self.session.finish()
    }

    fn run_group<W: Workload>(&mut self, group: &Group<W>) {
        let session = &mut self.session;
        session.name_what_is_left_out(group);
        let mut plots = self.criterion.benchmark_group(group.name);
        plots.plot_config(PlotConfiguration::default().summary_scale(AxisScale::Logarithmic));
        let mut pace = Pace::default();
        for (size, rows) in session.sizes_and_rows(group) {
            let problem = OnceCell::new();
            for row in rows {
                session.bench(&mut plots, group, row, size, &problem, &mut pace);
            }
        }
        plots.finish();
    }
}
