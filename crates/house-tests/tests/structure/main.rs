//! What holds of the sources themselves, read as text.

mod layers;
mod names;

/// The suite's own list of groups.
#[allow(dead_code, reason = "its main function is the bench executable's")]
#[path = "../../../../benches/crossover/main.rs"]
mod suite;

/// The project's folder.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
