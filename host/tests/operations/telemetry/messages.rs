//! The JSON of messages in OpenTelemetry's conventions for generative AI, and a check of it.
//!
//! The rules are written from the schemas of version 0.1.0 of github.com/open-telemetry/semantic-conventions-genai
//! (`model/gen-ai/gen-ai-*.json`). The schemas allow further fields and roles; parts of unknown types are refused here,
//! since Longhaul sends none.

use serde_json::Value;

/// The types of parts, each with the fields that it must have. A field with `*` may be any value, others are texts.
const PARTS: &[(&str, &[&str])] = &[
    ("text", &["content"]),
    ("reasoning", &["content"]),
    ("tool_call", &["name"]),
    ("tool_call_response", &["response*"]),
];

const ROLES: [&str; 4] = ["system", "user", "assistant", "tool"];

const FINISH_REASONS: [&str; 7] = ["stop", "length", "content_filter", "tool_call", "compaction", "error", "other"];

/// The chat history of a request.
pub fn input(value: &Value) -> Result<(), String> {
    each(value, message)
}

/// The messages of a reply.
pub fn output(value: &Value) -> Result<(), String> {
    each(value, |one| {
        message(one)?;
        match one.get("finish_reason") {
            None => Ok(()),
            Some(Value::String(reason)) if FINISH_REASONS.contains(&reason.as_str()) => Ok(()),
            Some(other) => Err(format!("{other} is no reason for the end of a reply")),
        }
    })
}

/// The instructions beside the chat history.
pub fn instructions(value: &Value) -> Result<(), String> {
    each(value, part)
}

/// The tools that were offered.
pub fn definitions(value: &Value) -> Result<(), String> {
    each(value, |tool| {
        text(tool, "name")?;
        let kind = text(tool, "type")?;
        if kind == "function" { Ok(()) } else { Err(format!("`{kind}` is no type of a tool of Longhaul's")) }
    })
}

fn each(value: &Value, check: impl Fn(&Value) -> Result<(), String>) -> Result<(), String> {
    value.as_array().ok_or_else(|| format!("{value} is no list"))?.iter().try_for_each(check)
}

fn message(value: &Value) -> Result<(), String> {
    let role = text(value, "role")?;
    if !ROLES.contains(&role) {
        return Err(format!("`{role}` is no role"));
    }
    each(value.get("parts").ok_or_else(|| format!("{value} has no `parts`"))?, part)
}

fn part(value: &Value) -> Result<(), String> {
    let kind = text(value, "type")?;
    let Some((_, required)) = PARTS.iter().find(|(known, _)| *known == kind) else {
        return Err(format!("`{kind}` is no type of a part"));
    };
    for field in *required {
        match field.strip_suffix('*') {
            Some(field) if value.get(field).is_none() => return Err(format!("{value} has no `{field}`")),
            Some(_) => {}
            None => {
                text(value, field)?;
            }
        }
    }
    match value.get("id") {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(other) => Err(format!("{other} is no id of a call")),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, String> {
    value.get(field).and_then(Value::as_str).ok_or_else(|| format!("{value} has no text `{field}`"))
}

#[test]
fn messages_that_leave_the_schemas_are_found() {
    use serde_json::json;
    let good = json!([{ "role": "user", "parts": [{ "type": "text", "content": "a" }] }]);
    assert_eq!((input(&good), output(&good)), (Ok(()), Ok(())));
    for (wrong, expected) in [
        (json!({}), "is no list"),
        (json!([{ "parts": [] }]), "has no text `role`"),
        (json!([{ "role": "user" }]), "has no `parts`"),
        (json!([{ "role": "poet", "parts": [] }]), "is no role"),
        (json!([{ "role": "user", "parts": [{ "type": "text" }] }]), "has no text `content`"),
        (json!([{ "role": "tool", "parts": [{ "type": "tool_call_response" }] }]), "has no `response`"),
        (json!([{ "role": "user", "parts": [{ "type": "song", "content": "a" }] }]), "is no type of a part"),
        (json!([{ "role": "user", "parts": [], "finish_reason": "bored" }]), "is no reason"),
    ] {
        let error = output(&wrong).expect_err(expected);
        assert!(error.contains(expected), "{error}");
    }
    assert!(instructions(&json!([{ "type": "text", "content": 1 }])).is_err());
    assert!(definitions(&json!([{ "type": "function" }])).is_err());
    assert_eq!(definitions(&json!([{ "type": "function", "name": "f" }])), Ok(()));
}
