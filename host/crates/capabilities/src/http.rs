//! Outgoing HTTP for tools and memory backends.
//!
//! A request passes its gates in order: the grant, the addresses behind the name, the limits on size.
//! The name is resolved once, every address is checked, and only checked addresses are connected to.
//! A redirect goes back to the guest, which asks again and is checked again. There is no proxy of the
//! environment, no cookie, no retry, no connection kept for the next request. A refusal is an error
//! of `wasi:http` and a line of the plugin's log. Pure worlds do not have this module. In tests an
//! [`Exchange`] stands behind the grant and the limits, and nothing leaves the process.

mod address;
mod body;
mod fault;
#[cfg(test)]
mod tests;

use crate::ctx::{Ctx, Setup};
use crate::log::LogBook;
use ::http::{Method, Request, Response};
use address::{Resolve, System};
use bytes::Bytes;
use longhaul_core::Denial;
use longhaul_core::grant::Grants;
use longhaul_core::text::truncate;
use reqwest::{Client, Url};
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use wasmtime::component::Linker;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView};

/// Time to resolve a name, and again to connect, TLS included.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Time from the connection to the head of the response, the sending of the request included.
const FIRST_BYTE_MAX: Duration = Duration::from_secs(30);

/// Time between two pieces of a response.
const BETWEEN_BYTES_MAX: Duration = Duration::from_secs(30);

/// Bytes of the headers of one message, in either direction; servers commonly take 8 to 32 KiB.
const FIELD_BYTES_MAX: usize = 64 << 10;

/// Headers of one response: hyper's own default, said here so that it stays.
const FIELDS_MAX: usize = 100;

/// Bytes of the request's body that the host buffers; wasmtime's default of 1 MiB, times the handles
/// that a guest may hold, would be a gigabyte.
const CHUNK_BYTES_MAX: usize = 64 << 10;

/// Requests of one invocation at once, up to the end of their responses.
const REQUESTS_MAX: usize = 32;

/// Links `wasi:http`, for worlds that act.
///
/// # Errors
/// When the linker has it already.
pub fn add_to_linker(linker: &mut Linker<Ctx>) -> wasmtime::Result<()> {
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)
}

/// Answers requests in place of the network, in tests. What gets here has passed its grant.
#[async_trait::async_trait]
pub trait Exchange: Send + Sync {
    /// The answer to a request.
    async fn answer(&self, request: Request<Bytes>) -> Response<Bytes>;
}

/// Outgoing HTTP of one invocation.
pub(crate) struct Outgoing {
    wasi: WasiHttpCtx,
    gate: Gate,
}

/// What `wasi:http` asks when a guest sends a request.
struct Gate(Arc<Rules>);

/// What decides on a request.
struct Rules {
    plugin: String,
    grants: Grants,
    bytes_max: u64,
    log: LogBook,
    resolver: Arc<dyn Resolve>,
    exchange: Option<Arc<dyn Exchange>>,
    permits: Arc<Semaphore>,
}

/// How long each part of an exchange may take: ours, or the guest's where that is shorter.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Times {
    connect: Duration,
    first_byte: Duration,
    between_bytes: Duration,
}

type Sent = (Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl WasiHttpView for Ctx {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.http.view(&mut self.table)
    }
}

impl Outgoing {
    pub(crate) fn new(setup: &Setup, log: &LogBook) -> Self {
        Self::with(Rules {
            plugin: setup.scope.plugin.clone(),
            grants: setup.grants.clone(),
            bytes_max: setup.limits.host_bytes_max,
            log: log.clone(),
            resolver: Arc::new(System),
            exchange: setup.services.exchange.clone(),
            permits: Arc::new(Semaphore::new(REQUESTS_MAX)),
        })
    }

    fn with(rules: Rules) -> Self {
        let mut wasi = WasiHttpCtx::new();
        wasi.set_field_size_limit(FIELD_BYTES_MAX);
        Self { wasi, gate: Gate(Arc::new(rules)) }
    }

    fn view<'a>(&'a mut self, table: &'a mut wasmtime::component::ResourceTable) -> WasiHttpCtxView<'a> {
        WasiHttpCtxView { ctx: &mut self.wasi, table, hooks: &mut self.gate }
    }
}

impl WasiHttpHooks for Gate {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _answered: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Sent, Error>> + Send> {
        let rules = Arc::clone(&self.0);
        Box::new(async move {
            let host = request.uri().host().unwrap_or_default().to_owned();
            match rules.send(request, Times::of(options)).await {
                Ok(response) => Ok((response, Box::new(async { Ok(()) }) as _)),
                Err(error) => Err(fault::told(&rules.log, &host, error)),
            }
        })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK_BYTES_MAX
    }
}

