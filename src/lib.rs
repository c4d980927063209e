//! The library of `crossover`, a Criterion suite that times the same operations on the CPU and on a
//! CUDA GPU, verifies them against float64, and shows from which sizes on the GPU wins. The README of
//! the package describes the suite and the command; this page describes how to add groups of your own,
//! which are verified, timed and reported as the suite's are.
//!
//! 1. An operation at one size is a [`Workload`](workload::Workload): its inputs and the memory
//!    that it needs.
//! 2. Each implementation is a [`Routine`](workload::Routine), which can be poisoned, run and
//!    compared with a reference. [`workload::simple`] makes one of closures,
//!    [`workload::Prepared`] one of the GPU of any memory and any number of kernels.
//! 3. A [`Group`](suite::Group) is a table of [`Implementation`](suite::Implementation)s, each with
//!    its [clock](timing::Clock), its sizes, and what it says of itself in the words of [`model`].
//! 4. A bench executable (`harness = false`) hands its groups to [`suite::bench`], and
//!    says with [`package!`] whose code they measure.
//!
//! The whole of it, as in `examples/your_operation.rs`:
//!
//! ```ignore
#![doc = include_str!("../examples/your_operation.rs")]
//! ```
//!
//! `cargo run --release --example your_operation -- --bench` measures it, and `--help` lists the settings.
//! `docs/developing.md` has a Cargo.toml for a crate of your own.
//!
//! | module | what it has for a group |
//! | --- | --- |
//! | [`timing`] | the clocks, behind which a kernel's time is free of its launch; the crate `crossover-timing` |
//! | [`model`] | costs, verdicts, and the words for what a row measures |
//! | [`device`] | an opened GPU: memory, kernels compiled at run time, graphs |
//! | [`workload`] | the traits, routines made of closures or of steps, and the suite's own operations |
//! | [`suite`] | groups, their sizes, tests of them, and the `main` of a bench executable |
//! | [`limits`] | the kernels that measure the limits of a device |
//!
//! The suite's own operations, the submodules of [`workload`], are public for the benchmarks and
//! tests of this package, and change with them.
#![warn(missing_docs)]

pub use crossover_results::model;
pub use crossover_timing as timing;

pub mod device;
pub mod limits;
mod package;
pub mod suite;
pub mod workload;

pub use package::Package;
