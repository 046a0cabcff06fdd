//! `longhaul token`: manages API tokens. The value of a token is shown once, when it is made.

use super::context::Context;
use super::exit::Exit;
use crate::report::words::moment;
use crate::service::{AccessToken, Answer, Lasts, Request, Scope, TokenAsk};
use clap::Subcommand;
use longhaul_core::fault::{self, bail};

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make a token and show its value once.
    Add {
        /// Name of the token.
        name: String,
        /// Scope of the token; may be given several times. `run` and `approve` include reading.
        #[arg(long = "scope", value_enum, required = true)]
        scopes: Vec<Scope>,
        /// Lifetime of the token, for example 12h, 30d or 8w. Default: until it is removed.
        #[arg(long, value_name = "TIME")]
        expires: Option<Lasts>,
    },
    /// List the tokens, without their values.
    List,
    /// Revoke a token at once.
    Remove {
        /// Name of the token.
        name: String,
    },
}

/// Runs the command.
pub async fn run(context: &Context, command: Command) -> fault::Result<Exit> {
    let wanted = match command {
        Command::Add { name, scopes, expires } => TokenAsk::Add { name, scopes, lasts_ms: expires.map(|Lasts(ms)| ms) },
        Command::List => TokenAsk::List,
        Command::Remove { name } => TokenAsk::Remove { name },
    };
    let is_list = matches!(wanted, TokenAsk::List);
    // Asked once: a token that an owner made before it stopped can no longer be shown.
    match context.ask_once(Request::Tokens { wanted }).await? {
        answer if context.json => outln!("{}", serde_json::to_string(&answer)?),
        Answer::TokenMade { shown, .. } => {
            outln!("{}", shown.expose());
            errln!("keep it: it is not shown again");
        }
        Answer::Tokens { tokens } if is_list => tokens.iter().for_each(line),
        Answer::Tokens { tokens } => tokens.iter().for_each(|token| outln!("removed {}", token.name)),
        _ => bail!("the service answered something else"),
    }
    Ok(Exit::Done)
}

fn line(token: &AccessToken) {
    let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let until = token.expires_ms.map_or_else(|| "until it is removed".to_owned(), |at| format!("until {}", moment(at)));
    outln!("{:<24} {:<20} {until}", token.name, scopes.join(", "));
}
