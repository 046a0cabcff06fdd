//! The client of a server elsewhere, over its HTTP API with a token.
//!
//! It follows no redirect and repeats nothing: the caller knows which request may be carried out twice. An answer may
//! take as long as its operation, but the connection is looked at meanwhile, and no answer is longer than a checkpoint.

use crate::server_address::{ServerAddress, ServerToken};
use crate::server_events::EventReader;
use crate::server_faults::{not_understood, of_answer, of_connection};
use crate::wire::CALL_BYTES_MAX;
use longhaul_api::operations::{Operation, OperationCall};
use longhaul_api::paths::{DIRECTORIES, FILES};
use longhaul_api::seen::RunNotification;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context as _, Fault};
use longhaul_core::text::printable;
use longhaul_egress::server_connection::{self, ConnectionTimes};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::Sender;

/// The times of connections. Servers and proxies keep an unused one for longer.
const TIMES: ConnectionTimes =
    ConnectionTimes { connect: Duration::from_secs(10), idle: Duration::from_secs(4), probe: Duration::from_secs(30) };

/// Longest silence of a stream: its server sends a heartbeat each 15 s.
const STREAM_SILENCE: Duration = Duration::from_secs(60);

/// Bytes of an answer that is no response.
const REFUSAL_BYTES_MAX: u64 = 1 << 20;

/// Bytes of a path in a refusal.
const PATH_BYTES_MAX: usize = 200;

/// A client of one server.
pub struct ServerClient {
    http: Client,
    address: ServerAddress,
    /// None: the server is asked without one, as one that needs no tokens is.
    token: Option<ServerToken>,
    /// True once the server answered.
    has_answered: AtomicBool,
}

impl ServerClient {
    /// A client that asks nothing yet.
    ///
    /// # Errors
    /// This machine has no authorities for TLS, where the server is reached by it.
    pub fn new(address: ServerAddress, token: Option<ServerToken>) -> fault::Result<Self> {
        let builder = server_connection::builder(address.is_secure(), TIMES);
        let mut builder = builder
            .context("TLS cannot be used on this machine")?
            .user_agent(concat!("longhaul/", env!("CARGO_PKG_VERSION")));
        if address.is_loopback() {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(reqwest::Error::without_url)?;
        Ok(Self { http, address, token, has_answered: AtomicBool::new(false) })
    }

    /// Has the server carry out an operation.
    ///
    /// # Errors
    /// Those of the operation; and that the server is not reached, refuses the token, or answers something else.
    pub async fn call<O: Operation>(&self, request: &O) -> fault::Result<O::Response> {
        let OperationCall { name, request } = OperationCall::of(request)?;
        expect_paths_of_server(&request)?;
        let url = self.address.below(&["api", "v1", "operations", &name]);
        let body = serde_json::to_vec(&request)?;
        let sending = self.http.post(url).header(CONTENT_TYPE, "application/json").body(body);
        let response = self.send(sending).await?;
        let bytes = self.body(response, CALL_BYTES_MAX).await?;
        serde_json::from_slice(&bytes).map_err(|error| not_understood(&self.address, &error.to_string()))
    }

    /// Opens the stream of a run's events after a number. It ends when no process works on the run any more.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn watch(&self, run: &RunId, after: u64) -> fault::Result<EventStream> {
        let mut url = self.address.below(&["api", "v1", "runs", run.as_str(), "events", "stream"]);
        url.query_pairs_mut().append_pair("after", &after.to_string()).append_pair("follow", "false");
        let response = self.send(self.http.get(url).header(ACCEPT, "text/event-stream")).await?;
        Ok(EventStream(response))
    }

    /// Sends a request. Every answer but 200 is an error.
    async fn send(&self, sending: RequestBuilder) -> fault::Result<Response> {
        let sending = match &self.token {
            Some(token) => sending.header(AUTHORIZATION, token.header()),
            None => sending,
        };
        let had_answered = self.has_answered.load(Ordering::Relaxed);
        let response = sending.send().await.map_err(|error| of_connection(&self.address, error, had_answered))?;
        self.has_answered.store(true, Ordering::Relaxed);
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(response);
        }
        let retry_after =
            response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let body = self.body(response, REFUSAL_BYTES_MAX).await.unwrap_or_default();
        Err(of_answer(&self.address, status, retry_after, &body))
    }

    async fn body(&self, mut response: Response, bytes_max: u64) -> fault::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(piece)) => bytes.extend_from_slice(&piece),
                Ok(None) => return Ok(bytes),
                Err(error) => return Err(of_connection(&self.address, error, true)),
            }
            if bytes.len() as u64 > bytes_max {
                return Err(not_understood(&self.address, &format!("it has more than {bytes_max} bytes")));
            }
        }
    }
}

/// The stream of a run's events.
pub struct EventStream(Response);

