//! The pages of the reference and the schemas have the same keys, and require the same ones.
//!
//! A heading is the path of a table, such as `[tools.NAME.approval]`; [`PLACES`] has the other headings.

use super::super::ConfigurationFile;
use super::repository;
use super::validator::resolved;
use serde_json::Value;
use std::collections::BTreeMap;

/// Headings that are no path, and the places of their tables. `NAME` is any name, `ITEM` an entry of a list, and
/// `provider` the table of that provider.
const PLACES: [(&str, &[&str]); 17] = [
    ("longhaul.toml", &[""]),
    ("resources.toml", &[""]),
    ("plugin.toml", &[""]),
    ("needs", &["run.needs"]),
    ("[run.limits]", &["run.limits", "ask.limits"]),
    ("directories", &["tools.NAME.directories.ITEM"]),
    ("secrets", &["tools.NAME.secrets.ITEM"]),
    ("rules", &["tools.NAME.approval.rules.ITEM"]),
    ("provider = \"openai\"", &["models.openai"]),
    ("provider = \"anthropic\"", &["models.anthropic"]),
    ("provider = \"local\"", &["models.local"]),
    ("provider = \"recorded\"", &["models.recorded"]),
    ("provider = \"route\"", &["models.route"]),
    ("retry", &["models.openai.retry", "models.anthropic.retry"]),
    ("[checks]", &["checks.NAME"]),
    ("An entry of `directories`", &["asks.directories.ITEM"]),
    ("An entry of `[settings]`", &["settings.NAME"]),
];

/// The heading of the keys that every model has, beside those of its provider.
const MODELS: &str = "[models.NAME]";

/// The definition that a page describes in words.
const IN_WORDS: &str = "McpVariable";

/// Keys, each with true where it is required.
type Keys = BTreeMap<String, bool>;

/// The headings of a page that have keys.
fn sections(page: &str) -> Vec<(String, Keys)> {
    let mut sections: Vec<(String, Keys)> = Vec::new();
    for line in page.lines() {
        if line.starts_with('#') {
            sections.push((line.trim_start_matches('#').trim().to_owned(), Keys::new()));
        } else if line.starts_with("| `") {
            let key = line.split('`').nth(1).expect("a key").to_owned();
            let is_required = line.split(" | ").nth(1).is_some_and(|kind| kind.ends_with(", required"));
            sections.last_mut().expect("a heading").1.insert(key, is_required);
        }
    }
    sections.retain(|(_, keys)| !keys.is_empty());
    sections
}

/// The places of the tables that a heading is about.
fn places(heading: &str) -> Vec<String> {
    match PLACES.iter().find(|(known, _)| *known == heading) {
        Some((_, places)) => places.iter().map(|place| (*place).to_owned()).collect(),
        None => heading.split(", ").map(|path| path.trim_matches(['[', ']']).to_owned()).collect(),
    }
}

/// The table at a place.
fn table_at<'a>(all: &'a Value, place: &str) -> &'a Value {
    let mut table = all;
    for step in place.split('.').filter(|step| !step.is_empty()) {
        let inner = match step {
            "NAME" => &table["additionalProperties"],
            "ITEM" => &table["items"],
            key if table["properties"].get(key).is_some() => &table["properties"][key],
            provider => of_provider(all, table, provider),
        };
        let inner = resolved(all, inner);
        // A check is a table, or a list of words.
        let mut choices = inner["anyOf"].as_array().into_iter().flatten();
        table = choices.find(|choice| choice["properties"].is_object()).unwrap_or(inner);
    }
    table
}

/// The table of a provider, of those that a model may be.
fn of_provider<'a>(all: &'a Value, models: &'a Value, provider: &str) -> &'a Value {
    let models = resolved(all, &models["additionalProperties"]);
    let mut tables = models["oneOf"].as_array().into_iter().flatten();
    let found = tables.find(|table| table["properties"]["provider"]["const"] == provider);
    found.unwrap_or_else(|| panic!("no table has `{provider}`"))
}

/// The keys of a table in a schema, without the older names of some.
fn keys_of(table: &Value) -> Keys {
    let required = |name: &str| table["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
    let keys = table["properties"].as_object().into_iter().flatten();
    let keys = keys.filter(|(_, key)| key["deprecated"] != true);
    keys.map(|(name, _)| (name.clone(), required(name))).collect()
}

/// Every table below a schema, but for those that a page describes in words.
fn tables<'a>(schema: &'a Value, found: &mut Vec<&'a Value>) {
    if schema["properties"].is_object() {
        found.push(schema);
    }
    for keyword in ["properties", "$defs"] {
        let inner = schema[keyword].as_object().into_iter().flatten();
        inner.filter(|(name, _)| *name != IN_WORDS).for_each(|(_, inner)| tables(inner, found));
    }
    for keyword in ["anyOf", "oneOf"] {
        schema[keyword].as_array().into_iter().flatten().for_each(|inner| tables(inner, found));
    }
    for keyword in ["items", "additionalProperties"] {
        if schema[keyword].is_object() {
            tables(&schema[keyword], found);
        }
    }
}

#[track_caller]
fn check(file: ConfigurationFile, page: &str) {
    let path = repository().join("docs/book/src/reference").join(page);
    let text = std::fs::read_to_string(path).expect("a page of the book");
    let (schema, sections) = (file.schema(), sections(&text));
    let common = sections.iter().find(|(heading, _)| heading == MODELS).map(|(_, keys)| keys.clone());
    let common = common.unwrap_or_default();
    let mut described: Vec<*const Value> = Vec::new();
    for (heading, keys) in &sections {
        if heading == MODELS {
            continue;
        }
        for place in places(heading) {
            let table = table_at(&schema, &place);
            let mut found = keys_of(table);
            if heading.starts_with("provider = ") {
                assert_eq!(found.remove("provider"), Some(true), "{heading}");
                let both = common.keys().filter(|key| found.remove(*key) == Some(false));
                assert_eq!(both.count(), common.len(), "{heading} has the keys of every model");
            }
            assert_eq!(&found, keys, "{page}, {heading}: the schema on the left, the page on the right");
            described.push(std::ptr::from_ref(table));
        }
    }
    // A page without the keys of the whole file has a section for each of them.
    if !described.contains(&std::ptr::from_ref(&schema)) {
        let headings: Vec<String> = keys_of(&schema).keys().map(|key| format!("[{key}]")).collect();
        assert!(headings.iter().all(|key| sections.iter().any(|(heading, _)| heading == key)), "{headings:?}");
        described.push(std::ptr::from_ref(&schema));
    }
    let mut all = Vec::new();
    tables(&schema, &mut all);
    let missing = all.iter().filter(|table| !described.contains(&std::ptr::from_ref(**table)));
    let missing: Vec<Keys> = missing.map(|table| keys_of(table)).collect();
    assert_eq!(missing, Vec::<Keys>::new(), "{page} lacks tables of the schema");
}

#[test]
fn the_reference_and_the_schemas_have_the_same_keys() {
    check(ConfigurationFile::Project, "longhaul-toml.md");
    check(ConfigurationFile::Server, "server-toml.md");
    check(ConfigurationFile::Resources, "resources-toml.md");
    check(ConfigurationFile::Plugin, "plugin-toml.md");
}
