//! Conversion of byte offsets in a source to lines and columns, for many offsets in one pass.

use super::Span;

/// Sets lines and columns of spans from their bytes. One pass over the source, for any number of spans.
pub(super) fn locate<'s>(source: &str, spans: impl Iterator<Item = &'s mut Span>) {
    let mut begin = Beginning { bytes: source.as_bytes(), known: 0, ended: false };
    let mut spans: Vec<&mut Span> = spans
        .filter_map(|span| {
            if !begin.reaches(span.start as usize) {
                return Some(span);
            }
            (span.line, span.column) = (1, span.start + 1);
            None
        })
        .collect();
    spans.sort_unstable_by_key(|span| span.start);
    let mut place = Place::default();
    for span in spans {
        place.advance(source, span.start as usize);
        (span.line, span.column) = (place.line + 1, place.column + 1);
    }
}

/// The single-byte characters at the start of the first line. Most steps have no others.
struct Beginning<'s> {
    bytes: &'s [u8],
    /// A lower bound of its length.
    known: usize,
    ended: bool,
}

impl Beginning<'_> {
    fn reaches(&mut self, to: usize) -> bool {
        if to > self.known && !self.ended {
            let rest = self.bytes.get(self.known..to).unwrap_or_default();
            let end = rest.iter().position(|byte| !byte.is_ascii() || matches!(byte, b'\n' | b'\r'));
            self.known += end.unwrap_or(rest.len());
            self.ended = end.is_some();
        }
        to <= self.known
    }
}

/// Line and column of one byte offset, both from 1.
pub(super) fn line_column(source: &str, offset: usize) -> (u32, u32) {
    let mut place = Place::default();
    place.advance(source, offset.min(source.len()));
    (place.line + 1, place.column + 1)
}

/// A position that only moves forward.
#[derive(Default)]
struct Place {
    offset: usize,
    line: u32,
    column: u32,
}

impl Place {
    /// Lines end at `\n`, `\r\n` or `\r`, as Python's do. A byte order mark has no column.
    fn advance(&mut self, source: &str, to: usize) {
        let (bytes, to) = (source.as_bytes(), to.min(source.len()));
        let mark = if self.offset == 0 && source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        for (at, byte) in bytes[..to].iter().enumerate().skip(self.offset + mark) {
            match byte {
                b'\r' if bytes.get(at + 1) == Some(&b'\n') => {}
                b'\n' | b'\r' => (self.line, self.column) = (self.line + 1, 0),
                // A byte inside a character has no column.
                0x80..=0xbf => {}
                _ => self.column += 1,
            }
        }
        self.offset = to;
    }
}

#[cfg(test)]
mod tests {
    use super::{line_column, locate};
    use crate::analysis::Span;

    #[test]
    fn lines_end_as_python_ends_them_and_columns_count_characters() {
        let source = "\u{feff}a\r\nbé c\rd\n\x0ce";
        let at = |text: &str| line_column(source, source.find(text).unwrap());
        assert_eq!(at("a"), (1, 1));
        assert_eq!(at("c"), (2, 4));
        assert_eq!(at("d"), (3, 1));
        assert_eq!(at("e"), (4, 2));
        let mut both = [(12, 13), (3, 4)].map(|(start, end)| Span { start, end, line: 1, column: 1 });
        locate(source, both.iter_mut());
        assert_eq!((both[1].line, both[1].column), (1, 1));
        assert_eq!((both[0].start, both[0].line), (12, 3));
    }
}
