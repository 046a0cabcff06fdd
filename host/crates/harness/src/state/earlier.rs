//! Converts states of earlier versions. Refuses to guess: an unknown part is left unchanged, and the reader reports it.

use serde_json::{Value, json};

/// Converts a state of version 1 to `version`, the present one. Version 1 had one session at a time, with one piece of
/// work, and the wait was the run's.
pub(super) fn from_first(mut value: Value, version: u32) -> Value {
    let Some(fields) = value.as_object_mut() else { return value };
    let session = fields.remove("session").unwrap_or(Value::Null);
    let work = fields.remove("outstanding").unwrap_or(Value::Null);
    let phase = fields.get("phase").cloned().unwrap_or(Value::Null);
    let waits = phase["phase"] == "waiting";
    if waits {
        fields.insert("phase".into(), json!({"phase": "running"}));
    }
    let wait = if waits { json!({"wait": phase["wait"], "park": phase["park"]}) } else { Value::Null };
    let lanes = if work.is_null() { json!([]) } else { json!([{"session": session, "work": work, "wait": wait}]) };
    fields.insert("lanes".into(), lanes);
    fields.insert("version".into(), json!(version));
    value
}
