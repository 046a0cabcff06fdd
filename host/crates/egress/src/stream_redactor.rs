//! Redacts secrets in a stream, even when a piece ends in the middle of one.
//!
//! The searched forms are the value itself; base64, with both alphabets and at each of its three possible offsets in a
//! longer text; hexadecimal; percent-encoding; the escapes of HTML; and those of JSON as the usual writers choose them.
//! Bytes that could still become one of these are held back until more arrive.

use crate::secret_value::{SHOWN, Secret};
use aho_corasick::{AhoCorasick, MatchKind};
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use longhaul_core::redact::RedactStream;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Visible ASCII that writers of JSON escape: with a backslash alone, and with `\u` and four digits.
const JSON_WRITERS: [(&str, &str); 7] = [
    // Required by JSON: JavaScript, Python, Rust.
    ("\"\\", ""),
    // PHP.
    ("\"\\/", ""),
    // Go, Rails.
    ("\"\\", "<>&"),
    // Gson of Java.
    ("\"\\", "<>&='"),
    // System.Text.Json of .NET.
    ("\\", "\"<>&'+`"),
    // PHP for a page: with JSON_HEX_TAG and JSON_HEX_AMP, and with all of JSON_HEX.
    ("\"\\/", "<>&"),
    ("\\/", "\"<>&'"),
];

/// Every form of every secret.
pub(crate) struct Patterns {
    forms: Vec<Vec<u8>>,
    names: Vec<String>,
    bytes_max: usize,
    finder: AhoCorasick,
}

impl Patterns {
    /// None if there is no secret.
    pub(crate) fn of<'a>(secrets: impl Iterator<Item = &'a Secret>) -> Option<Self> {
        let values: Vec<&str> = secrets.map(Secret::expose).collect();
        let forms: BTreeSet<String> = values.iter().flat_map(|value| forms(value)).collect();
        let forms: Vec<Vec<u8>> = forms.into_iter().map(String::into_bytes).collect();
        let bytes_max = forms.iter().map(Vec::len).max()?;
        // A few hundred short patterns are far below its capacity.
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&forms).ok()?;
        Some(Self { forms, names: values.iter().map(|value| value.to_ascii_lowercase()).collect(), bytes_max, finder })
    }

    /// True when the name of a header, which is in small letters, contains a value.
    pub(crate) fn is_in_name(&self, name: &str) -> bool {
        self.names.iter().any(|value| name.contains(value))
    }

    /// The beginning of the longest suffix of `text` that could become a form.
    fn open_from(&self, text: &[u8]) -> usize {
        let first = text.len().saturating_sub(self.bytes_max.saturating_sub(1));
        let could = |from: &usize| {
            let end = &text[*from..];
            self.forms.iter().any(|form| form.len() > end.len() && form.starts_with(end))
        };
        (first..text.len()).find(could).unwrap_or(text.len())
    }
}

/// The redactor of a stream.
pub struct StreamRedactor {
    patterns: Arc<Patterns>,
    held: Vec<u8>,
}

impl StreamRedactor {
    pub(crate) fn new(patterns: Arc<Patterns>) -> Self {
        Self { patterns, held: Vec::new() }
    }

    /// The certain part so far; at most the length of the longest form is held back.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        let open = self.patterns.open_from(&self.held);
        self.pass(open)
    }

    /// The remaining bytes: nothing more arrives.
    pub fn finish(&mut self) -> Vec<u8> {
        self.pass(self.held.len())
    }

    /// Releases the bytes before `open`, and forms that begin there.
    fn pass(&mut self, open: usize) -> Vec<u8> {
        let (mut clean, mut done) = (Vec::with_capacity(open), 0);
        let patterns = Arc::clone(&self.patterns);
        for found in patterns.finder.find_iter(&self.held).take_while(|found| found.start() < open) {
            clean.extend_from_slice(&self.held[done..found.start()]);
            clean.extend_from_slice(SHOWN.as_bytes());
            done = found.end();
        }
        let end = open.max(done);
        clean.extend_from_slice(&self.held[done..end]);
        self.held.drain(..end);
        clean
    }
}

impl RedactStream for StreamRedactor {
    fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        Self::push(self, piece)
    }

    fn finish(&mut self) -> Vec<u8> {
        Self::finish(self)
    }
}

