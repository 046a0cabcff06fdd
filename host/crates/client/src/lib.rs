//! Client of the service: in-process when we own the data directory, over the owner's socket otherwise, and over HTTP
//! where a command names a server elsewhere. All give the same responses.
//!
//! It knows no service: the one in this process is given to it as a [`LocalService`]. It refuses to open a data
//! directory, which the program does.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod local;
mod server_address;
mod server_client;
mod server_events;
mod server_faults;
pub mod wire;

use longhaul_api::operations::{OTHER_VERSIONS, Operation, OperationCall, Transport};
use longhaul_api::paths::expect_whole_paths;
use longhaul_api::runs::RunRef;
use longhaul_api::seen::RunNotification;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::stream::StreamToken;
use longhaul_home::Home;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use wire::{ClientMessage, OwnerGone, ServerMessage, SocketReply};

pub use local::LocalService;
pub use server_address::{ServerAddress, ServerToken};
pub use server_client::{EventStream, ServerClient};
pub use server_faults::{ServerGone, ServerUnreachable, is_server_away};

/// The way to the service.
pub enum Client {
    /// This process owns the data directory and serves others meanwhile.
    Own {
        /// The service.
        service: Arc<dyn LocalService>,
        /// Serves the socket.
        server: JoinHandle<()>,
        /// The directory.
        home: Home,
    },
    /// Another process owns it.
    Far(Home),
    /// A server elsewhere, which has a data directory of its own.
    Server(Arc<ServerClient>),
}

impl Transport for Client {
    async fn call<O: Operation>(&self, request: O) -> fault::Result<O::Response> {
        match self {
            // In a task of its own, as over the socket: the caller may go away in the middle, and may be deep in its
            // stack.
            Self::Own { service, .. } => {
                let service = Arc::clone(service);
                let answered = tokio::spawn(async move { request.carry_out(&*service).await }).await;
                answered.unwrap_or_else(|cut_off| Err(Fault::internal(format!("the answer was cut off: {cut_off}"))))
            }
            Self::Far(home) => {
                // Here, since what cannot be written as JSON has no path in its error.
                expect_whole_paths(&request)?;
                let response = call_owner(home, OperationCall::of(&request)?).await?;
                serde_json::from_value(response).with_context(not_understood)
            }
            Self::Server(server) => server.call(&request).await,
        }
    }
}

impl Client {
    /// Watches a run from the event after `after`. The channel ends when the owner does.
    pub async fn watch(&self, run: &RunId, after: u64) -> fault::Result<mpsc::Receiver<RunNotification>> {
        let (sender, receiver) = mpsc::channel(256);
        match self {
            Self::Own { service, .. } => {
                let (service, run) = (Arc::clone(service), run.clone());
                tokio::spawn(async move { service.watch(&run, after, &sender).await });
            }
            Self::Far(home) => {
                let mut lines = send(home, &ClientMessage::Watch { run: run.clone(), after }).await?;
                tokio::spawn(async move {
                    while let Ok(Some(line)) = next_line(&mut lines).await {
                        let seen = match line {
                            ServerMessage::Event(event) => RunNotification::Event(event),
                            ServerMessage::Token { token, after, part } => {
                                RunNotification::Token(StreamToken { after, part, ..token })
                            }
                            ServerMessage::Lagged => RunNotification::Lagged,
                            ServerMessage::Dropped => RunNotification::Dropped,
                            ServerMessage::Gone(why) => RunNotification::Gone(why),
                            ServerMessage::Reply(_) => return,
                        };
                        if sender.send(seen).await.is_err() {
                            return;
                        }
                    }
                });
            }
            Self::Server(server) => {
                let events = server.watch(run, after).await?;
                tokio::spawn(async move { events.pass_on(&sender).await });
            }
        }
        Ok(receiver)
    }

    /// True when this process owns the data directory.
    pub fn is_owner(&self) -> bool {
        matches!(self, Self::Own { .. })
    }

    /// True when a server elsewhere is asked: this process never becomes the owner in its place.
    pub fn is_of_server(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// The runs that are worked on here, if this process is the owner.
    pub fn active(&self) -> Vec<RunId> {
        match self {
            Self::Own { service, .. } => service.active(),
            Self::Far(_) | Self::Server(_) => Vec::new(),
        }
    }

    /// The runs that are worked on here and that no other process follows.
    pub fn unfollowed(&self) -> Vec<RunId> {
        match self {
            Self::Own { service, .. } => service.unfollowed(),
            Self::Far(_) | Self::Server(_) => Vec::new(),
        }
    }

    /// As [`Client::close`], but nothing that others have under way here is cut off: it takes as long as the longest
    /// effect, or answer of a model, that is on its way.
    pub async fn leave(self) {
        if let Self::Own { service, .. } = &self {
            service.end_remembering().await;
            service.hand_over().await;
        }
        self.close().await;
    }

    /// Stops serving: runs of others go on where they are attached. Effects that are on their way are waited for, but
    /// not for long.
    pub async fn close(self) {
        if let Self::Own { service, server, home } = self {
            // Others are answered while runs that have ended are remembered.
            service.end_remembering().await;
            server.abort();
            let _ = server.await;
            service.stop().await;
            // The socket goes with its owner, so that no client connects to a dead one.
            let _ = std::fs::remove_file(home.socket());
        }
    }
}

/// The error of a client that cannot read an answer.
fn not_understood() -> String {
    format!("the owner's answer is not understood; {OTHER_VERSIONS}")
}

type Lines = BufReader<UnixStream>;

/// Has the owner of the data directory carry out an operation.
async fn call_owner(home: &Home, call: OperationCall) -> fault::Result<Value> {
    let mut lines = send(home, &ClientMessage::Operation(call)).await?;
    match next_line(&mut lines).await?.ok_or(OwnerGone)? {
        ServerMessage::Reply(SocketReply::Answer(response)) => Ok(response),
        ServerMessage::Reply(SocketReply::Error(wire)) => bail!(wire),
        other => bail!(Fault::internal(format!("the owner sent no reply to an operation: {other:?}"))),
    }
}

async fn send(home: &Home, call: &ClientMessage) -> fault::Result<Lines> {
    let mut stream = wire::connect(home).await?;
    let mut line = serde_json::to_vec(call)?;
    line.push(b'\n');
    // One that refuses us reads no call; its reason is there to be read.
    let _ = stream.write_all(&line).await;
    Ok(BufReader::new(stream))
}

async fn next_line(lines: &mut Lines) -> fault::Result<Option<ServerMessage>> {
    let mut line = String::new();
    // A connection that breaks and one that ends are the same: its other end is gone.
    if lines.read_line(&mut line).await.unwrap_or(0) == 0 {
        return Ok(None);
    }
    let understood = serde_json::from_str(&line).map(Some);
    understood.with_context(not_understood)
}

/// The run that a command means: the one it names, else the newest of the project it stands in.
pub fn which(named: Option<String>, directory: &Path) -> RunRef {
    named.map_or_else(|| RunRef::NewestIn(directory.to_owned()), RunRef::Named)
}
