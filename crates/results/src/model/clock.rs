//! The name of a clock in a schema.

use crossover_words::Clock;

pub(crate) struct Name;

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
