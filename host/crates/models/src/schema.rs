//! The JSON Schemas that providers take: their rules, and the way of any schema into them and of a reply back.
//!
//! A plugin writes the schema that it means. [`check`] says what a provider would refuse of it; [`Lowered`] is the
//! same schema as that provider takes it, and turns a reply to it into one to the plugin's: an optional field becomes
//! one that may be null, and a value of any shape becomes JSON in a text. What cannot be brought into the rules is sent
//! without strict mode. Nothing here judges whether a reply satisfies a schema: who reads it does.

mod lower;
mod parameters;
mod rules;
mod words;

pub(crate) use lower::Lowered;
pub use parameters::{check_parameters, parameters};
pub use rules::{Dialect, Violation, check};

use serde_json::Value;

/// A schema as a provider takes it with `strict: true`; none where it cannot be said in its words.
#[must_use]
pub fn strict(schema: &Value, dialect: Dialect) -> Option<Value> {
    Lowered::of(schema, dialect).map(|lowered| lowered.schema)
}

#[cfg(test)]
mod tests;
