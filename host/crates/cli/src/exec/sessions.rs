//! The sessions of `longhaul exec`: their list, and the end of one.

use crate::context::Context;
use crate::exit::Exit;
use crate::order::print_json;
use longhaul_api::wire::Page;
use longhaul_core::Clock as _;
use longhaul_core::fault::{self, Fault, FaultCode};
use longhaul_core::text::count;
use longhaul_exec::{ExecSessions, SessionSummary};
use longhaul_home::MachineClock;

/// Lists the sessions of the data directory.
pub(super) fn list(context: &Context) -> fault::Result<Exit> {
    let sessions = ExecSessions::new(context.home.path()).list(MachineClock.now_ms())?;
    if context.json {
        print_json(&Page::whole(sessions, |session| session))?;
        return Ok(Exit::Done);
    }
    if sessions.is_empty() {
        outln!("no sessions; begin one with: longhaul exec --session NAME FILE");
    }
    for SessionSummary { name, runtime, steps, bytes, variables, .. } in &sessions {
        let (steps, variables) = (count(usize::try_from(*steps).unwrap_or(usize::MAX), "step"), variables.len());
        outln!("{name}  {runtime}, {steps}, {}, {bytes} bytes", count(variables, "variable"));
    }
    Ok(Exit::Done)
}

/// Ends a session.
pub(super) fn end(context: &Context, name: &str) -> fault::Result<Exit> {
    if !ExecSessions::new(context.home.path()).end(name)? {
        let text = format!("there is no session `{name}`; list them with: longhaul exec --sessions");
        return Err(Fault::with_code(FaultCode::Unknown, text));
    }
    if !context.json {
        outln!("ended `{name}`");
    }
    Ok(Exit::Done)
}