impl Rules {
    #[tracing::instrument(name = "http.send", skip_all, fields(plugin = %self.plugin, method = %request.method()))]
    async fn send(&self, request: Request<WasiBody>, times: Times) -> Result<Response<WasiBody>, Error> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| Error::ConnectionLimitReached)?;
        let url = self.check_grant(&request)?;
        if let Some(exchange) = &self.exchange {
            let host = url.host_str().unwrap_or_default().to_owned();
            let answer = exchange.answer(body::whole(request, self.bytes_max).await?).await;
            return body::counted(answer.into(), self.count(host, times, permit));
        }
        let checked = timeout(times.connect, self.check_addresses(&url)).await.map_err(|_| Error::DnsTimeout)??;
        let host = url.host_str().unwrap_or_default().to_owned();
        let request = body::limited(url, request, self.bytes_max)?;
        let client = client(request.url().scheme() == "https", checked, times.connect)?;
        let answer = timeout(times.connect + times.first_byte, client.execute(request)).await;
        let response = answer.map_err(|_| Error::HttpResponseTimeout)?.map_err(fault::of_client)?;
        body::counted(response, self.count(host, times, permit))
    }

    fn count(&self, host: String, times: Times, permit: OwnedSemaphorePermit) -> body::Count {
        body::Count { host, max: self.bytes_max, between: times.between_bytes, log: self.log.clone(), permit }
    }

    /// The first gate: what the operator granted. Gives the address as the client will read it.
    fn check_grant(&self, request: &Request<WasiBody>) -> Result<Url, Error> {
        let uri = request.uri();
        let authority = uri.authority().ok_or(Error::HttpRequestUriInvalid)?.as_str();
        // Neither shown nor logged: it may be a password.
        if authority.contains('@') {
            return Err(fault::refused("an address with a user in it is refused; send an `authorization` header"));
        }
        let scheme = uri.scheme_str().unwrap_or_default();
        let fix = || address::fix(&self.grants.table, &truncate(&format!("{scheme}://{authority}"), 200));
        let allowed = self.grants.check_host(scheme, authority);
        allowed.map_err(|denial| fault::denied(Denial { fix: fix(), ..denial }))?;
        // A tunnel through a granted host would end at a host that is not.
        if request.method() == Method::CONNECT {
            return Err(Error::HttpRequestMethodInvalid);
        }
        let url = Url::parse(&uri.to_string()).map_err(|_| Error::HttpRequestUriInvalid)?;
        // The client reads `0177.0.0.1` and `0x7f.1` as 127.0.0.1; the grant compared the text. Where
        // the two see different hosts, nothing is sent.
        let (read, written) = (url.host_str().unwrap_or_default(), uri.host().unwrap_or_default());
        if !read.eq_ignore_ascii_case(written) {
            return Err(fault::refused(&format!("the host `{written}` means `{read}`; write it like that")));
        }
        Ok(url)
    }

    /// The second gate: where the name leads. One address that is refused refuses the request, or an
    /// attacker's name could hide it among good ones.
    async fn check_addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, Error> {
        let host = url.host_str().ok_or(Error::HttpRequestUriInvalid)?;
        let port = url.port_or_known_default().ok_or(Error::HttpRequestUriInvalid)?;
        let literal = address::literal(host);
        let addresses = match literal {
            Some(ip) => vec![SocketAddr::new(ip, port)],
            None => self.resolver.resolve(host, port).await.map_err(|error| fault::unresolved(&error))?,
        };
        if addresses.is_empty() {
            return Err(Error::DestinationNotFound);
        }
        let named = self.is_named(url.scheme(), host, port);
        for ip in addresses.iter().map(SocketAddr::ip) {
            let named = named && (literal.is_some() || (host == "localhost" && ip.is_loopback()));
            if let Some(kind) = address::special(ip)
                && !named
            {
                return Err(fault::denied(address::denial(&self.grants.table, url, ip, kind)));
            }
        }
        Ok(addresses)
    }

    /// Whether a grant says exactly this, not by a wildcard: `*.0.0.1` covers the text of an address.
    fn is_named(&self, scheme: &str, host: &str, port: u16) -> bool {
        let exact = format!("{scheme}://{host}:{port}");
        self.grants.hosts.iter().any(|pattern| String::from(pattern.clone()) == exact)
    }
}

impl Times {
    fn of(options: Option<RequestOptions>) -> Self {
        let options = options.unwrap_or_default();
        let shorter = |guest: Option<Duration>, ours: Duration| guest.map_or(ours, |guest| guest.min(ours));
        Self {
            connect: shorter(options.connect_timeout, CONNECT_MAX),
            first_byte: shorter(options.first_byte_timeout, FIRST_BYTE_MAX),
            between_bytes: shorter(options.between_bytes_timeout, BETWEEN_BYTES_MAX),
        }
    }
}

/// A client for one request. It knows the checked addresses and has no other way to resolve a name.
fn client(secure: bool, checked: Vec<SocketAddr>, connect: Duration) -> Result<Client, Error> {
    let builder = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .http1_only()
        .http1_max_headers(FIELDS_MAX)
        .pool_max_idle_per_host(0)
        .connect_timeout(connect)
        .tls_backend_preconfigured(tls(secure)?)
        .dns_resolver(Arc::new(address::Checked(checked)));
    // The guest sees what the server sent, so that what is counted is what it gets.
    let builder = builder.no_gzip().no_brotli().no_zstd().no_deflate();
    builder.build().map_err(fault::of_client)
}

/// The authorities that the machine trusts, read once. Plain HTTP needs none and gets none.
fn tls(secure: bool) -> Result<rustls::ClientConfig, Error> {
    static SECURE: OnceLock<rustls::ClientConfig> = OnceLock::new();
    if let (true, Some(config)) = (secure, SECURE.get()) {
        return Ok(config.clone());
    }
    let failed = |error: rustls::Error| fault::refused(&format!("TLS cannot be used on this machine: {error}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(failed)?;
    if !secure {
        return Ok(builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth());
    }
    let config = builder.with_platform_verifier().map_err(failed)?.with_no_client_auth();
    Ok(SECURE.get_or_init(|| config).clone())
}
