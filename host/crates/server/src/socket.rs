//! The owner's Unix socket: one call a connection, mode 0600.
//!
//! [`longhaul_client::wire`] has the messages of both sides. The kernel reports the user of a connection, and the owner
//! answers its own user alone. The token is a file that no sandbox shows: a program in one that comes to the socket is
//! refused all the same. The token goes into no environment and no argument.
//!
//! It takes no decision: the service carries out the operation of a call, and the response goes back as it is.

use longhaul_api::operations::{OTHER_VERSIONS, OperationCall, handler};
use longhaul_api::seen::RunNotification;
use longhaul_client::wire::{CALL_BYTES_MAX, ClientMessage, ServerMessage, SocketReply, TOKEN_DIGITS, make_token};
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context, Fault, FaultWire};
use longhaul_core::text::printable;
use longhaul_home::Home;
use longhaul_service::{InProcess, Service, watch_here};
use rustix::process::geteuid;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Bytes of the name of an unknown operation in its refusal.
const NAME_BYTES_MAX: usize = 80;

/// Serves until aborted. `seed` is randomness for the token.
pub fn serve(home: &Home, service: Arc<Service>, seed: [u8; 32]) -> fault::Result<JoinHandle<()>> {
    let path = home.socket();
    // We hold the lock, so a socket that is there is a dead owner's.
    let _ = std::fs::remove_file(&path);
    // The token comes before the socket: a connected client reads it, so it reads that of the owner it speaks to.
    let token: Arc<str> = make_token(home, seed)?.into();
    let address = home.socket_address()?;
    let listener =
        UnixListener::bind(address.path()).with_context(|| format!("cannot serve on `{}`", path.display()))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                    let (service, token) = (Arc::clone(&service), Arc::clone(&token));
                    connections.spawn(async move { answer(stream, &service, &token).await });
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }))
}

async fn answer(stream: UnixStream, service: &Arc<Service>, token: &str) {
    let peer = stream.peer_cred().map(|peer| peer.uid());
    let mut reader = BufReader::new(stream);
    if let Err(refusal) = admit(peer, &mut reader, token).await {
        let _ = write(&mut reader.into_inner(), &refused(refusal)).await;
        return;
    }
    let mut line = String::new();
    let read = (&mut reader).take(CALL_BYTES_MAX).read_line(&mut line).await;
    let mut stream = reader.into_inner();
    let call = match read {
        Ok(0) | Err(_) => return,
        Ok(_) => serde_json::from_str(&line),
    };
    match call {
        Ok(ClientMessage::Operation(call)) => {
            let reply = match carry_out(service, call).await {
                Ok(response) => SocketReply::Answer(response),
                Err(error) => SocketReply::Error(FaultWire::from(&error)),
            };
            let _ = write(&mut stream, &ServerMessage::Reply(reply)).await;
        }
        Ok(ClientMessage::Watch { run, after }) => watch(&mut stream, service, run, after).await,
        Err(error) => {
            let text = format!("the call is not understood ({error}); {OTHER_VERSIONS}");
            let _ = write(&mut stream, &refused(text)).await;
        }
    }
}

/// Carries out an operation, if this version has it.
async fn carry_out(service: &Arc<Service>, OperationCall { name, request }: OperationCall) -> fault::Result<Value> {
    let service = InProcess(Arc::clone(service));
    match handler::<InProcess>(&name) {
        Some(handler) => (handler.carry_out)(&service, request).await,
        None => {
            Err(Fault::msg(format!("there is no operation `{}`; {OTHER_VERSIONS}", printable(&name, NAME_BYTES_MAX))))
        }
    }
}

/// A refusal that clients of every version can read: a text alone.
fn refused(text: String) -> ServerMessage {
    ServerMessage::Reply(SocketReply::Error(FaultWire::Text(text)))
}

