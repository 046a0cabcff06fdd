//! The options that every command has.

use clap::Args;
use std::path::PathBuf;

// The options of every command. No doc comment here: clap would take it for the description of the program.
#[derive(Args, Debug)]
pub(super) struct EverywhereArgs {
    /// The data directory. Default: `longhaul` in the user's data directory.
    #[arg(long, global = true, env = longhaul_home::VARIABLE, value_name = "DIR")]
    pub(super) home: Option<PathBuf>,
    /// The project. Default: the current directory.
    #[arg(long, global = true, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    pub(super) project: Option<PathBuf>,
    /// Have the server at this address carry the command out, for example https://longhaul.example. Directories are
    /// those of its machine.
    #[arg(long = "server", global = true, env = "LONGHAUL_SERVER", value_name = "URL")]
    pub(super) server_url: Option<String>,
    /// The file with the token for the server. Default: the variable LONGHAUL_TOKEN.
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// Print JSON: one value, or one value a line while a run goes on.
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Agree to the permissions that longhaul.toml asks for, without a question. For scripts.
    #[arg(long, global = true)]
    pub(super) trust: bool,
}
