//! What a role and a number are in the file.

use crossover_advice::Data;

use crossover_results::model::role::{self, Role};

/// The place of the data that an implementation answers for.
pub(super) fn data(role: &Role) -> Data {
    match role.question() {
        role::Data::Queued => Data::Queued,
        role::Data::Awaited => Data::Awaited,
        role::Data::Pinned => Data::Pinned,
        role::Data::Ordinary => Data::Ordinary,
        role::Data::OrdinaryStaged => Data::OrdinaryStaged,
    }
}

/// To four digits: more than any measurement holds.
pub(crate) fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