fn forms(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned(), value.replace('/', "\\/"), html(value)];
    for upper in [false, true] {
        let hex = |byte: u8| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
        let each = |write: &dyn Fn(u8) -> String| value.bytes().map(write).collect::<String>();
        forms.push(each(&|byte| hex(byte)));
        forms.push(each(&|byte| format!("%{}", hex(byte))));
        forms.push(each(&|byte| format!("\\u00{}", hex(byte))));
        forms.push(each(&|byte| if is_unreserved(byte) { char::from(byte).into() } else { format!("%{}", hex(byte)) }));
        forms.extend(JSON_WRITERS.map(|(short, spelled)| {
            each(&|byte| match char::from(byte) {
                one if short.contains(one) => format!("\\{one}"),
                one if spelled.contains(one) => format!("\\u00{}", hex(byte)),
                one => one.into(),
            })
        }));
    }
    for before in 0..3 {
        forms.push(aligned(&STANDARD_NO_PAD, value, before));
        forms.push(aligned(&URL_SAFE_NO_PAD, value, before));
    }
    forms
}

/// The characters of base64 that `value` alone decides after `before` bytes.
fn aligned(engine: &impl base64::Engine, value: &str, before: usize) -> String {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(value.as_bytes());
    let text = engine.encode(&bytes);
    let first = [0, 2, 3][before];
    let last = if bytes.len().is_multiple_of(3) { text.len() } else { text.len() - 1 };
    text[first..last].to_owned()
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn html(value: &str) -> String {
    let escaped = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;

    const VALUE: &str = "gh_\"s3cr/et&Tok~en";

    fn stream_redactor() -> StreamRedactor {
        StreamRedactor::new(Arc::new(Patterns::of([Secret::new(VALUE).unwrap()].iter()).unwrap()))
    }

    #[test]
    fn every_form_is_taken_out_wherever_a_piece_ends() {
        let patterns = stream_redactor().patterns;
        for form in &patterns.forms {
            let text = [b"before ".as_slice(), form, b" after gh_"].concat();
            for cut in 0..=text.len() {
                let mut stream_redactor = StreamRedactor::new(Arc::clone(&patterns));
                let clean =
                    [stream_redactor.push(&text[..cut]), stream_redactor.push(&text[cut..]), stream_redactor.finish()]
                        .concat();
                let expected = format!("before {SHOWN} after gh_");
                assert_eq!(String::from_utf8_lossy(&clean), expected, "{} cut at {cut}", String::from_utf8_lossy(form));
            }
        }
    }

    #[test]
    fn escapes_of_json_are_found_as_its_usual_writers_choose_them() {
        let value = r#"k"s\<cr/e>t&T=o+n'"#;
        let patterns = Arc::new(Patterns::of([Secret::new(value).unwrap()].iter()).unwrap());
        for (writer, written) in [
            ("serde_json", r#"k\"s\\<cr/e>t&T=o+n'"#),
            ("Go", r#"k\"s\\\u003ccr/e\u003et\u0026T=o+n'"#),
            ("PHP", r#"k\"s\\<cr\/e>t&T=o+n'"#),
            ("PHP, for a page", r#"k\u0022s\\\u003Ccr\/e\u003Et\u0026T=o+n\u0027"#),
            ("Gson", r#"k\"s\\\u003ccr/e\u003et\u0026T\u003do+n\u0027"#),
            (".NET", r#"k\u0022s\\\u003Ccr/e\u003Et\u0026T=o\u002Bn\u0027"#),
        ] {
            let mut stream_redactor = StreamRedactor::new(Arc::clone(&patterns));
            let clean =
                [stream_redactor.push(format!("{{\"{written}\"}}").as_bytes()), stream_redactor.finish()].concat();
            assert_eq!(String::from_utf8_lossy(&clean), format!("{{\"{SHOWN}\"}}"), "{writer}");
        }
    }

    #[test]
    fn base64_is_found_at_every_place_of_a_longer_text() {
        for before in 0..4 {
            let text = format!("{}{VALUE}:more", "x".repeat(before));
            for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                let clean = [stream_redactor().push(encoded.as_bytes())].concat();
                assert!(String::from_utf8_lossy(&clean).contains(SHOWN), "{before}: {encoded}");
            }
        }
    }

    #[test]
    fn a_secret_that_begins_another_does_not_uncover_its_end() {
        let secrets = ["abcdefgh", "abcdefghijkl"].map(|text| Secret::new(text).unwrap());
        let mut stream_redactor = StreamRedactor::new(Arc::new(Patterns::of(secrets.iter()).unwrap()));
        let clean =
            [stream_redactor.push(b"-abcdefgh"), stream_redactor.push(b"ijkl-"), stream_redactor.finish()].concat();
        assert_eq!(String::from_utf8_lossy(&clean), format!("-{SHOWN}-"));
    }

    #[test]
    fn what_is_no_secret_passes_unchanged() {
        let mut stream_redactor = stream_redactor();
        let bytes: Vec<u8> = (0..=255).cycle().take(5_000).collect();
        let clean: Vec<u8> = bytes.chunks(7).flat_map(|piece| stream_redactor.push(piece)).collect();
        assert_eq!([clean, stream_redactor.finish()].concat(), bytes);
    }
}
