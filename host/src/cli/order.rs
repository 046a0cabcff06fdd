//! Requests that a command only reports as done: their answers hold nothing else to show.

use super::context::Context;
use super::exit::Exit;
use super::words;
use crate::service::Request;
use longhaul_core::fault;

/// An order that is done when it is answered.
pub(super) async fn order(context: &Context, request: Request, done: &str) -> fault::Result<Exit> {
    words::print_answer(context.json, &context.ask(request).await?, done)?;
    Ok(Exit::Done)
}
