//! The child inside of the sandbox before a server: it enters the server's working directory, and relays the host's
//! proxy, which is a socket, to a port, since programs address proxies by a port.
//!
//! It is confined like the server itself, and decides nothing.

use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::Command;

/// The proxy's socket in the directory that host and sandbox share.
pub(crate) const PROXY_SOCKET: &str = "proxy";

/// The variables that name a proxy for programs.
const PROXY_VARIABLES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];

/// The exit code when nothing was started.
const FAILED: i32 = 126;

/// The specification of the child, as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) argv: Vec<String>,
    /// The server's working directory, if it is another one.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) has_proxy: bool,
}

/// The child's whole main function. Returns the exit code.
#[must_use]
pub fn mcp_child(spec_json: &str) -> i32 {
    let started = serde_json::from_str(spec_json).map_err(io::Error::from).and_then(|spec| run(&spec));
    started.unwrap_or_else(|error| {
        eprintln!("the server cannot be started: {error}");
        FAILED
    })
}

fn run(spec: &Spec) -> io::Result<i32> {
    let (program, arguments) = spec.argv.split_first().ok_or_else(|| io::Error::other("there is no command"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    if spec.has_proxy {
        // Before the directory changes: the socket's path is relative to the first one.
        let socket = std::env::current_dir()?.join("../tmp").join(PROXY_SOCKET);
        let port = longhaul_sandbox::relay_to(&socket).map_err(|error| {
            let remedy = longhaul_sandbox::Level::Namespaces.remedy();
            io::Error::other(format!(
                "its hosts need a network namespace, and there is none ({error}); {remedy}, or leave out its `hosts`"
            ))
        })?;
        command.envs(PROXY_VARIABLES.map(|name| (name, format!("http://127.0.0.1:{port}"))));
        command.env("NODE_USE_ENV_PROXY", "1");
    }
    if let Some(directory) = &spec.directory {
        std::env::set_current_dir(directory)?;
    }
    if !spec.has_proxy {
        return Err(command.exec());
    }
    let status = command.status()?;
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}
