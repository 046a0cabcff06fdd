//! The web page: files that the binary carries, served as they are.
//!
//! They are the same for every client and hold no data, so they need no token. It refuses paths below a folder and
//! names that are not among its files; the page's security policy refuses scripts that are not among them.

use super::problem::Problem;
use super::state::SharedState;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use longhaul_core::Digest;
use std::borrow::Cow;
use std::path::Path as File;

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// Content security policy of the page: its own files and this server, nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Most bytes of a file that is served from a directory.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// `GET /`.
pub async fn index(State(state): State<SharedState>, headers: HeaderMap) -> Response {
    serve(&state, "index.html", &headers)
}

/// `GET /NAME`.
pub async fn file(State(state): State<SharedState>, Path(name): Path<String>, headers: HeaderMap) -> Response {
    serve(&state, &name, &headers)
}

fn serve(state: &SharedState, name: &str, headers: &HeaderMap) -> Response {
    let unknown = || Problem::unknown("there is no such page").into_response();
    let Some(kind) = media_type(name) else { return unknown() };
    let Some(bytes) = bytes_of(state.page.as_deref(), name) else { return unknown() };
    let tag = format!("\"{}\"", Digest::of(&bytes).short());
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = known.flat_map(|value| value.split(',')).any(|one| one.trim().trim_start_matches("W/") == tag);
    let mut response =
        if is_known { StatusCode::NOT_MODIFIED.into_response() } else { Response::new(Body::from(bytes.into_owned())) };
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    // Browsers revalidate each time, which costs no more than a digest while nothing changed.
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    fields.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        fields.insert(header::ETAG, tag);
    }
    response
}

/// The bytes of a file: from the directory where one is given, else from the binary.
fn bytes_of(directory: Option<&File>, name: &str) -> Option<Cow<'static, [u8]>> {
    let Some(directory) = directory else {
        return FILES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| Cow::Borrowed(*bytes));
    };
    let path = directory.join(name);
    let found = std::fs::symlink_metadata(&path).ok()?;
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return None;
    }
    std::fs::read(path).ok().map(Cow::Owned)
}

/// The media type of a file by its name; none for names that no file of a page has.
fn media_type(name: &str) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.starts_with('.') || !name.chars().all(plain) {
        return None;
    }
    Some(match name.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/vnd.microsoft.icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        "webmanifest" => "application/manifest+json",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_file_of_the_page_is_none() {
        assert_eq!(media_type("app.js"), Some("text/javascript; charset=utf-8"));
        for wrong in ["", ".", "..", "../x.js", "a/b.js", "a\\b.js", ".htaccess.js", "a.rs", "a", "a.js\0", "é.js"] {
            assert_eq!(media_type(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_binary_carries_a_page() {
        assert!(bytes_of(None, "index.html").is_some_and(|bytes| !bytes.is_empty()));
        assert!(FILES.iter().all(|(name, _)| media_type(name).is_some()), "each of them can be served");
    }
}
