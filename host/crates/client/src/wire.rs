//! The protocol of the owner's Unix socket: the messages of both sides, and the connection of a client to the owner.
//!
//! A client sends two lines, the token of the data directory and its call as JSON; the owner answers with lines of
//! JSON. Each side looks at the user of the other one by what the kernel says of the connection, and speaks to its own
//! user alone. The token is a file that no sandbox shows. Refuses an owner that is another user's.

use longhaul_api::operations::OperationCall;
use longhaul_core::RunId;
use longhaul_core::event::RunEvent;
use longhaul_core::fault::{self, Context, FaultWire, bail};
use longhaul_core::stream::StreamToken;
use longhaul_home::Home;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

/// Bytes of a call. A checkpoint that is imported is the largest: as much as the command line reads of one, and the
/// words around it. Only the owner of the data directory can call.
pub const CALL_BYTES_MAX: u64 = 513 << 20;

/// Digits of a token: 256 bits.
pub const TOKEN_DIGITS: usize = 64;

/// A message of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientMessage {
    /// One operation, one reply. It had other names while errors were texts, and while a call was one of a list of
    /// requests: a client of that time is refused, and so is a client of today by an owner of that time, each in a
    /// sentence about versions that the other one reads.
    Operation(OperationCall),
    /// A run's events from a number on, then new ones, until no process works on the run.
    Watch {
        /// The run.
        run: RunId,
        /// The last event that the client has.
        after: u64,
    },
}

/// A message of the owner.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerMessage {
    /// To [`ClientMessage::Operation`].
    Reply(SocketReply),
    /// An event.
    Event(RunEvent),
    /// A part of what a model says.
    Token {
        /// The part.
        token: StreamToken,
        /// The last event before it.
        after: u64,
        /// Its number.
        part: u64,
    },
    /// Parts were lost.
    Lagged,
    /// The client did not read, and is let go.
    Dropped,
    /// No process works on the run any more.
    Gone(Option<String>),
}

/// The answer, or why there is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketReply {
    /// The response of the operation.
    Answer(Value),
    /// It is not; the text says what to do.
    Error(FaultWire),
}

/// Makes the token of a data directory, of randomness, and keeps it where clients read it.
///
/// # Errors
/// When the file cannot be written.
pub fn make_token(home: &Home, seed: [u8; 32]) -> fault::Result<String> {
    let token: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = home.socket_token();
    let failed = || {
        format!(
            "cannot keep the token of the socket in `{}`; nothing is lost: make room, or make it writable, and try again",
            path.display()
        )
    };
    // One name, since only the owner of the data directory comes here: a kill before the rename leaves a file that the
    // next owner replaces. A name that leads elsewhere is replaced and not followed, here and at the rename.
    let unfinished = path.with_extension("new");
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).with_context(failed),
        _ => {}
    }
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished).with_context(failed)?;
    file.write_all(token.as_bytes()).with_context(failed)?;
    std::fs::rename(&unfinished, &path).with_context(failed)?;
    Ok(token)
}

/// Connects to the owner, if it is of our own user, and shows it the token.
pub async fn connect(home: &Home) -> fault::Result<UnixStream> {
    let address = home.socket_address()?;
    let mut stream = UnixStream::connect(address.path()).await.map_err(|_| OwnerGone)?;
    let (owner, own) = (stream.peer_cred()?.uid(), geteuid().as_raw());
    if owner != own {
        let path = home.socket();
        bail!(ForeignOwner(format!(
            "the user {owner} serves `{}`, and longhaul speaks to its own user {own} alone; run it as that user, or \
             remove the file",
            path.display()
        )));
    }
    let path = home.socket_token();
    let token = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    // An owner that refuses us may have closed the connection, and its reason is there to be read.
    let _ = stream.write_all(format!("{}\n", token.trim()).as_bytes()).await;
    Ok(stream)
}

/// Another user serves the socket.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ForeignOwner(String);

/// The owner went away before it answered. What was asked may have been done.
#[derive(Debug, thiserror::Error)]
#[error("the owner of the data directory has just stopped; try again")]
pub struct OwnerGone;
