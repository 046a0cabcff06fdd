//! The width of the terminal, and text that is wrapped at it.

use rustix::termios::tcgetwinsize;

/// Width of what is no terminal, and of a terminal that does not tell it, in columns.
pub(super) const COLUMNS: usize = 80;

/// Wider lines are hard to read, and narrower ones hold no word.
const COLUMNS_MAX: usize = 100;
const COLUMNS_MIN: usize = 20;

/// The width of standard output.
pub(crate) fn columns() -> usize {
    match tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col)) {
        0 => COLUMNS,
        columns => columns.clamp(COLUMNS_MIN, COLUMNS_MAX),
    }
}

/// The words of a text in lines of at most `columns`. The first line begins with `first`, the others with `rest`. A
/// longer word has a line of its own, and is not cut.
pub(crate) fn wrapped(text: &str, first: &str, rest: &str, columns: usize) -> String {
    let (mut lines, mut line, mut is_empty) = (String::new(), first.to_owned(), true);
    for word in text.split_whitespace() {
        if !is_empty && width(&line) + 1 + width(word) > columns {
            lines.push_str(line.trim_end());
            lines.push('\n');
            rest.clone_into(&mut line);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push_str(line.trim_end());
    lines.push('\n');
    lines
}

/// Columns of a text, without escape sequences.
pub(super) fn width(text: &str) -> usize {
    let mut chars = text.chars();
    let mut count = 0;
    while let Some(char) = chars.next() {
        if char == '\u{1b}' {
            // It ends with a letter.
            let _ = chars.find(char::is_ascii_alphabetic);
        } else {
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_wrapped_and_later_lines_are_indented() {
        assert_eq!(wrapped("one two three", "- ", "  ", 9), "- one two\n  three\n");
        assert_eq!(wrapped("one two", "", "", 7), "one two\n");
        assert_eq!(wrapped("one two", "", "", 6), "one\ntwo\n");
        assert_eq!(wrapped("a-word-that-is-long b", "", "", 5), "a-word-that-is-long\nb\n");
        assert_eq!(wrapped("\u{1b}[1mone\u{1b}[0m two", "", "", 7), "\u{1b}[1mone\u{1b}[0m two\n");
        assert_eq!(wrapped("", "", "", 5), "\n");
    }
}
