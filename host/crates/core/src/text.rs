//! Cutting text that others wrote to a size that we can bear.

/// Cuts `text` to at most `bytes_max` bytes, on a character boundary, and says how much is missing.
///
/// The suffix `…[truncated N bytes]` comes on top of `bytes_max`. A text that fits is returned as it is.
#[must_use]
pub fn truncate(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max);
    format!("{}…[truncated {} bytes]", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(truncate("日本語", 4), "日…[truncated 6 bytes]");
        assert_eq!(truncate("日本語", 9), "日本語");
        assert_eq!(truncate("", 0), "");
    }
}
