//! The standard streams of a program: kept while it runs, so that they are available however it ends; or a pipe to
//! another program.

use crate::pipe::{PRINT_BYTES_MAX, PipeEnd};
use bytes::Bytes;
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

    fn take(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = kept.bytes_max.saturating_sub(kept.bytes.len());
        kept.truncated |= bytes.len() > room;
        let taken = &bytes[..bytes.len().min(room)];
        kept.bytes.extend_from_slice(taken);
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
}
