//! A decoder of server-sent events, for the bytes of a hostile endpoint.
//!
//! The work is linear in the bytes, and lines and the whole are bounded, which is why this is not the
//! `eventsource-stream` crate: that one parses its buffer again for each piece and copies the rest of it for each line,
//! has no bound, and holds everything back after one byte that is not UTF-8. Only `data` is read; names, ids and retry
//! times of events are ignored.

/// The endpoint sent invalid data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SseError {
    /// A line is longer than this many bytes.
    Line(usize),
    /// The whole is longer than this many bytes.
    Whole(usize),
    /// A line is not UTF-8.
    Text,
}

/// Decodes bytes to the data of events.
pub(crate) struct Decoder {
    line_bytes_max: usize,
    bytes_left: usize,
    bytes_max: usize,
    line: Vec<u8>,
    data: Option<String>,
    first_line: bool,
    after_return: bool,
}

impl Decoder {
    pub(crate) fn new(line_bytes_max: usize, bytes_max: usize) -> Self {
        Self {
            line_bytes_max,
            bytes_left: bytes_max,
            bytes_max,
            line: Vec::new(),
            data: None,
            first_line: true,
            after_return: false,
        }
    }

    /// The data of the events that end within `bytes`.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<String>, SseError> {
        self.bytes_left = self.bytes_left.checked_sub(bytes.len()).ok_or(SseError::Whole(self.bytes_max))?;
        let mut events = Vec::new();
        while !bytes.is_empty() {
            // The line feed of a CRLF, which may be in another piece than its return.
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + part.len() > self.line_bytes_max {
                return Err(SseError::Line(self.line_bytes_max));
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { break };
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            events.extend(self.end_of_line()?);
        }
        Ok(events)
    }

    /// The data of the last event, when the endpoint left out the empty line after it.
    pub(crate) fn finish(&mut self) -> Result<Option<String>, SseError> {
        if !self.line.is_empty() {
            self.end_of_line()?;
        }
        Ok(self.data.take())
    }

    fn end_of_line(&mut self) -> Result<Option<String>, SseError> {
        let line = std::mem::take(&mut self.line);
        let mut line = std::str::from_utf8(&line).map_err(|_| SseError::Text)?;
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.data.take());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => data.extend(["\n", value]),
                None => self.data = Some(value.to_owned()),
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(pieces: &[&[u8]]) -> Result<Vec<String>, SseError> {
        let mut decoder = Decoder::new(40, 400);
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(decoder.push(piece)?);
        }
        events.extend(decoder.finish()?);
        Ok(events)
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_split() {
        let cases: [(&str, &[&str]); 8] = [
            ("data: a\n\ndata: b\n\n", &["a", "b"]),
            ("data: a\r\n\r\ndata:b\r\n\r\n", &["a", "b"]),
            ("data: a\r\rdata: b\r\r", &["a", "b"]),
            ("\u{feff}data: é😀\n\n", &["é😀"]),
            ("data: {\ndata:  1\ndata\ndata: }\n\n", &["{\n 1\n\n}"]),
            (": ping\n\nevent: x\nid: 7\nretry: 1\ndata: a\n\n", &["a"]),
            ("\n\n\ndata: no empty line after it", &["no empty line after it"]),
            ("database: 1\nother\n\n", &[]),
        ];
        for (text, expected) in cases {
            for at in 0..=text.len() {
                let (one, two) = text.as_bytes().split_at(at);
                assert_eq!(decode(&[one, two]).unwrap(), expected, "{text:?} split at {at}");
            }
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(decode(&bytes).unwrap(), expected, "{text:?} byte by byte");
        }
    }

    #[test]
    fn lines_the_whole_and_bytes_that_are_no_text_are_refused() {
        assert_eq!(decode(&[&[b'x'; 40], b"\n"]), Ok(vec![]));
        assert_eq!(decode(&[&[b'x'; 40], b"x"]), Err(SseError::Line(40)));
        assert_eq!(decode(&[&[b'\n'; 400]]), Ok(vec![]));
        assert_eq!(decode(&[&[b'\n'; 400], b"\n"]), Err(SseError::Whole(400)));
        assert_eq!(decode(&[b"data: \xff\n\n"]), Err(SseError::Text));
        assert_eq!(decode(&[b"data: \xf0\x9f"]), Err(SseError::Text));
    }
}
