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

/// A clock that may be unknown.
pub(crate) mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use crossover_words::Clock;

    pub(crate) fn serialize<S: Serializer>(
        clock: &Option<Clock>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        clock.map(Clock::name).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Clock>, D::Error> {
        let name: Option<String> = Option::deserialize(deserializer)?;
        let parsed = name.map(|name| name.parse());
        parsed.transpose().map_err(D::Error::custom)
    }
}

/// The name of a clock in a schema.
#[cfg(feature = "schema")]
pub(crate) struct Name;

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Name {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Clock".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<&str> = Clock::ALL.iter().map(|clock| clock.name()).collect();
        schemars::json_schema!({
            "description": "What a time means: docs/method.md lists the clocks.",
            "enum": names
        })
    }
}
