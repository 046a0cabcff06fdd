//! The output of a program while it runs: the sink that receives it, and text of bytes that come in pieces.
//!
//! Nothing here starts a program or prints. A report of a program has its output whole, whatever a sink does with it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A standard stream that a program writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StandardStream {
    /// Standard output.
    #[serde(rename = "stdout")]
    Output,
    /// Standard error.
    #[serde(rename = "stderr")]
    Error,
}

/// Receives the output of a program while it runs: the bytes that its report begins with, in their order.
///
/// The writes of the program call it, so it does not wait for a reader.
pub trait OutputSink: fmt::Debug + Send + Sync {
    /// Takes the next bytes of a stream.
    fn write(&self, stream: StandardStream, bytes: &[u8]);
}

/// Makes text of bytes that come in pieces. The pieces together are the text that [`String::from_utf8_lossy`] makes of
/// all bytes.
#[derive(Debug, Default)]
pub struct LossyDecoder {
    /// The beginning of a character that is not whole yet.
    partial: Vec<u8>,
}

impl LossyDecoder {
    /// The text of the bytes that came, without a last character that is not whole.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.partial.extend_from_slice(bytes);
        let (mut text, mut rest) = (String::with_capacity(self.partial.len()), Vec::new());
        let mut chunks = self.partial.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let is_last = chunks.peek().is_none();
            if is_last && can_continue(chunk.invalid()) {
                rest = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.partial = rest;
        text
    }

    /// The text of the bytes that are left: nothing more follows.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.partial);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// True for the beginning of a character that more bytes may complete.
fn can_continue(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes the bytes in pieces of each length, and compares with the text of the whole.
    #[track_caller]
    fn check(bytes: &[u8]) {
        for length in 1..=bytes.len() {
            let mut decoder = LossyDecoder::default();
            let mut text: String = bytes.chunks(length).map(|piece| decoder.push(piece)).collect();
            text.push_str(&decoder.finish());
            assert_eq!(text, String::from_utf8_lossy(bytes), "in pieces of {length}");
        }
    }

    #[test]
    fn text_in_pieces_is_the_text_of_the_whole() {
        check("plain, Zoë, 日本語, 👩\u{200d}💻\n".as_bytes());
        check(b"a\xffb\xe6\x97c\xf0\x9f\x91");
        check(b"\xf0\x9f\x91\xf0\x9f\x91\xa9\xc3");
        check(b"\x80\x80\xed\xa0\x80");
    }

    #[test]
    fn a_whole_character_is_not_held_back() {
        let mut decoder = LossyDecoder::default();
        assert_eq!(decoder.push("Zo".as_bytes()), "Zo");
        assert_eq!(decoder.push(&[0xc3]), "");
        assert_eq!(decoder.push(&[0xab]), "ë");
        assert_eq!(decoder.finish(), "");
    }
}
