//! The page of `plugin.toml`, from the schema that the program prints.

use super::page::{KEYS, choices, description, opened, requires};
use super::program::Program;
use anyhow::{Context, Result};
use serde_json::Value;

pub(crate) fn page(program: &Program) -> Result<String> {
    let schema = program.said(&["plugin", "schema"])?;
    let schema: Value = serde_json::from_str(&schema).context("read the schema of plugin.toml")?;
    let mut text = opened("`longhaul plugin schema`", "plugin.toml");
    text += "The manifest of a plugin, which `longhaul plugin build` and `longhaul plugin pack` put into the component.\n\
             `longhaul plugin schema` prints its JSON Schema; [sdk/plugin-toml.md](../../../../sdk/plugin-toml.md) \
             explains each key\nwith an example.\n\n";
    let (parts, definitions) = (&schema["properties"], &schema["$defs"]);
    text += &keys(&schema, definitions)?;
    for (title, part) in [
        ("[asks]", &parts["asks"]),
        ("An entry of `directories`", &definitions["AskedDirectory"]),
        ("An entry of `[settings]`", &parts["settings"]["additionalProperties"]),
        ("[build]", &parts["build"]),
    ] {
        let keys = keys(part, definitions).with_context(|| format!("describe {title}"))?;
        text += &format!("\n## {title}\n\n{keys}");
    }
    Ok(text)
}

fn keys(part: &Value, definitions: &Value) -> Result<String> {
    let properties = part["properties"].as_object().context("a table has keys")?;
    let mut text = KEYS.to_owned();
    for (key, value) in properties {
        let needed = if requires(part, key) { ", required" } else { "" };
        text += &format!("| `{key}` | {}{needed} | {} |\n", shown(value, definitions), description(value));
    }
    Ok(text)
}

fn shown(value: &Value, definitions: &Value) -> String {
    if let Some(name) = value["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return shown(&definitions[name], definitions);
    }
    if let Some(names) = value["enum"].as_array() {
        return choices(names.iter().filter_map(Value::as_str));
    }
    if let Some(names) = value["oneOf"].as_array() {
        return choices(names.iter().filter_map(|choice| choice["const"].as_str()));
    }
    match value["type"].as_str() {
        Some("string") => "text",
        Some("boolean") => "true or false",
        Some("object") => "table",
        Some("integer") => "integer",
        Some("array") => "list",
        _ => "any value",
    }
    .to_owned()
}
