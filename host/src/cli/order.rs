//! Requests whose answers hold nothing to print but that they were carried out.

use super::context::Context;
use super::exit::Exit;
use super::words;
use crate::service::Request;
use longhaul_core::fault;

/// Sends a request and reports that it is done.
pub(super) async fn order(context: &Context, request: Request, done: &str) -> fault::Result<Exit> {
    words::print_answer(context.json, &context.ask(request).await?, done)?;
    Ok(Exit::Done)
}
