//! A site on loopback, and a forbidden listener.

#![allow(dead_code, reason = "the tests of `longhaul` use a part of it")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};

/// A page: its path, the head after the status line, and the body.
pub type Page = (&'static str, &'static str, String);

/// A server with given pages. `PORT` in them is its own port, `EVIL` the forbidden one.
pub struct Site {
    pub port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    evil: TcpListener,
    evil_udp: UdpSocket,
}

impl Site {
    pub fn serve(pages: Vec<Page>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let evil = TcpListener::bind("127.0.0.1:0").unwrap();
        evil.set_nonblocking(true).unwrap();
        let evil_udp = UdpSocket::bind(evil.local_addr().unwrap()).unwrap();
        evil_udp.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let ports = (port.to_string(), evil.local_addr().unwrap().port().to_string());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (pages, heard) = (Arc::new(pages), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                let (pages, heard, ports) = (Arc::clone(&pages), Arc::clone(&heard), ports.clone());
                std::thread::spawn(move || answer(&stream, &pages, &heard, &ports));
            }
        });
        Self { port, asked, evil, evil_udp }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn evil_port(&self) -> u16 {
        self.evil.local_addr().unwrap().port()
    }

    /// First lines, and bodies, of its requests.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Checks that the forbidden listener got no connection.
    #[track_caller]
    pub fn untouched(&self, name: &str) {
        assert!(self.evil.accept().is_err(), "{name} reached the machine");
        assert!(self.evil_udp.recv_from(&mut [0; 2_000]).is_err(), "{name} reached the machine by UDP");
    }
}

fn answer(stream: &TcpStream, pages: &[Page], heard: &Mutex<Vec<String>>, ports: &(String, String)) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    let mut length = 0;
    if reader.read_line(&mut first).is_err() {
        return;
    }
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    heard.lock().unwrap().push(format!("{} {}", first.trim(), String::from_utf8_lossy(&body)));
    let path = first.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    let mut stream = stream;
    let Some((_, head, page)) = pages.iter().find(|(known, ..)| *known == path) else {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        return;
    };
    let fill = |text: &str| text.replace("PORT", &ports.0).replace("EVIL", &ports.1);
    let (head, page) = (fill(head), fill(page));
    let status = if head.contains("location:") { "302 Found" } else { "200 OK" };
    let _ = stream.write_all(format!("HTTP/1.1 {status}\r\n{head}connection: close\r\n\r\n{page}").as_bytes());
    if head.contains("x-endless") {
        // It sends until the other side closes.
        let more = "more and more ".repeat(1_000);
        while stream.write_all(more.as_bytes()).is_ok() {}
    }
    if head.contains("x-slow") {
        std::thread::sleep(std::time::Duration::from_secs(600));
    }
}
