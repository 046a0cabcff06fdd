//! The program: does the work of the child that its arguments name, or reads them and hands over to `cli`.

use longhaul::cli::Exit;
use longhaul::owner::ProgramOwner;
use longhaul::service::code_of;
use longhaul_core::fault::{Fault, FaultCode};
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    longhaul::run_child_if_asked();
    let cli = match longhaul::cli::parse() {
        Ok(Ok(cli)) => cli,
        Ok(Err(exit)) => return ExitCode::from(exit.code()),
        Err(error) => {
            longhaul::cli::terminal::arguments(&error);
            // clap's own code for wrong arguments is 2, and 0 for help.
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match longhaul::cli::main(cli, Arc::new(ProgramOwner::default())) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            longhaul::cli::terminal::error(&error);
            ExitCode::from(exit(&error).code())
        }
    }
}

/// The exit code of an error. So far it is the same for every code of a fault, as the help of the program says.
fn exit(error: &Fault) -> Exit {
    match code_of(error) {
        FaultCode::Unknown
        | FaultCode::Conflict
        | FaultCode::Invalid
        | FaultCode::Changed
        | FaultCode::Forbidden
        | FaultCode::Unavailable
        | FaultCode::Internal => Exit::Error,
    }
}
