//! A forward proxy for one program: every request and every tunnel passes the gates of a guard.
//!
//! It serves connections that it is given, so that only their holder can use it. A plain request is checked with its
//! method; the content of a tunnel cannot be read here, so a tunnel needs a grant of all methods, and one that was
//! granted as https must begin as TLS does. Redirects are responses: a client that follows one comes here again.
//! Nothing is cached, retried or decompressed, and all bytes of both directions count against one cap. Refusals can be
//! queried with their targets, since the program may hide them.

use crate::body::check_head;
use crate::error::EgressError;
use crate::fetch::NOT_YOURS;
use crate::guard::{CheckedRoute, FIELD_BYTES_MAX, Guard};
use crate::refused_request::RefusedRequest;
use crate::stand_in;
use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _, stream};
use http::header::{CONNECTION, HeaderMap, HeaderName};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use longhaul_core::supervisor::Supervisor;
use longhaul_core::text::truncate;
use longhaul_core::{InvocationId, LimitHit};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

/// Parallel connections of the program, tunnels included. A browser holds 32 to one proxy.
const CONNECTIONS_MAX: usize = 256;

/// Refusals that are kept until they are queried; the oldest is dropped first.
const REFUSALS_MAX: usize = 32;

/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 22;

/// Bytes that are read from one side of a tunnel before they go to the other.
const PIECE_BYTES: usize = 16 << 10;

type Body = UnsyncBoxBody<Bytes, EgressError>;

/// Wait after a failed accept, for example for lack of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A socket in a directory, regardless of the length of its path: it is bound by a descriptor of the directory.
///
/// # Errors
/// When it cannot be bound.
pub fn listen_in(directory: &Path, name: &str) -> std::io::Result<UnixListener> {
    let opened = File::open(directory)?;
    UnixListener::bind(PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())).join(name))
}

/// The proxy of one program.
pub struct Proxy {
    guard: Guard,
    bytes_max: u64,
    bytes_used: AtomicU64,
    seats: Arc<Semaphore>,
    refused: Mutex<VecDeque<RefusedRequest>>,
    told: Option<(Arc<dyn Supervisor>, InvocationId)>,
}

impl Proxy {
    /// A proxy behind `guard`, for at most `bytes_max` bytes in both directions together.
    #[must_use]
    pub fn new(guard: Guard, bytes_max: u64) -> Self {
        let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Self { guard, bytes_max, bytes_used: AtomicU64::new(0), seats, refused: Mutex::default(), told: None }
    }

    /// Reports outgoing bytes to a supervisor as an invocation's, before they are sent; a request counts with its head.
    #[must_use]
    pub fn telling(self, supervisor: Arc<dyn Supervisor>, caller: InvocationId) -> Self {
        Self { told: Some((supervisor, caller)), ..self }
    }

    /// The guard of all traffic.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The refusals since the last query, in order, each once.
    pub fn take_refusals(&self) -> Vec<RefusedRequest> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    /// Serves one connection to its end. A connection beyond the limit is closed.
    pub async fn serve(self: Arc<Self>, connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Ok(seat) = Arc::clone(&self.seats).try_acquire_owned() else { return };
        let seat = Arc::new(seat);
        let service = service_fn(move |request| {
            let (proxy, seat) = (Arc::clone(&self), Arc::clone(&seat));
            async move { Ok::<_, Infallible>(proxy.answer(request, seat).await) }
        });
        let served = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .max_buf_size(FIELD_BYTES_MAX)
            .serve_connection(TokioIo::new(connection), service)
            .with_upgrades();
        // An error is on the program's side, which has seen it.
        let _ = served.await;
    }

    /// Serves every connection of a socket, until it is dropped.
    pub async fn serve_all(self: Arc<Self>, socket: UnixListener) {
        let mut served = JoinSet::new();
        loop {
            tokio::select! {
                accepted = socket.accept() => match accepted {
                    Ok((connection, _)) => drop(served.spawn(Arc::clone(&self).serve(connection))),
                    // The resource returns when others close.
                    Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
                },
                Some(_) = served.join_next() => {}
            }
        }
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>, seat: Arc<OwnedSemaphorePermit>) -> Response<Body> {
        let uri = request.uri().clone();
        let answered = match *request.method() {
            Method::CONNECT => self.open_tunnel(request, seat).await,
            _ => self.forward(request).await,
        };
        answered.unwrap_or_else(|error| self.refuse(RefusedRequest::new(&uri, error)))
    }

