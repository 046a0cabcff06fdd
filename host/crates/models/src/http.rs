//! The HTTP client of all providers: its connections, and the bounds of reading.
//!
//! Redirects are never followed, since a key would follow them. A key is refused over plain HTTP to
//! another machine. An endpoint without TLS needs no CA certificates.

use crate::{ApiKey, ModelsError};
use longhaul_core::text::truncate;
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};
use std::net::IpAddr;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;

/// Bytes of an endpoint's text that an error repeats.
const EXCERPT_BYTES_MAX: usize = 500;

/// One endpoint and its key.
pub(crate) struct Endpoint {
    pub(crate) client: Client,
    pub(crate) base: Url,
    pub(crate) key: Option<ApiKey>,
    pub(crate) idle: Duration,
}

/// The settings for reaching an [`Endpoint`].
pub(crate) struct Reach<'a> {
    pub(crate) model: &'a str,
    pub(crate) base_url: &'a str,
    pub(crate) key: Option<ApiKey>,
    pub(crate) allow_plain_http: bool,
    pub(crate) connect: Duration,
    pub(crate) idle: Duration,
}

impl Endpoint {
    pub(crate) fn new(reach: Reach<'_>) -> Result<Self, ModelsError> {
        let base = checked(&reach)?;
        let tls = longhaul_egress::tls::config(base.scheme() == "https")
            .map_err(|error| ModelsError::Tls(error.to_string()))?;
        let mut builder = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(reach.connect)
            .tls_backend_preconfigured(tls)
            .user_agent(concat!("longhaul/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&base) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| ModelsError::Tls(error.without_url().to_string()))?;
        Ok(Self { client, base, key: reach.key, idle: reach.idle })
    }

    /// The address of `path` below the base.
    pub(crate) fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        url
    }

    /// The header with the key as a bearer token.
    pub(crate) fn bearer(&self) -> HeaderMap {
        self.key_in(header::AUTHORIZATION, |key| format!("Bearer {key}"))
    }

    /// The header `name` with the key in it; none without a key.
    pub(crate) fn key_in(&self, name: header::HeaderName, value: impl Fn(&str) -> String) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let value = self.key.as_ref().and_then(|key| HeaderValue::from_str(&value(key.expose())).ok());
        if let Some(mut value) = value {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers
    }

    /// True when it is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.base)
    }

    /// Its host, for messages.
    pub(crate) fn host(&self) -> String {
        let port = self.base.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}", self.base.host_str().unwrap_or_default())
    }

    /// The endpoint's text, fit to be shown: no key, no control characters, short.
    pub(crate) fn excerpt(&self, text: &str) -> String {
        truncate(self.calm(text).trim(), EXCERPT_BYTES_MAX)
    }

    /// `text` without the key and without control characters.
    pub(crate) fn calm(&self, text: &str) -> String {
        self.scrub(text).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    }

    /// `text` without the key.
    pub(crate) fn scrub(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.scrub(text))
    }
}

/// At most `bytes_max` bytes of a body, and whether that is all of it.
pub(crate) async fn read_body(
    response: &mut Response,
    bytes_max: usize,
    idle: Duration,
) -> Result<(Vec<u8>, bool), String> {
    let mut body = Vec::new();
    loop {
        match timeout(idle, response.chunk()).await {
            Err(_) => return Err(silence(idle)),
            Ok(Err(error)) => return Err(shown(error)),
            Ok(Ok(None)) => return Ok((body, true)),
            Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk[..chunk.len().min(bytes_max - body.len())]),
        }
        if body.len() == bytes_max {
            return Ok((body, false));
        }
    }
}

/// The time of `Retry-After`. A date is relative to the endpoint's own clock, if it sends it.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let date = |text: &str| httpdate::parse_http_date(text).ok();
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let asked = text("retry-after")?;
    // Seconds are whole by the standard, but fractions occur; a hostile value must not panic.
    if let Ok(seconds) = asked.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let now = text("date").and_then(date).unwrap_or(now);
    Some(date(asked)?.duration_since(now).unwrap_or_default())
}

/// An error of the client without its address.
pub(crate) fn shown(error: reqwest::Error) -> String {
    use std::error::Error as _;
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    longhaul_egress::with_proxy_named(text)
}

/// Nothing was received.
pub(crate) fn silence(idle: Duration) -> String {
    format!("nothing came for idle_ms_max = {} ms", idle.as_millis())
}

