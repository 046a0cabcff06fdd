//! The events of a run as a server streams them: server-sent events with lines of the public stream. Lines that this
//! version does not know are passed over.

use longhaul_api::seen::RunNotification;
use longhaul_core::event::RunEvent;
use longhaul_core::stream::{Content, StreamLine};

/// Most bytes of one event, which the server decides about.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// Frames that arrive in pieces.
#[derive(Default)]
pub struct EventReader {
    received: Vec<u8>,
    /// Bytes of `received` in which no end of a frame is.
    searched: usize,
}

/// A frame is longer than any event.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

impl EventReader {
    /// Takes a piece, and returns what became whole with it.
    ///
    /// # Errors
    /// A frame is too long.
    pub fn take(&mut self, piece: &[u8]) -> Result<Vec<RunNotification>, TooLong> {
        self.received.extend_from_slice(piece);
        let (mut seen, mut begin) = (Vec::new(), 0);
        while let Some(found) = self.received[self.searched..].windows(2).position(|two| two == b"\n\n") {
            let end = self.searched + found;
            seen.extend(notification(&self.received[begin..end]));
            begin = end + 2;
            self.searched = begin;
        }
        self.received.drain(..begin);
        // The first byte of an end may be the last one that is here.
        self.searched = self.received.len().saturating_sub(1);
        if self.received.len() > FRAME_BYTES_MAX { Err(TooLong) } else { Ok(seen) }
    }
}

/// The notification of a frame; none for a heartbeat and for a line of another version.
fn notification(frame: &[u8]) -> Option<RunNotification> {
    let data = frame.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"data: "))?;
    let StreamLine { run, content } = serde_json::from_slice(data).ok()?;
    Some(match content {
        Content::Event { number, at_ms, event } => RunNotification::Event(RunEvent { run, number, at_ms, event }),
        Content::Token(token) => RunNotification::Token(token),
        Content::Lagged { .. } => RunNotification::Lagged,
        Content::Dropped { .. } => RunNotification::Dropped,
        Content::End { error, .. } => RunNotification::Gone(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::event::Event;
    use longhaul_core::stream::StreamToken;
    use longhaul_core::{InvocationId, RunId};

    fn frame(content: Content) -> String {
        let line = StreamLine { run: RunId::from_text("r-1"), content };
        format!("event: any\ndata: {}\n\n", serde_json::to_string(&line).expect("it is written"))
    }

    /// The notifications of frames that arrive in pieces of a length.
    fn seen(text: &str, piece: usize) -> Vec<String> {
        let mut reader = EventReader::default();
        let pieces = text.as_bytes().chunks(piece);
        let seen = pieces.flat_map(|piece| reader.take(piece).expect("short"));
        seen.map(|seen| format!("{seen:?}")).collect()
    }

    #[test]
    fn events_arrive_whole_however_they_are_cut() {
        let event = Event::Warning { text: "it is \u{e9}\n\n".to_owned() };
        let token = StreamToken {
            invocation: InvocationId::from_text("r-1/f-one/1/generate"),
            after: 7,
            part: 2,
            text: "so far".to_owned(),
            whole: true,
        };
        let text = [
            "retry: 1000\n\n: hb\n\n".to_owned(),
            frame(Content::Event { number: 7, at_ms: 5, event: event.clone() }),
            frame(Content::Token(token.clone())),
            "event: problem\ndata: {\"status\":401}\n\n".to_owned(),
            frame(Content::Lagged { after: 7 }),
            frame(Content::End { after: 7, error: Some("it broke".to_owned()) }),
        ]
        .concat();
        let expected = [
            RunNotification::Event(RunEvent { run: RunId::from_text("r-1"), number: 7, at_ms: 5, event }),
            RunNotification::Token(token),
            RunNotification::Lagged,
            RunNotification::Gone(Some("it broke".to_owned())),
        ]
        .map(|seen| format!("{seen:?}"));
        for piece in [1, 2, 3, 7, 64, text.len()] {
            assert_eq!(seen(&text, piece), expected, "{piece}");
        }
    }

    #[test]
    fn an_event_without_an_end_does_not_fill_memory() {
        let mut reader = EventReader::default();
        let piece = vec![b'x'; 1 << 20];
        let taken = (0..=64).map(|_| reader.take(&piece).map(|seen| seen.len())).find(Result::is_err);
        assert_eq!(taken, Some(Err(TooLong)));
    }
}
