//! Requests to a server that stands by, forwarded to the one that has the state.
//!
//! Bodies pass as they come, in both directions and without a limit on time: what a client may ask, how much and for
//! how long, is decided by the server that works. It sees its own name, so the name that a client used, and the origin
//! of a page, are checked here. A request is forwarded once, no redirect is followed, and no proxy of the environment
//! is used. No answer names the other server: nobody is asked for a token here.

use super::gate::{admit, check_place, is_safe};
use super::problem::Problem;
use super::rate::{ClientIdentity, RateLimiter};
use super::sse;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use longhaul_config::ServerUrl;
use longhaul_config::server::ServerSettings;
use longhaul_core::fault::Fault;
use longhaul_egress::server_connection::{self, ConnectionTimes};
use longhaul_listen::stopped;
use reqwest::{Client, Url};
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;

/// Marks a request that was forwarded, so that two servers which each take the other for the one that works send it
/// round in no circle. It gives nobody a right.
const FORWARDED_BY: HeaderName = HeaderName::from_static("longhaul-forwarded-by");

/// The time after which a client may ask again.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The times of connections. The other server closes an unused one after 10 s.
const TIMES: ConnectionTimes =
    ConnectionTimes { connect: Duration::from_secs(5), idle: Duration::from_secs(5), probe: Duration::from_secs(10) };

/// Headers about one connection, which are never forwarded.
const OF_CONNECTION: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers of requests that are not forwarded: those that this server answers itself or the client writes anew, the
/// origin, which was checked by the name of this server, and cookies of other services of its host.
const OF_REQUEST: [&str; 5] = ["content-length", "cookie", "expect", "host", "origin"];

/// Headers of responses that are not forwarded: the length is that of the body, and no server of ours sets a cookie.
const OF_RESPONSE: [&str; 2] = ["content-length", "set-cookie"];

type Cause = Box<dyn Error + Send + Sync>;

/// Forwards requests.
pub(super) struct Forwarder {
    settings: ServerSettings,
    /// The rates of addresses. The other server sees this machine's address for all clients without a token.
    rates: RateLimiter,
    /// The address of the server that has the state. Its sender is dropped once that is this one.
    holder: watch::Receiver<Option<ServerUrl>>,
    /// Becomes true when this server stops.
    stop: watch::Receiver<bool>,
    /// The clients without TLS and with it, made when they are needed: TLS loads the authorities of the machine.
    clients: [OnceLock<Client>; 2],
}

impl Forwarder {
    /// Forwards to the address that `holder` has, until `stop` becomes true.
    pub(super) fn new(
        settings: ServerSettings,
        holder: watch::Receiver<Option<ServerUrl>>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self { settings, rates: RateLimiter::default(), holder, stop, clients: [const { OnceLock::new() }; 2] }
    }

    /// The response of the server that has the state. `id` is that of the request here.
    ///
    /// # Errors
    /// For a request that is refused here, and where no answer comes.
    pub(super) async fn forward(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
        id: &str,
    ) -> Result<Response, Problem> {
        check_place(&self.settings, &request)?;
        admit(&self.rates, ClientIdentity::Address(peer.ip()), &self.settings)?;
        if request.headers().contains_key(FORWARDED_BY) {
            let detail = "another server forwarded this request, and this one stands by, too; try again, and where this \
                          stays so, see that `url` in [server] of server.toml names each server itself";
            return Err(later(detail));
        }
        let holder = self.holder()?;
        let method = request.method().clone();
        let request = outgoing(request, &holder, id)?;
        let mut ended = Box::pin(ended(self.holder.clone(), self.stop.clone(), holder.clone()));
        let sending = self.client(&holder)?.execute(request);
        let answered = tokio::select! {
            answered = sending => answered,
            () = &mut ended => return Err(cut_off(&method)),
        };
        let response = answered.map_err(|error| unanswered(&method, error, id))?;
        incoming(&method, response, ended)
    }

    fn holder(&self) -> Result<ServerUrl, Problem> {
        if self.holder.has_changed().is_err() {
            return Err(later("this server takes over at this moment; try again"));
        }
        let known = self.holder.borrow().clone();
        known.ok_or_else(|| {
            later(
                "this server stands by, and knows no address of the one that has the state; ask that one, or give each \
                 server a `url` in [server] of server.toml",
            )
        })
    }

    fn client(&self, holder: &ServerUrl) -> Result<&Client, Problem> {
        let made = &self.clients[usize::from(holder.is_secure())];
        if let Some(client) = made.get() {
            return Ok(client);
        }
        let client = client(holder.is_secure())?;
        Ok(made.get_or_init(|| client))
    }
}