fn checked(reach: &Reach<'_>) -> Result<Url, ModelsError> {
    let wrong = |value: &str, remedy: &str| ModelsError::Setting {
        model: reach.model.to_owned(),
        field: "base_url",
        value: value.to_owned(),
        remedy: remedy.to_owned(),
    };
    let url = Url::parse(reach.base_url)
        .map_err(|error| wrong("…", &format!("{error}; write for example https://api.openai.com/v1")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("…@…", "a key does not belong here; use `api_key_env` or `api_key_file`"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("…?…", "it ends in a path, for example /v1, without `?` or `#`"));
    }
    let over_plain = match url.scheme() {
        "https" => false,
        "http" => true,
        _ => return Err(wrong(reach.base_url, "it starts with https:// or http://")),
    };
    if over_plain && reach.key.is_some() && !is_loopback(&url) && !reach.allow_plain_http {
        let remedy = "the key would cross the network readable; use https://, or set allow_plain_http = true";
        return Err(wrong(reach.base_url, remedy));
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(base_url: &str, key: bool, allow_plain_http: bool) -> Result<String, String> {
        let key = key.then(|| ApiKey::new("m", "sk-abcdefghijklmnopqrstuv").unwrap());
        let second = Duration::from_secs(1);
        let reach = Reach { model: "m", base_url, key, allow_plain_http, connect: second, idle: second };
        Endpoint::new(reach)
            .map(|endpoint| endpoint.url("chat/completions").to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn addresses_are_joined_with_and_without_a_slash() {
        let joined = Ok("http://127.0.0.1:8080/v1/chat/completions".to_owned());
        assert_eq!(check("http://127.0.0.1:8080/v1", true, false), joined);
        assert_eq!(check("http://127.0.0.1:8080/v1/", true, false), joined);
        assert_eq!(check("http://[::1]/v1", true, false).unwrap(), "http://[::1]/v1/chat/completions");
    }

    #[test]
    fn a_client_with_tls_needs_no_process_wide_provider() {
        assert_eq!(
            check("https://api.example.com/v1", true, false).unwrap(),
            "https://api.example.com/v1/chat/completions"
        );
    }

    #[test]
    fn a_key_never_crosses_the_network_readable_unless_that_was_allowed() {
        for lookalike in ["http://gpu.example.com/v1", "http://localhost.example.com/v1", "http://128.0.0.1/v1"] {
            let text = check(lookalike, true, false).unwrap_err();
            assert!(text.contains("allow_plain_http = true"), "{text}");
            check(lookalike, false, false).unwrap();
            check(lookalike, true, true).unwrap();
        }
    }

    #[test]
    fn addresses_with_keys_or_of_other_kinds_are_refused_without_showing_them() {
        for (base_url, remedy) in [
            ("https://user:hunter2@api.example.com/v1", "api_key_env"),
            ("https://hunter2@api.example.com/v1", "api_key_env"),
            ("https://api.example.com/v1?key=hunter2", "without `?`"),
            ("ftp://api.example.com", "https://"),
            ("hunter2", "write for example"),
        ] {
            let text = check(base_url, false, false).unwrap_err();
            assert!(text.contains(remedy), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn a_wait_is_read_as_seconds_or_as_a_date() {
        const AT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        let now = httpdate::parse_http_date(AT).unwrap();
        type Pairs = &'static [(&'static str, &'static str)];
        let cases: [(Pairs, Option<u64>); 11] = [
            (&[("retry-after", "7")], Some(7_000)),
            (&[("retry-after", "0.5")], Some(500)),
            (&[("retry-after-ms", "20"), ("retry-after", "7")], Some(20)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT")], Some(60_000)),
            (&[("retry-after", AT)], Some(0)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], Some(0)),
            // This machine's clock may be wrong; the endpoint's is consistent with its own date.
            (
                &[("date", "Mon, 07 Nov 1994 00:00:00 GMT"), ("retry-after", "Mon, 07 Nov 1994 00:00:05 GMT")],
                Some(5_000),
            ),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "1e300")], None),
            (&[("retry-after", "soon")], None),
        ];
        for (pairs, expected) in cases {
            let headers =
                pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect();
            assert_eq!(retry_after(&headers, now), expected.map(Duration::from_millis), "{pairs:?}");
        }
    }
}
