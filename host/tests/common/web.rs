//! A server of the program, and a client that says exactly what it is told to.

use super::lab::{Lab, Started};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longest time for a server to do something before its test fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server that runs.
pub struct Web {
    /// `HOST:PORT`.
    pub address: String,
    /// The process.
    pub server: Started,
    /// The token of the requests.
    pub token: String,
}

/// The response to a request.
#[derive(Debug)]
pub struct Said {
    /// The status.
    pub status: u16,
    /// Header lines, in lower case.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Said {
    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// This, if it has that status; a problem says so in its own form, too.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        if status >= 400 {
            let problem = self.json();
            assert!(self.head.contains("content-type: application/problem+json"), "{self:?}");
            assert_eq!(problem["status"], status, "{self:?}");
            assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{self:?}");
        }
        self
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }
}

impl Web {
    /// Starts a server in a laboratory, with a token that may do everything.
    pub fn start(lab: &Lab) -> Self {
        let token = token(lab, "all", &["--scope", "admin"]);
        Self::with(lab, &[], &[], token)
    }

    /// Starts a server with arguments and an environment of its own.
    pub fn with(lab: &Lab, args: &[&str], environment: &[(&str, &str)], token: String) -> Self {
        let mut server = lab.start_with(&[&["serve", "--listen", "127.0.0.1:0"], args].concat(), environment);
        server.wait_for("serving at http://");
        let printed = server.printed();
        let address = printed.split("serving at http://").nth(1).and_then(|rest| rest.split_whitespace().next());
        Self { address: address.expect("an address").to_owned(), server, token }
    }

    /// The server of the same data directory once more, after the end of this one.
    pub fn again(self, lab: &Lab) -> Self {
        let token = self.token.clone();
        drop(self.server);
        Self::with(lab, &[], &[], token)
    }

    /// Asks with the token.
    pub fn get(&self, path: &str) -> Said {
        self.ask("GET", path, &[], "")
    }

    /// Sends JSON with the token.
    pub fn post(&self, path: &str, body: &Value) -> Said {
        self.ask("POST", path, &["Content-Type: application/json"], &body.to_string())
    }

    /// Asks with the token and further headers.
    pub fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Said {
        let token = format!("Authorization: Bearer {}", self.token);
        self.raw(method, path, &[&[token.as_str()], headers].concat(), body.as_bytes())
    }

    /// Asks without the token.
    pub fn raw(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Said {
        let own_host = headers.iter().any(|header| header.to_ascii_lowercase().starts_with("host:"));
        let host = if own_host { String::new() } else { format!("Host: {}\r\n", self.address) };
        let lines: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\n{host}{lines}Content-Length: {length}\r\nConnection: close\r\n\r\n");
        self.bytes(&[head.as_bytes(), body].concat())
    }

    /// Sends these bytes and reads the answer to its end.
    pub fn bytes(&self, bytes: &[u8]) -> Said {
        let mut stream = self.connect();
        // A server that refuses what it was not sent whole closes early.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        said(&answer)
    }

    /// A connection.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("ours");
        stream
    }

    /// Opens a stream of events.
    pub fn stream(&self, path: &str, headers: &[&str]) -> Frames {
        self.open("GET", path, headers, "")
    }

    /// Sends JSON, and opens the stream of events that answers it.
    pub fn post_stream(&self, path: &str, body: &Value) -> Frames {
        let headers = ["Accept: text/event-stream", "Content-Type: application/json"];
        self.open("POST", path, &headers, &body.to_string())
    }

    fn open(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Frames {
        let mut stream = self.connect();
        let lines: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let (address, token, length) = (&self.address, &self.token, body.len());
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
        write!(stream, "{head}{lines}Content-Length: {length}\r\n\r\n{body}").expect("taken");
        let mut frames = Frames { reader: BufReader::new(stream), rest: Vec::new() };
        let head = frames.head();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        frames
    }

    /// Waits until what is asked for is so.
    #[track_caller]
    pub fn until(&self, path: &str, is: impl Fn(&Value) -> bool) -> Value {
        let since = Instant::now();
        loop {
            let value = self.get(path).expect(200).json();
            if is(&value) {
                return value;
            }
            assert!(since.elapsed() < PATIENCE, "{path}: {value:#}\n{}", self.server.printed());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a run has a status.
    #[track_caller]
    pub fn until_status(&self, run: &str, status: &str) -> Value {
        self.until(&format!("/api/v1/runs/{run}"), |value| value["status"] == status)
    }

    /// Starts a run of the laboratory's project.
    #[track_caller]
    pub fn run(&self, lab: &Lab) -> String {
        let body = serde_json::json!({ "directory": lab.project() });
        let made = self.post("/api/v1/runs", &body).expect(201).json();
        made["run"].as_str().expect("a name").to_owned()
    }
}

/// Makes a token.
pub fn token(lab: &Lab, name: &str, args: &[&str]) -> String {
    let made = lab.run(&[&["token", "add", name], args].concat()).expect(0);
    made.stdout.trim().to_owned()
}

/// A name as one part of a path.
pub fn in_a_path(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Takes an answer apart.
#[track_caller]
pub fn said(answer: &[u8]) -> Said {
    let text = String::from_utf8_lossy(answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        unchunked(body)
    } else {
        body.to_owned()
    };
    Said { status, head: head.to_ascii_lowercase(), body }
}

fn unchunked(body: &str) -> String {
    let (mut whole, mut rest) = (String::new(), body);
    while let Some((length, after)) = rest.split_once("\r\n") {
        let Ok(length) = usize::from_str_radix(length.trim(), 16) else { break };
        whole.push_str(after.get(..length).unwrap_or(after));
        rest = after.get(length + 2..).unwrap_or_default();
    }
    whole
}

/// A stream of events that is read.
pub struct Frames {
    reader: BufReader<TcpStream>,
    /// The unused rest of a chunk that was read.
    rest: Vec<u8>,
}

/// One frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// Its number.
    pub id: Option<u64>,
    /// The type of the event.
    pub event: String,
    /// The data of the event.
    pub data: Value,
}

impl Frames {
    fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && self.reader.read_line(&mut head).is_ok_and(|read| read > 0) {}
        head.to_ascii_lowercase()
    }

    /// The next frame; none when the stream ended.
    pub fn next(&mut self) -> Option<Frame> {
        loop {
            let text = self.text()?;
            let mut frame = Frame::default();
            for line in text.lines() {
                match line.split_once(": ") {
                    Some(("id", id)) => frame.id = id.parse().ok(),
                    Some(("event", event)) => frame.event = event.to_owned(),
                    Some(("data", data)) => frame.data = serde_json::from_str(data).expect("JSON"),
                    _ => {}
                }
            }
            if !frame.event.is_empty() {
                return Some(frame);
            }
        }
    }

    /// Frames until one that is looked for, that one included.
    #[track_caller]
    pub fn until(&mut self, is: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let Some(frame) = self.next() else { panic!("the stream ended after {frames:#?}") };
            let found = is(&frame);
            frames.push(frame);
            if found {
                return frames;
            }
        }
    }

    /// Text up to an empty line.
    fn text(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
                let text: Vec<u8> = self.rest.drain(..end + 2).collect();
                return Some(String::from_utf8(text).expect("text"));
            }
            let mut length = String::new();
            if self.reader.read_line(&mut length).ok()? == 0 {
                return None;
            }
            let length = usize::from_str_radix(length.trim(), 16).ok().filter(|length| *length > 0)?;
            let mut chunk = vec![0; length + 2];
            self.reader.read_exact(&mut chunk).ok()?;
            self.rest.extend_from_slice(&chunk[..length]);
        }
    }
}
