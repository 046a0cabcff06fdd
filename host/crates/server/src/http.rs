//! The HTTP API and the web page of the process that owns the data directory.
//!
//! It turns requests into those of the service, and answers into the types of `longhaul_api::wire`, so that the wire
//! format does not change with the types inside. It takes no decision about a run, keeps no session, and sets no
//! cookie.
//!
//! | file | holds |
//! |---|---|
//! | `http/gate.rs` | authentication of requests |
//! | `http/operations.rs` | the operations: each handler with its scope, and the router of all |
//! | `http/call_scopes.rs` | the scope of each operation that a command line calls by its name |
//! | `http/scopes.rs` | the scope that each operation needs |
//! | `http/rate.rs` | rate limits of tokens and addresses |
//! | `http/latency.rs` | how long requests take, for Prometheus |
//! | `http/state.rs` | the state that all requests share |
//! | `http/input.rs` | queries, bodies and names in paths |
//! | `http/problem.rs` | problem documents, the replies to refused requests |
//! | `http/reply.rs` | replies in JSON, and pages of lists |
//! | `http/routes/` | the handlers |
//! | `http/sse.rs` | server-sent events: frames, heartbeats, the end of a stream |
//! | `http/standby.rs` | the server that stands by |
//! | `http/forward.rs` | requests that it forwards to the server that works |
//! | `http/stream.rs` | the events of runs as server-sent events |
//! | `http/graph_stream.rs` | the output of graphs as server-sent events |
//! | `http/exec_stream.rs` | the output of jobs as server-sent events |
//! | `http/document.rs` | the OpenAPI document |
//! | `http/page.rs` | the web page |

mod call_scopes;
mod document;
mod exec_stream;
mod forward;
mod gate;
mod graph_stream;
mod input;
mod latency;
mod operations;
mod page;
mod problem;
mod rate;
mod reply;
mod routes;
mod scopes;
mod sse;
mod standby;
mod state;
mod stream;

pub use standby::StandbyServer;
pub use state::{AppState, SharedState};

use axum::body::Body;
use axum::extract::MatchedPath;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, Request, StatusCode, header};
use hyper::body::Incoming;
use problem::Problem;
use std::any::Any;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::net::TcpListener;
use tower::ServiceExt as _;
use tower_http::catch_panic::CatchPanicLayer;

/// Header with the id of a request, under which the log has it.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Serves until the state says to stop, then lets requests that are under way end.
pub async fn serve(state: SharedState, listener: TcpListener) {
    let router = guarded(operations::router(&state));
    let (connections_max, stop) = (state.settings().connections_max, state.stop.clone());
    let answer = move |peer, request: Request<Incoming>| {
        let (state, router) = (Arc::clone(&state), router.clone());
        async move { Ok::<_, Infallible>(answer(&state, router, peer, request.map(Body::new)).await) }
    };
    longhaul_listen::serve(listener, connections_max, stop, answer).await;
}

/// Answers a panic of a handler with a problem, so that it ends no other request.
fn guarded(router: axum::Router) -> axum::Router {
    let failed = |_: Box<dyn Any + Send>| Problem::internal().into_response();
    router.layer(CatchPanicLayer::custom(failed))
}

async fn answer(state: &SharedState, router: axum::Router, peer: SocketAddr, mut request: Request<Body>) -> Response {
    let id = format!("q-{:x}-{}", std::process::id(), state.requests.fetch_add(1, Ordering::Relaxed));
    let (since, method, path) = (Instant::now(), request.method().clone(), request.uri().path().to_owned());
    let response = match gate::enter(state, peer, &request) {
        Err(problem) => problem.into_response(),
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            let Ok(response) = router.oneshot(request).await;
            response
        }
    };
    let route = response.extensions().get::<MatchedPath>().map(|route| route.as_str().to_owned());
    let response = dressed(response, &id);
    state.latencies.add(route.as_deref(), &method, response.status(), since.elapsed());
    let (status, took_ms) = (response.status().as_u16(), since.elapsed().as_millis());
    if response.status().is_server_error() && response.status() != StatusCode::SERVICE_UNAVAILABLE {
        tracing::error!(request = id, %peer, %method, path, status, took_ms, "a request failed");
    } else {
        tracing::info!(request = id, %peer, %method, path, status, took_ms, "answered");
    }
    response
}

/// Adds the headers of every response, and makes a problem of an error that came without one.
fn dressed(response: Response, id: &str) -> Response {
    let status = response.status();
    let is_problem = |response: &Response| {
        response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == problem::MEDIA_TYPE)
    };
    let mut response = if (status.is_client_error() || status.is_server_error()) && !is_problem(&response) {
        let allow = response.headers().get(header::ALLOW).cloned();
        let mut told = Problem::of_status(status).into_response();
        allow.map(|allow| told.headers_mut().insert(header::ALLOW, allow));
        told
    } else {
        response
    };
    let fields = response.headers_mut();
    fields.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    fields
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox"));
    fields.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    fields.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    fields.insert(HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin"));
    if let Ok(id) = HeaderValue::from_str(id) {
        // A forwarded request has the id under which the log of the server that answered it has it.
        fields.entry(REQUEST_ID).or_insert(id);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;

    async fn fails() -> StatusCode {
        panic!("as asked")
    }

    #[tokio::test]
    async fn a_fault_in_one_request_is_told_as_ours() {
        let router = guarded(axum::Router::new().route("/", get(fails)));
        let request = Request::get("/").body(Body::empty()).expect("a request");
        let Ok(response) = router.oneshot(request).await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers()[header::CONTENT_TYPE], problem::MEDIA_TYPE);
    }
}
