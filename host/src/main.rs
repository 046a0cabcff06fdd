//! The program: reads the arguments and hands over to `cli`, or to the child that they name.

use clap::Parser;
use longhaul::cli::{Cli, Exit};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            longhaul::cli::terminal::arguments(&error);
            // clap's own code for wrong arguments is 2, and 0 for help.
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match longhaul::cli::main(cli) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            longhaul::cli::terminal::error(&error);
            ExitCode::from(Exit::Error.code())
        }
    }
}
