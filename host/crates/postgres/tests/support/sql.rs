//! SQL of tests over one connection, by the simple query protocol, so that a test program needs no client library.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// The timeout for an answer of the server, after which its test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Version 3.0 of the protocol.
const PROTOCOL: i32 = 196_608;

/// Rows of an answer, as text; NULL is empty.
pub type Rows = Vec<Vec<String>>;

/// A connection without a password and without TLS. The server rolls back what is open when it is dropped.
pub struct Session {
    stream: TcpStream,
}

impl Session {
    /// Connects to a server on this machine. An error is the text of the server or of the connection.
    pub fn open(port: u16, user: &str, database: &str) -> Result<Self, String> {
        let connected = TcpStream::connect(("127.0.0.1", port)).and_then(|stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_nodelay(true)?;
            Ok(stream)
        });
        let mut session = Self { stream: connected.map_err(|error| error.to_string())? };
        let start = format!("user\0{user}\0database\0{database}\0\0");
        session
            .send(None, &[&PROTOCOL.to_be_bytes()[..], start.as_bytes()].concat())
            .map_err(|error| error.to_string())?;
        session.answer()?;
        Ok(session)
    }

    /// The rows of all statements in `sql`. An error is the code of the server and its text.
    pub fn ask(&mut self, sql: &str) -> Result<Rows, String> {
        self.send(Some(b'Q'), format!("{sql}\0").as_bytes()).map_err(|error| error.to_string())?;
        self.answer()
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> io::Result<()> {
        let length = i32::try_from(body.len() + 4).expect("a short text");
        let message = [&kind.map(|kind| vec![kind]).unwrap_or_default()[..], &length.to_be_bytes(), body].concat();
        self.stream.write_all(&message)
    }

    /// Reads until the server is ready for the next statement.
    fn answer(&mut self) -> Result<Rows, String> {
        let (mut rows, mut refused) = (Rows::new(), None);
        loop {
            match self.message() {
                Ok((b'D', body)) => rows.push(row(&body)),
                Ok((b'E', body)) => refused = Some(refusal(&body)),
                Ok((b'R', body)) if body != [0_u8; 4] => return Err("the server wants a password".to_owned()),
                Ok((b'Z', _)) => return refused.map_or(Ok(rows), Err),
                Ok(_) => {}
                Err(error) => return Err(refused.unwrap_or_else(|| error.to_string())),
            }
        }
    }

    fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let length = i32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; usize::try_from(length - 4).expect("the server's length")];
        self.stream.read_exact(&mut body)?;
        Ok((head[0], body))
    }
}

/// A number of columns, and each as its length, -1 for NULL, and its text.
fn row(mut body: &[u8]) -> Vec<String> {
    let mut take = |length: usize| {
        let (taken, rest) = body.split_at(length);
        body = rest;
        taken
    };
    let columns = u16::from_be_bytes(take(2).try_into().expect("two bytes"));
    let texts = (0..columns).map(|_| {
        let length = i32::from_be_bytes(take(4).try_into().expect("four bytes"));
        String::from_utf8_lossy(take(usize::try_from(length).unwrap_or_default())).into_owned()
    });
    texts.collect()
}

/// The fields `C`, a code, and `M`, a text, of an error.
fn refusal(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let field = |letter: char| text.split('\0').find_map(|field| field.strip_prefix(letter)).unwrap_or_default();
    format!("{}: {}", field('C'), field('M'))
}
