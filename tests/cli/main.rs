//! The command line: `crossover` and its subcommands on results that are planted, and the scripts.

#[cfg(unix)]
mod ab;
#[cfg(unix)]
mod ab_hooks;
mod baselines;
#[cfg(unix)]
mod bundle;
mod command;
mod compare;
#[cfg(unix)]
mod repositories;
