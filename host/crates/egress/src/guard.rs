//! The gates of one caller, in their order, and the client behind them.
//!
//! [`Guard::check`] is the first gate and uses no network; [`Guard::look_up`] is the second; [`Guard::send`] connects
//! to the checked addresses, once. [`Guard::fetch`] also follows redirects, reads responses and enforces timeouts.

use crate::address::{self, Checked, Resolve, System};
use crate::decode::Cleaner;
use crate::error::EgressError;
use crate::secret::SecretPlaceholders;
use crate::{stand_in, tls};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Uri};
use longhaul_core::Denial;
use longhaul_core::grant::Grants;
use longhaul_core::text::truncate;
use reqwest::{Client, Url};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Bytes of the headers of one message, in either direction; servers commonly take 8 to 32 KiB.
pub const FIELD_BYTES_MAX: usize = 64 << 10;

/// Headers of one response: hyper's own default, set here so that it stays.
const FIELDS_MAX: usize = 100;

/// The caps of one request. Each field has its default in [`RequestLimits::default`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Bytes of the body of a request. Default 1 MiB. One byte more, and nothing is sent.
    pub request_bytes_max: u64,
    /// Bytes of the body of a response, as sent and again after decompression. Default 10 MiB. The reading ends with
    /// an error at the first byte over it.
    pub response_bytes_max: u64,
    /// Time to resolve a name, and again to connect, TLS included, in milliseconds. Default 10 000.
    pub connect_ms_max: u64,
    /// Time from the connection to the head of the response, in milliseconds. Default 30 000.
    pub first_byte_ms_max: u64,
    /// Time between two pieces of a response, in milliseconds. Default 30 000.
    pub between_bytes_ms_max: u64,
    /// Time of all together, from the first name resolved to the last byte read, in milliseconds. Default 120 000.
    pub total_ms_max: u64,
    /// Redirects that are followed. Default 5. With 0 a redirect is an answer like any other.
    pub redirects_max: u32,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            request_bytes_max: 1 << 20,
            response_bytes_max: 10 << 20,
            connect_ms_max: 10_000,
            first_byte_ms_max: 30_000,
            between_bytes_ms_max: 30_000,
            total_ms_max: 120_000,
            redirects_max: 5,
        }
    }
}

/// The grants and caps of one caller.
#[derive(Clone)]
pub struct Guard {
    grants: Grants,
    pub(crate) caps: RequestLimits,
    resolver: Arc<dyn Resolve>,
    pub(crate) placeholders: Arc<SecretPlaceholders>,
}

/// A checked route: an address as the client reads it, and its resolved addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedRoute {
    pub(crate) url: Url,
    pub(crate) addresses: Vec<SocketAddr>,
}

impl CheckedRoute {
    /// The address.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The addresses to connect to, in this order, and no others.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Guard {
    /// A guard for the hosts of `grants`; of the other fields only the table is used, for refusals.
    #[must_use]
    pub fn new(grants: Grants, caps: RequestLimits) -> Self {
        Self { grants, caps, resolver: Arc::new(System), placeholders: Arc::default() }
    }

    /// Puts these secrets into requests, and redacts them in responses.
    #[must_use]
    pub fn with_placeholders(mut self, placeholders: Arc<SecretPlaceholders>) -> Self {
        self.placeholders = placeholders;
        self
    }

