//! Authentication of requests, before their bodies are read.
//!
//! It checks the header `Host`, the origin of a page, the token and the rate of its holder, in this order; the scope is
//! checked at the route, by [`super::scopes`]. It takes no cookie and no token in a URL, and never says why it refuses
//! a token.

use super::problem::Problem;
use super::rate::{ClientIdentity, RateLimit, RateLimiter};
use super::state::AppState;
use axum::body::Body;
use axum::extract::FromRequestParts;
use http::request::Parts;
use http::uri::Authority;
use http::{Extensions, HeaderMap, Method, Request, StatusCode, Uri, header};
use longhaul_api::tokens::{AccessToken, IssuedToken, TokenScope};
use longhaul_config::server::ServerSettings;
use std::net::SocketAddr;
use std::time::Instant;

/// The identity of a client.
#[derive(Clone, Debug)]
pub enum Caller {
    /// The holder of a token.
    Holder {
        /// Its name, scopes and expiry.
        token: AccessToken,
        /// The token as the client sent it, so that a stream can check it again.
        sent: IssuedToken,
    },
    /// A client of this machine, at a server that needs no tokens.
    Local,
    /// A client without a token, at a path that needs none.
    Anybody,
}

impl Caller {
    /// Refuses a caller whose token does not cover the scope.
    pub fn expect(&self, scope: TokenScope) -> Result<(), Problem> {
        match self {
            Self::Local => Ok(()),
            Self::Holder { token, .. } if token.allows(scope) => Ok(()),
            Self::Holder { token, .. } => {
                let (name, scope) = (&token.name, scope.as_str());
                let detail = format!(
                    "the token `{name}` lacks the scope `{scope}`; make one with `longhaul token add NAME --scope {scope}`"
                );
                Err(Problem::new(StatusCode::FORBIDDEN, detail))
            }
            Self::Anybody => Err(Problem::unauthenticated()),
        }
    }

    /// Refuses a caller that was admitted and would not be now: its token was removed or has expired, or the server
    /// needs tokens since.
    pub fn expect_still(&self, state: &AppState, scope: TokenScope) -> Result<(), Problem> {
        let gone = |detail: String| Err(Problem::new(StatusCode::UNAUTHORIZED, detail));
        match self {
            Self::Holder { token, sent } if state.service.token(sent.expose())?.is_none() => gone(format!(
                "the token `{}` was removed or has expired; make one with `longhaul token add NAME --scope {}`",
                token.name,
                scope.as_str()
            )),
            Self::Local if state.settings().tokens => gone("this server asks for a token since".to_owned()),
            caller => caller.expect(scope),
        }
    }

    /// Expiry of its token, in milliseconds since 1970-01-01 UTC; none if it does not expire.
    pub fn expires_ms(&self) -> Option<u64> {
        match self {
            Self::Holder { token, .. } => token.expires_ms,
            Self::Local | Self::Anybody => None,
        }
    }
}

/// Admits a request, or refuses it with a problem. [`super::scopes::check`] then checks what its caller may do.
pub fn enter(state: &AppState, peer: SocketAddr, request: &Request<Body>) -> Result<Caller, Problem> {
    check_place(&state.settings(), request)?;
    let caller = caller(state, request);
    let who = match &caller {
        Ok(Caller::Holder { token, .. }) => ClientIdentity::Token(token.name.clone()),
        _ => ClientIdentity::Address(peer.ip()),
    };
    admit(&state.rates, who, &state.settings())?;
    caller
}

/// Counts a request of a client, or refuses it.
pub fn admit(rates: &RateLimiter, who: ClientIdentity, settings: &ServerSettings) -> Result<(), Problem> {
    rates.take(who, RateLimit::from(settings), Instant::now()).map_err(|wait| {
        let detail = "more requests than requests_per_second in [server] of server.toml allows; come again later";
        Problem::later(StatusCode::TOO_MANY_REQUESTS, wait, detail)
    })
}

