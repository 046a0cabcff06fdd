//! The owner's Unix socket: one call a connection, a line of JSON each way, mode 0600.
//!
//! It takes no decision: a call becomes a request of the service, and the answer goes back as it is.

use crate::door::{Seen, watch_here};
use crate::home::Home;
use crate::service::{Answer, Request, Service};
use anyhow::Context;
use longhaul_core::RunId;
use longhaul_core::event::RunEvent;
use longhaul_core::stream::Token;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Bytes of a call. A checkpoint that is imported is the largest: as much as the command line reads of one, and the
/// words around it. Only the owner of the data directory can call.
const CALL_BYTES_MAX: u64 = 513 << 20;

/// What a client sends.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// One request, one reply.
    Ask(Box<Request>),
    /// A run's events from a number on, then whatever comes, until the run is gone.
    Watch {
        /// The run.
        run: RunId,
        /// The last event that the client has.
        after: u64,
    },
}

/// What the owner sends.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// To [`Call::Ask`].
    Reply(Reply),
    /// An event.
    Event(RunEvent),
    /// A part of what a model says.
    Token {
        /// The part.
        token: Token,
        /// The last event before it.
        after: u64,
        /// Its number.
        part: u64,
    },
    /// Parts were lost.
    Lagged,
    /// The client did not read, and is let go.
    Dropped,
    /// Nobody works on the run any more.
    Gone(Option<String>),
}

/// The answer, or why there is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It is done.
    Answer(Box<Answer>),
    /// It is not; the text says what to do.
    Error(String),
}

/// Serves until aborted.
pub fn serve(home: &Home, service: Arc<Service>) -> anyhow::Result<JoinHandle<()>> {
    let path = home.socket();
    // We hold the lock, so a socket that is there is a dead owner's.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).with_context(|| format!("cannot serve on `{}`", path.display()))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                    let service = Arc::clone(&service);
                    connections.spawn(async move { answer(stream, &service).await });
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }))
}

async fn answer(stream: UnixStream, service: &Arc<Service>) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    let read = (&mut reader).take(CALL_BYTES_MAX).read_line(&mut line).await;
    let mut stream = reader.into_inner();
    let call = match read {
        Ok(0) | Err(_) => return,
        Ok(_) => serde_json::from_str(&line),
    };
    match call {
        Ok(Call::Ask(request)) => {
            let reply = match service.answer(*request).await {
                Ok(answer) => Reply::Answer(Box::new(answer)),
                Err(error) => Reply::Error(format!("{error:#}")),
            };
            let _ = write(&mut stream, &Line::Reply(reply)).await;
        }
        Ok(Call::Watch { run, after }) => watch(&mut stream, service, run, after).await,
        Err(error) => {
            let text = format!("the call is not understood ({error}); client and owner may be of different versions");
            let _ = write(&mut stream, &Line::Reply(Reply::Error(text))).await;
        }
    }
}

async fn watch(stream: &mut UnixStream, service: &Arc<Service>, run: RunId, after: u64) {
    let (sender, mut receiver) = mpsc::channel(256);
    let _follows = service.followed(&run);
    let own = Arc::clone(service);
    let watching = tokio::spawn(async move { watch_here(&own, &run, after, &sender).await });
    while let Some(seen) = receiver.recv().await {
        let line = match seen {
            Seen::Event(event) => Line::Event(event),
            Seen::Token(token) => Line::Token { after: token.after, part: token.part, token },
            Seen::Lagged => Line::Lagged,
            Seen::Dropped => Line::Dropped,
            Seen::Gone(why) => Line::Gone(why),
        };
        if write(stream, &line).await.is_err() {
            break;
        }
    }
    watching.abort();
}

async fn write(stream: &mut UnixStream, line: &Line) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    stream.write_all(&bytes).await
}
