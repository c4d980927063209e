//! `crossover profile FILTER`: shows where the time of benchmarks goes on the device.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::number;
use crossover_protocol::filter::bad_filter;

/// Show where the time goes: kernels, copies and driver calls of GPU benchmarks
///
/// Runs the benchmarks whose ids match, with `--profile-time`, records what the device does, and
/// prints a table for each. The page of `crossover report` then draws one iteration of each as a
/// timeline. In a checkout the benchmarks are those of `cargo bench`, in a bundle those beside this
/// command. No result is changed.
///
/// Exit code: that of the run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Regular expression that ids must match, such as 'graph_replay/gpu/.*/1024'
    filter: String,
    /// Seconds that each benchmark runs for, 1 or more
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 2.0,
        value_parser = number(1.0..=1e6, "give seconds, 1 or more")
    )]
    time: f64,
    /// Only this bench target of the package (in a checkout; may be repeated)
    #[arg(long = "bench", value_name = "NAME")]
    benches: Vec<String>,
    /// Further arguments of the benchmarks, such as --exact
    #[arg(last = true, value_name = "BENCH_ARGS")]
    bench_args: Vec<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let is_exact = args.bench_args.iter().any(|argument| argument == "--exact");
    // Before anything is built for it.
    if let Some(why) = bad_filter(&args.filter).filter(|_| !is_exact) {
        bail!(why);
    }
    let here = std::env::current_exe().ok();
    let (mut command, advice) = match here.as_deref().and_then(bundle) {
        Some(run) => {
            let mut command = Command::new(&run);
            command.arg("bench");
            (command, "make the bundle anew with scripts/bundle")
        }
        None => {
            let folder = std::env::current_dir()?;
            let mut folders = folder.ancestors();
            if !folders.any(|folder| folder.join("Cargo.toml").is_file()) {
                bail!(
                    "there is no Cargo.toml in {} nor above it: run this in the checkout of the benchmarks, or as \
                     `./run profile` in a bundle that scripts/bundle made",
                    folder.display()
                );
            }
            // Set where this very command was started through cargo.
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut command = Command::new(cargo);
            command.arg("bench");
            for bench in &args.benches {
                command.args(["--bench", bench]);
            }
            command.arg("--");
            let advice = "run it in a checkout on a machine with Rust, or as `./run profile` in a \
                          bundle that scripts/bundle made";
            (command, advice)
        }
    };
    command
        .args(["--profile-time", &args.time.to_string()])
        .args(&args.bench_args)
        .arg(&args.filter);
    // Signals reach the run alone, and its exit code is this command's.
    let error = crossover_system::process::become_command(&mut command);
    let program = command.get_program().display();
    Err(error).with_context(|| format!("{program} could not be started; {advice}"))
}

/// The launcher of the bundle in whose `bin/` this executable lies.
fn bundle(executable: &Path) -> Option<PathBuf> {
    let bin = executable.parent()?;
    let run = bin.parent()?.join("run");
    (bin.join("bench").is_file() && run.is_file()).then_some(run)
}
