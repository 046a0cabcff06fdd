//! A yes-or-no question to the person at the terminal. No answer is no agreement.

use super::context::Context;
use super::terminal;
use longhaul_core::fault::{self, bail};
use std::io::IsTerminal as _;

/// Asks the person at the terminal. Fails with `refusal` if they do not agree, or if there is no terminal to ask at.
pub(super) fn agreed(context: &Context, question: &str, refusal: &str, advice: &str) -> fault::Result<()> {
    if context.json || !std::io::stdin().is_terminal() {
        bail!("{refusal}, since no person can be asked; {advice}");
    }
    terminal::ask(&format!("{question} [y/N] "));
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    if !matches!(line.trim(), "y" | "Y" | "yes") {
        bail!("{refusal}");
    }
    Ok(())
}
