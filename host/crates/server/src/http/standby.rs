//! The HTTP of a server that stands by, while another one has the state: it lives, and takes no requests.
//!
//! Whoever spreads requests over several servers asks `/ready`, and sends a server that answers 503 none. No answer
//! names the server that has the state: nobody is asked for a token here.

use super::dressed;
use super::problem::Problem;
use super::routes::server::Health;
use axum::response::{IntoResponse as _, Response};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Connections at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 64;

/// The time after which a client may ask again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Answers requests until it is stopped.
pub struct StandbyServer {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl StandbyServer {
    /// Answers requests to the address of a listener, which stays open for the server that follows.
    ///
    /// # Errors
    /// When the system refuses a second handle of the listener.
    pub fn start(listener: &TcpListener) -> io::Result<Self> {
        let same = std::net::TcpListener::from(listener.as_fd().try_clone_to_owned()?);
        let same = TcpListener::from_std(same)?;
        let (stop, stopping) = watch::channel(false);
        let count = Arc::new(AtomicU64::new(0));
        let answer = move |_: SocketAddr, request: Request<Incoming>| {
            let id = format!("q-{:x}-{}", std::process::id(), count.fetch_add(1, Ordering::Relaxed));
            let response = dressed(response(request.uri().path()), &id);
            async move { Ok::<_, Infallible>(response) }
        };
        let task = tokio::spawn(longhaul_listen::serve(same, CONNECTIONS_MAX, stopping, answer));
        Ok(Self { stop, task })
    }

    /// Stops it, once requests under way have ended. Requests that come from now on wait for the server that follows.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.task.await;
    }
}

fn response(path: &str) -> Response {
    if path == "/health" {
        return Health::of_standby().into_response();
    }
    let detail = "this server stands by, and another one has the state; ask that one";
    Problem::later(StatusCode::SERVICE_UNAVAILABLE, RETRY_AFTER, detail).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::REQUEST_ID;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    async fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("answered");
        answer
    }

    #[tokio::test]
    async fn a_standby_lives_takes_no_request_and_leaves_the_address_to_the_server_that_follows() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let standby = StandbyServer::start(&listener).expect("a second handle");
        let health = get(address, "/health").await;
        assert!(health.starts_with("HTTP/1.1 200") && health.contains("\"status\":\"standby\""), "{health}");
        for path in ["/ready", "/api/v1/runs", "/"] {
            let refused = get(address, path).await;
            assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("stands by"), "{refused}");
            assert!(
                refused.to_lowercase().contains("retry-after: 5") && refused.contains(REQUEST_ID.as_str()),
                "{refused}"
            );
        }
        standby.stop().await;
        let (connected, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        assert!(connected.is_ok() && accepted.is_ok());
    }
}
