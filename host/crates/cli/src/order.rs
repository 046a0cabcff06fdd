//! Responses that several commands print in the same way.

use super::context::Context;
use super::exit::Exit;
use longhaul_api::runs::AffectedRun;
use longhaul_core::fault;
use serde::Serialize;

/// Prints that something was done to a run.
pub(super) fn print_done(context: &Context, affected: &AffectedRun, done: &str) -> fault::Result<Exit> {
    match context.json {
        true => print_json(affected)?,
        false => outln!("run {}: {done}", affected.run),
    }
    Ok(Exit::Done)
}

/// Prints a wire type as JSON, on one line.
pub(super) fn print_json(value: &impl Serialize) -> fault::Result<()> {
    outln!("{}", serde_json::to_string(value)?);
    Ok(())
}