impl EventStream {
    /// Sends what arrives, until the stream ends, breaks or is silent for too long, or nobody receives.
    pub async fn pass_on(mut self, sender: &Sender<RunNotification>) {
        let mut reader = EventReader::default();
        while let Ok(Ok(Some(piece))) = tokio::time::timeout(STREAM_SILENCE, self.0.chunk()).await {
            let Ok(seen) = reader.take(&piece) else {
                let told = "the server sends an event that is longer than any is".to_owned();
                let _ = sender.send(RunNotification::Gone(Some(told))).await;
                return;
            };
            for seen in seen {
                if sender.send(seen).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Refuses a request that names a path of the server in part, or a project that nobody named: the directory in which
/// this process is means nothing there.
fn expect_paths_of_server(request: &Value) -> fault::Result<()> {
    let named = DIRECTORIES.iter().chain(FILES).filter_map(|at| request.pointer(at)).filter_map(Value::as_str);
    for path in named {
        if path.is_empty() {
            return Err(Fault::invalid(
                "a server does not know in which project you are; name the run, or the directory of the project on the \
                 server with `--project DIR` (`longhaul projects` lists them)",
            ));
        }
        if !path.starts_with('/') {
            let shown = printable(path, PATH_BYTES_MAX);
            return Err(Fault::invalid(format!(
                "`{shown}` is a relative path, and means nothing to a server; write the whole path on its machine"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server_faults::{ServerGone, ServerUnreachable, is_server_away};
    use longhaul_api::runs::{BeginRun, ListRuns, RunRef, ShowRun};
    use longhaul_core::fault::FaultCode;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// A client of an address, with a token.
    fn client(address: &str) -> ServerClient {
        let address = ServerAddress::parse(address).expect("an address");
        let token = ServerToken::parse("lh_1_secret", "the test").expect("a token");
        ServerClient::new(address, Some(token)).expect("it is made")
    }

    /// The answers to a list of runs from a server that sends these bytes, one answer a connection, and then is gone.
    async fn asked(answers: &'static [&'static str], times: usize) -> Vec<fault::Result<usize>> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let client = client(&format!("http://{}", listener.local_addr().expect("bound")));
        let serving = tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.expect("a client");
                let mut request = Vec::new();
                // Up to the end of the body: a connection that is closed before is reset.
                while !request.ends_with(b"{}") {
                    assert!(stream.read_buf(&mut request).await.expect("a request") > 0, "the client went away");
                }
                let request = String::from_utf8_lossy(&request).to_lowercase();
                assert!(request.starts_with("post /api/v1/operations/runs http/1.1\r\n"), "{request}");
                assert!(request.contains("authorization: bearer lh_1_secret\r\n"), "{request}");
                stream.write_all(answer.as_bytes()).await.expect("sent");
            }
        });
        let mut answered = Vec::new();
        for _ in 0..times {
            answered.push(client.call(&ListRuns {}).await.map(|list| list.runs.len()));
        }
        serving.abort();
        answered
    }

    const RUNS: &str = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\nconnection: close\r\n\r\n{\"runs\":[]}";
    const HALF: &str = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\nconnection: close\r\n\r\n{\"ru";
    const HTML: &str = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>";
    const MOVED: &str =
        "HTTP/1.1 301 Moved\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    const REFUSED: &str = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

    #[tokio::test]
    async fn a_response_is_read_and_a_server_that_leaves_is_told_from_one_that_was_never_there() {
        let mut answered = asked(&[RUNS, HALF, ""], 3).await.into_iter();
        assert_eq!(answered.next().expect("asked").expect("answered"), 0);
        for broken in answered {
            let broken = broken.expect_err("it broke");
            assert!(broken.is::<ServerGone>(), "{broken}");
            assert!(broken.to_string().contains("may have done what was asked"), "{broken}");
            assert_eq!(broken.code(), Some(FaultCode::Unavailable));
        }
        let nobody = client("http://127.0.0.1:1").call(&ListRuns {}).await.expect_err("nobody is there");
        assert!(nobody.is::<ServerUnreachable>() && !is_server_away(&nobody), "{nobody}");
        assert!(nobody.to_string().starts_with("cannot reach the server at http://127.0.0.1:1: "), "{nobody}");
    }

    #[tokio::test]
    async fn another_answer_is_an_error_without_the_token_in_it() {
        let answered = asked(&[HTML, MOVED, REFUSED], 3).await;
        for (answer, words) in answered.into_iter().zip(["is not understood", "no token follows", "LONGHAUL_TOKEN"]) {
            let error = format!("{:#}", answer.expect_err(words));
            assert!(error.contains(words) && !error.contains("secret"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_path_that_the_server_could_not_know_is_not_sent() {
        let client = client("http://127.0.0.1:1");
        let newest = |directory: &str| ShowRun { run: RunRef::NewestIn(directory.into()) };
        let unnamed = client.call(&newest("")).await.map(drop).expect_err("refused").to_string();
        assert!(unnamed.contains("name the run, or the directory of the project"), "{unnamed}");
        let relative = client.call(&newest("shop")).await.map(drop).expect_err("refused").to_string();
        assert!(relative.contains("`shop` is a relative path"), "{relative}");
        let (models, plan, plan_only, sessions, again) = (Default::default(), None, false, None, false);
        let run = BeginRun { directory: "".into(), models, plan, plan_only, sessions, again };
        assert!(client.call(&run).await.map(drop).expect_err("refused").to_string().contains("--project DIR"));
    }
}
