//! `longhaul token`: manages API tokens. The value of a token is shown once, when it is made.

use super::context::Context;
use super::exit::Exit;
use crate::report::messages::moment;
use crate::service::{Answer, Request};
use clap::{Subcommand, ValueEnum};
use longhaul_api::tokens::{AccessToken, TokenRequest, TokenScope, TokenTtl};
use longhaul_core::fault::{self, bail};

#[derive(Subcommand, Debug)]
pub enum TokenCommand {
    /// Make a token and show its value once.
    Add {
        /// Name of the token.
        name: String,
        /// Scope of the token; may be given several times. `run` and `approve` include reading.
        #[arg(long = "scope", value_enum, required = true)]
        scopes: Vec<ScopeArg>,
        /// Lifetime of the token, for example 12h, 30d or 8w. Default: until it is removed.
        #[arg(long, value_name = "TIME")]
        expires: Option<TokenTtl>,
    },
    /// List the tokens, without their values.
    List,
    /// Revoke a token at once.
    Remove {
        /// Name of the token.
        name: String,
    },
}

/// The names of the scopes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ScopeArg {
    /// Look at everything.
    Read,
    /// Start, steer, pause, resume and stop runs, and change features.
    Run,
    /// Answer requests for approval.
    Approve,
    /// Everything, directories and hosts of this machine included.
    Admin,
}

impl From<ScopeArg> for TokenScope {
    fn from(argument: ScopeArg) -> Self {
        match argument {
            ScopeArg::Read => Self::Read,
            ScopeArg::Run => Self::Run,
            ScopeArg::Approve => Self::Approve,
            ScopeArg::Admin => Self::Admin,
        }
    }
}

/// Runs the command.
pub async fn run(context: &Context, command: TokenCommand) -> fault::Result<Exit> {
    let wanted = match command {
        TokenCommand::Add { name, scopes, expires } => {
            let scopes = scopes.into_iter().map(Into::into).collect();
            TokenRequest::Add { name, scopes, lasts_ms: expires.map(|TokenTtl(ms)| ms) }
        }
        TokenCommand::List => TokenRequest::List,
        TokenCommand::Remove { name } => TokenRequest::Remove { name },
    };
    let is_list = matches!(wanted, TokenRequest::List);
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
