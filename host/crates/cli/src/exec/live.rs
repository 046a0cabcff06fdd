//! Prints the output of code while it runs.
//!
//! A thread prints what a queue has, so that code never waits for a slow reader; the limit of the output bounds the
//! queue. The report has the whole output: what was not printed by its end is printed from there.

use crate::terminal;
use longhaul_exec::{LossyDecoder, OutputSink, StandardStream};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

/// Prints in a thread of its own.
pub(super) struct LivePrinter {
    parts: Sender<OutputPart>,
    thread: JoinHandle<PrintedBytes>,
}

/// Bytes of the text of each stream that were printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PrintedBytes {
    pub(super) stdout: usize,
    pub(super) stderr: usize,
}

/// A part of the output, in the order of the writes.
#[derive(Debug)]
enum OutputPart {
    Bytes(StandardStream, Vec<u8>),
    End,
}

/// Puts output into the queue.
#[derive(Debug)]
struct QueueSink(Sender<OutputPart>);

impl OutputSink for QueueSink {
    fn write(&self, stream: StandardStream, bytes: &[u8]) {
        // Nobody reads any more once the end was printed.
        let _ = self.0.send(OutputPart::Bytes(stream, bytes.to_vec()));
    }
}

impl LivePrinter {
    pub(super) fn start() -> Self {
        let (parts, queue) = mpsc::channel();
        let thread = std::thread::spawn(move || print_all(&queue, print));
        Self { parts, thread }
    }

    pub(super) fn sink(&self) -> Arc<dyn OutputSink> {
        Arc::new(QueueSink(self.parts.clone()))
    }

    /// Waits until all that came is printed.
    pub(super) fn end(self) -> PrintedBytes {
        let _ = self.parts.send(OutputPart::End);
        self.thread.join().unwrap_or_default()
    }
}

/// Prints what comes until the end. What has come meanwhile of the same stream is printed at once.
fn print_all(queue: &Receiver<OutputPart>, mut print: impl FnMut(StandardStream, &str)) -> PrintedBytes {
    let (mut stdout, mut stderr) = (StreamText::default(), StreamText::default());
    let mut next = queue.recv().ok();
    while let Some(OutputPart::Bytes(stream, mut bytes)) = next.take() {
        next = loop {
            match queue.try_recv() {
                Ok(OutputPart::Bytes(same, more)) if same == stream => bytes.extend_from_slice(&more),
                Ok(other) => break Some(other),
                Err(_) => break None,
            }
        };
        let text = match stream {
            StandardStream::Output => stdout.push(&bytes),
            StandardStream::Error => stderr.push(&bytes),
        };
        if !text.is_empty() {
            print(stream, &text);
        }
        if next.is_none() {
            next = queue.recv().ok();
        }
    }
    PrintedBytes { stdout: stdout.printed, stderr: stderr.printed }
}

fn print(stream: StandardStream, text: &str) {
    match stream {
        StandardStream::Output => terminal::pass_output(text),
        StandardStream::Error => terminal::pass_error(text),
    }
}

/// The text of one stream, as far as it is certain.
#[derive(Default)]
struct StreamText {
    decoder: LossyDecoder,
    /// True when a carriage return is held back: with a line feed behind it a terminal is shown one line break.
    holds_return: bool,
    printed: usize,
}

impl StreamText {
    fn push(&mut self, bytes: &[u8]) -> String {
        let mut text = if self.holds_return { "\r".to_owned() } else { String::new() };
        text.push_str(&self.decoder.push(bytes));
        self.holds_return = text.ends_with('\r');
        if self.holds_return {
            text.pop();
        }
        self.printed += text.len();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_printed_in_their_order_and_what_is_held_back_is_not_counted() {
        let (parts, queue) = mpsc::channel();
        let sink = QueueSink(parts.clone());
        for (stream, bytes) in [
            (StandardStream::Output, &b"a\r"[..]),
            (StandardStream::Error, b"x"),
            (StandardStream::Output, b"\nZo\xc3"),
            (StandardStream::Output, b"\xab"),
            (StandardStream::Output, b"\xe6"),
        ] {
            sink.write(stream, bytes);
        }
        parts.send(OutputPart::End).unwrap();
        let mut printed = Vec::new();
        let bytes = print_all(&queue, |stream, text| printed.push((stream, text.to_owned())));
        let expected =
            [(StandardStream::Output, "a"), (StandardStream::Error, "x"), (StandardStream::Output, "\r\nZoë")];
        assert_eq!(printed, expected.map(|(stream, text)| (stream, text.to_owned())));
        assert_eq!(bytes, PrintedBytes { stdout: "a\r\nZoë".len(), stderr: 1 });
    }
}
