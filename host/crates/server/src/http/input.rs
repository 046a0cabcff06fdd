//! Queries, bodies and names in paths of requests, all of them untrusted.
//!
//! A body is JSON in UTF-8, has that content type and at most `body_bytes_max` bytes, and arrives within [`BODY_TIME`].
//! Unknown fields and parameters are refused, since a misspelt one would go unnoticed.

use super::problem::Problem;
use super::state::SharedState;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts};
use http::request::Parts;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use longhaul_api::runs::RunRef;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Longest time for a body to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Default of the items of a page.
pub const LIMIT: usize = 100;
/// Most items of a page.
pub const LIMIT_MAX: usize = 1_000;

/// The query parameters of a request.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let text = parts.uri.query().unwrap_or_default();
        let pairs = serde_urlencoded::Deserializer::new(form(text)?);
        serde_path_to_error::deserialize(pairs).map(Self).map_err(|error| at_fault(&error))
    }
}

/// The pairs of a query. Bytes that are not UTF-8 are refused, not replaced.
fn form(text: &str) -> Result<form_urlencoded::Parse<'_>, Problem> {
    let not_text = |_| Problem::new(StatusCode::BAD_REQUEST, "the query is not UTF-8 behind its percent signs");
    percent_decode_str(text).decode_utf8().map_err(not_text)?;
    Ok(form_urlencoded::parse(text.as_bytes()))
}

/// A body that is JSON.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<SharedState> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request<Body>, state: &SharedState) -> Result<Self, Problem> {
        expect_json(&request)?;
        read(&whole(request, BodyLimits::of(state)).await?).map(Self)
    }
}

/// A body that is JSON or is left out, which reads as an empty object.
pub struct MaybeJson<T>(pub T);

impl<T: DeserializeOwned> FromRequest<SharedState> for MaybeJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request<Body>, state: &SharedState) -> Result<Self, Problem> {
        let says_what = request.headers().contains_key(header::CONTENT_TYPE);
        let checked = if says_what { expect_json(&request) } else { Ok(()) };
        let bytes = whole(request, BodyLimits::of(state)).await?;
        match (bytes.is_empty(), says_what) {
            (true, _) => read(b"{}").map(Self),
            (false, false) => Err(not_json()),
            (false, true) => {
                checked?;
                read(&bytes).map(Self)
            }
        }
    }
}

fn not_json() -> Problem {
    let detail = "send JSON and say so: `Content-Type: application/json`";
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
}

fn expect_json(request: &Request<Body>) -> Result<(), Problem> {
    let said = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (kind, rest) = said.split_once(';').unwrap_or((said, ""));
    let charset =
        rest.split(';').find_map(|part| part.trim().to_ascii_lowercase().strip_prefix("charset=").map(str::to_owned));
    let is_utf8 = charset.is_none_or(|charset| matches!(charset.trim_matches('"'), "utf-8" | "utf8"));
    if kind.trim().eq_ignore_ascii_case("application/json") && is_utf8 { Ok(()) } else { Err(not_json()) }
}

/// The limits of one body.
pub struct BodyLimits {
    /// Most bytes.
    pub bytes_max: usize,
    /// The setting of this number, as a clause of the refusal.
    pub setting: &'static str,
    /// Longest time for it to arrive.
    pub time: Duration,
}

impl BodyLimits {
    /// The limits of most bodies.
    pub fn of(state: &SharedState) -> Self {
        let setting = ", which is body_bytes_max in [server] of server.toml";
        Self { bytes_max: state.settings().body_bytes_max, setting, time: BODY_TIME }
    }
}

/// Reads a body that is JSON, within limits of its own.
pub async fn json_within<T: DeserializeOwned>(request: Request<Body>, limits: BodyLimits) -> Result<T, Problem> {
    expect_json(&request)?;
    read(&whole(request, limits).await?)
}

async fn whole(request: Request<Body>, limits: BodyLimits) -> Result<Vec<u8>, Problem> {
    let BodyLimits { bytes_max, setting, time } = limits;
    let too_large = || {
        let detail = format!("the body has more than {bytes_max} bytes{setting}");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    };
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if length.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > bytes_max as u64) {
        return Err(too_large());
    }
    let collected = Limited::new(request.into_body(), bytes_max).collect();
    let slow = |_| {
        let detail = format!("the body took longer than {} s", time.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, detail)
    };
    match tokio::time::timeout(time, collected).await.map_err(slow)? {
        Ok(body) => Ok(body.to_bytes().to_vec()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Problem::new(StatusCode::BAD_REQUEST, "the body broke off")),
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if std::str::from_utf8(bytes).is_err() {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "the body is not UTF-8"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let inner = error.inner();
        if inner.is_data() {
            at_fault(&error)
        } else {
            Problem::new(StatusCode::BAD_REQUEST, format!("the body is no JSON: {inner}"))
        }
    })?;
    let rest = |error| Problem::new(StatusCode::BAD_REQUEST, format!("the body goes on behind its JSON: {error}"));
    json.end().map_err(rest)?;
    Ok(value)
}

