//! The JSON Schemas that providers take: their rules, and the way of any schema into them and of a reply back.
//!
//! A plugin writes the schema that it means. [`check`] says what a provider would refuse of it; [`Lowered`] is the
//! same schema as that provider takes it, and turns a reply to it into one to the plugin's: an optional field becomes
//! one that may be null, and a value of any shape becomes JSON in a text. What cannot be brought into the rules is sent
//! without strict mode. Nothing here judges whether a reply satisfies a schema: who reads it does.

mod lower;
mod parameters;
mod rules;

pub(crate) use lower::Lowered;
pub use parameters::{check_parameters, parameters};
pub use rules::{Dialect, Violation, check};

use serde_json::Value;

/// A schema as a provider takes it with `strict: true`; none where it cannot be said in its words.
#[must_use]
pub fn strict(schema: &Value, dialect: Dialect) -> Option<Value> {
    Lowered::of(schema, dialect).map(|lowered| lowered.schema)
}

/// A schema below another one, or of one of its fields.
fn with<'a>(schema: &'a Value, keyword: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

/// The types that a schema names.
fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The names in `required`.
fn required(schema: &Value) -> Vec<&str> {
    with(schema, "required").filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests;