/// Refuses a request to a host that is no name of this server, and changes by pages of other origins.
pub fn check_place<B>(settings: &ServerSettings, request: &Request<B>) -> Result<(), Problem> {
    let host = host(request.uri(), request.headers())?;
    if !settings.answers_to(host.host()) {
        let detail =
            format!("this server does not go by `{}`; add it to hosts in [server] of server.toml", host.host());
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    if is_safe(request.method()) { Ok(()) } else { refuse_other_pages(request.headers(), &host) }
}

fn caller(state: &AppState, request: &Request<Body>) -> Result<Caller, Problem> {
    if !needs_token(request.uri().path()) {
        return Ok(Caller::Anybody);
    }
    let said = request.headers().get(header::AUTHORIZATION);
    if said.is_none() && !state.settings().tokens {
        return Ok(Caller::Local);
    }
    let sent = said.and_then(|said| bearer(said.to_str().ok()?)).ok_or_else(Problem::unauthenticated)?;
    let token = state.service.token(sent)?.ok_or_else(Problem::unauthenticated)?;
    Ok(Caller::Holder { token, sent: IssuedToken::of(sent) })
}

fn bearer(said: &str) -> Option<&str> {
    let (scheme, token) = said.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// The host and port that the request names.
fn host(uri: &Uri, headers: &HeaderMap) -> Result<Authority, Problem> {
    let wrong = |detail: &str| Problem::new(StatusCode::BAD_REQUEST, detail);
    let mut said = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (said.next(), said.next()) else { return Err(wrong("say one header `Host`")) };
    let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    let host = host.filter(|host| !host.as_str().contains('@')).ok_or_else(|| wrong("the header `Host` is none"))?;
    match uri.authority() {
        Some(other) if *other != host => Err(wrong("the address and the header `Host` differ")),
        _ => Ok(host),
    }
}

/// True for a method that changes nothing.
pub fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
}

/// Refuses changes by pages of other origins.
fn refuse_other_pages(headers: &HeaderMap, host: &Authority) -> Result<(), Problem> {
    let refused = || Problem::new(StatusCode::FORBIDDEN, "a page of another origin may change nothing here");
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return Err(refused());
    }
    for origin in headers.get_all(header::ORIGIN) {
        let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok()).ok_or_else(refused)?;
        let is_web = matches!(origin.scheme_str(), Some("http" | "https"));
        if !is_web || origin.authority() != Some(host) {
            return Err(refused());
        }
    }
    Ok(())
}

/// True when a path is closed to callers without a token.
pub fn needs_token(path: &str) -> bool {
    path == "/metrics" || path == "/api" || path.starts_with("/api/")
}

/// The caller of a request that was admitted.
pub fn of(extensions: &Extensions) -> Caller {
    extensions.get::<Caller>().cloned().unwrap_or(Caller::Anybody)
}

/// The caller of a request, for handlers that ask for more by what the body names.
pub struct By(pub Caller);

impl<S: Sync> FromRequestParts<S> for By {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(of(&parts.extensions)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[track_caller]
    fn check(name: &'static str, value: &str, passes: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        let host: Authority = "127.0.0.1:7717".parse().unwrap();
        assert_eq!(refuse_other_pages(&headers, &host).is_ok(), passes, "{name}: {value}");
    }

    #[test]
    fn a_page_of_another_origin_changes_nothing() {
        check("origin", "http://127.0.0.1:7717", true);
        check("origin", "https://127.0.0.1:7717", true);
        for other in [
            "http://127.0.0.1:7718",
            "http://127.0.0.1",
            "null",
            "http://evil.example",
            "file://",
            "http://127.0.0.1:7717@evil.example",
            "",
        ] {
            check("origin", other, false);
        }
        check("sec-fetch-site", "same-origin", true);
        check("sec-fetch-site", "none", true);
        check("sec-fetch-site", "cross-site", false);
        check("sec-fetch-site", "same-site", false);
    }

    #[test]
    fn one_host_is_said_and_it_is_the_one_of_the_address() {
        let of = |hosts: &[&str], uri: &str| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
            }
            host(&uri.parse().unwrap(), &headers).map(|host| host.host().to_owned()).ok()
        };
        assert_eq!(of(&["localhost:7717"], "/").as_deref(), Some("localhost"));
        assert_eq!(of(&["[::1]:7717"], "/").as_deref(), Some("[::1]"));
        assert_eq!(of(&[], "/"), None);
        assert_eq!(of(&["a", "b"], "/"), None);
        assert_eq!(of(&["user@localhost"], "/"), None);
        assert_eq!(of(&["localhost"], "http://evil.example/"), None);
    }
}
