//! Source of languages with brackets, read without a parser: blanked text, brackets, arguments, and test functions of
//! Rust.
//!
//! Comments, strings and characters are blanked first, so that brackets can be counted; edits apply to the text itself.

use std::ops::Range;

/// A test function of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) name: String,
    /// From its first attribute to the end of its body.
    pub(super) whole: Range<usize>,
    /// Its name.
    pub(super) named: Range<usize>,
    /// Between the brackets of its body.
    pub(super) body: Range<usize>,
    /// True when it must panic, so that a failing assertion would make it pass.
    pub(super) should_panic: bool,
    /// True when it may be missing, or not run: by its own attributes or by those around it.
    pub(crate) is_conditional: bool,
    /// The modules of the file around it.
    pub(crate) modules: Vec<String>,
}

/// The replacement of a span.
pub(crate) type Edit = (Range<usize>, String);

impl Test {
    pub(super) fn renamed(&self, text: &str, edit: Option<&Edit>, name: &str) -> String {
        let mut whole = text[self.whole.clone()].to_owned();
        if let Some((span, with)) = edit {
            whole.replace_range(span.start - self.whole.start..span.end - self.whole.start, with);
        }
        whole.replace_range(self.named.start - self.whole.start..self.named.end - self.whole.start, name);
        whole
    }
}

/// The text with comments, strings and characters blanked out, byte for byte.
pub(super) fn covered(text: &str) -> Vec<u8> {
    covered_by(text, covered_until)
}

/// Blanks a text; `until` finds the end of a part that begins at a place, and returns the place itself if none does.
pub(crate) fn covered_by(text: &str, until: impl Fn(&[u8], usize) -> usize) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut covered = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = until(bytes, at);
        if end > at {
            covered[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
            // A literal stays one: its quotes contain nothing that is counted.
            at = end;
        } else {
            at += 1;
        }
    }
    covered
}

/// The end of the comment, string or character that begins at `at`; `at` itself if none does.
fn covered_until(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let is_after_word = at > 0 && is_word(bytes[at - 1]);
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return find(bytes, b"*/", at + 2).map_or(bytes.len(), |end| end + 2);
    }
    if rest[0] == b'r' && !is_after_word {
        let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
        if rest.get(1 + hashes) == Some(&b'"') {
            let end = [b"\"".to_vec(), vec![b'#'; hashes]].concat();
            return find(bytes, &end, at + hashes + 2).map_or(bytes.len(), |found| found + end.len());
        }
    }
    if rest[0] == b'"' {
        return string_end(bytes, at, b'"');
    }
    // A lifetime has no closing quote.
    if rest[0] == b'\'' && (rest.get(1) == Some(&b'\\') || rest.iter().skip(2).take(4).any(|byte| *byte == b'\'')) {
        return string_end(bytes, at, b'\'');
    }
    at
}

pub(crate) fn string_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// The bracket that closes the one at `open`.
pub(crate) fn closing(covered: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in covered.iter().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Arguments, by the commas between them.
pub(crate) fn split(covered: &[u8], arguments: Range<usize>) -> Vec<Range<usize>> {
    let (mut spans, mut depth, mut start) = (Vec::new(), 0_usize, arguments.start);
    for at in arguments.clone() {
        match covered[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                spans.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    spans.push(start..arguments.end);
    spans
}

pub(crate) fn trimmed(text: &str, span: &Range<usize>) -> Range<usize> {
    let part = &text[span.clone()];
    let start = span.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

pub(crate) fn find(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(wanted.len()).position(|window| window == wanted).map(|at| from + at)
}

pub(crate) fn blank(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
