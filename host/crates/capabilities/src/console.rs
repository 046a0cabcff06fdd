//! The standard streams of a program: kept while it runs, so that they are available however it ends; or a pipe to
//! another program.

use crate::pipe::{PRINT_BYTES_MAX, PipeEnd};
use bytes::Bytes;
use longhaul_core::output::{OutputSink, StandardStream};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// The console of one program.
#[derive(Clone, Debug, Default)]
pub struct Console {
    /// Its arguments, the program's name first.
    pub arguments: Vec<String>,
    /// Its standard input.
    pub stdin: Bytes,
    /// Its standard output.
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
    /// Its end of a pipe, in place of standard input and output.
    pub pipe: Option<PipeEnd>,
}

impl Console {
    /// Keeps at most `bytes_max` of each stream.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { stdout: Captured::new(bytes_max), stderr: Captured::new(bytes_max), ..Self::default() }
    }

    /// From now on also passes what is kept to a sink, while the program runs.
    pub fn pass_to(&self, sink: &Arc<dyn OutputSink>) {
        self.stdout.pass_to(StandardStream::Output, sink);
        self.stderr.pass_to(StandardStream::Error, sink);
    }

    /// Two consoles, each of which reads the other's output. Standard error of both is dropped.
    #[must_use]
    pub fn pair() -> (Self, Self) {
        let (here, there) = PipeEnd::pair();
        (Self { pipe: Some(here), ..Self::default() }, Self { pipe: Some(there), ..Self::default() })
    }

    pub(crate) fn connect(&self, wasi: &mut WasiCtxBuilder) {
        wasi.args(&self.arguments);
        match &self.pipe {
            Some(end) => wasi.stdin(end.incoming()).stdout(end.outgoing()),
            None => wasi.stdin(MemoryInputPipe::new(self.stdin.clone())).stdout(self.stdout.clone()),
        };
        wasi.stderr(self.stderr.clone());
    }
}

/// The first bytes of a stream; the rest is dropped and noted, and the program continues.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    bytes_max: usize,
    truncated: bool,
    sink: Option<(StandardStream, Arc<dyn OutputSink>)>,
}

impl Captured {
    fn new(bytes_max: usize) -> Self {
        Self { kept: Arc::new(Mutex::new(Kept { bytes_max, ..Kept::default() })) }
    }

    /// The output so far, with invalid UTF-8 replaced, and whether the rest was dropped.
    #[must_use]
    pub fn text(&self) -> (String, bool) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        (String::from_utf8_lossy(&kept.bytes).into_owned(), kept.truncated)
    }

    fn pass_to(&self, stream: StandardStream, sink: &Arc<dyn OutputSink>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.sink = Some((stream, Arc::clone(sink)));
    }

    fn take(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = kept.bytes_max.saturating_sub(kept.bytes.len());
        kept.truncated |= bytes.len() > room;
        let taken = &bytes[..bytes.len().min(room)];
        kept.bytes.extend_from_slice(taken);
        if let Some((stream, sink)) = kept.sink.as_ref().filter(|_| !taken.is_empty()) {
            sink.write(*stream, taken);
        }
    }
}

impl IsTerminal for Captured {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Captured {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Captured {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PRINT_BYTES_MAX)
    }
}

#[async_trait::async_trait]
impl Pollable for Captured {
    async fn ready(&mut self) {}
}

impl AsyncWrite for Captured {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_are_kept_and_the_rest_is_noted() {
        let console = Console::new(5);
        console.stdout.take(b"abc");
        console.stdout.take(b"de");
        assert_eq!(console.stdout.text(), ("abcde".to_owned(), false), "the edge");
        console.stdout.take(b"f");
        assert_eq!(console.stdout.text(), ("abcde".to_owned(), true));
        console.stderr.take(b"a\xff");
        assert_eq!(console.stderr.text(), ("a\u{fffd}".to_owned(), false));
    }

    #[derive(Debug, Default)]
    struct Written(Mutex<Vec<(StandardStream, Vec<u8>)>>);

    impl OutputSink for Written {
        fn write(&self, stream: StandardStream, bytes: &[u8]) {
            self.0.lock().unwrap().push((stream, bytes.to_vec()));
        }
    }

    #[test]
    fn a_sink_gets_what_is_kept_in_the_order_of_the_writes() {
        let (console, written) = (Console::new(5), Arc::new(Written::default()));
        let sink: Arc<dyn OutputSink> = Arc::<Written>::clone(&written);
        console.pass_to(&sink);
        console.stdout.take(b"abc");
        console.stderr.take(b"x");
        console.stdout.take(b"def");
        console.stdout.take(b"g");
        let expected =
            [(StandardStream::Output, &b"abc"[..]), (StandardStream::Error, b"x"), (StandardStream::Output, b"de")];
        let written = written.0.lock().unwrap();
        assert_eq!(*written, expected.map(|(stream, bytes)| (stream, bytes.to_vec())));
        assert_eq!(console.stdout.text(), ("abcde".to_owned(), true), "the same bytes are kept");
    }
}
