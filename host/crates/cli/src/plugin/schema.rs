//! `longhaul plugin schema`: the JSON Schema of `plugin.toml`, for editors. `sdk/plugin-toml.md` is the reference.
//!
//! The schema of `asks` comes from the types that read it. The rest is written here, and a test compares it with the
//! manifests of this repository and with the reference.

use crate::exit::Exit;
use longhaul_config::asks::RequestedGrants;
use longhaul_core::fault;
use serde_json::{Value, json};

/// Runs the command.
pub fn run() -> fault::Result<Exit> {
    outtext!(serde_json::to_string_pretty(&schema())?);
    Ok(Exit::Done)
}

/// The schema.
pub fn schema() -> Value {
    let mut asks = schemars::schema_for!(RequestedGrants).to_value();
    let definitions = asks.as_object_mut().and_then(|asks| {
        asks.remove("$schema");
        asks.remove("$defs")
    });
    let worlds = ["planner", "agent", "evaluator", "tool", "memory"].map(|role| format!("{role}-plugin"));
    let text = |what: &str| json!({ "type": "string", "description": what });
    let paths = |what: &str| json!({ "type": "array", "items": { "type": "string" }, "description": what });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "plugin.toml of a Longhaul plugin",
        "type": "object",
        "required": ["name", "version", "world"],
        "properties": {
            "name": text("How longhaul.toml names it: letters, digits, `-` and `_`."),
            "version": text("Such as 1.2.0."),
            "world": { "enum": worlds, "description": "The world of the contract that the component is built for." },
            "description": text("What it does, in one line."),
            "asks": asks,
            "settings": {
                "type": "object",
                "description": "What an operator may set for it, by name. Without it whatever is set is handed to the plugin.",
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": false,
                    "properties": {
                        "type": { "enum": ["string", "integer", "number", "boolean", "list", "table"], "description": "Default: what `default` is, or anything." },
                        "default": { "description": "What the plugin takes where nothing is set." },
                        "one_of": { "type": "array", "items": { "type": "string" }, "description": "The texts that are taken." },
                        "description": text("What it does, in one line."),
                    },
                },
            },
            "build": {
                "type": "object",
                "additionalProperties": false,
                "description": "How `longhaul plugin build` makes it. A component that another tool chain built needs none.",
                "properties": {
                    "language": { "enum": ["rust", "python", "javascript", "c"], "description": "Default rust, where a Cargo.toml is beside it." },
                    "world": { "enum": worlds, "description": "The same as above, if it is said." },
                    "module": text("Python: the module with the class that is exported, such as app for app.py."),
                    "entry": text("JavaScript: the file with the export, .js or .ts."),
                    "sources": paths("C: the files to compile."),
                    "paths": paths("All but Rust: further folders to import from, or with headers; one is the SDK."),
                    "packages": paths("Python: packages in pure Python to import from, each as NAME==VERSION."),
                },
            },
        },
        "$defs": definitions.unwrap_or_else(|| json!({})),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    fn repository() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
    }

    fn manifests(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("target") && !path.ends_with("node_modules") {
                manifests(&path, found);
            } else if path.ends_with("plugin.toml") {
                found.push(path);
            }
        }
    }

    /// Every key of a table that is missing in its schema, with its path.
    fn unknown(value: &Value, schema: &Value, all: &Value, place: &str, found: &mut Vec<String>) {
        let schema = match schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
            Some(path) => all.pointer(path).expect("a definition"),
            None => schema,
        };
        for (key, value) in value.as_object().into_iter().flatten() {
            match schema["properties"].get(key) {
                Some(schema) => unknown(value, schema, all, &format!("{place}.{key}"), found),
                None if schema["properties"].is_object() => found.push(format!("{place}.{key}")),
                None => {}
            }
        }
        for item in value.as_array().into_iter().flatten() {
            unknown(item, &schema["items"], all, place, found);
        }
    }

    #[test]
    fn every_manifest_of_ours_fits_the_schema() {
        let mut paths = Vec::new();
        ["sdk", "plugins"].iter().for_each(|folder| manifests(&repository().join(folder), &mut paths));
        assert!(paths.len() > 20, "{paths:?}");
        let (schema, mut strange) = (schema(), Vec::new());
        for path in paths {
            let text = std::fs::read_to_string(&path).expect("ours").replace("{{name}}", "name");
            let Ok(manifest) = toml::from_str::<Value>(&text) else { continue };
            unknown(&manifest, &schema, &schema, &path.display().to_string(), &mut strange);
        }
        assert_eq!(strange, Vec::<String>::new());
    }

    #[test]
    fn the_reference_has_every_key_and_the_schema_has_what_is_asked_for() {
        let reference = std::fs::read_to_string(repository().join("sdk/plugin-toml.md")).expect("the reference");
        let (schema, mut keys) = (schema(), Vec::new());
        let names =
            |schema: &Value| schema["properties"].as_object().expect("keys").keys().cloned().collect::<Vec<_>>();
        keys.extend(names(&schema));
        keys.extend(names(&schema["properties"]["asks"]));
        keys.extend(names(&schema["properties"]["build"]));
        keys.extend(names(&schema["$defs"]["AskedDirectory"]));
        for key in ["name", "asks", "models", "directories", "guest", "access", "module", "sources"] {
            assert!(keys.iter().any(|known| known == key), "the schema lacks `{key}`: {keys:?}");
        }
        let missing: Vec<_> = keys.iter().filter(|key| !reference.contains(&format!("`{key}`"))).collect();
        assert_eq!(missing, Vec::<&String>::new());
    }
}
