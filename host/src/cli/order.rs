//! Requests whose answers hold nothing to print but that they were carried out.

use super::context::Context;
use super::exit::Exit;
use crate::service::{Answer, Request};
use longhaul_api::runs::AffectedRun;
use longhaul_core::fault;

/// Sends a request and reports that it is done.
pub(super) async fn order(context: &Context, request: Request, done: &str) -> fault::Result<Exit> {
    print_answer(context.json, &context.ask(request).await?, done)?;
    Ok(Exit::Done)
}

/// Prints an answer that holds nothing to print but that it is done.
pub(super) fn print_answer(json: bool, answer: &Answer, done: &str) -> fault::Result<()> {
    if json {
        outln!("{}", serde_json::to_string(answer)?);
    } else if let Answer::Run { run } = answer {
        outln!("run {run}: {done}");
    }
    Ok(())
}

/// Prints that something was done to a run.
pub(super) fn print_done(context: &Context, affected: &AffectedRun, done: &str) -> fault::Result<Exit> {
    match context.json {
        true => outln!("{}", serde_json::to_string(affected)?),
        false => outln!("run {}: {done}", affected.run),
    }
    Ok(Exit::Done)
}
