//! One exchange over `wasi:http`: a request out, a bounded response back, redirects hop by hop.
//!
//! The host decides about each hop anew: a redirect is one more request. This module refuses compressed bodies, which it
//! does not ask for, so that a body never has more bytes than were received. The tool `fetch-image` uses it, too.

use longhaul_sdk::http::outgoing_handler::{self, RequestOptions};
use longhaul_sdk::http::types::{ErrorCode, Fields, IncomingBody, IncomingResponse, OutgoingBody, OutgoingRequest};
use longhaul_sdk::json;
use longhaul_sdk::streams::StreamError;
use longhaul_sdk::tools::ToolError;

pub(crate) use longhaul_sdk::http::types::{Method, Scheme};

/// Bytes of one read.
const CHUNK_BYTES: u64 = 64 << 10;

/// The request of a hop.
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

/// The bounds of an exchange.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) body_bytes_max: usize,
    pub(crate) redirects_max: u32,
    pub(crate) timeout_ms: u64,
}

/// The response of the last hop.
pub(crate) struct Fetched {
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) location: Option<String>,
    pub(crate) body: Vec<u8>,
    /// The body goes on.
    pub(crate) is_cut: bool,
    pub(crate) redirects: Vec<String>,
}

/// Sends, and follows redirects of requests that change nothing.
pub(crate) fn fetch(mut outgoing: Outgoing, bounds: Bounds) -> Result<Fetched, ToolError> {
    let mut redirects = Vec::new();
    loop {
        let mut fetched = once(&outgoing, bounds)?;
        let is_followed =
            matches!(outgoing.method, Method::Get) && matches!(fetched.status, 301 | 302 | 303 | 307 | 308);
        let next = fetched.location.as_deref().filter(|_| is_followed).map(|to| joined(&outgoing.url, to));
        let Some(next) = next else {
            fetched.redirects = redirects;
            return Ok(fetched);
        };
        if redirects.len() as u64 >= u64::from(bounds.redirects_max) {
            return Err(failed(format!("redirected more than {} times", bounds.redirects_max)));
        }
        let next = next?;
        redirected(&mut outgoing, next.clone())?;
        redirects.push(next);
    }
}

fn once(outgoing: &Outgoing, bounds: Bounds) -> Result<Fetched, ToolError> {
    let is_read = matches!(outgoing.method, Method::Get);
    let response = send(outgoing, bounds)?;
    let headers = response.headers();
    let first = |name: &str| {
        let value = headers.get(name).into_iter().next()?;
        Some(String::from_utf8_lossy(&value).into_owned())
    };
    if let Some(coding) = first("content-encoding").filter(|coding| !coding.eq_ignore_ascii_case("identity")) {
        return Err(failed(format!(
            "the answer is compressed as `{}`, which was not asked for",
            json::cut(&coding, 40)
        )));
    }
    let (content_type, location) = (first("content-type").unwrap_or_default(), first("location"));
    let status = response.status();
    let (body, is_cut) = read(&response, bounds.body_bytes_max, is_read)?;
    Ok(Fetched { url: outgoing.url.clone(), status, content_type, location, body, is_cut, redirects: Vec::new() })
}

fn send(outgoing: &Outgoing, bounds: Bounds) -> Result<IncomingResponse, ToolError> {
    let (scheme, authority, path) = parts(&outgoing.url)?;
    let fields = Fields::new();
    for (name, value) in &outgoing.headers {
        let set = fields.append(name, value.as_bytes());
        set.map_err(|error| invalid(format!("the header `{}` cannot be sent: {error:?}", json::cut(name, 80))))?;
    }
    let request = OutgoingRequest::new(fields);
    let wrong = |()| invalid(format!("`{}` makes no request", json::cut(&outgoing.url, 200)));
    request.set_method(&outgoing.method).map_err(wrong)?;
    request.set_scheme(Some(&scheme)).map_err(wrong)?;
    request.set_authority(Some(authority)).map_err(wrong)?;
    request.set_path_with_query(Some(&path)).map_err(wrong)?;
    let options = RequestOptions::new();
    let wait = Some(bounds.timeout_ms.saturating_mul(1_000_000));
    for set in [
        options.set_connect_timeout(wait),
        options.set_first_byte_timeout(wait),
        options.set_between_bytes_timeout(wait),
    ] {
        set.map_err(|()| failed("the host takes no times"))?;
    }
    let body = request.body().map_err(wrong)?;
    let future = outgoing_handler::handle(request, Some(options)).map_err(refused)?;
    write(body, outgoing.body.as_deref().unwrap_or_default())?;
    future.subscribe().block();
    let answer = future.get().and_then(Result::ok).ok_or_else(|| failed("there was no answer"))?;
    let is_read = matches!(outgoing.method, Method::Get);
    answer.map_err(|code| if !is_read && is_lost(&code) { lost(format!("{code:?}")) } else { refused(code) })
}

