//! The parameters of offered functions. They are sent without strict mode, so a provider has fewer rules for them; MCP
//! servers and plugins still write arbitrary ones.

use super::rules::{Dialect, Violation};
use super::words::{required, types, with};
use serde_json::{Map, Value, json};

/// Keywords that no provider accepts at the top of parameters: OpenAI says `schema must have type 'object' and not have
/// 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level`, Anthropic `input_schema does not support oneOf, allOf, or
/// anyOf at the top level`.
const NOT_AT_TOP: [&str; 6] = ["oneOf", "anyOf", "allOf", "enum", "const", "not"];

/// Words that Gemini does not know in parameters, and answers with 400: `Unknown name "$schema"`.
/// <https://ai.google.dev/api/caching#Schema> lists those that it knows.
const UNKNOWN_TO_GEMINI: [&str; 12] = [
    "$schema",
    "$id",
    "$comment",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "const",
    "examples",
];

/// A provider's objections to the parameters of a function.
#[must_use]
pub fn check_parameters(schema: &Value, dialect: Dialect) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut say = |at: &str, rule: String| found.push(Violation { at: at.to_owned(), rule });
    if types(schema) != ["object"] {
        say("", "the type of parameters is `object`".to_owned());
    }
    if let Some(word) = NOT_AT_TOP.iter().find(|word| schema.get(**word).is_some()) {
        say("", format!("`{word}` is not permitted at the top level"));
    }
    if !schema["properties"].is_object() {
        say("", "object schema missing properties".to_owned());
    }
    each(schema, "", &mut |one, at| {
        if types(one).contains(&"array") && one.get("items").is_none() {
            say(at, "array schema missing items".to_owned());
        }
        let unknown = UNKNOWN_TO_GEMINI.iter().find(|word| dialect == Dialect::Gemini && one.get(**word).is_some());
        if let Some(word) = unknown {
            say(at, format!("unknown name `{word}`"));
        }
    });
    found
}

/// The parameters as they are sent to a provider.
#[must_use]
pub fn parameters(schema: &Value, dialect: Dialect) -> Value {
    let mut top = schema.as_object().cloned().unwrap_or_default();
    for word in ["allOf", "anyOf", "oneOf"] {
        for one in top.remove(word).iter().flat_map(|all| all.as_array().into_iter().flatten()) {
            take_in(&mut top, one, word == "allOf");
        }
    }
    NOT_AT_TOP.iter().for_each(|word| drop(top.remove(*word)));
    top.insert("type".to_owned(), json!("object"));
    if !top.get("properties").is_some_and(Value::is_object) {
        top.insert("properties".to_owned(), json!({}));
    }
    let mut schema = Value::Object(top);
    mend(&mut schema, dialect);
    schema
}

/// The fields of a union's schemas become fields of the whole; only fields that all of them require are required.
fn take_in(top: &mut Map<String, Value>, one: &Value, holds: bool) {
    let properties = top.entry("properties").or_insert_with(|| json!({}));
    if let (Some(own), Some(more)) = (properties.as_object_mut(), one["properties"].as_object()) {
        for (name, schema) in more {
            own.entry(name.clone()).or_insert_with(|| schema.clone());
        }
    }
    if holds && let Some(own) = top.entry("required").or_insert_with(|| json!([])).as_array_mut() {
        own.extend(required(one).into_iter().map(Value::from));
    }
}

fn mend(schema: &mut Value, dialect: Dialect) {
    let Some(fields) = schema.as_object_mut() else { return };
    if dialect == Dialect::Gemini {
        UNKNOWN_TO_GEMINI.iter().for_each(|word| drop(fields.remove(*word)));
    }
    let is_list = match fields.get("type") {
        Some(Value::String(name)) => name == "array",
        Some(Value::Array(names)) => names.iter().any(|name| name == "array"),
        _ => false,
    };
    if is_list && !fields.contains_key("items") {
        let any = if dialect == Dialect::Gemini { json!({ "type": "string" }) } else { json!({}) };
        fields.insert("items".to_owned(), any);
    }
    for (word, value) in fields.iter_mut() {
        match (word.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                schemas.values_mut().for_each(|schema| mend(schema, dialect));
            }
            ("items" | "additionalProperties", schema) => mend(schema, dialect),
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| mend(schema, dialect));
            }
            _ => {}
        }
    }
}

fn each(schema: &Value, at: &str, look: &mut impl FnMut(&Value, &str)) {
    look(schema, at);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        each(property, &format!("{at}/properties/{name}"), look);
    }
    if let Some(items) = schema.get("items") {
        each(items, &format!("{at}/items"), look);
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        with(schema, word).for_each(|one| each(one, &format!("{at}/{word}"), look));
    }
}
