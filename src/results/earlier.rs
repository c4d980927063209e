//! Results stored before there were roles: `earlier.json` says what each implementation and each
//! group of then was, by its name. Nothing else in this crate goes by such a name, and nothing is
//! added to the table: what is measured now carries its role with it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::model::cost::Cost;
use crate::model::id::{self, Device};
use crate::model::role::{Data, Role};
use crate::model::topic::Topic;

#[derive(Deserialize)]
struct Table {
    /// In the order in which they were shown.
    groups: Vec<Topic>,
    /// By group, then by function.
    roles: BTreeMap<String, BTreeMap<String, Role>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!("earlier.json")).expect("a test reads the table")
});

/// The role of a result that was stored without one. Of an implementation that is in no table it
/// is what its device and its cost say: GPU code that moves data over the link has them on the
/// host.
pub(super) fn role(group: &str, device: Device, implementation: &str, cost: &Cost) -> Role {
    let function = id::function_of(device, implementation);
    let known = TABLE.roles.get(group).and_then(|rows| rows.get(&function));
    known.cloned().unwrap_or_else(|| match device {
        Device::Cpu => Role::cpu(),
        Device::Gpu if cost.link_bytes.is_some_and(|bytes| bytes > 0.0) => Role {
            data: Data::Ordinary,
            ..Role::gpu()
        },
        Device::Gpu => Role::gpu(),
    })
}

/// The groups of then, in their order.
pub(super) fn topics() -> &'static [Topic] {
    &TABLE.groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_of_the_table_has_words_and_rows() {
        assert!(topics().iter().all(|t| TABLE.roles.contains_key(&t.group)));
        assert_eq!(topics().len(), TABLE.roles.len());
        for function in TABLE.roles.values().flat_map(BTreeMap::keys) {
            assert!(id::function(function).is_some(), "{function}");
        }
    }

    #[test]
    fn an_unknown_implementation_is_what_its_cost_says() {
        let cost = |link_bytes| Cost {
            link_bytes,
            ..Cost::default()
        };
        let of = |device, cost| role("a", device, "b", &cost).data;
        assert_eq!(of(Device::Gpu, cost(None)), Data::Queued);
        assert_eq!(of(Device::Gpu, cost(Some(0.0))), Data::Queued);
        assert_eq!(of(Device::Gpu, cost(Some(8.0))), Data::Ordinary);
        assert_eq!(of(Device::Cpu, cost(None)), Data::Ordinary);
    }
}
