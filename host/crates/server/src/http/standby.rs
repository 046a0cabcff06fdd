//! The HTTP of a server that stands by, while another one has the state: it lives, and forwards requests to that one.
//!
//! Whoever spreads requests over several servers asks `/ready`, which answers 503 here: the direct way is the shorter
//! one. No answer names the server that has the state: nobody is asked for a token here.

use super::dressed;
use super::forward::{Forwarder, RETRY_AFTER};
use super::problem::Problem;
use super::routes::server::Health;
use axum::response::{IntoResponse as _, Response};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use longhaul_config::ServerUrl;
use longhaul_config::server::ServerSettings;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Answers requests until it is stopped.
pub struct StandbyServer {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl StandbyServer {
    /// Answers requests to the address of a listener, which stays open for the server that follows. `holder` has the
    /// address of the server that has the state, as far as it is known.
    ///
    /// # Errors
    /// When the system refuses a second handle of the listener.
    pub fn start(
        listener: &TcpListener,
        settings: ServerSettings,
        holder: watch::Receiver<Option<ServerUrl>>,
    ) -> io::Result<Self> {
        let same = std::net::TcpListener::from(listener.as_fd().try_clone_to_owned()?);
        let same = TcpListener::from_std(same)?;
        let (stop, stopping) = watch::channel(false);
        let connections_max = settings.connections_max;
        let forwarder = Arc::new(Forwarder::new(settings, holder, stopping.clone()));
        let count = Arc::new(AtomicU64::new(0));
        let answer = move |peer: SocketAddr, request: Request<Incoming>| {
            let id = format!("q-{:x}-{}", std::process::id(), count.fetch_add(1, Ordering::Relaxed));
            let forwarder = Arc::clone(&forwarder);
            async move { Ok::<_, Infallible>(answer(&forwarder, peer, request, &id).await) }
        };
        let task = tokio::spawn(longhaul_listen::serve(same, connections_max, stopping, answer));
        Ok(Self { stop, task })
    }

    /// Stops it, once requests under way have ended: those that were forwarded end at once, and clients of streams go
    /// on at the server that follows. Requests that come from now on wait for it.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.task.await;
    }
}

async fn answer(forwarder: &Forwarder, peer: SocketAddr, request: Request<Incoming>, id: &str) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = match path.as_str() {
        "/health" => Health::of_standby().into_response(),
        "/ready" => {
            let detail = "this server stands by, and another one has the state";
            Problem::later(StatusCode::SERVICE_UNAVAILABLE, RETRY_AFTER, detail).into_response()
        }
        _ => forwarder.forward(request, peer, id).await.unwrap_or_else(Problem::into_response),
    };
    let response = dressed(response, id);
    tracing::info!(request = id, %peer, %method, path, status = response.status().as_u16(), "answered as a standby");
    response
}

#[cfg(test)]
mod tests;
