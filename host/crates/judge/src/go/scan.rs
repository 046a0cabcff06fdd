//! The parts of Go source that finding tests and making twins share: a test function, blanked text, arguments.
//!
//! Brackets are counted in the blanked text, where comments, strings and characters are blank. Nothing is parsed.

use crate::clike::{Edit, closing, covered_by, find, split, string_end, trimmed};
use std::ops::Range;

/// The kind of a test function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Test,
    /// A fuzz test: its seeds run as a test.
    Fuzz,
    /// An example: its output is compared with a comment at its end.
    Example,
}

/// A test function of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// From `func` to the end of its body.
    pub(super) whole: Range<usize>,
    pub(super) named: Range<usize>,
    /// Between the brackets of its parameter.
    pub(super) params: Range<usize>,
    /// The name of its `*testing.T`.
    pub(super) param: String,
    /// Between the brackets of its body.
    pub(super) body: Range<usize>,
}

impl Test {
    /// The function with replaced parts, under another name, and with a name for its parameter.
    pub(super) fn renamed(&self, text: &str, edits: &[Edit], name: &str) -> String {
        let mut edits: Vec<Edit> = edits.to_vec();
        edits.push((self.named.clone(), name.to_owned()));
        if self.kind != Kind::Example {
            let kind = text[self.params.clone()].split_whitespace().last().unwrap_or_default();
            edits.push((self.params.clone(), format!("{} {kind}", self.param)));
        }
        edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        let mut whole = text[self.whole.clone()].to_owned();
        for (span, with) in edits {
            whole.replace_range(span.start - self.whole.start..span.end - self.whole.start, &with);
        }
        whole
    }
}

/// The text with comments, strings and characters blanked out, byte for byte.
pub(super) fn covered(text: &str) -> Vec<u8> {
    covered_by(text, covered_until)
}

pub(super) fn covered_until(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    match rest[0] {
        b'/' if rest.starts_with(b"//") => at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
        b'/' if rest.starts_with(b"/*") => find(bytes, b"*/", at + 2).map_or(bytes.len(), |end| end + 2),
        b'`' => find(bytes, b"`", at + 1).map_or(bytes.len(), |end| end + 1),
        quote @ (b'"' | b'\'') => string_end(bytes, at, quote),
        _ => at,
    }
}

/// Arguments of a call whose bracket opens at `open`, without blanks, and their end.
pub(super) fn arguments(text: &str, covered: &[u8], open: usize) -> Option<(Vec<Range<usize>>, usize)> {
    let end = closing(covered, open)?;
    let spans = split(covered, open + 1..end).into_iter().map(|span| trimmed(text, &span));
    Some((spans.filter(|span| !span.is_empty()).collect(), end))
}
