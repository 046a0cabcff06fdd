//! The desk over streamable HTTP: who may ask is decided before anything is read.

use super::desk::Desk;
use crate::home::Home;
use crate::secrets::Vault;
use crate::server::http::listen;
use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use longhaul_core::Digest;
use longhaul_egress::Secret;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Connections at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 64;

type Answer = Response<BoxBody<Bytes, Infallible>>;
type Service = StreamableHttpService<Desk, LocalSessionManager>;

/// Who may come in, and where.
pub struct Entry {
    address: SocketAddr,
    token: Option<Digest>,
    names: Vec<String>,
    origins: Vec<String>,
}

impl Entry {
    /// Refuses to stand open to a network.
    pub fn new(
        address: SocketAddr,
        token: Option<String>,
        names: Vec<String>,
        origins: Vec<String>,
        home: &Home,
    ) -> anyhow::Result<Self> {
        if token.is_none() && !address.ip().is_loopback() {
            bail!(
                "{address} can be reached by others; set a token with `longhaul secrets set mcp-token --any-project` and add --token mcp-token"
            );
        }
        let secret = token.map(|name| Vault::of(home).get_own(&name)).transpose()?;
        // Compared by digest, so that the time it takes tells nothing of the value.
        let token = secret.map(|secret: Secret| Digest::of(secret.expose().as_bytes()));
        let own = if address.ip().is_unspecified() { Vec::new() } else { vec![address.ip().to_string()] };
        let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let names = local.into_iter().chain(own).chain(names).collect();
        Ok(Self { address, token, names, origins })
    }

    fn lets_in(&self, request: &Request<Incoming>) -> bool {
        let Some(token) = &self.token else { return true };
        let said = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let said = said.and_then(|value| value.strip_prefix("Bearer "));
        said.is_some_and(|said| Digest::of(said.trim().as_bytes()) == *token)
    }
}

/// Serves until Ctrl-C.
pub async fn serve(desk: Desk, entry: Entry) -> anyhow::Result<()> {
    let listener =
        TcpListener::bind(entry.address).await.with_context(|| format!("cannot listen at {}", entry.address))?;
    outln!("serving MCP at http://{}/mcp", listener.local_addr()?);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(entry.names.clone())
        .with_allowed_origins(entry.origins.clone())
        .enforce_origin_validation();
    let service =
        StreamableHttpService::new(move || Ok(desk.clone()), Arc::new(LocalSessionManager::default()), config);
    let entry = Arc::new(entry);
    // Nobody says the end: a session may be open for ever, and is not waited for.
    let (_running, stop) = watch::channel(false);
    let serving = listen::serve(listener, CONNECTIONS_MAX, stop, move |_, request| {
        answer(service.clone(), Arc::clone(&entry), request)
    });
    tokio::select! {
        () = serving => Ok(()),
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
    }
}

async fn answer(service: Service, entry: Arc<Entry>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    if !entry.lets_in(&request) {
        return Ok(plain(StatusCode::UNAUTHORIZED, "send the token as `authorization: Bearer ...`"));
    }
    if request.uri().path() != "/mcp" {
        return Ok(plain(StatusCode::NOT_FOUND, "MCP is at /mcp"));
    }
    Ok(service.handle(request).await)
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *answer.status_mut() = status;
    if status == StatusCode::UNAUTHORIZED {
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    }
    answer
}
