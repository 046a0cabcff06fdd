//! `longhaul token`: manages API tokens. The value of a token is shown once, when it is made.

use super::context::Context;
use super::exit::Exit;
use clap::{Subcommand, ValueEnum};
use longhaul_api::operations::TokenOperations as _;
use longhaul_api::tokens::{AccessToken, AddToken, ListTokens, RemoveToken, TokenScope, TokenTtl};
use longhaul_core::fault;
use longhaul_report::messages::moment;

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
    match command {
        TokenCommand::Add { name, scopes, expires } => {
            let scopes = scopes.into_iter().map(Into::into).collect();
            let lasts_ms = expires.map(|TokenTtl(ms)| ms);
            let made = context.add_token(AddToken { name, scopes, lasts_ms }).await?;
            if context.json {
                outln!("{}", serde_json::to_string(&made)?);
            } else {
                outln!("{}", made.shown.expose());
                errln!("keep it: it is not shown again");
            }
        }
        TokenCommand::List => {
            let list = context.tokens(ListTokens {}).await?;
            if context.json {
                outln!("{}", serde_json::to_string(&list)?);
            } else {
                list.tokens.iter().for_each(line);
            }
        }
        TokenCommand::Remove { name } => {
            let removed = context.remove_token(RemoveToken { name }).await?;
            if context.json {
                outln!("{}", serde_json::to_string(&removed)?);
            } else {
                removed.tokens.iter().for_each(|token| outln!("removed {}", token.name));
            }
        }
    }
    Ok(Exit::Done)
}

fn line(token: &AccessToken) {
    let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let until = token.expires_ms.map_or_else(|| "until it is removed".to_owned(), |at| format!("until {}", moment(at)));
    outln!("{:<24} {:<20} {until}", token.name, scopes.join(", "));
}
