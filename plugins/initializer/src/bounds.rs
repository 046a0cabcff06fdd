//! The bounds of a model's reply, in the schema of the reply.
//!
//! A model that is held to a schema without bounds may go on with one text until its tokens are used up, and small ones
//! do. A provider that takes no bounds is told them in words; what is over them is no error here.

use serde_json::{Value, json};

/// Characters of an instruction.
pub(crate) const INSTRUCTION_CHARS_MAX: u32 = 2_000;

/// Characters of a check.
pub(crate) const CHECK_CHARS_MAX: u32 = 6_000;

/// Characters of an answer.
pub(crate) const ANSWER_CHARS_MAX: u32 = 4_000;

/// Ids that one may depend on.
const IDS_MAX: u32 = 20;

/// A text of at most so many characters.
pub(crate) fn text(chars_max: u32, what: &str) -> Value {
    json!({ "type": "string", "maxLength": chars_max, "description": what })
}

/// At most so many texts.
pub(crate) fn texts(items_max: u32, text: Value) -> Value {
    json!({ "type": "array", "maxItems": items_max, "items": text })
}

/// An id of its own.
pub(crate) fn id() -> Value {
    json!({ "type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,31}$", "description": "letters, digits and -, unique" })
}

/// Ids of others.
pub(crate) fn ids(what: &str) -> Value {
    let mut ids = texts(IDS_MAX, id());
    ids["description"] = what.into();
    ids
}

/// Instead of a plan.
pub(crate) fn question() -> Value {
    text(500, "empty, or what a person must answer before this can be planned")
}
