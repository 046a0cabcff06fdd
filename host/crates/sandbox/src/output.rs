//! Output of a program, read to its end; its beginning and end are kept.

use crate::spec::{READY, SAID};
use longhaul_core::output::{OutputSink, StandardStream};
use longhaul_core::redact::RedactStream;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The time for which output is awaited after the program has ended, and the end after a kill: another process may hold
/// the pipe, and a disk may block a process.
pub(crate) const DRAIN: Duration = Duration::from_secs(2);

/// The beginning and the end of an output: errors are mostly printed last.
#[derive(Default)]
pub(crate) struct Captured {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Captured {
    /// Returns the number of bytes that belong to the beginning, which no later byte changes.
    fn push(&mut self, bytes: &[u8], bytes_max: u64) -> usize {
        let half = usize::try_from(bytes_max / 2).unwrap_or(usize::MAX);
        let fits = half.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(fits);
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(half);
        self.tail.drain(..over);
        self.left_out = self.left_out.saturating_add(u64::try_from(over).unwrap_or(u64::MAX));
        fits
    }

    /// The text, and whether it was cut.
    pub(crate) fn text(self) -> (String, bool) {
        let tail = Vec::from(self.tail);
        if self.left_out == 0 {
            return (String::from_utf8_lossy(&[self.head, tail].concat()).into_owned(), false);
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        (format!("{head}\n[{} bytes left out]\n{tail}", self.left_out), true)
    }
}

/// An output that is being read, to its end, so that a program never blocks on a full pipe.
pub(crate) struct Output {
    captured: Arc<Mutex<Captured>>,
    reader: tokio::task::JoinHandle<()>,
}

impl Output {
    /// The child's line goes to `first_line`, if it is wanted; the rest goes through `redact`, and its beginning to
    /// `sink`.
    pub(crate) fn read(
        mut from: Option<impl AsyncRead + Unpin + Send + 'static>,
        first_line: Option<tokio::sync::oneshot::Sender<String>>,
        bytes_max: u64,
        mut redact: Option<Box<dyn RedactStream>>,
        mut sink: Option<(StandardStream, Arc<dyn OutputSink>)>,
    ) -> Self {
        let captured = Arc::new(Mutex::new(Captured::default()));
        let into = Arc::clone(&captured);
        let reader = tokio::spawn(async move {
            if let Some(first_line) = first_line {
                let line = read_first_line(&mut from).await;
                // What a child says that starts no program is no output.
                sink = sink.filter(|_| is_ready(&line));
                let _ = first_line.send(line);
            }
            let Some(mut from) = from else { return };
            let mut buffer = vec![0; 64 << 10];
            let keep = |bytes: &[u8]| {
                let first = into.lock().unwrap_or_else(PoisonError::into_inner).push(bytes, bytes_max);
                if let Some((stream, sink)) = sink.as_ref().filter(|_| first > 0) {
                    sink.write(*stream, &bytes[..first]);
                }
            };
            // Before the middle is cut: half a secret would not be found any more.
            while let Ok(read @ 1..) = from.read(&mut buffer).await {
                match &mut redact {
                    Some(redact) => keep(&redact.push(&buffer[..read])),
                    None => keep(&buffer[..read]),
                }
            }
            keep(&redact.map(|mut redact| redact.finish()).unwrap_or_default());
        });
        Self { captured, reader }
    }

    /// The output so far, at the latest after [`DRAIN`].
    pub(crate) async fn end(mut self) -> Captured {
        self.take().await
    }

    /// The same, when the output is still needed.
    pub(crate) async fn take(&mut self) -> Captured {
        if tokio::time::timeout(DRAIN, &mut self.reader).await.is_err() {
            self.reader.abort();
        }
        std::mem::take(&mut *self.captured.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// True when the line of the child says that the program starts.
pub(crate) fn is_ready(line: &str) -> bool {
    line.strip_prefix(SAID).is_some_and(|word| word.starts_with(READY))
}

/// The first line with the prefix of the child's own. A backend may have printed warnings before; one that fails gives
/// the reason in its last line.
async fn read_first_line(from: &mut Option<impl AsyncRead + Unpin>) -> String {
    const LINES_MAX: usize = 100;
    let mut last = String::new();
    let Some(from) = from else { return last };
    for _ in 0..LINES_MAX {
        let (line, is_last) = read_line(from).await;
        if !line.trim().is_empty() {
            last = line;
        }
        if is_last || last.starts_with(SAID) {
            break;
        }
    }
    last
}

/// One line, and whether there is none after it.
async fn read_line(from: &mut (impl AsyncRead + Unpin)) -> (String, bool) {
    let mut line = Vec::new();
    let mut is_last = true;
    while let Ok(byte) = from.read_u8().await {
        if byte == b'\n' || line.len() > 2_000 {
            is_last = false;
            break;
        }
        line.push(byte);
    }
    (String::from_utf8_lossy(&line).into_owned(), is_last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_keeps_its_beginning_and_its_end() {
        let mut captured = Captured::default();
        let firsts = [&b"012"[..], b"3456", b"789abcdef"].map(|chunk| captured.push(chunk, 8));
        assert_eq!(firsts, [3, 1, 0], "bytes of the beginning");
        assert_eq!(captured.text(), ("0123\n[8 bytes left out]\ncdef".to_owned(), true));
    }
}
