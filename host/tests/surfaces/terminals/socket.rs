//! The socket of a data directory: whom it answers, and whom a client speaks to.

use crate::common::lab::Lab;
use crate::common::refused;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// A call of the socket that another user may try.
const CALL: &str = r#"{"operation":{"name":"runs","request":{}}}"#;

/// Sends two lines to the socket and reads what comes back.
fn said_to(socket: &Path, token: &str) -> String {
    said_to_call(socket, token, CALL)
}

fn said_to_call(socket: &Path, token: &str, call: &str) -> String {
    let mut stream = UnixStream::connect(socket).expect("somebody serves");
    // One that refuses us may have closed the connection by now.
    let _ = write!(stream, "{token}\n{call}\n");
    let mut answer = Vec::new();
    // Unread data at the end counts as a broken connection.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Opens what keeps other users out, so that the check of the user is all there is.
fn open_for_all(lab: &Lab) {
    let modes = [(lab.path("."), 0o711), (lab.home(), 0o711), (lab.home().join("socket"), 0o666)];
    for (path, mode) in modes {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
    }
}

/// A program that acts as another user, which only root can start.
fn as_nobody(script: &str, path: &Path, token: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "python3", "-c", script]);
    // The other user cannot start programs in the home of root, which may be in PATH.
    command.arg(path).args([token, CALL]).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command
}

/// A user who can reach the socket can answer approvals and make tokens.
#[test]
fn the_socket_answers_its_own_user_with_the_token_of_the_data_directory_and_nobody_else() {
    let lab = Lab::empty();
    let mut owner = lab.start(&["serve", "--listen", "127.0.0.1:0"]);
    owner.wait_for("serving at");
    let (socket, token) = (lab.home().join("socket"), lab.home().join("socket-token"));
    assert_eq!(token.metadata().expect("made").permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(token).expect("ours");
    assert!(said_to(&socket, &token).contains("\"answer\""), "{}", said_to(&socket, &token));
    // Calls of clients from before errors had codes, and from before operations had names: each client reads one line,
    // whose error is a text.
    for call in [r#"{"ask":{"ask":"runs"}}"#, r#"{"request":{"ask":"runs"}}"#] {
        let earlier = said_to_call(&socket, &token, call);
        assert!(earlier.starts_with("{\"reply\":{\"error\":\"the call is not understood"), "{earlier}");
        assert!(earlier.contains("client and owner may be of different versions"), "{earlier}");
    }
    // And those of a later one, which has another operation, or another request for it.
    for call in [r#"{"operation":{"name":"none","request":{}}}"#, r#"{"operation":{"name":"run_status","request":{}}}"#]
    {
        let later = said_to_call(&socket, &token, call);
        assert!(later.starts_with("{\"reply\":{\"error\":\""), "{later}");
        assert!(later.contains("client and owner may be of different versions: end the owner"), "{later}");
    }
    for wrong in ["", CALL, &token[1..], &format!("{token}0"), &"0".repeat(64)] {
        let answer = said_to(&socket, wrong);
        assert!(answer.contains("without the token of the data directory") && !answer.contains("runs\""), "{answer}");
    }
    let environment = std::fs::read(format!("/proc/{}/environ", owner.pid())).expect("ours");
    assert!(!environment.windows(token.len()).any(|part| part == token.as_bytes()));
    if !rustix::process::geteuid().is_root() {
        return;
    }
    open_for_all(&lab);
    let script = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n\
        try: s.sendall(f'{sys.argv[2]}\\n{sys.argv[3]}\\n'.encode())\nexcept OSError: pass\n\
        print(s.makefile().readline())";
    let said = as_nobody(script, &socket, &token).output().expect("setpriv is there");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("answers the user 0 alone, and you are 65534"), "{said}");
}

/// A client used to send its request, and its answers to approvals, to any process that had bound the socket.
#[test]
fn a_client_says_nothing_to_a_socket_that_another_user_serves() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let lab = Lab::empty();
    lab.run(&["runs"]).expect(0);
    let lock = std::fs::OpenOptions::new().write(true).open(lab.home().join("lock")).expect("ours");
    lock.try_lock().expect("nobody has it");
    // The kernel reports the user who listens on a socket, so the user is changed before that.
    let script = "import os, socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\nos.setuid(65534)\n\
        s.listen()\nprint('listens', flush=True)\nc = s.accept()[0]\nprint('heard', c.recv(100), flush=True)";
    let mut thief = Command::new("python3");
    thief.args(["-c", script]).arg(lab.home().join("socket")).stdout(Stdio::piped());
    let mut thief = thief.spawn().expect("python3 is there");
    let mut heard = BufReader::new(thief.stdout.take().expect("piped"));
    let mut line = String::new();
    heard.read_line(&mut line).expect("it listens");
    refused(&lab.run(&["runs"]), &["the user 65534 serves", "speaks to its own user 0 alone"]);
    line.clear();
    heard.read_line(&mut line).expect("text");
    thief.wait().expect("ours");
    assert_eq!(line, "heard b''\n");
}

/// The socket of a data directory with a long path had a name in a directory that every user can write.
#[test]
fn the_socket_of_a_long_path_lies_in_the_data_directory_too() {
    let lab = Lab::empty();
    let home = lab.path(&"long".repeat(40));
    let mut owner = lab.start_command(lab.command_at(&home, &["serve", "--listen", "127.0.0.1:0"]));
    owner.wait_for("serving at");
    assert_eq!(home.join("socket").metadata().expect("bound").permissions().mode() & 0o777, 0o600);
    lab.run_at(&home, &["token", "add", "a", "--scope", "read"]).expect(0);
    let elsewhere =
        [lab.path("."), std::env::temp_dir()].into_iter().flat_map(|place| std::fs::read_dir(place).expect("there"));
    let elsewhere: Vec<_> = elsewhere.filter_map(Result::ok).map(|entry| entry.file_name()).collect();
    let is_socket = |name: &&std::ffi::OsString| name.to_string_lossy().ends_with(".socket");
    assert_eq!(elsewhere.iter().find(is_socket), None);
    // It was the owner who answered, and not a second one.
    assert!(owner.is_running());
}
