//! The JSON Schemas of `longhaul.toml`, `server.toml` and `resources.toml`, for editors.
//!
//! They come from the types that read the files: a key's description is the documentation of its field, and a key that
//! a type refuses is refused. Rules across tables are not in a schema; `longhaul check` has those. Refuses keywords
//! that editors for TOML seldom know, such as `unevaluatedProperties`, and a null, which TOML has not.

use crate::resources::ResourceSettings;
use crate::server::Written;
use crate::tables::Config;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// The mark of a reference to another item in the documentation of a field.
const REFERENCE: &str = "; see [`";

/// The schema of `longhaul.toml`.
pub fn of_project() -> Value {
    of::<Config>("longhaul.toml of a Longhaul project")
}

/// The schema of `server.toml`.
pub fn of_server() -> Value {
    of::<Written>("server.toml of a Longhaul data directory")
}

/// The schema of `resources.toml`.
pub fn of_resources() -> Value {
    of::<ResourceSettings>("resources.toml of a Longhaul data directory")
}

fn of<T: JsonSchema>(title: &str) -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(simplify as fn(&mut Schema)));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    // Serialized it has its keywords in a fixed order, the title first.
    serde_json::to_value(&schema).unwrap_or_else(|_| schema.to_value())
}

/// Removes what an editor for TOML has no use for.
fn simplify(schema: &mut Schema) {
    let Some(fields) = schema.as_object_mut() else { return };
    remove_null(fields);
    // The names of Rust's numbers, whose bounds are there as numbers.
    fields.remove("format");
    // The keys of a table have defaults of their own.
    if fields.get("default").is_some_and(|default| default.is_null() || default.is_object()) {
        fields.remove("default");
    }
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = description(text);
    }
}

/// Removes the null of a key that may be left out.
fn remove_null(fields: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = fields.get("type") {
        let others: Vec<Value> = kinds.iter().filter(|kind| *kind != "null").cloned().collect();
        let kind = if others.len() == 1 { others[0].clone() } else { Value::Array(others) };
        fields.insert("type".to_owned(), kind);
    }
    let Some(Value::Array(choices)) = fields.get_mut("anyOf") else { return };
    choices.retain(|choice| choice["type"] != "null");
    if choices.len() > 1 {
        return;
    }
    let only = choices.pop();
    fields.remove("anyOf");
    if let Some(Value::Object(only)) = only {
        for (keyword, value) in only {
            fields.entry(keyword).or_insert(value);
        }
    }
}

/// The documentation of an item as prose: a paragraph a line, without code and without references to other items.
fn description(documentation: &str) -> String {
    let prose = documentation.split("```").next().unwrap_or_default();
    let paragraphs = prose.split("\n\n").map(|lines| lines.split_whitespace().collect::<Vec<_>>().join(" "));
    let paragraphs: Vec<String> = paragraphs.filter(|paragraph| !paragraph.is_empty()).collect();
    let mut text = paragraphs.join("\n\n");
    while let Some(from) = text.find(REFERENCE)
        && let Some(length) = text[from..].find("`]")
    {
        text.replace_range(from..from + length + 2, "");
    }
    text.replace("[`", "`").replace("`]", "`")
}

#[cfg(test)]
mod tests;
