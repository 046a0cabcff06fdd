//! A whole exchange for a caller in the host: each hop passes all gates, forbidden headers are refused, and one timeout
//! covers everything.

use crate::body::{self, Fetched};
use crate::error::EgressError;
use crate::guard::Guard;
use crate::secret::is_held;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName};
use http::{Method, Request, StatusCode, Uri};
use longhaul_core::LimitHit;
use reqwest::Url;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// Headers that control the connection, or name another destination than the checked one.
pub(crate) const NOT_YOURS: [&str; 11] = [
    "host",
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers that identify the caller: meant for their own host, and for no other.
const WHO_ASKS: [HeaderName; 2] = [header::AUTHORIZATION, header::COOKIE];

/// The remaining request of a hop.
pub(crate) struct Hop {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

#[cfg(test)]
impl Hop {
    pub(crate) fn get(url: &'static str) -> Self {
        Self { method: Method::GET, uri: Uri::from_static(url), headers: HeaderMap::new(), body: Bytes::new() }
    }
}

impl Guard {
    /// Sends a request, follows up to `redirects_max` redirects, and returns a response that is read within the caps.
    /// The body is decompressed if the server sent it as gzip or deflate.
    ///
    /// # Errors
    /// Every [`EgressError`]. An unsuccessful status is a response.
    #[tracing::instrument(name = "egress.fetch", skip_all, fields(method = %request.method()))]
    pub async fn fetch(&self, request: Request<Bytes>) -> Result<Fetched, EgressError> {
        let until = Instant::now() + Duration::from_millis(self.caps.total_ms_max);
        let mut hop = self.first_hop(request)?;
        let mut followed = 0;
        loop {
            let sent = timeout_at(until, self.one_hop(&hop)).await;
            let (url, response) = sent.map_err(|_| self.too_long())??;
            let Some(location) = redirect(&response).filter(|_| self.caps.redirects_max > 0) else {
                return Fetched::new(self, url, response, until);
            };
            if self.placeholders.scrub(&location) != location {
                return Err(EgressError::refused("a redirect that carries a secret is not followed"));
            }
            followed += 1;
            if followed > self.caps.redirects_max {
                let hit = LimitHit::new("redirects_max", followed.into(), self.caps.redirects_max.into());
                return Err(EgressError::Limit(hit));
            }
            hop = next_hop(hop, &url, response.status(), &location)?;
        }
    }

    fn first_hop(&self, request: Request<Bytes>) -> Result<Hop, EgressError> {
        let (parts, body) = request.into_parts();
        if let Some(name) = NOT_YOURS.iter().find(|name| parts.headers.contains_key(**name)) {
            return Err(EgressError::refused(&format!("the header `{name}` is the host's to set; leave it out")));
        }
        if body.len() as u64 > self.caps.request_bytes_max {
            let hit = LimitHit::new("request_bytes_max", body.len() as u64, self.caps.request_bytes_max);
            return Err(EgressError::Limit(hit));
        }
        let mut headers = parts.headers;
        if !headers.contains_key(header::ACCEPT_ENCODING) {
            headers.insert(header::ACCEPT_ENCODING, header::HeaderValue::from_static("gzip"));
        }
        Ok(Hop { method: parts.method, uri: parts.uri, headers, body })
    }

    async fn one_hop(&self, hop: &Hop) -> Result<(Url, reqwest::Response), EgressError> {
        let way = self.look_up(self.check(&hop.method, &hop.uri)?).await?;
        let mut request = reqwest::Request::new(hop.method.clone(), way.url().clone());
        request.headers_mut().clone_from(&hop.headers);
        if !hop.body.is_empty() {
            *request.body_mut() = Some(hop.body.clone().into());
        }
        let ms = self.caps.connect_ms_max.saturating_add(self.caps.first_byte_ms_max);
        let answer = timeout(Duration::from_millis(ms), self.send(&way, request)).await;
        let response = answer.map_err(|_| EgressError::TimedOut { what: "the answer did not begin", ms })??;
        body::check_head(response.headers())?;
        Ok((way.url().clone(), response))
    }

    fn too_long(&self) -> EgressError {
        EgressError::TimedOut { what: "the exchange did not end", ms: self.caps.total_ms_max }
    }
}

fn redirect(response: &reqwest::Response) -> Option<String> {
    let moved = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(header::LOCATION).filter(|_| moved)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// The target of a redirect, with the headers that may go along.
pub(crate) fn next_hop(hop: Hop, from: &Url, status: StatusCode, location: &str) -> Result<Hop, EgressError> {
    let to =
        from.join(location).map_err(|_| EgressError::refused("a redirect to what is no address is not followed"))?;
    if from.scheme() == "https" && to.scheme() != "https" {
        return Err(EgressError::refused("a redirect from https to an address without TLS is not followed"));
    }
    // With its user, so that the first gate refuses it by that name.
    let uri: Uri = to.as_str().parse().map_err(|_| EgressError::BadAddress)?;
    let Hop { mut method, mut headers, mut body, .. } = hop;
    let becomes_get = status == StatusCode::SEE_OTHER && method != Method::HEAD
        || matches!(status.as_u16(), 301 | 302) && method == Method::POST;
    if becomes_get {
        method = Method::GET;
        body = Bytes::new();
        headers.remove(header::CONTENT_TYPE);
    }
    if from.origin() != to.origin() {
        let carrying = headers.iter().filter(|(name, value)| WHO_ASKS.contains(name) || is_held(value));
        let carrying: Vec<HeaderName> = carrying.map(|(name, _)| name.clone()).collect();
        for name in carrying {
            headers.remove(name);
        }
    }
    Ok(Hop { method, uri, headers, body })
}
