//! JSON Schema 2020-12 as far as arguments of functions need it: the check of a schema, and a value that fits it.
//!
//! Checked by hand and not with a crate of schemas: the smallest of those has thirty dependencies, for the one check
//! that each keyword has a value of its kind.

use serde_json::{Map, Value, json};

/// The deepest nested schema that is checked; no model reads deeper ones.
const DEPTH_MAX: usize = 64;

const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "integer", "string"];

/// Checks that a value is a schema of an object, as the parameters of a function are.
pub(crate) fn check_parameters(schema: &Value) -> Result<(), String> {
    let Some(map) = schema.as_object() else { return Err("it is not an object".to_owned()) };
    match map.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        Some(kind) => return Err(format!("its type is {kind}, and arguments are an object")),
        None => return Err("it does not say `\"type\": \"object\"`".to_owned()),
    }
    let properties = map.get("properties").and_then(Value::as_object);
    for name in map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if properties.is_none_or(|properties| !properties.contains_key(name)) {
            return Err(format!("it requires `{name}`, which is no property"));
        }
    }
    check(schema, schema, "#", DEPTH_MAX)
}

/// Checks that a value is a schema; `place` names its place for people.
fn check(root: &Value, schema: &Value, place: &str, depth: usize) -> Result<(), String> {
    if depth == 0 {
        return Err(format!("{place} is more than {DEPTH_MAX} deep"));
    }
    let map = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(map) => map,
        other => return Err(format!("{place} is {other}, and a schema is an object or a boolean")),
    };
    map.iter()
        .try_for_each(|(keyword, value)| keyword_is_right(root, keyword, value, &format!("{place}/{keyword}"), depth))
}

fn keyword_is_right(root: &Value, keyword: &str, value: &Value, place: &str, depth: usize) -> Result<(), String> {
    let wanted = |right: bool, what: &str| if right { Ok(()) } else { Err(format!("{place} is not {what}")) };
    let sub = |schema: &Value, place: &str| check(root, schema, place, depth - 1);
    match keyword {
        "type" => wanted(is_type(value), "a type, or a list of types"),
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            let Some(map) = value.as_object() else { return wanted(false, "an object of schemas") };
            map.iter().try_for_each(|(name, schema)| sub(schema, &format!("{place}/{name}")))
        }
        "items"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else"
        | "propertyNames"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "unevaluatedItems"
        | "contentSchema" => sub(value, place),
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => match value.as_array() {
            Some(list) if !list.is_empty() => {
                list.iter().enumerate().try_for_each(|(at, schema)| sub(schema, &format!("{place}/{at}")))
            }
            _ => wanted(false, "a list of schemas"),
        },
        "required" => wanted(is_names(value), "a list of different names"),
        "enum" => wanted(value.as_array().is_some_and(|list| !list.is_empty()), "a list of values"),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minContains"
        | "maxContains" => wanted(value.as_u64().is_some(), "a whole number from 0 on"),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => wanted(value.is_number(), "a number"),
        "multipleOf" => wanted(value.as_f64().is_some_and(|number| number > 0.0), "a number above 0"),
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => wanted(value.is_boolean(), "true or false"),
        "title" | "description" | "format" | "pattern" | "$comment" | "$id" | "$schema" | "$anchor" => {
            wanted(value.is_string(), "a text")
        }
        "examples" => wanted(value.is_array(), "a list"),
        "$ref" => {
            let Some(target) = value.as_str() else { return wanted(false, "a text") };
            let found = target.strip_prefix('#').is_some_and(|pointer| root.pointer(pointer).is_some());
            wanted(found, "a place in this schema; models and hosts fetch no other")
        }
        // An unknown keyword is an annotation.
        _ => Ok(()),
    }
}

fn is_type(value: &Value) -> bool {
    let known = |one: &Value| one.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::Array(list) => !list.is_empty() && list.iter().all(known) && all_different(list),
        one => known(one),
    }
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(Value::is_string) && all_different(list))
}

fn all_different(list: &[Value]) -> bool {
    list.iter().enumerate().all(|(at, one)| !list[..at].contains(one))
}

/// A value that most likely fits a schema, with `text` wherever a text is free.
pub(crate) fn sample(root: &Value, schema: &Value, text: &str, depth: usize) -> Value {
    let Some(map) = schema.as_object().filter(|_| depth > 0) else { return json!({}) };
    let one_of = |keyword: &str| map.get(keyword).and_then(Value::as_array).and_then(|list| list.first());
    if let Some(value) = map.get("const").or_else(|| map.get("default")).or_else(|| one_of("enum")) {
        return value.clone();
    }
    if let Some(target) = map.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#')) {
        return root.pointer(target).map_or_else(|| json!({}), |schema| sample(root, schema, text, depth - 1));
    }
    if let Some(schema) = one_of("anyOf").or_else(|| one_of("oneOf")) {
        return sample(root, schema, text, depth - 1);
    }
    match kind(map) {
        "object" => {
            let properties = map.get("properties").and_then(Value::as_object).into_iter().flatten();
            let values = properties.map(|(name, schema)| (name.clone(), sample(root, schema, text, depth - 1)));
            Value::Object(values.collect())
        }
        "array" => map.get("items").map_or_else(|| json!([]), |items| json!([sample(root, items, text, depth - 1)])),
        "integer" | "number" => map.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        "boolean" => json!(true),
        "null" => Value::Null,
        _ => Value::String(text.to_owned()),
    }
}

fn kind(map: &Map<String, Value>) -> &str {
    match map.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => kinds.iter().find_map(Value::as_str).unwrap_or("string"),
        _ if map.contains_key("properties") => "object",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_is(schema: Value, expected: &str) {
        let found = check_parameters(&schema).err().unwrap_or_default();
        assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{schema}: {found}");
    }

    #[test]
    fn a_schema_that_no_model_could_follow_is_refused() {
        check_is(
            json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}, "required": ["a"]}),
            "",
        );
        check_is(json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": true}}), "");
        check_is(json!({"properties": {}}), "does not say");
        check_is(json!([]), "not an object");
        check_is(json!({"type": "object", "properties": {"a": {"type": "text"}}}), "#/properties/a/type is not a type");
        check_is(json!({"type": "object", "properties": {"a": "string"}}), "#/properties/a is \"string\"");
        check_is(json!({"type": "object", "required": ["a"]}), "requires `a`");
        check_is(
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}),
            "is not a place in this schema",
        );
        check_is(json!({"type": "object", "properties": {"a": {"minLength": -1}}}), "whole number");
        check_is(json!({"type": "object", "properties": {"a": {"anyOf": []}}}), "list of schemas");
    }

    #[test]
    fn a_sample_fits_its_schema() {
        let schema = json!({"type": "object", "properties": {
            "text": {"type": "string"}, "count": {"type": "integer", "minimum": 3}, "kind": {"enum": ["a", "b"]},
            "lines": {"type": "array", "items": {"type": "string"}}, "deep": {"$ref": "#/$defs/d"},
        }, "$defs": {"d": {"type": ["boolean", "null"]}}});
        let expected = json!({"text": "x", "count": 3, "kind": "a", "lines": ["x"], "deep": true});
        assert_eq!(sample(&schema, &schema, "x", 8), expected);
    }
}
