//! The person who tries Longhaul: their answers to questions, or the defaults where nobody is asked.

use crate::terminal;
use longhaul_core::fault::{self, bail};
use std::io::IsTerminal as _;

/// The person at this terminal, if one is asked.
pub(super) struct Person {
    is_asked: bool,
}

impl Person {
    /// Refuses to ask where there is no terminal.
    pub(super) fn of(json: bool, yes: bool) -> fault::Result<Self> {
        if yes {
            return Ok(Self { is_asked: false });
        }
        if json || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            bail!("`longhaul onboard` asks questions, and no person can be asked; add --yes to take the defaults");
        }
        Ok(Self { is_asked: true })
    }

    pub(super) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// The answer to a question, without spaces around it. The end of input and Ctrl-C are errors.
    pub(super) async fn answer(&self, question: &str) -> fault::Result<String> {
        terminal::ask(&format!("{question} "));
        let read = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map(|bytes| (bytes > 0).then_some(line))
        });
        let line = tokio::select! {
            line = read => line??,
            _ = tokio::signal::ctrl_c() => None,
        };
        match line {
            Some(line) => Ok(line.trim().to_owned()),
            None => bail!("stopped at a question; begin again with: longhaul onboard"),
        }
    }

    /// Asks for a yes or a no. `default` is the answer of an empty line; without a person it is taken unasked.
    pub(super) async fn agrees(&self, question: &str, default: bool) -> fault::Result<bool> {
        if !self.is_asked {
            return Ok(default);
        }
        let hint = if default { "[Y/n]" } else { "[y/N]" };
        Ok(match self.answer(&format!("{question} {hint}")).await?.to_lowercase().as_str() {
            "" => default,
            "y" | "yes" => true,
            _ => false,
        })
    }
}
