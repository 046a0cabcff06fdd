//! MCP over streamable HTTP. Access is checked before a request is read, and again as long as its answer goes on.

use super::handler::McpHandler;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use longhaul_core::Digest;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_home::Home;
use longhaul_security::secrets::SecretStore;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// Most connections at once. Further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 64;

/// Most time for which an answer goes on after its token was removed.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

type HttpResponse = Response<BoxBody<Bytes, Infallible>>;
type McpService = StreamableHttpService<McpHandler, LocalSessionManager>;

/// The address of the server, and the clients that it admits.
pub struct HttpAccess {
    address: SocketAddr,
    token: Option<TokenSource>,
    names: Vec<String>,
    origins: Vec<String>,
}

impl HttpAccess {
    /// Refuses to serve an unprotected address to a network.
    pub fn new(
        address: SocketAddr,
        token: Option<String>,
        names: Vec<String>,
        origins: Vec<String>,
        home: &Home,
    ) -> fault::Result<Self> {
        if token.is_none() && !address.ip().is_loopback() {
            bail!(
                "{address} can be reached by others; set a token with `longhaul secrets set mcp-token --any-project` and add --token mcp-token"
            );
        }
        let token = token.map(|name| TokenSource { secret_store: SecretStore::of(home), name });
        if let Some(TokenSource { secret_store, name }) = &token {
            secret_store.get_own(name)?;
        }
        let own = if address.ip().is_unspecified() { Vec::new() } else { vec![address.ip().to_string()] };
        let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let names = local.into_iter().chain(own).chain(names).collect();
        Ok(Self { address, token, names, origins })
    }

    fn lets_in(&self, said: Option<&str>) -> bool {
        self.token.as_ref().is_none_or(|token| said.is_some_and(|said| token.is(said)))
    }
}

/// The secret that clients send. It is read for each request, so that a removed or changed one admits no client.
struct TokenSource {
    secret_store: SecretStore,
    name: String,
}

impl TokenSource {
    fn is(&self, said: &str) -> bool {
        // Compared by digest, so that the time of the comparison reveals nothing of the value.
        let digest = |text: &str| Digest::of(text.as_bytes());
        self.secret_store.get_own(&self.name).is_ok_and(|secret| digest(secret.expose()) == digest(said))
    }
}

/// The token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let said = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    said.strip_prefix("Bearer ").map(str::trim)
}

/// Serves until Ctrl-C.
pub async fn serve(handler: McpHandler, entry: HttpAccess) -> fault::Result<()> {
    let listener =
        TcpListener::bind(entry.address).await.with_context(|| format!("cannot listen at {}", entry.address))?;
    outln!("serving MCP at http://{}/mcp", listener.local_addr()?);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(entry.names.clone())
        .with_allowed_origins(entry.origins.clone())
        .enforce_origin_validation();
    let service =
        StreamableHttpService::new(move || Ok(handler.clone()), Arc::new(LocalSessionManager::default()), config);
    let entry = Arc::new(entry);
    // No one signals the end: a session may stay open for ever, and is not waited for.
    let (_running, stop) = watch::channel(false);
    let serving = longhaul_listen::serve(listener, CONNECTIONS_MAX, stop, move |_, request| {
        answer(service.clone(), Arc::clone(&entry), request)
    });
    tokio::select! {
        () = serving => Ok(()),
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
    }
}

async fn answer(
    service: McpService,
    entry: Arc<HttpAccess>,
    request: Request<Incoming>,
) -> Result<HttpResponse, Infallible> {
    let said = bearer(request.headers()).map(str::to_owned);
    if !entry.lets_in(said.as_deref()) {
        return Ok(plain(StatusCode::UNAUTHORIZED, "send the token as `authorization: Bearer ...`"));
    }
    if request.uri().path() != "/mcp" {
        return Ok(plain(StatusCode::NOT_FOUND, "MCP is at /mcp"));
    }
    Ok(watched(service.handle(request).await, entry, said))
}

/// Ends an answer early once its token is no longer valid, since a stream of events may be open for days.
fn watched(answer: HttpResponse, entry: Arc<HttpAccess>, said: Option<String>) -> HttpResponse {
    let mut look = tokio::time::interval_at(Instant::now() + LOOK_AGAIN, LOOK_AGAIN);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    answer.map(|body| Watched { body, entry, said, look }.boxed())
}

struct Watched {
    body: BoxBody<Bytes, Infallible>,
    entry: Arc<HttpAccess>,
    said: Option<String>,
    look: Interval,
}

impl Body for Watched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        while self.look.poll_tick(cx).is_ready() {
            if !self.entry.lets_in(self.said.as_deref()) {
                return Poll::Ready(None);
            }
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn plain(status: StatusCode, text: &'static str) -> HttpResponse {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *answer.status_mut() = status;
    if status == StatusCode::UNAUTHORIZED {
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::StreamBody;
    use longhaul_egress::Secret;
    use longhaul_security::secrets::SecretBinding;
    use tokio::time::timeout;

    /// Such streams used to go on until the server was restarted.
    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_its_token_is_removed_or_changed() {
        const TOKEN: &str = "tok-7777777777-cccccc";
        let folder = tempfile::tempdir().unwrap();
        let home = Home::find(Some(folder.path().to_owned())).unwrap();
        let secret_store = SecretStore::of(&home);
        let set =
            |value: &str| secret_store.set("t", &Secret::new(value).unwrap(), None, SecretBinding::default()).unwrap();
        set(TOKEN);
        let address = "127.0.0.1:0".parse().unwrap();
        let entry = Arc::new(HttpAccess::new(address, Some("t".into()), Vec::new(), Vec::new(), &home).unwrap());
        let open = || {
            let silent = StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>());
            watched(Response::new(silent.boxed()), Arc::clone(&entry), Some(TOKEN.to_owned())).into_body()
        };
        let (mut changed, mut removed) = (open(), open());
        assert!(timeout(LOOK_AGAIN * 3, changed.frame()).await.is_err(), "it goes on while the token is there");
        set("tok-8888888888-dddddd");
        assert!(changed.frame().await.is_none());
        set(TOKEN);
        assert!(timeout(LOOK_AGAIN * 3, removed.frame()).await.is_err(), "it was open meanwhile");
        secret_store.remove("t", None).unwrap();
        assert!(removed.frame().await.is_none());
        assert!(!entry.lets_in(Some(TOKEN)) && !entry.lets_in(None));
    }
}
