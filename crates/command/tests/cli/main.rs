//! The command line: `crossover` and its subcommands on results that are planted, and the scripts.

mod ab;
mod ab_hooks;
mod ab_projects;
mod baselines;
mod bundle;
mod command;
mod compare;
#[path = "../runs/full_disk.rs"]
mod full_disk;
#[path = "../runs/printed.rs"]
mod printed;
mod repositories;
mod stored;
