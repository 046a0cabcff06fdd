//! What a report is made of: what the service says of the run, request by request, and whether Longhaul runs as root.

use super::{RunReport, TimelineRow};
use crate::service::{Answer, InProcess, Request, RunRef};
use longhaul_api::decisions::ListDecisions;
use longhaul_api::operations::DecisionOperations;
use longhaul_core::RunId;
use longhaul_core::decision::Decision;
use longhaul_core::event::RunEvent;
use longhaul_core::fault::{self, bail};
use longhaul_records::decisions::DECISIONS_MAX;

/// What a report says where Longhaul is root.
const AS_ROOT: &str = "Longhaul runs as root, and native programs as user 65533; run it as an ordinary user";

/// Answers requests: the service of this process, or a client of the one that owns the data directory.
pub trait RequestHandler {
    /// Answers one request.
    fn answer(&self, request: Request) -> impl Future<Output = fault::Result<Answer>> + Send;
}

impl RequestHandler for InProcess {
    async fn answer(&self, request: Request) -> fault::Result<Answer> {
        self.0.answer(request).await
    }
}

pub(super) async fn gather(
    handler: &(impl RequestHandler + DecisionOperations),
    which: RunRef,
) -> fault::Result<RunReport> {
    let Answer::Status(status) = handler.answer(Request::Status { run: which }).await? else {
        bail!("the service answered something else")
    };
    let run = RunRef::Named(status.summary.run.to_string());
    let events = events(handler, &run).await?;
    let Answer::Parts { parts } = handler.answer(Request::Parts { run: run.clone() }).await? else {
        bail!("the service answered something else")
    };
    let decisions = decisions(handler, run, &status.summary.run).await?;
    let mut report = RunReport::of(*status, &events, &parts, decisions);
    // Who reads a data directory is its owner, so this is who worked on the run.
    if rustix::process::geteuid().is_root() {
        report.warnings.insert(0, TimelineRow { at_ms: report.created_ms, text: AS_ROOT.to_owned() });
    }
    Ok(report)
}

async fn events(handler: &impl RequestHandler, run: &RunRef) -> fault::Result<Vec<RunEvent>> {
    let mut events: Vec<RunEvent> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.number);
        let Answer::Events { events: page } = handler.answer(Request::Events { run: run.clone(), after }).await? else {
            bail!("the service answered something else")
        };
        if page.is_empty() {
            return Ok(events);
        }
        events.extend(page);
    }
}

/// What was decided in the run, oldest first.
async fn decisions(handler: &impl DecisionOperations, run: RunRef, id: &RunId) -> fault::Result<Vec<Decision>> {
    let hits = handler.decisions(ListDecisions { run, question: None, limit: DECISIONS_MAX }).await?;
    let own = hits.into_iter().rev().map(|hit| hit.decision).filter(|decision| decision.run == id.as_str());
    Ok(own.collect())
}
