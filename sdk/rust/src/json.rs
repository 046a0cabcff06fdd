//! Reads JSON of other authors: settings, contexts, arguments and the replies of models.
//!
//! Errors name the expected and the found value. No text makes these functions panic.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Error;

/// Reads `text`, which the error calls `what`. An empty text reads as `{}`, so that missing settings take their
/// defaults.
///
/// # Errors
/// [`Error::Invalid`] with the field, the line and the column.
pub fn read<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, Error> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    // An error quotes what it did not expect, and that may be a megabyte.
    serde_json::from_str(text).map_err(|error| Error::Invalid(cut(&format!("{what}: {error}"), 500)))
}

/// Returns the first complete JSON object in `text` that satisfies `wanted`. Tries the first 1 000 `{`.
///
/// Models wrap their JSON in prose, fences and false starts. An object inside another one is only tried when the outer
/// one cannot be read or is not wanted.
pub fn first_object(text: &str, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
    let starts = text.match_indices('{').map(|(at, _)| at);
    // Every start could read to the end of the text; a reply of nothing but `{` must not cost its
    // square, so the attempts are capped.
    starts.take(STARTS_MAX).find_map(|at| object_at(&text[at..]).filter(&wanted))
}

/// Number of `{` that [`first_object`] tries.
const STARTS_MAX: usize = 1_000;

fn object_at(text: &str) -> Option<Value> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values.next()?.ok().filter(Value::is_object)
}

/// Returns the first `chars_max` characters of `text`, with a note on the missing rest.
#[must_use]
pub fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((at, _)) => {
            let missing = text[at..].chars().count();
            format!("{}… ({missing} more characters)", &text[..at])
        }
    }
}

/// Returns the last `chars_max` characters of `text`, where a failure mostly says its cause.
#[must_use]
pub fn tail(text: &str, chars_max: usize) -> &str {
    let skipped = text.chars().count().saturating_sub(chars_max);
    text.char_indices().nth(skipped).map_or("", |(at, _)| &text[at..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_object_that_is_wanted_wins() {
        let wanted = |value: &Value| value.get("action").is_some();
        let text = r#"so {"a": 1} and {"thought": "x {\"action\": 0}"} then {"action": "y"} {"action": "z"}"#;
        assert_eq!(first_object(text, wanted), Some(json!({"action": "y"})));
        assert_eq!(first_object("{".repeat(100_000).as_str(), wanted), None);
    }

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöü", 2), "äö… (1 more characters)");
        assert_eq!(tail("äöü", 2), "öü");
        assert_eq!(tail("äöü", 9), "äöü");
        assert_eq!(tail("äöü", 0), "");
    }

    #[test]
    fn settings_that_nobody_wrote_take_their_defaults() {
        assert_eq!(read::<Value>("settings", "").ok(), Some(json!({})));
        let error = read::<Value>("settings", "{oops").map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.starts_with("settings: ")));
    }
}
