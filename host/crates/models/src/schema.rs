//! The JSON Schemas of providers: their rules, and the conversion of any schema to them and of a reply back.
//!
//! A plugin writes its intended schema. [`check`] lists a provider's objections to it; [`Lowered`] is the same schema
//! in that provider's form, and converts a reply to it into one for the plugin's: an optional field becomes nullable,
//! and a value of any shape becomes JSON in a text. A schema that cannot be converted is sent without strict mode.
//! Nothing here judges whether a reply satisfies a schema: its reader does.

mod lower;
mod parameters;
mod rules;
mod words;

pub(crate) use lower::Lowered;
pub use parameters::{check_parameters, parameters};
pub use rules::{Dialect, Violation, check};

use serde_json::Value;

/// A schema in a provider's form with `strict: true`; none if it cannot be expressed.
#[must_use]
pub fn strict(schema: &Value, dialect: Dialect) -> Option<Value> {
    Lowered::of(schema, dialect).map(|lowered| lowered.schema)
}

#[cfg(test)]
mod tests;
