//! A pipe between two guests: each reads the other's output.
//!
//! Each direction buffers at most [`HELD_BYTES_MAX`]: a writer of more waits for the reader. When either end is
//! dropped, the other reads the remaining bytes and then the end, and can write no more. Nothing here looks at the
//! bytes.

use bytes::{Bytes, BytesMut};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wasmtime_wasi::cli::{IsTerminal, StdinStream, StdoutStream};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

/// Bytes of one write to standard output or error; as much as wasmtime-wasi usually allows.
pub(crate) const PRINT_BYTES_MAX: usize = 64 << 10;

/// Bytes in flight in one direction.
const HELD_BYTES_MAX: usize = PRINT_BYTES_MAX;

/// One end of a pipe. Closed when its last clone is dropped, or before.
#[derive(Clone, Debug)]
pub struct PipeEnd(Arc<Ends>);

impl PipeEnd {
    /// Both ends of a new pipe.
    pub(crate) fn pair() -> (Self, Self) {
        let (there, back) = (Arc::new(Channel::default()), Arc::new(Channel::default()));
        let here = Ends { incoming: Arc::clone(&back), outgoing: Arc::clone(&there) };
        (Self(Arc::new(here)), Self(Arc::new(Ends { incoming: there, outgoing: back })))
    }

    /// Standard input of a guest.
    pub(crate) fn incoming(&self) -> Incoming {
        Incoming(self.clone())
    }

    /// Standard output of a guest.
    pub(crate) fn outgoing(&self) -> Outgoing {
        Outgoing(self.clone())
    }

    /// Closes the pipe for both directions.
    pub(crate) fn close(&self) {
        self.0.close();
    }
}

#[derive(Debug)]
struct Ends {
    incoming: Arc<Channel>,
    outgoing: Arc<Channel>,
}

impl Ends {
    fn close(&self) {
        for channel in [&self.incoming, &self.outgoing] {
            channel.change(|held| held.is_closed = true);
        }
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.close();
    }
}

/// One direction.
#[derive(Debug, Default)]
struct Channel(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    bytes: BytesMut,
    is_closed: bool,
    /// The waiting tasks: at each end of a direction is one guest.
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Held {
    fn room(&self) -> usize {
        HELD_BYTES_MAX.saturating_sub(self.bytes.len())
    }
}

impl Channel {
    fn look<T>(&self, look: impl FnOnce(&mut Held) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the buffer, and wakes the waiting tasks.
    fn change<T>(&self, change: impl FnOnce(&mut Held) -> T) -> T {
        let (changed, waiting) = self.look(|held| (change(held), [held.reader.take(), held.writer.take()]));
        waiting.into_iter().flatten().for_each(Waker::wake);
        changed
    }

    /// Ready when there is something to read, or the end.
    fn poll_reader(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.look(|held| {
            let is_ready = !held.bytes.is_empty() || held.is_closed;
            ready_or_waits(is_ready, &mut held.reader, cx)
        })
    }

    /// Ready when there is space, or no reader.
    fn poll_writer(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.look(|held| {
            let is_ready = held.room() > 0 || held.is_closed;
            ready_or_waits(is_ready, &mut held.writer, cx)
        })
    }

    /// At most `bytes_max`; empty when nothing is there yet.
    fn read(&self, bytes_max: usize) -> StreamResult<Bytes> {
        self.change(|held| {
            if held.bytes.is_empty() && held.is_closed {
                return Err(StreamError::Closed);
            }
            let length = held.bytes.len().min(bytes_max);
            Ok(held.bytes.split_to(length).freeze())
        })
    }

    /// Writes as many bytes as there is space for.
    fn write(&self, bytes: &[u8]) -> StreamResult<usize> {
        self.change(|held| {
            if held.is_closed {
                return Err(StreamError::Closed);
            }
            let length = bytes.len().min(held.room());
            held.bytes.extend_from_slice(&bytes[..length]);
            Ok(length)
        })
    }
}

fn ready_or_waits(is_ready: bool, waker: &mut Option<Waker>, cx: &Context<'_>) -> Poll<()> {
    if is_ready {
        return Poll::Ready(());
    }
    *waker = Some(cx.waker().clone());
    Poll::Pending
}

/// Standard input of a guest that reads a pipe.
#[derive(Clone)]
pub(crate) struct Incoming(PipeEnd);

impl Incoming {
    fn channel(&self) -> &Channel {
        &self.0.0.incoming
    }
}

impl IsTerminal for Incoming {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdinStream for Incoming {
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
        Box::new(self.clone())
    }

    // Not the adapter of wasmtime-wasi: it reads ahead in a task of its own, and keeps the bytes.
    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(self.clone())
    }
}

impl InputStream for Incoming {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.channel().read(size)
    }
}

