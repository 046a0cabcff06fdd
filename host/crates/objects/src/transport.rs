//! The HTTP client below S3: the one of the host, with its TLS trust, given to `object_store` as its transport.
//!
//! That crate's own transport would bring a second TLS provider and HTTP/2. It retries, and decides by the kind of an
//! error whether it may: every request here is one that may be sent again. It keeps the whole body of an answer that is
//! an error, so the rest of a long one is left out here.

use crate::place::Bucket;
use async_trait::async_trait;
use http_body_util::BodyExt as _;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use std::time::Duration;

/// The longest time for a connection to be made.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The longest time without a byte of an answer, besides the transfer of what is sent.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// The time that is allowed for each MiB on its way: a line of 8 megabits a second.
const TRANSFER_MS_PER_MIB: u64 = 1_000;

/// The time that is allowed for so many bytes on their way.
pub(crate) fn transfer(bytes: usize) -> Duration {
    let mib = u64::try_from(bytes >> 20).unwrap_or(u64::MAX);
    Duration::from_millis(mib.saturating_mul(TRANSFER_MS_PER_MIB))
}

/// The part of an answer that is an error, in bytes, which is read: it goes into a message.
const ERROR_BYTES_MAX: usize = 16 << 10;

/// The clients of one bucket.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    /// Ends a request whose answer stops.
    reading: reqwest::Client,
    /// Ends no request by itself: while a body is sent, no answer comes.
    sending: reqwest::Client,
}

impl Transport {
    /// The clients of a bucket; an error tells why there are none.
    pub(crate) fn to(bucket: &Bucket) -> Result<Self, String> {
        let tls = longhaul_egress::tls::config(!bucket.is_clear()).map_err(|error| error.to_string())?;
        let client = || {
            let client = reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .referer(false)
                .http1_only()
                .connect_timeout(CONNECT_MAX)
                .tls_backend_preconfigured(tls.clone());
            if bucket.is_local() { client.no_proxy() } else { client }
        };
        let built = |client: reqwest::ClientBuilder| client.build().map_err(|error| error.without_url().to_string());
        Ok(Self { reading: built(client().read_timeout(SILENCE_MAX))?, sending: built(client())? })
    }
}

impl HttpConnector for Transport {
    /// The same clients for all. Their time limits are their own, and not those of the options.
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let length = body.content_length();
        let body = match body.as_bytes() {
            Some(bytes) => reqwest::Body::from(bytes.clone()),
            None => reqwest::Body::wrap(body),
        };
        let client = if length == 0 { &self.reading } else { &self.sending };
        let mut request = client.request(parts.method, parts.uri.to_string()).headers(parts.headers).body(body);
        if length > 0 {
            request = request.timeout(SILENCE_MAX + transfer(length));
        }
        let answer: http::Response<reqwest::Body> = request.send().await.map_err(meaning)?.into();
        let (parts, body) = answer.into_parts();
        let body = if parts.status.is_success() {
            HttpResponseBody::new(body.map_err(meaning))
        } else {
            start_of(body).await.into()
        };
        Ok(HttpResponse::from_parts(parts, body))
    }
}

/// The start of an answer that is an error, as far as it comes: its status alone is an answer.
async fn start_of(mut body: reqwest::Body) -> String {
    let mut start = Vec::new();
    while start.len() < ERROR_BYTES_MAX
        && let Some(Ok(frame)) = body.frame().await
    {
        if let Ok(data) = frame.into_data() {
            start.extend_from_slice(&data);
        }
    }
    start.truncate(ERROR_BYTES_MAX);
    String::from_utf8_lossy(&start).into_owned()
}

fn meaning(error: reqwest::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_connect() {
        HttpErrorKind::Connect
    } else if error.is_decode() {
        HttpErrorKind::Decode
    } else {
        // What says that it may be sent again, whatever the method.
        HttpErrorKind::Request
    };
    HttpError::new(kind, error.without_url())
}
