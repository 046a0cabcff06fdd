//! Turns the bytes of tokens into the text that the caller gets.
//!
//! A token can end inside a character, and a stop text can begin inside one token and end in another. Bytes are
//! therefore held back until they are whole characters that cannot be the beginning of a stop text any more. Text that
//! was passed on is never taken back.

/// The text of one answer.
pub(crate) struct Output {
    stop: Vec<String>,
    text: String,
    /// Bytes of `text` that the caller has.
    given: usize,
    /// The beginning of a character.
    partial: Vec<u8>,
    stopped: bool,
}

impl Output {
    pub(crate) fn new(stop: &[String]) -> Self {
        Output {
            stop: stop.iter().filter(|stop| !stop.is_empty()).cloned().collect(),
            text: String::new(),
            given: 0,
            partial: Vec::new(),
            stopped: false,
        }
    }

    /// Adds a token's bytes and returns the text that can be passed on.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> &str {
        if self.stopped {
            return "";
        }
        let before = self.text.len();
        self.partial.extend_from_slice(bytes);
        self.take_characters();
        self.cut_at_stop(before);
        self.give_to(self.text.len() - self.held_back())
    }

    /// Ends the answer and returns the held-back text.
    pub(crate) fn finish(&mut self) -> &str {
        if !self.stopped && !self.partial.is_empty() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        self.partial.clear();
        self.give_to(self.text.len())
    }

    /// True once a stop text has come.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Moves whole characters to the text; bytes that can begin none become U+FFFD.
    fn take_characters(&mut self) {
        let mut rest = Vec::new();
        let mut chunks = self.partial.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text.push_str(chunk.valid());
            let is_last = chunks.peek().is_none();
            if is_last && can_continue(chunk.invalid()) {
                rest = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                self.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.partial = rest;
    }

    /// Cuts at the first stop text that ends after `before`.
    fn cut_at_stop(&mut self, before: usize) {
        let longest = self.stop.iter().map(String::len).max().unwrap_or_default();
        let from = self.text.floor_char_boundary(before.saturating_sub(longest));
        let found = |stop: &String| self.text[from..].find(stop.as_str());
        if let Some(at) = self.stop.iter().filter_map(found).min() {
            self.text.truncate(from + at);
            self.partial.clear();
            self.stopped = true;
        }
    }

    /// Bytes at the end of the text that may become a stop text.
    fn held_back(&self) -> usize {
        if self.stopped {
            return 0;
        }
        let begins = |stop: &String| {
            (1..stop.len())
                .rev()
                .filter(|length| stop.is_char_boundary(*length))
                .find(|length| self.text.ends_with(&stop[..*length]))
        };
        self.stop.iter().filter_map(begins).max().unwrap_or(0)
    }

    fn give_to(&mut self, end: usize) -> &str {
        let start = self.given.min(end);
        self.given = end;
        &self.text[start..end]
    }
}

/// True for the beginning of a character that more bytes may complete.
fn can_continue(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stop: &[&str], pushes: &[&[u8]], expected: &[&str], text: &str) {
        let stop: Vec<String> = stop.iter().map(ToString::to_string).collect();
        let mut output = Output::new(&stop);
        let mut given: Vec<String> = pushes.iter().map(|push| output.push(push).into()).collect();
        given.push(output.finish().into());
        assert_eq!(given, expected);
        assert_eq!(given.concat(), text);
        assert_eq!(output.into_text(), text);
    }

    #[test]
    fn a_character_is_given_out_whole() {
        check(&[], &[b"\xc3", b"\xa9x"], &["", "éx", ""], "éx");
        check(&[], &[b"a\xff\xe2\x82", b"b"], &["a\u{fffd}", "\u{fffd}b", ""], "a\u{fffd}\u{fffd}b");
        check(&[], &[b"a\xf0\x9f"], &["a", "\u{fffd}"], "a\u{fffd}");
    }

    #[test]
    fn a_stop_text_is_never_given_out_in_part() {
        check(&["END"], &[b"aE", b"N", b"Dx", b"y"], &["a", "", "", "", ""], "a");
        check(&["END"], &[b"aEN", b"x"], &["a", "ENx", ""], "aENx");
        check(&["END"], &[b"aEN"], &["a", "EN"], "aEN");
        check(&["aab"], &[b"aa", b"ab!"], &["", "a", ""], "a");
        check(&["\n\n", "b"], &[b"x\n", b"yb\n\n"], &["x", "\ny", ""], "x\ny");
        check(&[""], &[b"x"], &["x", ""], "x");
    }

    #[test]
    fn the_earliest_of_two_stop_texts_wins() {
        check(&["cd", "bc"], &[b"abcd"], &["a", ""], "a");
    }
}
