//! Names from a model, as labels: a model may call a missing tool by any text.

/// Bytes of a name.
const NAME_BYTES_MAX: usize = 64;

/// The name, or `other` if no tool has such a name. So no sentence is sent without the content setting.
pub(crate) fn of(name: &str) -> &str {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:".contains(&byte);
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_fine) { name } else { "other" }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_name_that_a_model_made_up_of_words_is_not_sent() {
        for (name, expected) in [
            ("files", "files"),
            ("mcp-docs", "mcp-docs"),
            ("read_again", "read_again"),
            ("", "other"),
            ("the user said that", "other"),
            ("a\"b", "other"),
            ("é", "other"),
        ] {
            assert_eq!(super::of(name), expected);
        }
        assert_eq!((super::of(&"x".repeat(64)).len(), super::of(&"x".repeat(65))), (64, "other"));
    }
}
