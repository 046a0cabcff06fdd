//! A server on a port of the loopback, for code that asks it.
//!
//! `/hello` greets, `/echo` tells what it was asked, `/missing` is not there, `/away` leads to what its query
//! says, `/pieces` comes in chunks, and `/broken` ends before its end.

use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{TcpListener, TcpStream};

/// Serves as long as the process lives; answers `http://HOST:PORT`.
pub fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A client that goes away is its own affair.
            std::thread::spawn(move || drop(serve(stream)));
        }
    });
    format!("http://{address}")
}

/// The address of a port without a listener.
pub fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    format!("http://{}", listener.local_addr().expect("bound"))
}

fn serve(stream: TcpStream) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let value = |line: &String| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        };
        head.iter().find_map(value)
    };
    let mut body = Vec::new();
    match header("content-length") {
        Some(length) => reader.take(length.parse().unwrap_or(0)).read_to_end(&mut body).map(drop)?,
        None if header("transfer-encoding").is_some() => body = chunks(&mut reader)?,
        None => {}
    }
    let (method, path) = head.first().and_then(|first| first.split_once(' ')).unwrap_or_default();
    let path = path.split(' ').next().unwrap_or_default();
    let echo = || {
        let sent: String = String::from_utf8_lossy(&body).chars().take(20).collect();
        format!("{method} {} {} {sent}", header("x-name").unwrap_or_default(), body.len())
    };
    (&stream).write_all(answer(path, echo).as_bytes())
}

fn chunks(reader: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = u64::from_str_radix(size.trim(), 16).unwrap_or(0);
        reader.by_ref().take(size).read_to_end(&mut body)?;
        reader.read_line(&mut String::new())?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn answer(path: &str, echo: impl Fn() -> String) -> String {
    let whole = |status: &str, headers: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
    };
    match path.split_once('?').unwrap_or((path, "")) {
        ("/hello", _) => whole("200 OK", "x-kind: plain\r\n", "hello"),
        ("/echo", _) => whole("201 Created", "", &echo()),
        ("/away", to) => whole("302 Found", &format!("location: {to}\r\n"), ""),
        ("/pieces", _) => {
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n".into()
        }
        ("/broken", _) => "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf".into(),
        _ => whole("404 Not Found", "", "no such thing"),
    }
}
