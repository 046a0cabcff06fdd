//! Reads keywords of an untrusted JSON Schema: a value of another type counts as absent.

use serde_json::Value;

/// A schema below another one, or of one of its fields.
pub(super) fn with<'a>(schema: &'a Value, keyword: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

/// The types that a schema names.
pub(super) fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The names in `required`.
pub(super) fn required(schema: &Value) -> Vec<&str> {
    with(schema, "required").filter_map(Value::as_str).collect()
}
