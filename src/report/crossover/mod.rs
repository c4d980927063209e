//! From which size on the GPU wins.
//!
//! [`search`] answers it for one pair of curves, [`find`] says which curves are compared,
//! [`sizes_to_measure`] which sizes are then measured around a crossing.

mod extra;
mod pairs;
mod search;

pub use extra::{CROSSINGS, Crossings, Entry, sizes_to_measure};
pub use pairs::{Found, best_cpu, curve, find, headline, headlines};
pub use search::{Answer, Change, Crossing, Curve, MINIMUM_EFFECT, Point, search};