/// The problem of input that cannot be read, with its field where one is known.
fn at_fault<E: std::fmt::Display>(error: &serde_path_to_error::Error<E>) -> Problem {
    let text = error.inner().to_string();
    let path = error.path().to_string();
    // serde reports a missing or unknown field at the object around it.
    let named = ["missing field `", "unknown field `", "duplicate field `"]
        .iter()
        .find_map(|start| text.strip_prefix(start)?.split_once('`').map(|(name, _)| name.to_owned()));
    let field = match (path.as_str(), named) {
        (".", Some(name)) => name,
        (path, Some(name)) if path != name && !path.ends_with(&format!(".{name}")) => format!("{path}.{name}"),
        (path, _) => path.to_owned(),
    };
    Problem::invalid(field, text)
}

/// Limit and offset of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageParams {
    /// Items of the page.
    pub limit: usize,
    /// Items before it.
    pub offset: usize,
}

impl PageParams {
    /// Reads limit and offset; refuses empty pages and pages that are too long.
    pub fn of(limit: Option<usize>, offset: Option<usize>) -> Result<Self, Problem> {
        Ok(Self { limit: limited(limit, LIMIT)?, offset: offset.unwrap_or(0) })
    }
}

/// Reads a limit; refuses 0 and more than [`LIMIT_MAX`].
pub fn limited(limit: Option<usize>, default: usize) -> Result<usize, Problem> {
    match limit.unwrap_or(default) {
        limit if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
        limit => Err(Problem::invalid("limit", format!("limit is {limit}; write a number from 1 to {LIMIT_MAX}"))),
    }
}

/// Reads a run's name, or the beginning of one, from a path.
pub fn which(run: &str) -> Result<RunRef, Problem> {
    const DIGITS_MIN: usize = 4;
    let digits = run.strip_prefix("r-").unwrap_or_default();
    let is_name = digits.len() >= DIGITS_MIN && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_name {
        Ok(RunRef::Named(run.to_owned()))
    } else {
        Err(Problem::unknown("there is no such run; GET /api/v1/runs lists them"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[allow(dead_code, reason = "only read")]
        number: u32,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[allow(dead_code, reason = "only read")]
        inner: Inner,
    }

    #[track_caller]
    fn check(body: &[u8], status: u16, field: Option<&str>) {
        let problem = serde_json::to_value(read::<Outer>(body).expect_err("wrong")).unwrap();
        assert_eq!((problem["status"].as_u64(), problem["field"].as_str()), (Some(status.into()), field), "{problem}");
    }

    #[test]
    fn a_body_that_is_wrong_is_told_by_the_field_that_is() {
        assert!(read::<Outer>(br#"{"inner":{"number":1}}"#).is_ok());
        check(br#"{"inner":{"number":-1}}"#, 422, Some("inner.number"));
        check(br#"{"inner":{}}"#, 422, Some("inner.number"));
        check(b"{}", 422, Some("inner"));
        check(br#"{"inner":{"number":1,"other":2}}"#, 422, Some("inner.other"));
        check(b"[]", 422, None);
        check(b"{", 400, None);
        check(b"", 400, None);
        check(b"\"\xff\"", 400, None);
        check(br#"{"inner":{"number":1}} {}"#, 400, None);
        check("[".repeat(100_000).as_bytes(), 422, Some("[0][0]"));
    }

    #[test]
    fn a_query_that_is_no_text_is_refused_and_not_mended() {
        assert!(form("a=%C3%A9&b=+%2").is_ok());
        for wrong in ["a=%ff", "a=%C3", "%ed%a0%80=1"] {
            assert!(form(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_page_has_at_least_one_item_and_at_most_a_thousand() {
        assert_eq!(PageParams::of(None, None).unwrap(), PageParams { limit: LIMIT, offset: 0 });
        assert!(PageParams::of(Some(LIMIT_MAX), Some(usize::MAX)).is_ok());
        assert!(PageParams::of(Some(LIMIT_MAX + 1), None).is_err() && PageParams::of(Some(0), None).is_err());
    }
}
