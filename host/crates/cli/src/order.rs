//! Responses that several commands print in the same way.

use super::context::Context;
use super::exit::Exit;
use longhaul_api::runs::AffectedRun;
use longhaul_core::fault;
use serde::Serialize;

/// Prints that something was done to a run.
pub(super) fn print_done(context: &Context, affected: &AffectedRun, done: &str) -> fault::Result<Exit> {
    match context.json {
        true => outln!("{}", serde_json::to_string(affected)?),
        false => outln!("run {}: {done}", affected.run),
    }
    Ok(Exit::Done)
}

/// Prints a response as JSON that says which answer it is.
pub(super) fn print_answer(answer: &'static str, response: &impl Serialize) -> fault::Result<()> {
    #[derive(Serialize)]
    struct Tagged<'a, T> {
        answer: &'static str,
        #[serde(flatten)]
        response: &'a T,
    }
    outln!("{}", serde_json::to_string(&Tagged { answer, response })?);
    Ok(())
}
