//! The page after the demo: a server until Ctrl-C, and a browser that shows it.

use super::child::Running;
use super::words::say;
use crate::context::Context;
use crate::machine;
use longhaul_core::fault;
use std::ffi::OsStr;
use std::process::{Command, Stdio};
use tokio::signal::unix::{SignalKind, signal};

/// Programs that open an address in the user's browser.
const OPENERS: [&str; 3] = ["xdg-open", "open", "wslview"];

/// Makes a token of one day, which the page asks for, then serves the page and opens it, until the server ends.
pub(super) async fn open(context: &Context) -> fault::Result<()> {
    let name = format!("onboard-{}", std::process::id());
    let arguments = ["token", "add", name.as_str(), "--scope", "read", "--expires", "1d"].map(OsStr::new);
    let mut token = Running::start(context, &arguments)?;
    say(context, "the page asks for this token:");
    while let Some(line) = token.line().await? {
        say(context, &line);
    }
    let mut server = Running::start(context, &[OsStr::new("serve")])?;
    let mut interrupts = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            line = server.line() => {
                let Some(line) = line? else { return Ok(()) };
                say(context, &line);
                if let Some((_, address)) = line.split_once("http://") {
                    browse(context, &format!("http://{}", address.trim()));
                    say(context, "Ctrl-C ends the server");
                }
            }
            _ = interrupts.recv() => server.interrupt(),
        }
    }
}

/// Opens an address, or says it where no browser is found.
fn browse(context: &Context, address: &str) {
    let opener = OPENERS.into_iter().find(|name| machine::has_program(name));
    let opened = opener.map(|name| {
        let mut command = Command::new(name);
        command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    });
    if !matches!(opened, Some(Ok(_))) {
        say(context, &format!("no browser was found; open {address}"));
    }
}