/// A client for forwarding, with TLS or without.
fn client(secure: bool) -> Result<Client, Problem> {
    let builder = server_connection::builder(secure, TIMES)
        .map_err(|error| Problem::failed(format!("TLS cannot be used on this machine: {error}")))?;
    let built = builder.no_proxy().no_gzip().no_brotli().no_zstd().no_deflate().http1_only().build();
    built.map_err(|error| Problem::failed(format!("no client for forwarding: {}", error.without_url())))
}

/// The request as it is sent to the other server.
fn outgoing(request: Request<Incoming>, holder: &ServerUrl, id: &str) -> Result<reqwest::Request, Problem> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let address = path.starts_with('/').then(|| Url::parse(&format!("{}{path}", holder.as_str())).ok()).flatten();
    let address = address.ok_or_else(|| Problem::new(StatusCode::BAD_REQUEST, "the address has no path"))?;
    let mut request = reqwest::Request::new(parts.method, address);
    *request.headers_mut() = passing(&parts.headers, &OF_REQUEST);
    if let Ok(id) = HeaderValue::from_str(id) {
        request.headers_mut().insert(FORWARDED_BY, id);
    }
    *request.body_mut() = Some(reqwest::Body::wrap(body));
    Ok(request)
}

/// The response as the client gets it. Its body ends when `ended` does.
fn incoming(method: &Method, response: reqwest::Response, ended: Ended) -> Result<Response, Problem> {
    let (parts, body) = http::Response::<reqwest::Body>::from(response).into_parts();
    if parts.status.is_informational() {
        return Err(Problem::new(StatusCode::BAD_GATEWAY, "the server that has the state changed the protocol"));
    }
    let mut headers = passing(&parts.headers, &OF_RESPONSE);
    // A response without a body tells the length that it would have.
    if let Some(length) = parts.headers.get(header::CONTENT_LENGTH).filter(|_| *method == Method::HEAD) {
        headers.insert(header::CONTENT_LENGTH, length.clone());
    }
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_stream = kind.starts_with(sse::MEDIA_TYPE.as_bytes());
    let mut response = Response::new(axum::body::Body::new(ForwardedBody { body, ended: Some(ended), is_stream }));
    *response.status_mut() = parts.status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// The headers that are forwarded: those without `dropped`, and without those of the connection.
fn passing(headers: &HeaderMap, dropped: &[&str]) -> HeaderMap {
    let listed = headers.get_all(header::CONNECTION).iter().filter_map(|line| line.to_str().ok());
    let listed: Vec<&str> = listed.flat_map(|line| line.split(',')).map(str::trim).collect();
    let passes = |name: &str| {
        !OF_CONNECTION.contains(&name)
            && !dropped.contains(&name)
            && !listed.iter().any(|listed| listed.eq_ignore_ascii_case(name))
    };
    let mut passing = HeaderMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| passes(name.as_str())) {
        passing.append(name, value.clone());
    }
    passing
}

type Ended = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Waits until another server than `known` has the state, or this one stops.
async fn ended(mut holder: watch::Receiver<Option<ServerUrl>>, mut stop: watch::Receiver<bool>, known: ServerUrl) {
    let another = async {
        let _ = holder.wait_for(|holder| holder.as_ref() != Some(&known)).await;
    };
    tokio::select! {
        () = another => {}
        () = stopped(&mut stop) => {}
    }
}

fn unanswered(method: &Method, error: reqwest::Error, id: &str) -> Problem {
    let never_sent = error.is_connect();
    tracing::warn!(request = id, "a request was not forwarded: {:#}", Fault::from(error.without_url()));
    if never_sent {
        return later("this server stands by, and the one that has the state cannot be reached from here; try again");
    }
    cut_off(method)
}

/// The problem of a request that may have been carried out.
fn cut_off(method: &Method) -> Problem {
    if is_safe(method) {
        return later("the server that has the state ended before its answer; try again");
    }
    let detail = "the server that has the state ended before its answer, and may have done what was asked; look at the \
                  state before you ask again";
    Problem::new(StatusCode::BAD_GATEWAY, detail)
}

fn later(detail: &str) -> Problem {
    Problem::later(StatusCode::SERVICE_UNAVAILABLE, RETRY_AFTER, detail)
}

/// The body of a forwarded response.
struct ForwardedBody {
    body: reqwest::Body,
    /// None once it has ended before its time.
    ended: Option<Ended>,
    /// True for events, whose stream may end anywhere: clients go on from their last number. Any other body is broken
    /// off, so that half of it is not taken for the whole.
    is_stream: bool,
}

impl Body for ForwardedBody {
    type Data = Bytes;
    type Error = Cause;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cause>>> {
        let this = self.get_mut();
        let Some(ended) = &mut this.ended else { return Poll::Ready(None) };
        if ended.as_mut().poll(cx).is_ready() {
            this.ended = None;
            let broken = io::Error::new(io::ErrorKind::ConnectionAborted, "another server has the state");
            return Poll::Ready((!this.is_stream).then(|| Err(broken.into())));
        }
        Pin::new(&mut this.body).poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.ended.is_none() || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
