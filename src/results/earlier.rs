//! Results stored before there were roles: `earlier.json` says what each implementation and each
//! group of then was, by its name. Nothing else in this crate goes by such a name, and nothing is
//! added to the table: what is measured now carries its role with it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::model::cost::Cost;
use crate::model::id::{self, Device};
use crate::model::role::{Data, Library, Role, Threads};
use crate::model::topic::Topic;

#[derive(Deserialize)]
struct Table {
    /// The groups of earlier versions, in the order in which they were shown.
    groups: Vec<Topic>,
    /// By group, then by function.
    roles: BTreeMap<String, BTreeMap<String, Role>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!("earlier.json")).expect("a test reads the table")
});

/// The role of a result that was stored without one. Of an implementation that is in no table it
/// is what earlier versions took it for: GPU code has its data on the host where its name begins
/// with `transfer` or bytes cross the link, and is a product of cuBLAS where it begins with
/// `cublas`; CPU code on one thread is no answer where it ends in `-1-thread`.
pub(super) fn role(group: &str, device: Device, implementation: &str, cost: &Cost) -> Role {
    let function = id::function_of(device, implementation);
    let known = TABLE.roles.get(group).and_then(|rows| rows.get(&function));
    if let Some(role) = known {
        return role.clone();
    }
    let mut role = match device {
        Device::Cpu => Role::cpu(),
        Device::Gpu => Role::gpu(),
    };
    let moves = cost.link_bytes.is_some_and(|bytes| bytes > 0.0);
    match device {
        Device::Cpu if implementation.ends_with("-1-thread") => {
            role.threads = Some(Threads::One);
            role.answers = false;
        }
        Device::Gpu if moves || implementation.starts_with("transfer") => {
            role.data = Data::Ordinary;
        }
        Device::Gpu if implementation.starts_with("cublas") => {
            role.library = Some(Library::Cublas);
        }
        _ => {}
    }
    role
}

/// The groups of earlier versions, in their order.
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
    fn an_unknown_implementation_is_what_earlier_versions_took_it_for() {
        let cost = |link_bytes| Cost {
            link_bytes,
            ..Cost::default()
        };
        let of = |name, cost| role("a", Device::Gpu, name, &cost).data;
        assert_eq!(of("b", cost(None)), Data::Queued);
        assert_eq!(of("b", cost(Some(0.0))), Data::Queued);
        assert_eq!(of("b", cost(Some(8.0))), Data::Ordinary);
        assert_eq!(of("transfer-b", cost(None)), Data::Ordinary);
        let of = |device, name| role("a", device, name, &cost(None));
        assert_eq!(of(Device::Cpu, "b"), Role::cpu());
        assert_eq!(of(Device::Cpu, "b-1-thread").threads, Some(Threads::One));
        assert!(!of(Device::Cpu, "b-1-thread").answers);
        assert_eq!(of(Device::Gpu, "cublas-b").library, Some(Library::Cublas));
    }
}
