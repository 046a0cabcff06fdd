//! The score of an entry for a query: the share of the query's words that are in it, in any case.

use longhaul_sdk::memory::Entry;
use serde_json::Value;

/// The words of a query, in lower case.
pub(crate) fn of(query: &str) -> Vec<String> {
    query.to_lowercase().split_whitespace().map(str::to_owned).collect()
}

/// Between 0 and 1. A word counts when it is anywhere in the key, a tag or the value.
pub(crate) fn share_in(words: &[String], entry: &Entry) -> f64 {
    let text = text(entry);
    let found = words.iter().filter(|word| text.contains(word.as_str())).count();
    #[allow(clippy::cast_precision_loss, reason = "a query has fewer than 2^53 words")]
    let share = found as f64 / words.len().max(1) as f64;
    share
}

fn text(entry: &Entry) -> String {
    // Written anew, so that a text is found however its JSON was escaped.
    let value = serde_json::from_str::<Value>(&entry.value);
    let value = value.map_or_else(|_| entry.value.clone(), |value| value.to_string());
    let parts = [std::slice::from_ref(&entry.key), &entry.tags, &[value]].concat();
    parts.join("\n").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, share: f64) {
        let entry = Entry {
            key: "Recipe/soup".to_owned(),
            value: r#"{"note": "gr\u00fcne Bohnen"}"#.to_owned(),
            tags: vec!["Food".to_owned()],
            expires_at_ms: None,
        };
        let found = share_in(&of(query), &entry);
        assert!((found - share).abs() < 1e-9, "{found}");
    }

    #[test]
    fn words_are_found_in_key_tags_and_value_in_any_case() {
        check("SOUP", 1.0);
        check("food", 1.0);
        check("Grüne", 1.0);
        check("soup car", 0.5);
        check("car", 0.0);
    }
}
