//! The command line: `crossover` and its subcommands on results that are planted, and the scripts.

// These tests send signals, plant scripts of a shell, and link.
#[cfg(unix)]
mod ab;
#[cfg(unix)]
mod ab_hooks;
#[cfg(unix)]
mod ab_null;
#[cfg(unix)]
mod ab_projects;
#[cfg(unix)]
mod ab_settings;
mod baselines;
#[cfg(unix)]
mod bundle;
mod command;
mod compare;
#[cfg(unix)]
#[path = "../runs/full_disk.rs"]
mod full_disk;
#[path = "../runs/printed.rs"]
mod printed;
#[cfg(unix)]
mod release;
#[cfg(unix)]
mod repositories;
mod stored;
#[cfg(unix)]
mod thresholds;