    fn refuse(&self, request: RefusedRequest) -> Response<Body> {
        let said = truncate(&request.to_string(), 1_000);
        self.note(request);
        let mut response = Response::new(whole(said));
        *response.status_mut() = StatusCode::FORBIDDEN;
        response
    }

    fn note(&self, request: RefusedRequest) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = refused.iter_mut().find(|known| known.repeats(&request)) {
            return known.join(request);
        }
        if refused.len() == REFUSALS_MAX {
            refused.pop_front();
        }
        refused.push_back(request);
    }

    fn count(&self, bytes: usize) -> Result<(), EgressError> {
        let used = self.bytes_used.fetch_add(bytes as u64, Ordering::Relaxed).saturating_add(bytes as u64);
        if used <= self.bytes_max {
            return Ok(());
        }
        Err(EgressError::Limit(LimitHit::new("traffic_bytes_max", used, self.bytes_max)))
    }

    fn count_sent(&self, bytes: usize) -> Result<(), EgressError> {
        self.count(bytes)?;
        let Some((supervisor, caller)) = &self.told else { return Ok(()) };
        supervisor.sends(caller, bytes as u64).map_err(EgressError::Limit)
    }

    // Readable requests.

    async fn forward(self: &Arc<Self>, request: Request<Incoming>) -> Result<Response<Body>, EgressError> {
        let until = Instant::now() + Duration::from_millis(self.guard.caps.total_ms_max);
        let (parts, body) = request.into_parts();
        let way = self.guard.look_up(self.guard.check(&parts.method, &parts.uri)?).await?;
        let head = head_bytes(&parts);
        let body = self.read(body).await?;
        self.count_sent(head.saturating_add(body.len()))?;
        let mut outgoing = reqwest::Request::new(parts.method, way.url().clone());
        *outgoing.headers_mut() = end_to_end(parts.headers);
        if !body.is_empty() {
            *outgoing.body_mut() = Some(body.into());
        }
        let ms = self.guard.caps.connect_ms_max.saturating_add(self.guard.caps.first_byte_ms_max);
        let answer = timeout(Duration::from_millis(ms), self.guard.send(&way, outgoing)).await;
        let answer = answer.map_err(|_| EgressError::TimedOut { what: "the answer did not begin", ms })??;
        check_head(answer.headers())?;
        let mut response = Response::new(());
        *response.status_mut() = answer.status();
        // The headers of the body's length stay: the body is forwarded unchanged.
        *response.headers_mut() = end_to_end(answer.headers().clone());
        if let Some(length) = answer.headers().get(http::header::CONTENT_LENGTH) {
            response.headers_mut().insert(http::header::CONTENT_LENGTH, length.clone());
        }
        let pieces = self.pieces(answer, parts.uri, until).map_ok(Frame::data);
        Ok(response.map(|()| StreamBody::new(pieces).boxed_unsync()))
    }

    async fn read(&self, body: Incoming) -> Result<Bytes, EgressError> {
        let max = self.guard.caps.request_bytes_max;
        let collected = Limited::new(body, usize::try_from(max).unwrap_or(usize::MAX)).collect().await;
        let over = || EgressError::Limit(LimitHit::new("request_bytes_max", max.saturating_add(1), max));
        Ok(collected.map_err(|_| over())?.to_bytes())
    }

    /// The body of a response, within the caps; an error breaks off the connection.
    fn pieces(
        self: &Arc<Self>,
        answer: reqwest::Response,
        uri: Uri,
        until: Instant,
    ) -> impl Stream<Item = Result<Bytes, EgressError>> + Send + 'static {
        let proxy = Arc::clone(self);
        stream::try_unfold(answer, move |mut answer| {
            let (proxy, uri) = (Arc::clone(&proxy), uri.clone());
            async move {
                let piece = proxy.piece(&mut answer, until).await;
                match piece {
                    Ok(piece) => Ok(piece.map(|piece| (piece, answer))),
                    Err(error) => {
                        let said = EgressError::refused(&error.to_string());
                        proxy.note(RefusedRequest::new(&uri, error));
                        Err(said)
                    }
                }
            }
        })
    }

    async fn piece(&self, answer: &mut reqwest::Response, until: Instant) -> Result<Option<Bytes>, EgressError> {
        let (between, total) = (self.guard.caps.between_bytes_ms_max, self.guard.caps.total_ms_max);
        let piece = timeout_at(until, timeout(Duration::from_millis(between), answer.chunk())).await;
        let piece = piece.map_err(|_| EgressError::TimedOut { what: "the exchange did not end", ms: total })?;
        let piece = piece.map_err(|_| EgressError::TimedOut { what: "the body stopped coming", ms: between })??;
        self.count(piece.as_ref().map_or(0, Bytes::len))?;
        Ok(piece)
    }

    // Tunnels.

    async fn open_tunnel(
        self: &Arc<Self>,
        request: Request<Incoming>,
        seat: Arc<OwnedSemaphorePermit>,
    ) -> Result<Response<Body>, EgressError> {
        let authority = request.uri().authority().ok_or(EgressError::BadAddress)?;
        let url = self.guard.check_tunnel(authority.as_str())?;
        if stand_in::receiver().is_some() {
            return Err(EgressError::refused(
                "a crash test opens no tunnel, since nobody could count what goes through",
            ));
        }
        let begins_as_tls = url.scheme() == "https";
        let way = self.guard.look_up(url).await?;
        let server = self.connect(&way).await?;
        let (proxy, uri) = (Arc::clone(self), request.uri().clone());
        let upgraded = hyper::upgrade::on(request);
        tokio::spawn(async move {
            // A tunnel outlives its connection's request.
            let _seat = seat;
            let Ok(client) = upgraded.await else { return };
            // Closed after the refusal is noted: a program that sees its connection end may ask for the reason at once.
            let mut client = TokioIo::new(client);
            if let Err(error) = proxy.carry(&mut client, server, begins_as_tls).await {
                proxy.note(RefusedRequest::new(&uri, error));
            }
        });
        Ok(Response::new(whole(String::new())))
    }

    async fn connect(&self, way: &CheckedRoute) -> Result<TcpStream, EgressError> {
        let ms = self.guard.caps.connect_ms_max;
        let connected = timeout(Duration::from_millis(ms), TcpStream::connect(way.addresses())).await;
        let connected =
            connected.map_err(|_| EgressError::TimedOut { what: "the server did not accept the connection", ms })?;
        connected.map_err(|error| EgressError::Unconnected(error.to_string()))
    }

    /// Forwards bytes in both directions until one side ends.
    async fn carry(
        &self,
        client: impl AsyncRead + AsyncWrite,
        server: TcpStream,
        begins_as_tls: bool,
    ) -> Result<(), EgressError> {
        let (mut from_client, to_client) = tokio::io::split(client);
        let (from_server, mut to_server) = tokio::io::split(server);
        let mut first = [0];
        if !matches!(from_client.read(&mut first).await, Ok(1)) {
            return Ok(());
        }
        if begins_as_tls && first != [TLS_HANDSHAKE] {
            return Err(EgressError::refused("a tunnel that was granted as https carries no TLS, so it was closed"));
        }
        if to_server.write_all(&first).await.is_err() {
            return Ok(());
        }
        tokio::select! {
            ended = pump(from_client, to_server, |bytes| self.count_sent(bytes)) => ended,
            ended = pump(from_server, to_client, |bytes| self.count(bytes)) => ended,
        }
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: impl Fn(usize) -> Result<(), EgressError>,
) -> Result<(), EgressError> {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        count(length)?;
        if to.write_all(&piece[..length]).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// The approximate size of a request's head.
fn head_bytes(parts: &http::request::Parts) -> usize {
    let fields = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>();
    parts.method.as_str().len() + parts.uri.to_string().len() + fields + 12
}

fn whole(text: String) -> Body {
    Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// Headers for the other end, without hop-by-hop headers.
fn end_to_end(mut headers: HeaderMap) -> HeaderMap {
    let listed = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let listed: Vec<HeaderName> =
        listed.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok()).collect();
    for name in listed {
        headers.remove(name);
    }
    for name in NOT_YOURS.into_iter().chain(["proxy-authenticate"]) {
        headers.remove(name);
    }
    headers
}
