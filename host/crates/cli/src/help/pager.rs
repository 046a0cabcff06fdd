//! Long text in the reader's pager, where there is one: the program that PAGER names, or `less`.
//!
//! Without a terminal there is never a pager.

use crate::terminal;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

/// Shows a text. A pager that does not start, or an empty PAGER, leaves it to be printed.
pub(super) fn show(text: &str) {
    let is_shown = io::stdout().is_terminal() && pager().is_some_and(|pager| page(pager, text));
    if !is_shown {
        terminal::out_bytes(text.as_bytes());
    }
}

/// The command of the pager. None: there is none.
fn pager() -> Option<Command> {
    let mut command = match std::env::var("PAGER") {
        Ok(named) if named.trim().is_empty() => return None,
        // It may have arguments, and is the user's own.
        Ok(named) => {
            let mut command = Command::new("sh");
            command.args(["-c", &named]);
            command
        }
        Err(_) => Command::new("less"),
    };
    if std::env::var_os("LESS").is_none() {
        // Print what fits a screen, and show what is bold.
        command.env("LESS", "FRX");
    }
    Some(command)
}

/// True when the pager has shown the text, or as much of it as the reader wanted.
fn page(mut pager: Command, text: &str) -> bool {
    let Ok(mut child) = pager.stdin(Stdio::piped()).spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // A reader who leaves early closes it.
        let _ = input.write_all(text.as_bytes());
    }
    child.wait().is_ok_and(|status| status.code() != Some(127))
}
