//! Text without hidden characters: an approver reads exactly the text that would be used.
//!
//! Stricter than [`longhaul_core::text`], which cleans every printed text: letters that look like others are escaped
//! too.

use std::fmt::Write as _;

/// `text` on one line, with every character that could move the cursor, reorder or hide letters, or pass for another
/// one, written as its escape.
///
/// These characters stay unchanged: printable ASCII, Latin letters with marks, Hangul, and the common Chinese and
/// Japanese characters except for single strokes. Letters of scripts that share their shapes with Latin, such as
/// Cyrillic and Greek, are escaped even in a word of their own: a reader cannot tell them apart.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            '\\' => shown.push_str("\\\\"),
            char if is_plain(char) => shown.push(char),
            char => drop(write!(shown, "\\u{{{:04X}}}", u32::from(char))),
        }
    }
    shown
}

/// True when a reader cannot mistake the character.
pub(crate) fn is_plain(char: char) -> bool {
    let latin = matches!(char, '\u{c0}'..='\u{17f}') && !matches!(char, '×' | '÷' | 'ı' | 'ĸ' | 'ŉ' | 'ſ' | 'ŀ' | 'Ŀ');
    let kana = matches!(char, '\u{3041}'..='\u{3096}');
    let chinese = matches!(char, '\u{4e00}'..='\u{9fff}')
        && !matches!(char, '一' | '丨' | '丶' | '丿' | '亅' | '口' | '卜' | '工');
    let hangul = matches!(char, '\u{ac00}'..='\u{d7a3}');
    matches!(char, ' '..='~') || latin || kana || chinese || hangul
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_deceive_is_escaped_and_what_people_write_is_not() {
        for (text, expected) in [
            ("git status", "git status"),
            ("Zoë 日本", "Zoë 日本"),
            ("a\nb\tc\x1b[2K", "a\\nb\\tc\\u{001B}[2K"),
            ("exe\u{202e}gpj", "exe\\u{202E}gpj"),
            // A Cyrillic a and a fullwidth semicolon.
            ("p\u{430}th；", "p\\u{0430}th\\u{FF1B}"),
            ("a\u{a0}b\u{200b}", "a\\u{00A0}b\\u{200B}"),
            ("\\n", "\\\\n"),
            ("\u{e0061}", "\\u{E0061}"),
        ] {
            assert_eq!(visible(text), expected);
        }
    }
}
