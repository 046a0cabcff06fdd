//! `longhaul secrets`: values are read from a terminal that does not show them, or from standard input; never from the
//! command line, which every user of the machine can read.

use super::{Context, Exit, terminal};
use crate::secrets::{Vault, check_name};
use anyhow::Context as _;
use clap::Subcommand;
use longhaul_egress::Secret;
use rustix::termios::{LocalModes, OptionalActions, isatty, tcgetattr, tcsetattr};
use serde_json::json;
use std::io::{BufRead as _, Read as _};

/// Bytes that are read as a value.
const INPUT_BYTES_MAX: u64 = 8_192;

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Keep a value, from standard input or a prompt that does not show it.
    Set {
        /// The name that longhaul.toml grants it by.
        name: String,
    },
    /// List the names.
    List,
    /// Forget a value.
    Remove {
        /// Its name.
        name: String,
    },
}

/// Carries it out.
pub fn run(context: &Context, command: &Command) -> anyhow::Result<Exit> {
    let vault = Vault::of(&context.home);
    match command {
        Command::Set { name } => {
            check_name(name)?;
            context.home.make()?;
            vault.set(name, &Secret::new(&value(name)?)?)?;
            said(context, "set", name);
        }
        Command::Remove { name } => {
            vault.remove(name)?;
            said(context, "removed", name);
        }
        Command::List => list(context, &vault.list()?),
    }
    Ok(Exit::Done)
}

fn said(context: &Context, what: &str, name: &str) {
    if context.json {
        outln!("{}", json!({ what: name }));
    } else {
        outln!("{what} {name}");
    }
}

fn list(context: &Context, names: &[String]) {
    if context.json {
        outln!("{}", json!(names));
        return;
    }
    for name in names {
        outln!("{name}");
    }
}

fn value(name: &str) -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    if isatty(&stdin) {
        return prompted(name);
    }
    let mut text = String::new();
    stdin.lock().take(INPUT_BYTES_MAX).read_to_string(&mut text).context("the value cannot be read as text")?;
    Ok(text)
}

/// One line from the terminal, which shows nothing of it.
fn prompted(name: &str) -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    terminal::ask(&format!("value of {name}: "));
    let before = tcgetattr(&stdin)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &silent)?;
    let mut text = String::new();
    let read = stdin.lock().take(INPUT_BYTES_MAX).read_line(&mut text);
    tcsetattr(&stdin, OptionalActions::Now, &before)?;
    errln!("");
    read.context("the value cannot be read as text")?;
    Ok(text)
}
