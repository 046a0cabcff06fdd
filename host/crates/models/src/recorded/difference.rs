//! The difference between two requests, as text for a person.

use longhaul_core::model::ModelRequest;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Characters of each side that are shown before and after the place where they differ.
const BEFORE_CHARS: usize = 12;
const AFTER_CHARS: usize = 28;

/// Further fields that are named.
const FIELDS_NAMED_MAX: usize = 4;

/// The fields in which two requests differ; shown with the first of them.
pub(super) struct Difference {
    /// The fields, in the order of the request.
    fields: Vec<Field>,
}

struct Field {
    path: String,
    recorded: Option<String>,
    asked: Option<String>,
}

impl Difference {
    pub(super) fn between(recorded: &ModelRequest, asked: &ModelRequest) -> Self {
        let (recorded, asked) = (leaves(recorded), leaves(asked));
        let mut in_asked: BTreeMap<&str, &str> =
            asked.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let mut fields = Vec::new();
        for (path, text) in &recorded {
            let other = in_asked.remove(path.as_str());
            if other != Some(text.as_str()) {
                fields.push(Field {
                    path: path.clone(),
                    recorded: Some(text.clone()),
                    asked: other.map(str::to_owned),
                });
            }
        }
        for (path, text) in asked.iter().filter(|(path, _)| in_asked.contains_key(path.as_str())) {
            fields.push(Field { path: path.clone(), recorded: None, asked: Some(text.clone()) });
        }
        Self { fields }
    }

    /// Less is nearer: fewer fields first, then the longer common beginning of the first of them.
    pub(super) fn distance(&self) -> (usize, std::cmp::Reverse<usize>) {
        (self.fields.len(), std::cmp::Reverse(self.fields.first().map_or(0, Field::common_chars)))
    }
}

impl Field {
    fn common_chars(&self) -> usize {
        match (&self.recorded, &self.asked) {
            (Some(recorded), Some(asked)) => common_chars(recorded, asked),
            (Some(_), None) | (None, _) => 0,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, more)) = self.fields.split_first() else {
            return write!(f, "nothing differs");
        };
        match (&first.recorded, &first.asked) {
            (Some(recorded), Some(asked)) => {
                let at = common_chars(recorded, asked);
                let (recorded, asked) = (excerpt(recorded, at), excerpt(asked, at));
                write!(f, "`{}` differs at character {}: recorded {recorded}, asked {asked}", first.path, at + 1)?;
            }
            (Some(recorded), None) => write!(f, "`{}` is missing: recorded {}", first.path, excerpt(recorded, 0))?,
            (None, asked) => {
                write!(f, "`{}` was not there: asked {}", first.path, excerpt(asked.as_deref().unwrap_or_default(), 0))?
            }
        }
        if !more.is_empty() {
            let named: Vec<_> = more.iter().take(FIELDS_NAMED_MAX).map(|field| format!("`{}`", field.path)).collect();
            let rest = if more.len() > FIELDS_NAMED_MAX { ", …" } else { "" };
            write!(f, "; {} more differ: {}{rest}", more.len(), named.join(", "))?;
        }
        Ok(())
    }
}

/// Each leaf field of a request, with its path and its text.
fn leaves(request: &ModelRequest) -> Vec<(String, String)> {
    // Through the text form, in which 0.7 is not 0.699999988079071.
    let text = serde_json::to_string(request).unwrap_or_default();
    let mut value: Value = serde_json::from_str(&text).unwrap_or_default();
    // The name is no part of the digest.
    value.as_object_mut().map(|fields| fields.shift_remove("model"));
    let mut leaves = Vec::new();
    collect(&value, String::new(), &mut leaves);
    leaves
}

fn collect(value: &Value, path: String, leaves: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, inner) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(inner, path, leaves);
            }
        }
        // The bytes of a picture are one field.
        Value::Array(items) if !items.is_empty() && !items.iter().all(Value::is_number) => {
            for (index, inner) in items.iter().enumerate() {
                collect(inner, format!("{path}[{index}]"), leaves);
            }
        }
        Value::String(text) => leaves.push((path, text.clone())),
        other => leaves.push((path, other.to_string())),
    }
}

fn common_chars(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
}

/// `text` around character `at`, as a quoted line.
fn excerpt(text: &str, at: usize) -> String {
    let from = at.saturating_sub(BEFORE_CHARS);
    let shown: String = text.chars().skip(from).take(at - from + AFTER_CHARS).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if text.chars().nth(at + AFTER_CHARS).is_some() { "…" } else { "" };
    format!("{before}{shown:?}{after}")
}
