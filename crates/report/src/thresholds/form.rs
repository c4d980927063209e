//! What a role and a number are in the file.

use crossover_advice::Data;

use crossover_results::model::role::{self, Role};

/// The place of the data that an implementation answers for.
pub(super) fn data(role: &Role) -> Data {
    match role.data {
        role::Data::Queued => Data::Queued,
        role::Data::Awaited => Data::Awaited,
        role::Data::Pinned => Data::Pinned,
        role::Data::Ordinary if role.is_driven_by_one_thread() => Data::Ordinary,
        role::Data::Ordinary => Data::OrdinaryStaged,
    }
}

/// To four digits: more than any measurement holds.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
