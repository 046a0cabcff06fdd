//! A fake HTTP server for tests: it answers connections, in order, with prepared bytes.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The script of one connection: pieces, each with a pause before it. Without pieces it is silent, and open.
pub(crate) type Script = Vec<(Duration, Vec<u8>)>;

/// A server on loopback; dropping it ends it.
pub(crate) struct FakeServer {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl FakeServer {
    /// Serves one connection for each script; after the last one, nothing listens.
    pub(crate) async fn start(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            for script in scripts {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read_request(&mut stream).await;
                seen.lock().unwrap().push(request);
                play(stream, script).await;
            }
        });
        Self { port, requests, task }
    }

    /// Answers every request by its headers and body, until it is dropped.
    pub(crate) async fn serving(answer: impl Fn(&str) -> Script + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read_request(&mut stream).await;
                let script = answer(&request);
                seen.lock().unwrap().push(request);
                play(stream, script).await;
            }
        });
        Self { port, requests, task }
    }

    /// The requests so far, headers and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// The JSON body of request `index`.
    pub(crate) fn body(&self, index: usize) -> serde_json::Value {
        let requests = self.requests();
        let (_, body) = requests[index].split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A whole answer with its length.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Script {
    let length = body.len();
    let text =
        format!("HTTP/1.1 {status} Fake\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    vec![(Duration::ZERO, text.into_bytes())]
}

/// A stream of events in the given pieces, which ends with the connection.
pub(crate) fn stream(headers: &str, pieces: impl IntoIterator<Item = Vec<u8>>) -> Script {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{headers}Connection: close\r\n\r\n");
    let pieces = pieces.into_iter().map(|piece| (Duration::from_millis(1), piece));
    std::iter::once((Duration::ZERO, head.into_bytes())).chain(pieces).collect()
}

async fn play(mut stream: TcpStream, script: Script) {
    if script.is_empty() {
        std::future::pending::<()>().await;
    }
    for (pause, piece) in script {
        tokio::time::sleep(pause).await;
        // The client may have closed the connection.
        if stream.write_all(&piece).await.is_err() {
            return;
        }
    }
    let _ = stream.shutdown().await;
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.unwrap_or(0);
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let length = text
            .to_lowercase()
            .split_once("content-length: ")
            .and_then(|(_, rest)| rest.split_once("\r\n")?.0.parse().ok());
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
        if read == 0 || body.is_some_and(|body| body >= length.unwrap_or(0)) {
            return text;
        }
    }
}
