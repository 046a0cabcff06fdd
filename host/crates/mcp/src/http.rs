//! Streamable HTTP through the egress guard, so that a server's address, its redirects and its secret follow the same
//! rules as any other request.
//!
//! No stream is opened for a server's own messages: its tools are listed before each call anyway.

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use longhaul_egress::{EgressError, Fetched, Guard};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse};
use sse_stream::{Error as SseError, Sse, SseStream};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// Bytes of an error's text that are repeated.
const EXCERPT_BYTES_MAX: usize = 300;

type Failed = StreamableHttpError<EgressError>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// A client of one server.
#[derive(Clone)]
pub(crate) struct Guarded {
    pub(crate) guard: Guard,
    /// The placeholder of the bearer token; the guard inserts the value.
    pub(crate) bearer: Option<String>,
}

impl Guarded {
    async fn send(
        &self,
        method: Method,
        uri: &str,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
        body: Bytes,
    ) -> Result<Fetched, Failed> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri.parse().map_err(|_| StreamableHttpError::Client(EgressError::BadAddress))?;
        request.headers_mut().extend(headers);
        let mut set = |name: HeaderName, value: &str| {
            let value = HeaderValue::from_str(value);
            let value = value.map_err(|_| {
                StreamableHttpError::UnexpectedServerResponse(Cow::from("a session that no header can carry"))
            })?;
            request.headers_mut().insert(name, value);
            Ok::<_, Failed>(())
        };
        set(ACCEPT, &format!("{JSON}, {EVENTS}"))?;
        set(CONTENT_TYPE, JSON)?;
        if let Some(session) = session {
            set(SESSION, session)?;
        }
        if let Some(bearer) = &self.bearer {
            set(http::header::AUTHORIZATION, &format!("Bearer {bearer}"))?;
        }
        self.guard.fetch(request).await.map_err(StreamableHttpError::Client)
    }
}

impl StreamableHttpClient for Guarded {
    type Error = EgressError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let body = serde_json::to_vec(&message)?.into();
        let mut fetched = self.send(Method::POST, &uri, session_id.as_deref(), custom_headers, body).await?;
        let (status, kind) = (fetched.status, kind(&fetched));
        let session = fetched.headers.get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) || !awaits(&message) && status.is_success() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status.is_success() && kind == EVENTS {
            return Ok(StreamableHttpPostResponse::Sse(events(fetched), session));
        }
        let bytes = fetched.read_all().await.map_err(StreamableHttpError::Client)?;
        if kind == JSON
            && let Ok(answer) = serde_json::from_slice::<ServerJsonRpcMessage>(&bytes)
        {
            return Ok(StreamableHttpPostResponse::Json(answer, session));
        }
        let text = longhaul_core::text::truncate(&String::from_utf8_lossy(&bytes), EXCERPT_BYTES_MAX);
        Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}: {text}"))))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        // A server may not support this; the session ends with it.
        self.send(Method::DELETE, &uri, Some(&session_id), custom_headers, Bytes::new()).await.map(drop)
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        _session_id: Option<Arc<str>>,
        _last_event_id: Option<String>,
        _auth_header: Option<String>,
        _custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failed> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

fn awaits(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, ClientJsonRpcMessage::Request(_))
}

fn kind(fetched: &Fetched) -> String {
    let kind = fetched.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The guard's cap on the whole body bounds each event as well.
fn events(fetched: Fetched) -> Events {
    let pieces = stream::try_unfold(fetched, |mut fetched| async move {
        Ok::<_, EgressError>(fetched.next().await?.map(|piece| (piece, fetched)))
    });
    SseStream::from_bytes_stream(Box::pin(pieces)).boxed()
}
