//! A clock in a file is its name.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

use crossover_words::Clock;

pub(super) fn serialize<S: Serializer>(clock: &Clock, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(clock.name())
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Clock, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map_err(D::Error::custom)
}
