//! Makes foreign text fit to be stored and shown.
//!
//! One rule for everything that reaches a terminal: a character that controls a terminal, that is invisible, or that
//! reorders its neighbours is written as its escape of JSON. So a cleaned JSON text is the same JSON value, and
//! programs lose nothing. Nothing here prints, and nothing here is a colour.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The prefix of each further line of a foreign text, so that none of them passes for a line of the host.
pub const CONTINUATION: &str = "  | ";

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

/// `text` on one line of a terminal, cut as by [`truncate`]: line breaks and tabs become spaces, and every other hidden
/// character its escape.
#[must_use]
pub fn printable(text: &str, bytes_max: usize) -> String {
    let cut = truncate(text, bytes_max).replace("\r\n", " ").replace(['\n', '\r', '\t'], " ");
    cleaned(&cut).into_owned()
}

/// `text` with its line breaks and tabs, and every other hidden character as its escape.
///
/// The joiners that letters of some scripts and emoji are composed with stay: they move nothing.
#[must_use]
pub fn cleaned(text: &str) -> Cow<'_, str> {
    let stays = |char: char| matches!(char, '\n' | '\t' | '\u{200c}' | '\u{200d}' | '\u{fe0f}') || !is_hidden(char);
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for char in text.replace("\r\n", "\n").chars() {
        match stays(char) {
            true => shown.push(char),
            false => escape(&mut shown, char),
        }
    }
    Cow::Owned(shown)
}

/// `text` cleaned, as one message of the host with `breaks` line breaks of its own. If it has more, some came with
/// foreign text: then each further line begins with [`CONTINUATION`].
#[must_use]
pub fn message(text: &str, breaks: usize) -> String {
    let shown = cleaned(text.trim_end_matches('\n'));
    if shown.matches('\n').count() <= breaks {
        return shown.into_owned();
    }
    shown.replace('\n', &format!("\n{CONTINUATION}"))
}

/// True when a character controls a terminal, is invisible, or changes how its neighbours are shown.
#[must_use]
pub fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

fn escape(shown: &mut String, char: char) {
    for unit in char.encode_utf16(&mut [0; 2]) {
        // Writing to a string does not fail.
        let _ = write!(shown, "\\u{unit:04x}");
    }
}

/// A word as a shell reads it: in quotes, unless it has letters, digits and plain signs alone.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_./=:,@%+".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A number with its noun: `1 commit`, `2 commits`, `2 matches`, `2 entries`.
#[must_use]
pub fn count(number: usize, of: &str) -> String {
    if number == 1 {
        return format!("1 {of}");
    }
    if let Some(stem) = of.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u'])) {
        return format!("{number} {stem}ies");
    }
    let ending = if of.ends_with(['s', 'x']) || of.ends_with("ch") || of.ends_with("sh") { "es" } else { "s" };
    format!("{number} {of}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural_and_everything_else_is() {
        let counted: Vec<String> =
            [(0, "feature"), (1, "feature"), (2, "match"), (1, "process"), (3, "process"), (2, "query"), (2, "day")]
                .map(|(number, of)| count(number, of))
                .to_vec();
        assert_eq!(
            counted,
            ["0 features", "1 feature", "2 matches", "1 process", "3 processes", "2 queries", "2 days"]
        );
    }

    #[test]
    fn a_word_for_a_shell_is_quoted_where_the_shell_would_split_or_change_it() {
        assert_eq!(shell_word("/home/me/shop-1"), "/home/me/shop-1");
        assert_eq!(shell_word("/my work/shop"), "'/my work/shop'");
        assert_eq!(shell_word("it's"), "'it'\\''s'");
        assert_eq!(shell_word("$HOME"), "'$HOME'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(truncate("日本語", 4), "日…[truncated 6 bytes]");
        assert_eq!(truncate("日本語", 9), "日本語");
        assert_eq!(truncate("", 0), "");
    }

    #[test]
    fn what_is_shown_stays_on_its_line_and_in_its_order() {
        assert_eq!(printable("a\x1b[2K\rb\nZoë\t日", 100), "a\\u001b[2K b Zoë 日");
        assert_eq!(printable("exe\u{202e}gpj\u{9b}1A\0", 100), "exe\\u202egpj\\u009b1A\\u0000");
        assert_eq!(printable("\u{e0061}", 100), "\\udb40\\udc61");
    }

    #[test]
    fn a_text_keeps_its_lines_and_its_emoji() {
        assert_eq!(cleaned("a\r\n\tb\r⚠\u{fe0f} 👩\u{200d}💻"), "a\n\tb\\u000d⚠\u{fe0f} 👩\u{200d}💻");
        assert!(matches!(cleaned("a\nb"), Cow::Borrowed(_)), "nothing to clean costs no copy");
    }

    #[test]
    fn a_cleaned_json_text_is_the_same_value() {
        let value = serde_json::json!({ "a\u{7f}": "\u{1b}[2J\u{9b}\u{202e}\u{e0061}\\\"\n😀" });
        let shown = cleaned(&value.to_string()).into_owned();
        assert!(!shown.chars().any(is_hidden), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn a_line_of_others_does_not_pass_for_one_of_the_host() {
        assert_eq!(message("a: b\n", 0), "a: b");
        assert_eq!(message("a: b\nc", 1), "a: b\nc", "the host's own");
        assert_eq!(message("a: b\n  PASS x\ny", 0), "a: b\n  |   PASS x\n  | y");
        assert_eq!(message("a\nb: c\nd", 1), "a\n  | b: c\n  | d");
    }
}
