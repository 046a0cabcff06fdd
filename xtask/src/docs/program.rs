//! A built `longhaul`, asked for its help, its schemas and the description of its HTTP API.
//!
//! It gets no variable that would change its answers, and a data directory of its own, which is removed again.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The path of the description of the HTTP API.
const DOCUMENT: &str = "/api/v1/openapi.json";

pub(crate) struct Program {
    path: PathBuf,
}

impl Program {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The standard output of a command that succeeds.
    pub(crate) fn said(&self, arguments: &[&str]) -> Result<String> {
        let shown = arguments.join(" ");
        let output = self.command().args(arguments).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("start `{}`", self.path.display()))?;
        if !output.status.success() {
            bail!("`longhaul {shown}` failed: {}", String::from_utf8_lossy(&output.stderr).trim_end());
        }
        String::from_utf8(output.stdout).with_context(|| format!("read the output of `longhaul {shown}`"))
    }

    /// The OpenAPI document of a server that is started for it.
    pub(crate) fn http_document(&self) -> Result<Value> {
        let home = std::env::temp_dir().join(format!("longhaul-docs-{}", std::process::id()));
        let mut server = self.command();
        server.arg("--home").arg(&home).args(["serve", "--listen", "127.0.0.1:0", "--no-token"]);
        let server = server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = server.context("start a server")?;
        let output = child.stdout.take().map(BufReader::new);
        let mut server = Server { child, output, home };
        let address = server.address()?;
        let answer = answer_of(&address).with_context(|| format!("ask {address}"))?;
        serde_json::from_str(&answer).context("read the description of the HTTP API")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        // Help shows values of variables, and is wrapped at the width of a terminal.
        let ours = std::env::vars_os().map(|(name, _)| name);
        for name in ours.filter(|name| name.to_string_lossy().starts_with("LONGHAUL_")) {
            command.env_remove(name);
        }
        command.env_remove("COLUMNS");
        command
    }
}

/// A server that ends, with its data directory, when it is dropped.
struct Server {
    child: Child,
    /// It stays open, since a program ends when nobody reads its output.
    output: Option<BufReader<ChildStdout>>,
    home: PathBuf,
}

impl Server {
    /// The address that it prints when it listens.
    fn address(&mut self) -> Result<String> {
        let output = self.output.as_mut().context("the output of a server")?;
        for line in output.lines() {
            if let Some((_, address)) = line.context("read the output of a server")?.split_once("http://") {
                return Ok(address.trim().to_owned());
            }
        }
        bail!("the server ended without an address")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, and nothing can be done about a directory that stays.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

/// The body of the answer of a server.
fn answer_of(address: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {DOCUMENT} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head and a body")?;
    if !head.starts_with("HTTP/1.1 200 ") {
        bail!("{}", head.lines().next().unwrap_or("no answer"));
    }
    Ok(body.to_owned())
}
