//! The HTTP API and the web page of the process that owns the data directory.
//!
//! A view like any other: what it offers are requests of the service, in types of its own, so that what is on the wire
//! does not move with what is within. It takes no decision about a run, keeps no session, and sets no cookie.
//!
//! | file | holds |
//! |---|---|
//! | `http/listen.rs` | connections: how many, how slow, how they end |
//! | `http/gate.rs` | who may come in |
//! | `http/scopes.rs` | what each route asks for |
//! | `http/rate.rs` | how often somebody may ask |
//! | `http/input.rs` | queries and bodies |
//! | `http/problem.rs` | what is wrong with a request |
//! | `http/views/` | the types of answers |
//! | `http/routes/` | the routes |
//! | `http/stream.rs` | events as they come |
//! | `http/document.rs` | the description of all this, as OpenAPI |
//! | `http/page.rs` | the web page |

mod document;
mod gate;
mod input;
pub(crate) mod listen;
mod page;
mod problem;
mod rate;
mod routes;
mod scopes;
mod stream;
mod views;

use crate::exec::{ExecError, Executor, Places};
use crate::service::{Answer, Request as Asked, Service};
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, Request, StatusCode, header};
use hyper::body::Incoming;
use longhaul_config::server::Settings;
use problem::Problem;
use rate::Rates;
use std::any::Any;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::sync::{OnceCell, watch};
use tower::ServiceExt as _;
use tower_http::catch_panic::CatchPanicLayer;

/// The header that names a request, here and in the log.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What all requests share.
pub(crate) struct Hall {
    service: Arc<Service>,
    settings: RwLock<Arc<Settings>>,
    rates: Rates,
    /// Where the page's files are, in place of the binary's own.
    page: Option<PathBuf>,
    /// Where plugins and interpreters are looked for.
    home: crate::home::Home,
    /// Says when the server is to end.
    stop: watch::Receiver<bool>,
    /// Streams that are open.
    streams: AtomicUsize,
    /// Jobs of `exec` that run.
    jobs: AtomicUsize,
    executor: OnceCell<Executor>,
    requests: AtomicU64,
}

/// One hall for all.
pub(crate) type Shared = Arc<Hall>;

/// One of so many, until dropped.
pub(crate) struct Place {
    hall: Shared,
    of: fn(&Hall) -> &AtomicUsize,
}

impl Drop for Place {
    fn drop(&mut self) {
        (self.of)(&self.hall).fetch_sub(1, Ordering::Relaxed);
    }
}

impl Hall {
    /// For a service and a way to be told of the end.
    pub(crate) fn new(
        service: Arc<Service>,
        home: crate::home::Home,
        settings: Settings,
        page: Option<PathBuf>,
        stop: watch::Receiver<bool>,
    ) -> Shared {
        Arc::new(Self {
            service,
            settings: RwLock::new(Arc::new(settings)),
            rates: Rates::default(),
            page,
            home,
            stop,
            streams: AtomicUsize::new(0),
            jobs: AtomicUsize::new(0),
            executor: OnceCell::new(),
            requests: AtomicU64::new(0),
        })
    }

    /// The settings as they are now.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Others from now on.
    pub(crate) fn set(&self, settings: Settings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// Asks the service.
    async fn ask(&self, request: Asked) -> Result<Answer, Problem> {
        Ok(self.service.answer(request).await?)
    }

    /// Whether the server is to end.
    fn ends(&self) -> bool {
        *self.stop.borrow()
    }

    async fn executor(&self) -> Result<&Executor, ExecError> {
        let runtimes = longhaul_home::plugin_directories(&self.home);
        self.executor.get_or_try_init(|| async { Executor::new(Places { runtimes, ..Places::usual()? }) }).await
    }
}

/// One more of `most`, if there is room.
fn place(hall: &Shared, most: usize, of: fn(&Hall) -> &AtomicUsize) -> Option<Place> {
    let taken = of(hall).fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| (now < most).then_some(now + 1));
    taken.ok().map(|_| Place { hall: Arc::clone(hall), of })
}

/// Serves until the hall is told to stop, then lets what is under way come to its end.
pub(crate) async fn serve(hall: Shared, listener: TcpListener) {
    let router = guarded(routes::router(&hall));
    let (connections_max, stop) = (hall.settings().connections_max, hall.stop.clone());
    let answer = move |peer, request: Request<Incoming>| {
        let (hall, router) = (Arc::clone(&hall), router.clone());
        async move { Ok::<_, Infallible>(answer(&hall, router, peer, request.map(Body::new)).await) }
    };
    listen::serve(listener, connections_max, stop, answer).await;
}

/// A fault of ours in one request ends no other.
fn guarded(router: axum::Router) -> axum::Router {
    let failed = |_: Box<dyn Any + Send>| Problem::internal().into_response();
    router.layer(CatchPanicLayer::custom(failed))
}

async fn answer(hall: &Shared, router: axum::Router, peer: SocketAddr, mut request: Request<Body>) -> Response {
    let id = format!("q-{:x}-{}", std::process::id(), hall.requests.fetch_add(1, Ordering::Relaxed));
    let (since, method, path) = (Instant::now(), request.method().clone(), request.uri().path().to_owned());
    let response = match gate::enter(hall, peer, &request) {
        Err(problem) => problem.into_response(),
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            let Ok(response) = router.oneshot(request).await;
            response
        }
    };
    let response = dressed(response, &id);
    let (status, took_ms) = (response.status().as_u16(), since.elapsed().as_millis());
    if response.status().is_server_error() && response.status() != StatusCode::SERVICE_UNAVAILABLE {
        tracing::error!(request = id, %peer, %method, path, status, took_ms, "a request failed");
    } else {
        tracing::info!(request = id, %peer, %method, path, status, took_ms, "answered");
    }
    response
}

/// What every answer says beside its own.
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
        fields.insert(REQUEST_ID, id);
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
