//! One ceiling by name.

use std::collections::BTreeMap;

use crate::model::record::Ceiling;

/// Ceilings by name.
pub(crate) type Ceilings = BTreeMap<String, Ceiling>;

pub(super) fn insert(ceilings: &mut Ceilings, name: &str, value: f64, unit: &str, method: String) {
    ceilings.insert(
        name.to_owned(),
        Ceiling {
            value,
            unit: unit.to_owned(),
            method,
        },
    );
}
