//! The page of the lines of a run, from `tests/events.schema.json`.

use super::page::{cell, description, opened, requires};
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::path::Path;

const FILE: &str = "tests/events.schema.json";

pub(crate) fn page(root: &Path) -> Result<String> {
    let schema = fs::read_to_string(root.join(FILE)).with_context(|| format!("read `{FILE}`"))?;
    let schema: Value = serde_json::from_str(&schema).with_context(|| format!("read `{FILE}`"))?;
    let mut text = opened(FILE, "Events");
    text += "`run`, `resume` and `attach` print a run as JSON lines with `--events`, and the server streams the same lines \
             over HTTP. A\nline has these fields:\n\n";
    text += &fields(&schema);
    text += "\nA line with a `number` is durable: it is stored, and sent once. A line without one is a live view. The kinds \
             of lines, by\n`type`, with the fields of `payload`:\n";
    for kind in schema["oneOf"].as_array().context("a line has kinds")? {
        let parts = &kind["properties"];
        let name = parts["type"]["const"].as_str().context("a kind of lines has a name")?;
        let live = if requires(kind, "number") { "" } else { ", live" };
        text += &format!("\n## `{name}`{live}\n\n{}\n", description(kind));
        let fields = fields(&parts["payload"]);
        if !fields.is_empty() {
            text += &format!("\n{fields}");
        }
    }
    text += "\n## Types\n";
    for (name, definition) in schema["$defs"].as_object().context("the schema has definitions")? {
        text += &format!("\n### {name}\n\n{}", defined(definition));
    }
    Ok(text)
}

/// A definition: its fields, its choices, or its type.
fn defined(schema: &Value) -> String {
    let said = description(schema);
    let said = if said.is_empty() { said } else { format!("{said}\n\n") };
    let fields = fields(schema);
    if !fields.is_empty() {
        return said + &fields;
    }
    let Some(choices) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) else {
        return format!("{said}{}\n", shown(schema));
    };
    let line = |choice: &Value| {
        let said = description(choice);
        let names = choice["properties"].as_object().map(|fields| fields.keys().map(|key| format!("`{key}`")));
        let what = names.map_or_else(|| shown(choice), |names| names.collect::<Vec<_>>().join(", "));
        if said.is_empty() { format!("- {what}\n") } else { format!("- {what}: {said}\n") }
    };
    said + &choices.iter().map(line).collect::<String>()
}

/// A table of the fields; empty where there are none.
fn fields(schema: &Value) -> String {
    let Some(properties) = schema["properties"].as_object().filter(|properties| !properties.is_empty()) else {
        return String::new();
    };
    let mut text = "| field | type | what |\n|---|---|---|\n".to_owned();
    for (name, field) in properties {
        let optional = if requires(schema, name) { "" } else { ", optional" };
        text += &format!("| `{name}` | {}{optional} | {} |\n", shown(field), description(field));
    }
    text
}

fn shown(schema: &Value) -> String {
    let each = |choices: &Vec<Value>, between: &str| choices.iter().map(shown).collect::<Vec<_>>().join(between);
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(value) = schema.get("const") {
        return cell(&format!("`{value}`"));
    }
    if let Some(values) = schema["enum"].as_array() {
        return cell(&values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", "));
    }
    if let Some(choices) = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
        return each(choices, " or ");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => match schema["prefixItems"].as_array() {
            Some(items) => format!("array of {}", each(items, ", ")),
            None => format!("array of {}", shown(&schema["items"])),
        },
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any value".to_owned(),
    }
}
