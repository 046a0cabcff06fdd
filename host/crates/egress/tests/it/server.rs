//! A server on loopback for the tests of this crate, inside of it and outside.
//!
//! It keeps the head of each request, and leaves the response to the test.

use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A server on loopback that keeps the heads of its requests.
pub struct Server {
    pub port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub async fn start<F, A>(answer: F) -> Self
    where
        F: Fn(String, TcpStream) -> A + Send + Sync + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (answer, kept) = (Arc::clone(&answer), Arc::clone(&kept));
                tokio::spawn(async move {
                    let mut head = vec![0; 16_384];
                    let length = stream.read(&mut head).await.unwrap_or(0);
                    let head = String::from_utf8_lossy(&head[..length]).into_owned();
                    kept.lock().unwrap().push(head.clone());
                    answer(head, stream).await;
                });
            }
        });
        Self { port, heads }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn seen(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// Responds once, and closes the connection.
pub async fn respond(mut stream: TcpStream, status: &str, headers: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    // The client may have hung up by then.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body).await;
}