    /// Uses another resolver than the machine's.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Arc<dyn Resolve>) -> Self {
        self.resolver = resolver;
        self
    }

    /// The first gate: the operator's grants, and the form of the address. Returns the address as the client will read
    /// it.
    ///
    /// # Errors
    /// The refusal, with its fix where there is one.
    pub fn check(&self, method: &Method, uri: &Uri) -> Result<Url, EgressError> {
        let authority = uri.authority().ok_or(EgressError::BadAddress)?.as_str();
        // Neither shown nor logged: it may be a password.
        if authority.contains('@') {
            return Err(EgressError::refused(
                "an address with a user in it is refused; send an `authorization` header",
            ));
        }
        check_path(uri.path_and_query().map_or("", PathAndQuery::as_str))?;
        let scheme = uri.scheme_str().unwrap_or_default();
        self.check_grant(method, scheme, authority)?;
        if matches!(*method, Method::CONNECT | Method::TRACE) {
            return Err(EgressError::BadMethod(method.to_string()));
        }
        let url = Url::parse(&uri.to_string()).map_err(|_| EgressError::BadAddress)?;
        // The client reads `0177.0.0.1` and `0x7f.1` as 127.0.0.1; the grant compares the text. If the two see
        // different hosts, nothing is sent.
        let (read, written) = (url.host_str().unwrap_or_default(), uri.host().unwrap_or_default());
        if !read.eq_ignore_ascii_case(written) {
            return Err(EgressError::refused(&format!("the host `{written}` means `{read}`; write it like that")));
        }
        Ok(url)
    }

    /// The first gate of a tunnel to `authority`, `host:port`. Its content cannot be read, so it needs a grant of all
    /// methods, or of `CONNECT` by that name. Returns the address of the grant: if that is https, only TLS may go
    /// through.
    ///
    /// # Errors
    /// The refusal, with its fix where there is one.
    pub fn check_tunnel(&self, authority: &str) -> Result<Url, EgressError> {
        if authority.contains('@') {
            return Err(EgressError::refused("an address with a user in it is refused"));
        }
        let as_https = self.check_grant(&Method::CONNECT, "https", authority);
        let scheme = match as_https {
            Ok(()) => "https",
            // A web socket without TLS uses this gate too.
            Err(refusal) => {
                self.check_grant(&Method::CONNECT, "http", authority).map(|()| "http").map_err(|_| refusal)?
            }
        };
        let url = Url::parse(&format!("{scheme}://{authority}")).map_err(|_| EgressError::BadAddress)?;
        let written = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        let read = url.host_str().unwrap_or_default();
        if !read.eq_ignore_ascii_case(written) {
            return Err(EgressError::refused(&format!("the host `{written}` means `{read}`; write it like that")));
        }
        Ok(url)
    }

    fn check_grant(&self, method: &Method, scheme: &str, authority: &str) -> Result<(), EgressError> {
        let shown = truncate(&format!("{scheme}://{authority}"), 200);
        let fix = |url: &str| address::fix(&self.grants.table, url);
        self.grants
            .check_host(scheme, authority)
            .map_err(|denial| EgressError::Denied(Denial { fix: fix(&shown), ..denial }))?;
        if self.grants.hosts.iter().any(|host| host.covers(scheme, authority) && host.allows(method.as_str())) {
            return Ok(());
        }
        let method = truncate(method.as_str(), 20);
        let reason = format!("this plugin may not send {method} to `{shown}`");
        Err(EgressError::Denied(Denial { reason, fix: fix(&format!("{method} {shown}")) }))
    }

    /// The second gate: the addresses of the name. One refused address refuses the request, or an attacker's name could
    /// hide it among good ones.
    ///
    /// # Errors
    /// The refusal, or that the name has no address.
    pub async fn look_up(&self, url: Url) -> Result<CheckedRoute, EgressError> {
        if let Some(receiver) = stand_in::receiver() {
            return Ok(CheckedRoute { url, addresses: vec![receiver] });
        }
        let host = url.host_str().ok_or(EgressError::BadAddress)?;
        let port = url.port_or_known_default().ok_or(EgressError::BadAddress)?;
        let literal = address::literal(host);
        let addresses = match literal {
            Some(ip) => vec![SocketAddr::new(ip, port)],
            None => self.resolve(host, port).await?,
        };
        if addresses.is_empty() {
            return Err(EgressError::NoAddress(truncate(host, 200)));
        }
        let named = self.is_named(url.scheme(), host, port);
        for ip in addresses.iter().map(SocketAddr::ip) {
            let named = named && (literal.is_some() || (host == "localhost" && ip.is_loopback()));
            if let Some(kind) = address::special(ip)
                && !named
            {
                return Err(EgressError::Denied(address::denial(&self.grants.table, &url, ip, kind)));
            }
        }
        Ok(CheckedRoute { url, addresses })
    }

    async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, EgressError> {
        let ms = self.caps.connect_ms_max;
        let asked = timeout(Duration::from_millis(ms), self.resolver.resolve(host, port)).await;
        let asked = asked.map_err(|_| EgressError::TimedOut { what: "the name was not resolved", ms })?;
        asked.map_err(|error| EgressError::Unresolved {
            host: truncate(host, 200),
            reason: truncate(&error.to_string(), 200),
        })
    }

    /// True when a grant names exactly this, not by a wildcard: `*.0.0.1` covers the text of an address.
    fn is_named(&self, scheme: &str, host: &str, port: u16) -> bool {
        self.grants.hosts.iter().any(|pattern| pattern.origin() == format!("{scheme}://{host}:{port}"))
    }

    /// Sends one request along its route and returns the head of the response. Follows no redirect and counts no byte:
    /// the caller does.
    ///
    /// # Errors
    /// A secret in a wrong place, or an error of the client.
    pub async fn send(
        &self,
        way: &CheckedRoute,
        mut request: reqwest::Request,
    ) -> Result<reqwest::Response, EgressError> {
        // The route was checked, and the request is the caller's: an unchecked destination is refused.
        if request.url().origin() != way.url.origin() {
            return Err(EgressError::refused("the request has another destination than the one that was checked"));
        }
        match stand_in::receiver() {
            Some(receiver) => self.turn(way, &mut request, receiver)?,
            None => self.placeholders.fill(&way.url, request.headers_mut())?,
        }
        let client = self.client(way)?;
        Ok(client.execute(request).await?)
    }

    /// Turns a request to the receiver of a crash test, which speaks plain HTTP. Secrets pass their gate as always and
    /// are not sent: each is for its own host alone.
    pub(crate) fn turn(
        &self,
        way: &CheckedRoute,
        request: &mut reqwest::Request,
        receiver: SocketAddr,
    ) -> Result<(), EgressError> {
        self.placeholders.fill(&way.url, &mut request.headers().clone())?;
        stand_in::turn(request, receiver)
    }

    /// Redacts the secrets in the head of a response, and returns the processing of its body: none without secrets. A
    /// compressed body is searched too, so it is decompressed afterwards.
    ///
    /// # Errors
    /// When the compression of the body is unknown.
    pub fn cleaner(&self, headers: &mut HeaderMap) -> Result<Option<Cleaner>, EgressError> {
        let Some(stream_redactor) = self.placeholders.stream_redactor() else { return Ok(None) };
        self.placeholders.clean_head(headers);
        Ok(Some(Cleaner::new(headers, Some(stream_redactor))?))
    }

    /// A client for one request. It knows the checked addresses and has no other way to resolve a name.
    fn client(&self, way: &CheckedRoute) -> Result<Client, EgressError> {
        let tls = tls::config(way.url.scheme() == "https").map_err(|error| EgressError::Tls(error.to_string()))?;
        let builder = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .http1_only()
            .http1_max_headers(FIELDS_MAX)
            .pool_max_idle_per_host(0)
            .connect_timeout(Duration::from_millis(self.caps.connect_ms_max))
            .tls_backend_preconfigured(tls)
            .dns_resolver(Arc::new(Checked(way.addresses.clone())))
            // The caller sees the server's bytes, so that the counted bytes are the ones it gets.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate();
        Ok(builder.build()?)
    }
}

/// Refuses a path that could be read as part of the text before it: after `a.com:80`, `81/` would be part of the port,
/// and `.evil.com/` part of the host. The parser of addresses refuses most of them today; older versions accept them.
pub(crate) fn check_path(path: &str) -> Result<(), EgressError> {
    if path.is_empty() || path.starts_with(['/', '?']) {
        return Ok(());
    }
    Err(EgressError::refused("a path begins with `/`; ask another host in a request of its own, with its own grant"))
}