/// Refuses other users, and clients without the token, before a call is read.
async fn admit(peer: std::io::Result<u32>, reader: &mut BufReader<UnixStream>, token: &str) -> Result<(), String> {
    let own = geteuid().as_raw();
    match peer {
        Ok(uid) if uid == own => {}
        Ok(uid) => {
            return Err(format!(
                "the socket answers the user {own} alone, and you are {uid}; run longhaul as that user"
            ));
        }
        Err(error) => return Err(format!("the system does not name the user of the client ({error}); try again")),
    }
    let mut shown = Vec::new();
    // The caller decides how much it sends.
    let read = reader.take(TOKEN_DIGITS as u64 + 1).read_until(b'\n', &mut shown).await;
    let shown = shown.strip_suffix(b"\n").unwrap_or(&shown);
    if read.is_ok() && shown.ct_eq(token.as_bytes()).into() {
        return Ok(());
    }
    Err("the call comes without the token of the data directory (`socket-token`), which no sandbox shows; run longhaul \
         outside of the sandbox, in the version of the owner"
        .to_owned())
}

async fn watch(stream: &mut UnixStream, service: &Arc<Service>, run: RunId, after: u64) {
    let (sender, mut receiver) = mpsc::channel(256);
    let _follows = service.followed(&run);
    let own = Arc::clone(service);
    let watching = tokio::spawn(async move { watch_here(&own, &run, after, &sender).await });
    while let Some(seen) = receiver.recv().await {
        let line = match seen {
            RunNotification::Event(event) => ServerMessage::Event(event),
            RunNotification::Token(token) => ServerMessage::Token { after: token.after, part: token.part, token },
            RunNotification::Lagged => ServerMessage::Lagged,
            RunNotification::Dropped => ServerMessage::Dropped,
            RunNotification::Gone(why) => ServerMessage::Gone(why),
        };
        if write(stream, &line).await.is_err() {
            break;
        }
    }
    watching.abort();
}

async fn write(stream: &mut UnixStream, line: &ServerMessage) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    stream.write_all(&bytes).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_api::runs::ListRuns;
    use longhaul_core::fault::FaultCode;
    use serde_json::json;

    fn written(line: &ServerMessage) -> Value {
        serde_json::to_value(line).expect("it is written")
    }

    #[test]
    fn a_client_and_an_owner_of_earlier_versions_are_told_so_in_a_sentence() {
        for earlier in [r#"{"ask":{"ask":"runs"}}"#, r#"{"request":{"ask":"runs"}}"#] {
            assert!(serde_json::from_str::<ClientMessage>(earlier).is_err(), "the call of an earlier client");
        }
        let refusal = refused("of different versions".to_owned());
        assert_eq!(written(&refusal), json!({ "reply": { "error": "of different versions" } }), "as it reads it");
        let call = OperationCall::of(&ListRuns {}).expect("it is written");
        let call = serde_json::to_value(ClientMessage::Operation(call)).expect("it is written");
        let expected = json!({ "operation": { "name": "runs", "request": {} } });
        assert_eq!(call, expected, "which an earlier owner does not know");
        let told = r#"{"reply":{"error":"the call is not understood"}}"#;
        let ServerMessage::Reply(SocketReply::Error(wire)) = serde_json::from_str(told).expect("it is read") else {
            panic!("it is another line")
        };
        assert_eq!(Fault::from(wire).to_string(), "the call is not understood");
    }

    #[test]
    fn a_refusal_crosses_with_its_code_and_its_field() {
        let fault = Fault::conflict("it runs").at("run");
        let line = written(&ServerMessage::Reply(SocketReply::Error(FaultWire::from(&fault))));
        assert_eq!(line, json!({ "reply": { "error": { "code": "conflict", "text": "it runs", "field": "run" } } }));
        let ServerMessage::Reply(SocketReply::Error(wire)) = serde_json::from_value(line).expect("it is read") else {
            panic!("it is another line")
        };
        let same = Fault::from(wire);
        assert_eq!((same.code(), same.field()), (Some(FaultCode::Conflict), Some("run")));
    }
}
