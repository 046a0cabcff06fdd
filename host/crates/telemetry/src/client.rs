//! The HTTP client of the exporter: the host's own TLS, no redirects, bounded answers.
//!
//! The exporter's threads have no runtime, so requests run on the host's.

use crate::TelemetryError;
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use std::net::IpAddr;
use std::time::Duration;
use tokio::runtime::Handle;

/// Most bytes that are read of an answer.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A client on a runtime.
#[derive(Debug)]
pub(crate) struct ExportClient {
    inner: reqwest::Client,
    runtime: Handle,
}

impl ExportClient {
    pub(crate) fn new(endpoint: &str, time_max: Duration, runtime: Handle) -> Result<Self, TelemetryError> {
        let failed = |error: &dyn std::fmt::Display| TelemetryError::Client(error.to_string());
        let tls = longhaul_egress::tls::config(endpoint.starts_with("https://")).map_err(|error| failed(&error))?;
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(time_max)
            .tls_backend_preconfigured(tls);
        if is_loopback(endpoint) {
            builder = builder.no_proxy();
        }
        let inner = builder.build().map_err(|error| failed(&error.without_url()))?;
        Ok(Self { inner, runtime })
    }
}

#[async_trait]
impl HttpClient for ExportClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.inner.clone();
        self.runtime.spawn(async move { send(&client, request).await }).await?
    }
}

/// True when an endpoint is on this machine, and is reached through no proxy of the environment.
fn is_loopback(endpoint: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(endpoint) else { return false };
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

async fn send(client: &reqwest::Client, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let (parts, body) = request.into_parts();
    let sending = client.request(parts.method, parts.uri.to_string()).headers(parts.headers).body(body);
    let mut response = sending.send().await.map_err(reqwest::Error::without_url)?;
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = response.headers().clone();
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(reqwest::Error::without_url)? {
        if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err("the collector's answer is longer than 1 MiB".into());
        }
        bytes.extend_from_slice(&chunk);
    }
    *answer.body_mut() = bytes.into();
    Ok(answer)
}
