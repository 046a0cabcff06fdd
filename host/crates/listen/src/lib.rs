//! Connections of HTTP: their number, their timeouts and their shutdown.
//!
//! A client that sends its headers slowly, or does not read, is disconnected; one that comes while the maximum is open
//! waits to be accepted. It never looks at a request.

use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};

/// Longest time for the headers of a request to arrive, and for a connection to be idle.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// Longest time for a client to read nothing while bytes wait for it. Longer than the heartbeat of a stream, so that
/// the stream, which can say why, disconnects a stalled client first.
const STALL_TIME: Duration = Duration::from_secs(45);

/// Longest time that connections go on during shutdown.
const LAST_TIME: Duration = Duration::from_secs(10);

/// Pause after a connection could not be accepted, for example for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` becomes true, then lets requests that are under way end.
pub async fn serve<F, A, B>(listener: TcpListener, connections_max: usize, mut stop: watch::Receiver<bool>, answer: F)
where
    F: Fn(SocketAddr, Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let permits = Arc::new(Semaphore::new(connections_max));
    let mut connections = JoinSet::new();
    while !*stop.borrow() {
        let accepted = async { (Arc::clone(&permits).acquire_owned().await, listener.accept().await) };
        // The wait for a free connection is interrupted as well.
        let (permit, accepted) = tokio::select! {
            accepted = accepted => accepted,
            _ = stop.changed() => continue,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (answer, stop) = (answer.clone(), stop.clone());
        connections.spawn(async move {
            let _permit = permit;
            one(stream, peer, stop, answer).await;
        });
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_TIME, ended).await;
}

async fn one<F, A, B>(stream: TcpStream, peer: SocketAddr, mut stop: watch::Receiver<bool>, answer: F)
where
    F: Fn(SocketAddr, Request<Incoming>) -> A,
    A: Future<Output = Result<Response<B>, Infallible>>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    // Small frames of a stream should not wait for each other.
    let _ = stream.set_nodelay(true);
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(Impatient::new(stream)), service_fn(move |request| answer(peer, request)));
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = stopped(&mut stop) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%peer, "a client went away: {error}");
    }
}

/// Returns once the server is to end.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A sender that was dropped means the end, too.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// A connection that fails when its client reads nothing for [`STALL_TIME`].
struct Impatient {
    stream: TcpStream,
    /// Runs while bytes wait to be written and the client takes none.
    patience: Option<Pin<Box<Sleep>>>,
}

impl Impatient {
    fn new(stream: TcpStream) -> Self {
        Self { stream, patience: None }
    }

    fn watched<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.patience = None;
            return written;
        }
        let patience =
            self.patience.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + STALL_TIME)));
        ready!(patience.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing")))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watched(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.watched(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.watched(flushed, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
