//! The DevTools protocol over a pipe: messages of JSON, each ended by a zero byte.
//!
//! The crates that drive Chromium use a web socket, for which the browser opens a port that any program of the machine
//! may use. A pipe has two ends. The protocol needs only a dozen methods, named where they are used. The browser's
//! messages are data of pages: they are bounded, and unawaited ones are dropped.

use crate::error::BrowserError;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Bytes of one message: a screenshot of a few million pixels.
const MESSAGE_BYTES_MAX: u64 = 32 << 20;

/// The time for which an immediate answer of the browser is awaited.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);

/// Events that wait to be handled. Further ones are dropped.
const EVENTS_MAX: usize = 1_024;

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Result<Value, String>>>>>;

/// An event of the browser.
pub(crate) struct Event {
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// A connection to a browser.
pub(crate) struct Pipe {
    to_browser: tokio::sync::Mutex<OwnedWriteHalf>,
    waiting: Waiting,
    next: AtomicU64,
    reader: JoinHandle<()>,
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

#[derive(Deserialize)]
struct PipeMessage {
    id: Option<u64>,
    #[serde(default)]
    method: String,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<Value>,
}

impl Pipe {
    /// A connection over that stream; events go to the receiver.
    pub(crate) fn over(stream: UnixStream) -> (Self, mpsc::Receiver<Event>) {
        let (from_browser, to_browser) = stream.into_split();
        let (events, heard) = mpsc::channel(EVENTS_MAX);
        let waiting = Waiting::default();
        let reader = tokio::spawn(listen(from_browser, Arc::clone(&waiting), events));
        (Self { to_browser: to_browser.into(), waiting, next: AtomicU64::new(1), reader }, heard)
    }

    /// Calls a method; with a session, of a page.
    pub(crate) async fn call(
        &self,
        session: Option<&str>,
        method: &'static str,
        params: Value,
        time: Duration,
    ) -> Result<Value, BrowserError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.waiting().insert(id, answer);
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let exchange = async {
            let sent = self.to_browser.lock().await.write_all(&bytes).await;
            sent.map_err(|error| gone(&error.to_string()))?;
            let answer = answered.await.map_err(|_| gone("it closed the pipe"))?;
            answer.map_err(|said| BrowserError::protocol(method, &said))
        };
        let answer = timeout(time, exchange).await;
        self.waiting().remove(&id);
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        answer.map_err(|_| BrowserError::TimedOut { what: "the page did not answer", ms })?
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<Value, String>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn gone(said: &str) -> BrowserError {
    BrowserError::Ended { limit: None, said: said.to_owned() }
}

async fn listen(from_browser: OwnedReadHalf, waiting: Waiting, events: mpsc::Sender<Event>) {
    let mut from_browser = BufReader::new(from_browser);
    loop {
        let mut message = Vec::new();
        let read = (&mut from_browser).take(MESSAGE_BYTES_MAX).read_until(0, &mut message).await;
        if read.is_err() || message.pop() != Some(0) {
            break;
        }
        let Ok(said) = serde_json::from_slice::<PipeMessage>(&message) else { break };
        match said.id {
            Some(id) => {
                let waits = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
                let answer = said.error.map_or(Ok(said.result), |error| Err(error.to_string()));
                // A caller that gave up does not want it any more.
                let _ = waits.map(|waits| waits.send(answer));
            }
            None => drop(events.try_send(Event { method: said.method, params: said.params })),
        }
    }
    // This tells the waiting callers that no answer will come.
    waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
}