#[async_trait::async_trait]
impl Pollable for Incoming {
    async fn ready(&mut self) {
        poll_fn(|cx| self.channel().poll_reader(cx)).await;
    }
}

impl AsyncRead for Incoming {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        self.channel().poll_reader(cx).map(|()| {
            // A closed pipe is the end: nothing is put into the buffer.
            let bytes = self.channel().read(buf.remaining()).unwrap_or_default();
            buf.put_slice(&bytes);
            Ok(())
        })
    }
}

/// Standard output of a guest that writes to a pipe.
#[derive(Clone)]
pub(crate) struct Outgoing(PipeEnd);

impl Outgoing {
    fn channel(&self) -> &Channel {
        &self.0.0.outgoing
    }
}

impl IsTerminal for Outgoing {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Outgoing {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Outgoing {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        // A guest asks for the free space, and writes no more than that.
        if self.channel().write(&bytes)? < bytes.len() {
            return Err(StreamError::trap("more was written to a pipe than there is room for"));
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.channel().look(|held| if held.is_closed { Err(StreamError::Closed) } else { Ok(held.room()) })
    }
}

#[async_trait::async_trait]
impl Pollable for Outgoing {
    async fn ready(&mut self) {
        poll_fn(|cx| self.channel().poll_writer(cx)).await;
    }
}

impl AsyncWrite for Outgoing {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let closed = |_| std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        self.channel().poll_writer(cx).map(|()| self.channel().write(bytes).map_err(closed))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.0.close();
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn is_ready(stream: &mut impl Pollable) -> bool {
        stream.ready().now_or_never().is_some()
    }

    fn write(end: &PipeEnd, bytes: &[u8]) -> StreamResult<()> {
        end.outgoing().write(Bytes::copy_from_slice(bytes))
    }

    #[test]
    fn what_one_end_prints_the_other_reads() {
        let (here, there) = PipeEnd::pair();
        assert!(!is_ready(&mut there.incoming()));
        assert_eq!(there.incoming().read(10).unwrap(), Bytes::new(), "nothing yet");
        write(&here, b"ask").unwrap();
        write(&there, b"answer").unwrap();
        assert!(is_ready(&mut there.incoming()));
        // Each stream of an end continues where another one stopped.
        assert_eq!(there.incoming().read(2).unwrap(), "as");
        assert_eq!(there.incoming().read(10).unwrap(), "k");
        assert_eq!(here.incoming().read(10).unwrap(), "answer");
    }

    #[test]
    fn a_full_pipe_waits_for_its_reader() {
        let (here, there) = PipeEnd::pair();
        let mut outgoing = here.outgoing();
        assert_eq!(outgoing.check_write().unwrap(), HELD_BYTES_MAX);
        write(&here, &vec![0; HELD_BYTES_MAX]).unwrap();
        assert_eq!(outgoing.check_write().unwrap(), 0);
        assert!(!is_ready(&mut outgoing));
        assert!(matches!(write(&here, b"x"), Err(StreamError::Trap(_))), "over what it was told");
        there.incoming().read(1).unwrap();
        assert!(is_ready(&mut outgoing));
        assert_eq!(outgoing.check_write().unwrap(), 1);
    }

    #[test]
    fn the_end_of_one_guest_is_told_to_the_other() {
        let (here, there) = PipeEnd::pair();
        write(&here, b"last").unwrap();
        let (clone, mut incoming) = (here.clone(), there.incoming());
        drop(here);
        assert_eq!(incoming.read(10).unwrap(), "last");
        assert!(!is_ready(&mut incoming), "a clone is left");
        drop(clone);
        assert!(is_ready(&mut incoming) && is_ready(&mut there.outgoing()));
        assert!(matches!(incoming.read(10), Err(StreamError::Closed)));
        assert!(matches!(write(&there, b"x"), Err(StreamError::Closed)));

        let (here, there) = PipeEnd::pair();
        here.close();
        assert!(matches!(there.incoming().read(10), Err(StreamError::Closed)), "also before it is let go of");
    }

    #[test]
    fn who_waits_is_woken() {
        let (here, there) = PipeEnd::pair();
        let mut incoming = there.incoming();
        let mut waits = std::pin::pin!(incoming.ready());
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        write(&here, b"x").unwrap();
        assert!(woken.0.load(std::sync::atomic::Ordering::Relaxed));
        assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    }

    #[derive(Default)]
    struct Woken(std::sync::atomic::AtomicBool);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
}
