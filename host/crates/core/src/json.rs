//! The number of values in JSON of others, counted before it is parsed.
//!
//! A bound of bytes is no bound of the memory that parsed values take: `[0],` has four bytes, and takes some 360 as a
//! list in a list. A bound of their number is one. Nothing here parses, and text that is no JSON has a number, too.

/// True when a JSON text has more values and keys than `values_max`. A text that is shorter than that has not.
///
/// An empty array or object counts as two.
#[must_use]
pub fn has_more_values(json: &[u8], values_max: usize) -> bool {
    json.len() >= values_max && values_in(json) > values_max
}

/// The number of values and keys in a JSON text, at least: one more than the marks outside of strings that a value, a
/// key or an array begins behind.
#[must_use]
pub fn values_in(json: &[u8]) -> usize {
    let (mut count, mut is_string, mut is_escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b',' | b':' | b'[' | b'{' if !is_string => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_keys_are_counted_and_marks_in_strings_are_not() {
        for (json, expected) in [
            ("1", 1),
            ("[1, 2, 3]", 4),
            ("[[0], [0]]", 5),
            (r#"{"a": 1, "b": {"c": null}}"#, 7),
            (r#""[,:{""#, 1),
            (r#"["a\",\\", "b"]"#, 3),
            ("[]", 2),
            ("", 1),
        ] {
            assert_eq!(values_in(json.as_bytes()), expected, "{json}");
        }
    }

    #[test]
    fn a_text_has_more_values_than_a_bound_only_above_it() {
        assert!(!has_more_values(b"[1,2,3]", 4));
        assert!(has_more_values(b"[1,2,3]", 3));
        assert!(has_more_values(b"[1,", 2), "a text that ends too early is counted, too");
        assert!(!has_more_values(b"\"[[[[[[[[\"", 2));
    }
}
