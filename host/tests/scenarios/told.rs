//! `told`: what the fake server was told and asked so far, as JSON.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::ExitCode;

/// The command; `SERVER` is the server's address.
pub fn main() -> ExitCode {
    match run() {
        Ok(told) => {
            println!("{told}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("told: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, String> {
    let address = std::env::var("SERVER").map_err(|error| error.to_string())?;
    let text = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(&address).map_err(text)?;
    write!(stream, "GET /told HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").map_err(text)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(text)?;
    answer.split_once("\r\n\r\n").map(|(_, told)| told.to_owned()).ok_or_else(|| "the server said nothing".to_owned())
}