fn write(body: OutgoingBody, bytes: &[u8]) -> Result<(), ToolError> {
    if !bytes.is_empty() {
        let stream = body.write().map_err(|()| failed("the body cannot be sent"))?;
        // As much as a stream takes at once.
        for chunk in bytes.chunks(4_096) {
            stream.blocking_write_and_flush(chunk).map_err(|_| failed("the body could not be sent whole"))?;
        }
    }
    OutgoingBody::finish(body, None).map_err(refused)
}

/// At most `max` bytes, and whether there were more.
fn read(response: &IncomingResponse, max: usize, is_read: bool) -> Result<(Vec<u8>, bool), ToolError> {
    let body: IncomingBody = response.consume().map_err(|()| failed("there is no body"))?;
    let stream = body.stream().map_err(|()| failed("there is no body"))?;
    let mut bytes = Vec::new();
    while bytes.len() <= max {
        match stream.blocking_read(CHUNK_BYTES) {
            Ok(more) => bytes.extend(more),
            Err(StreamError::Closed) => return Ok((bytes, false)),
            Err(StreamError::LastOperationFailed(error)) => {
                let why = format!("the answer broke off: {}", json::cut(&error.to_debug_string(), 300));
                return Err(if is_read { failed(why) } else { lost(why) });
            }
        }
    }
    bytes.truncate(max);
    Ok((bytes, true))
}

