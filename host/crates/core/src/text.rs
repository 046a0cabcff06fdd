//! Making text that others wrote fit to be kept and shown.

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

/// `text` on one line of a terminal, cut as by [`truncate`]: what moves the cursor, hides or reorders letters
/// becomes `�`.
#[must_use]
pub fn printable(text: &str, bytes_max: usize) -> String {
    let shown = |char: char| match char {
        // The marks that turn the direction of writing, which can make one name look like another.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => '�',
        char if char.is_control() => '�',
        char => char,
    };
    truncate(text, bytes_max).chars().map(shown).collect()
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

    #[test]
    fn what_is_shown_stays_on_its_line_and_in_its_order() {
        assert_eq!(printable("a\x1b[2K\rb\nZoë 日", 100), "a�[2K�b�Zoë 日");
        assert_eq!(printable("exe\u{202e}gpj", 100), "exe�gpj");
    }
}
