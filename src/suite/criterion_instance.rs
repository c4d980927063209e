//! Criterion, configured for a run. Its own lines are printed only with `--verbose`, when it compares with a
//! baseline or saves nothing, and when their format is chosen.
//!
//! Criterion has no quiet mode. Its format `bencher` comes closest: one line for each benchmark on
//! standard output, and only errors and warnings on standard error. So a run that hides its lines is
//! started with that format, and these lines are removed from standard output. Everything else, such as
//! Criterion's errors, is passed on.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, Write};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use criterion::{Criterion, PlottingBackend};

use crossover_system::output::{self, print_to};
use crossover_system::process;

use crate::suite::arguments::Arguments;
use crate::suite::sampling_plan::SamplingPlan;
use crate::timing::CudaTime;

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

/// Set where [`FORMAT`] was added to the command line.
const ADDED: &str = "CROSSOVER_ADDED_FORMAT";
const FORMAT: &str = "--output-format=bencher";

/// Criterion reads the command line itself. If it needs another one, this process restarts itself with
/// it: Criterion has no short form of `--quiet`, and its lines may be hidden. Returns if nothing
/// changes, or with an error.
pub(super) fn complete_command_line() -> io::Result<()> {
    let given: Vec<OsString> = std::env::args_os().skip(1).collect();
    let long = |argument: &OsString| {
        if argument == "-q" {
            "--quiet".into()
        } else {
            argument.clone()
        }
    };
    let mut complete: Vec<OsString> = given.iter().map(long).collect();
    let texts = complete.iter().map(|it| it.to_string_lossy().into_owned());
    let driven = std::env::var_os("CROSSOVER_TURNS").is_some();
    let hides = !is_added() && !driven && Arguments::parse(texts).hides_criterion();
    if complete == given && !hides {
        return Ok(());
    }
    let mut again = Command::new(std::env::current_exe()?);
    if hides {
        complete.push(FORMAT.into());
        again.env(ADDED, "1");
    }
    Err(process::become_command(again.args(complete)))
}

fn is_added() -> bool {
    std::env::var_os(ADDED).is_some() && std::env::args_os().next_back() == Some(FORMAT.into())
}

/// The command line as it was given.
pub(super) fn given() -> Vec<String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if is_added() {
        args[..args.len() - 1].to_vec()
    } else {
        args
    }
}

/// Standard output without Criterion's lines, until this is dropped.
pub(super) struct FilteredStdout {
    out: File,
    /// Receives at the end of what is passed on.
    ended: Receiver<()>,
}

impl FilteredStdout {
    /// `None` if Criterion's lines are shown, or cannot be distinguished.
    pub(super) fn start() -> Option<Self> {
        is_added().then(Self::filter)?.ok()
    }

    fn filter() -> io::Result<Self> {
        let out = output::stdout()?;
        let (from, to) = io::pipe()?;
        let (tell, ended) = channel();
        let passed = out.try_clone()?;
        std::thread::Builder::new().spawn(move || {
            pass_on(from, passed);
            let _ = tell.send(());
        })?;
        print_to(&to)?;
        Ok(Self { out, ended })
    }

    /// Prints a line. A write error is detected at the end of the run.
    pub(super) fn print(&mut self, line: &str) {
        let _ = writeln!(self.out, "{line}");
    }
}

impl Drop for FilteredStdout {
    fn drop(&mut self) {
        /// A child process may hold the pipe open for longer.
        const PATIENCE: Duration = Duration::from_secs(1);
        let _ = io::stdout().flush();
        let _ = print_to(&self.out);
        let _ = self.ended.recv_timeout(PATIENCE);
    }
}

/// Copies lines until the end, even if they cannot be written, so that no writer blocks.
fn pass_on(from: PipeReader, mut to: File) {
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        if let Some(rest) = without_criterion(&String::from_utf8_lossy(&line)) {
            let _ = writeln!(to, "{rest}");
        }
    }
}

/// A line without Criterion's text in its format; `None` if nothing is left.
fn without_criterion(line: &str) -> Option<&str> {
    let begun = line.strip_prefix("test ");
    let rest = begun.and_then(|begun| Some(begun.split_once(" ... ")?.1));
    let rest = rest.unwrap_or(line);
    let is_result = rest.starts_with("bench: ") && rest.ends_with(')');
    (!is_result && !rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_go_and_errors_stay() {
        let result = "test a/cpu/b/1 ... bench:       1,499 ns/iter (+/- 12)";
        assert_eq!(without_criterion(result), None);
        assert_eq!(without_criterion(""), None, "between groups");
        let error = "Criterion.rs ERROR: no room";
        for line in [error, "test of mine", "bench: of mine"] {
            assert_eq!(without_criterion(line), Some(line));
        }
        let behind_a_name = format!("test a/cpu/b/1 ... {error}");
        assert_eq!(without_criterion(&behind_a_name), Some(error));
    }
}