/// Scheme, authority and path of an address.
pub(crate) fn parts(url: &str) -> Result<(Scheme, &str, String), ToolError> {
    let wrong = |why: &str| invalid(format!("the address `{}` {why}", json::cut(url, 200)));
    if url.len() > 8_192 || url.chars().any(|one| one.is_control() || one == ' ' || one == '\\') {
        return Err(wrong("has a character that no address has, or is too long"));
    }
    let (scheme, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (Scheme::Https, rest),
        (_, Some(rest)) => (Scheme::Http, rest),
        _ => return Err(wrong("starts with neither https:// nor http://")),
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.is_empty() || authority.contains('@') {
        return Err(wrong("has no host, or a user in it"));
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((scheme, authority, path))
}

/// The target of a redirect.
fn joined(from: &str, to: &str) -> Result<String, ToolError> {
    let to = to.trim();
    if to.starts_with("http://") || to.starts_with("https://") {
        return Ok(to.to_owned());
    }
    let (scheme, authority, path) = parts(from)?;
    let scheme = if matches!(scheme, Scheme::Https) { "https" } else { "http" };
    if let Some(rest) = to.strip_prefix("//") {
        return Ok(format!("{scheme}://{rest}"));
    }
    if to.split(['/', '?', '#']).next().is_some_and(|first| first.contains(':')) {
        return Err(failed(format!("redirected to `{}`, which is no web address", json::cut(to, 200))));
    }
    if to.starts_with('/') {
        return Ok(format!("{scheme}://{authority}{to}"));
    }
    let above = path.split('?').next().unwrap_or_default().rsplit_once('/').map_or("", |(above, _)| above);
    Ok(format!("{scheme}://{authority}{above}/{to}"))
}

/// Turns a request to where a redirect leads, with what may go along.
fn redirected(outgoing: &mut Outgoing, to: String) -> Result<(), ToolError> {
    let ((before, host, _), (after, next, _)) = (parts(&outgoing.url)?, parts(&to)?);
    let (was_tls, is_tls) = (matches!(before, Scheme::Https), matches!(after, Scheme::Https));
    if was_tls && !is_tls {
        let to = json::cut(&to, 200);
        return Err(failed(format!("redirected from https to `{to}`, an address without TLS; it is not followed")));
    }
    if (was_tls, host) != (is_tls, next) {
        // Headers for one host are not sent to another.
        let says_who = |name: &str| ["authorization", "cookie"].iter().any(|one| name.eq_ignore_ascii_case(one));
        outgoing.headers.retain(|(name, _)| !says_who(name));
    }
    outgoing.url = to;
    Ok(())
}

/// True when the connection was lost after the request may have arrived.
fn is_lost(code: &ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::ConnectionTerminated
            | ErrorCode::ConnectionReadTimeout
            | ErrorCode::ConnectionWriteTimeout
            | ErrorCode::HttpResponseTimeout
            | ErrorCode::HttpResponseIncomplete
    )
}

/// The effect of a request that changes something is unknown.
fn lost(why: impl Into<String>) -> ToolError {
    ToolError::OutcomeUnknown(json::cut(&why.into(), 1_000))
}

/// The host says in words why it refused; other codes say it by their names.
fn refused(code: ErrorCode) -> ToolError {
    match code {
        ErrorCode::InternalError(Some(text)) => failed(text),
        other => failed(format!("the request failed: {other:?}")),
    }
}

pub(crate) fn failed(text: impl Into<String>) -> ToolError {
    ToolError::Failed(json::cut(&text.into(), 1_000))
}

pub(crate) fn invalid(text: impl Into<String>) -> ToolError {
    ToolError::InvalidArguments(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_or_refused() {
        let check = |url: &str, expected: Option<(&str, &str)>| {
            let found = parts(url).ok().map(|(_, authority, path)| (authority.to_owned(), path));
            assert_eq!(found, expected.map(|(authority, path)| (authority.to_owned(), path.to_owned())), "{url}");
        };
        check("https://a.example/b?c#d", Some(("a.example", "/b?c")));
        check("http://a.example:8080", Some(("a.example:8080", "/")));
        check("http://a.example?x", Some(("a.example", "/?x")));
        for wrong in
            ["ftp://a", "file:///etc/passwd", "https://", "https://u:p@a/", "http://a b/", "http://a\\b/", "//a"]
        {
            check(wrong, None);
        }
    }

    #[test]
    fn a_redirect_leads_to_a_web_address() {
        let check = |to: &str, expected: Option<&str>| {
            assert_eq!(joined("https://a.example/b/c?d", to).ok().as_deref(), expected, "{to}");
        };
        check("/x", Some("https://a.example/x"));
        check("x?y:z", Some("https://a.example/b/x?y:z"));
        check("//b.example/x", Some("https://b.example/x"));
        check("http://169.254.169.254/", Some("http://169.254.169.254/"));
        check("file:///etc/passwd", None);
        check("javascript:alert(1)", None);
    }

    #[test]
    fn a_redirect_never_leaves_tls_and_takes_along_who_asks_only_to_the_same_place() {
        let check = |from: &str, to: &str, expected: Option<&[&str]>| {
            let names = ["Authorization", "cookie", "accept"];
            let headers = names.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect();
            let mut outgoing = Outgoing { method: Method::Get, url: from.to_owned(), headers, body: None };
            let turned = redirected(&mut outgoing, to.to_owned()).is_ok();
            let kept: Vec<&str> = outgoing.headers.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(turned.then_some(kept.as_slice()), expected, "{from} to {to}");
            assert_eq!(outgoing.url, if turned { to } else { from });
        };
        let all = Some(["Authorization", "cookie", "accept"].as_slice());
        let some = Some(["accept"].as_slice());
        check("https://a.example/x", "https://a.example/y", all);
        check("http://a.example/x", "http://a.example/y", all);
        check("https://a.example/x", "http://a.example/y", None);
        check("https://a.example/x", "http://b.example/y", None);
        check("http://a.example/x", "https://a.example/y", some);
        check("https://a.example/x", "https://b.example/y", some);
        check("https://a.example/x", "https://a.example:8443/y", some);
    }
}
