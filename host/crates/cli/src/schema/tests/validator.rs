//! A validator of JSON Schema, for the keywords that the schemas of configuration files have.
//!
//! Refuses to pass over a keyword: one that it does not know ends the test.

use serde_json::Value;

/// The patterns that the schemas have: of names, and of labels.
const PLAIN: &str = "^[A-Za-z0-9_-]+$";
const LABEL: &str = "^[a-z0-9][a-z0-9._-]*$";

/// The faults of a value, each with its place.
pub(super) fn faults(all: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(all, all, value, "", &mut found);
    found
}

/// The definition that a schema refers to, or itself.
pub(super) fn resolved<'a>(all: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(path) => all.pointer(path.trim_start_matches('#')).expect("a definition"),
        None => schema,
    }
}

fn check(all: &Value, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    let rules = match schema {
        Value::Bool(true) => return,
        Value::Bool(false) => return found.push(format!("`{place}` is unknown")),
        Value::Object(rules) => rules,
        other => panic!("{other} is no schema"),
    };
    for (keyword, rule) in rules {
        let is_kept = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" | "deprecated" => true,
            "$ref" => {
                check(all, resolved(all, schema), value, place, found);
                true
            }
            "properties" => {
                for (key, inner) in rule.as_object().expect("keys") {
                    if let Some(value) = value.get(key) {
                        check(all, inner, value, &format!("{place}.{key}"), found);
                    }
                }
                true
            }
            "additionalProperties" => {
                let others = value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(key, _)| rules.get("properties").is_none_or(|keys| keys.get(key).is_none()));
                for (key, value) in others {
                    check(all, rule, value, &format!("{place}.{key}"), found);
                }
                true
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    check(all, rule, item, &format!("{place}[]"), found);
                }
                true
            }
            "anyOf" | "oneOf" => {
                choose(all, rule, value, place, found);
                true
            }
            "required" => {
                let missing = |key: &&Value| value.is_object() && value.get(key.as_str().expect("a name")).is_none();
                let missing: Vec<&Value> = rule.as_array().expect("names").iter().filter(missing).collect();
                found.extend(missing.iter().map(|key| format!("`{place}` lacks {key}")));
                true
            }
            _ => keeps(keyword, rule, value),
        };
        if !is_kept {
            found.push(format!("`{place}` is {value}, against {keyword} {rule}"));
        }
    }
}

/// Checks that a choice fits; else its faults are those of the choice with the fewest. Choices of one kind of table
/// exclude each other, so one that fits is enough.
fn choose(all: &Value, choices: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    let faults = choices.as_array().expect("choices").iter().map(|choice| {
        let mut found = Vec::new();
        check(all, choice, value, place, &mut found);
        found
    });
    found.extend(faults.min_by_key(Vec::len).expect("a choice"));
}

/// True when a value keeps a rule about itself.
fn keeps(keyword: &str, rule: &Value, value: &Value) -> bool {
    let number =
        |holds: fn(f64, f64) -> bool| value.as_f64().is_none_or(|value| holds(value, rule.as_f64().expect("a number")));
    let length = |length: Option<usize>, holds: fn(u64, u64) -> bool| {
        length.is_none_or(|length| holds(length as u64, rule.as_u64().expect("a length")))
    };
    let chars = value.as_str().map(|text| text.chars().count());
    match keyword {
        "type" => is_of(value, rule.as_str().expect("one type")),
        "enum" => rule.as_array().expect("values").contains(value),
        "const" => rule == value,
        "minimum" => number(|value, least| value >= least),
        "maximum" => number(|value, most| value <= most),
        "minLength" => length(chars, |length, least| length >= least),
        "maxLength" => length(chars, |length, most| length <= most),
        "minItems" => length(value.as_array().map(Vec::len), |length, least| length >= least),
        "maxItems" => length(value.as_array().map(Vec::len), |length, most| length <= most),
        "pattern" => value.as_str().is_none_or(|text| fits(rule.as_str().expect("a pattern"), text)),
        other => panic!("this validator does not know `{other}`"),
    }
}

/// True when a text fits one of the patterns that this validator knows.
fn fits(pattern: &str, text: &str) -> bool {
    let is_letter = |letter: char| match pattern {
        PLAIN => letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'),
        LABEL => letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '.' | '-' | '_'),
        other => panic!("this validator does not know the pattern `{other}`"),
    };
    let begins = pattern != LABEL || !text.starts_with(['.', '-', '_']);
    !text.is_empty() && begins && text.chars().all(is_letter)
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("`{other}` is no type of TOML"),
    }
}
