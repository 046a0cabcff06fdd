//! Comments, strings, templates and regular expressions of a file of node, blanked so that its brackets can be counted.
//!
//! It knows no calls and no statements. A literal without an end reaches to the end of its line or of the file.

use crate::clike::{find, is_word};

/// Nesting of templates that are searched.
const TEMPLATES_MAX: usize = 8;

/// The text with its comments and the insides of its literals as blanks, byte for byte. Each literal is in double
/// quotes.
pub(super) fn covered(bytes: &[u8]) -> Vec<u8> {
    let mut covered = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let Some((end, is_literal)) = piece(bytes, &covered[..at], at) else {
            at += 1;
            continue;
        };
        covered[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        if is_literal {
            (covered[at], covered[end - 1]) = (b'"', b'"');
        }
        at = end;
    }
    covered
}

/// The end of the comment or the literal that begins at `at`, and whether it is a literal.
fn piece(bytes: &[u8], before: &[u8], at: usize) -> Option<(usize, bool)> {
    let line = || bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end);
    match &bytes[at..] {
        [b'/', b'/', ..] => Some((line(), false)),
        [b'#', b'!', ..] if at == 0 => Some((line(), false)),
        [b'/', b'*', ..] => Some((find(bytes, b"*/", at + 2).map_or(bytes.len(), |end| end + 2), false)),
        [quote @ (b'\'' | b'"'), ..] => Some((quoted_end(bytes, at, *quote), true)),
        [b'`', ..] => Some((template_end(bytes, at, 0), true)),
        [b'/', ..] if is_expression(before) => expression_end(bytes, at).map(|end| (end, true)),
        _ => None,
    }
}

/// A line end ends an unterminated string.
fn quoted_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != quote {
        match bytes[at] {
            b'\n' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    (at + 1).min(bytes.len())
}

fn template_end(bytes: &[u8], start: usize, depth: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'`' {
        at = match &bytes[at..] {
            [b'\\', ..] => at + 2,
            [b'$', b'{', ..] if depth < TEMPLATES_MAX => part_end(bytes, at + 1, depth + 1),
            _ => at + 1,
        };
    }
    (at + 1).min(bytes.len())
}

/// The end of `{...}` in a template.
fn part_end(bytes: &[u8], start: usize, depth: usize) -> usize {
    let (mut at, mut open) = (start, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'{' => open += 1,
            b'}' if open <= 1 => return at + 1,
            b'}' => open -= 1,
            _ => {}
        }
        at = match bytes[at] {
            quote @ (b'\'' | b'"') => quoted_end(bytes, at, quote),
            b'`' => template_end(bytes, at, depth),
            _ => at + 1,
        };
    }
    bytes.len()
}

/// True when a `/` after this begins an expression and is no division.
fn is_expression(before: &[u8]) -> bool {
    let end = before.len() - before.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
    let before = &before[..end];
    let word = before.iter().rev().take_while(|byte| is_word(**byte)).count();
    match before.last() {
        None => true,
        Some(_) if before.ends_with(b"++") || before.ends_with(b"--") => false,
        Some(_) if word > 0 => {
            let words: [&[u8]; 7] = [b"return", b"typeof", b"case", b"of", b"await", b"else", b"void"];
            words.contains(&&before[end - word..])
        }
        Some(last) => b"(,=:[!&|?{};+-*%<>~^".contains(last),
    }
}

/// None if it does not end on its line.
fn expression_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut in_class) = (start + 1, false);
    while in_class || bytes.get(at)? != &b'/' {
        match bytes.get(at)? {
            b'\n' => return None,
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            _ => {}
        }
        at += 1;
    }
    Some(at + 1)
}
