//! The receiver on loopback that stands in for every host of a run: it notes each request and answers it from a file.
//!
//! It sends nothing on. Notifications, which name no destination, are answered and not noted.

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use longhaul_core::Digest;
use longhaul_core::fault::{self, Context as _, Fault};
use longhaul_crashtest::ReceivedRequest;
use longhaul_egress::stand_in::DESTINATION;
use longhaul_home::text_file;
use serde::Deserialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Connections at once: as many as the most that one invocation opens, for a few of them.
const CONNECTIONS_MAX: usize = 256;

/// Longest body that is read, in bytes. Plugins may send 1 MiB.
const BODY_BYTES_MAX: usize = 16 << 20;

/// Longest file of answers, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The header by which requests that are sent again are one effect.
const KEY: &str = "idempotency-key";

/// The answers of hosts. The first that fits a request is given, as often as it fits.
#[derive(Debug, Default)]
pub struct HostAnswers(Vec<HostAnswer>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostAnswer {
    #[serde(default)]
    method: Option<String>,
    url: String,
    #[serde(default = "ok")]
    status: u16,
    #[serde(default)]
    body: Value,
}

fn ok() -> u16 {
    200
}

impl HostAnswers {
    /// Reads JSON lines.
    pub fn read(path: &Path) -> fault::Result<Self> {
        let text = text_file::read(path, FILE_BYTES_MAX).with_context(|| format!("read `{}`", path.display()))?;
        let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
        let wrong = |number: usize, why: String| {
            Fault::invalid(format!(
                "line {number} of `{}` is no answer of a host ({why}); write {{\"url\": \"https://HOST/PATH\", \
                 \"status\": 200, \"body\": ...}}",
                path.display()
            ))
        };
        let read = |(line, number): (&str, usize)| {
            let answer: HostAnswer = serde_json::from_str(line).map_err(|error| wrong(number, error.to_string()))?;
            StatusCode::from_u16(answer.status).map_err(|error| wrong(number, error.to_string()))?;
            Ok::<_, Fault>(answer)
        };
        lines.map(read).collect::<Result<_, _>>().map(Self)
    }

    fn answer(&self, method: &str, url: &str) -> Response<Full<Bytes>> {
        let fits = |answer: &&HostAnswer| {
            answer.method.as_deref().is_none_or(|of| of.eq_ignore_ascii_case(method)) && url.starts_with(&answer.url)
        };
        match self.0.iter().find(fits) {
            Some(HostAnswer { status, body: Value::String(text), .. }) => response(*status, "text/plain", text.clone()),
            Some(HostAnswer { status, body: Value::Null, .. }) => response(*status, "text/plain", String::new()),
            Some(HostAnswer { status, body, .. }) => response(*status, "application/json", body.to_string()),
            None => response(ok(), "application/json", json!({}).to_string()),
        }
    }
}

fn response(status: u16, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    // The status was checked when the file was read.
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

/// A receiver, which serves until it is dropped.
pub struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
    _serving: watch::Sender<bool>,
}

impl Receiver {
    /// Starts one.
    pub async fn start(answers: Arc<HostAnswers>) -> fault::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port of loopback can be had")?;
        let address = listener.local_addr()?;
        let received = Arc::<Mutex<Vec<ReceivedRequest>>>::default();
        let (serving, stop) = watch::channel(false);
        let noted = Arc::clone(&received);
        tokio::spawn(longhaul_listen::serve(listener, CONNECTIONS_MAX, stop, move |_, request| {
            receive(request, Arc::clone(&answers), Arc::clone(&noted))
        }));
        Ok(Self { address, received, _serving: serving })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests so far.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn receive(
    request: Request<Incoming>,
    answers: Arc<HostAnswers>,
    noted: Arc<Mutex<Vec<ReceivedRequest>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let Some(url) = text_of(&parts.headers, DESTINATION) else {
        return Ok(response(ok(), "application/json", json!({}).to_string()));
    };
    // A request that a kill cut off has no whole body, and never reached its host as one.
    let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
        return Ok(response(400, "text/plain", "the body is cut off or too long".to_owned()));
    };
    let method = parts.method.as_str().to_owned();
    let answered = answers.answer(&method, &url);
    let key = text_of(&parts.headers, KEY);
    let request = ReceivedRequest { at_ms: now_ms(), method, url, body: Digest::of(&body.to_bytes()), key };
    noted.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    Ok(answered)
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn now_ms() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found_by_method_and_the_beginning_of_the_address() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("answers.jsonl");
        let paid = json!({ "method": "POST", "url": "https://a.example/pay", "status": 201, "body": { "id": 7 } });
        let greeted = json!({ "url": "https://a.example/", "body": "hello" });
        std::fs::write(&path, format!("{paid}\n\n{greeted}\n")).expect("ours");
        let answers = HostAnswers::read(&path).expect("answers");
        for (method, url, status, kind) in [
            ("POST", "https://a.example/pay/1", 201, "application/json"),
            ("GET", "https://a.example/pay/1", 200, "text/plain"),
            ("GET", "https://b.example/", 200, "application/json"),
        ] {
            let answer = answers.answer(method, url);
            let found = answer.headers()["content-type"].to_str().expect("text");
            assert_eq!((answer.status().as_u16(), found), (status, kind));
        }
        std::fs::write(&path, "{\"url\": \"https://a.example/\", \"status\": 2}\n").expect("ours");
        let refused = HostAnswers::read(&path).expect_err("no status").to_string();
        assert!(refused.starts_with("line 1 of `") && refused.contains("write {\"url\""), "{refused}");
    }
}
