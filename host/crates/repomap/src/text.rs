//! Texts of a map: their size in tokens, and words of hostile files reduced to one safe line.
//!
//! Removes control characters, marks that change the direction of a text, and characters without a width.

/// A count of tokens that paths and signatures do not exceed by much: signs and parts of names make about three
/// characters a token, where prose makes four.
#[must_use]
pub fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(3)
}

/// A text on one line: white space becomes a space, and other special characters are left out.
pub(crate) fn plain(text: &str) -> String {
    let spaced: String = text.chars().map(|one| if one.is_whitespace() { ' ' } else { one }).collect();
    let words: Vec<&str> = spaced.split(' ').filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().filter(|one| !one.is_control() && !is_invisible(*one)).collect()
}

/// Marks that change the direction of a text, and characters without a width.
fn is_invisible(one: char) -> bool {
    matches!(one, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
