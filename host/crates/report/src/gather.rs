//! Gathers the facts of a report: those of the service about the run, operation by operation, and whether Longhaul runs
//! as root.

use super::{RunReport, TimelineRow};
use longhaul_api::decisions::ListDecisions;
use longhaul_api::journal::{ListCarried, ListEvents};
use longhaul_api::operations::Api;
use longhaul_api::runs::RunRef;
use longhaul_api::runs::ShowRun;
use longhaul_core::RunId;
use longhaul_core::decision::Decision;
use longhaul_core::event::RunEvent;
use longhaul_core::fault;
use longhaul_records::decisions::DECISIONS_MAX;

/// The warning of a report when Longhaul runs as root.
const AS_ROOT: &str = "Longhaul runs as root, and native programs as user 65533; run it as an ordinary user";

pub(super) async fn gather(api: &impl Api, which: RunRef) -> fault::Result<RunReport> {
    let status = api.run_status(ShowRun { run: which }).await?;
    let run = RunRef::Named(status.summary.run.to_string());
    let events = events(api, &run).await?;
    let carried = api.carried_invocations(ListCarried { run: run.clone() }).await?;
    let decisions = decisions(api, run, &status.summary.run).await?;
    let mut report = RunReport::of(status, &events, &carried, decisions);
    // Only its owner reads a data directory, so the user of this process worked on the run.
    if rustix::process::geteuid().is_root() {
        report.warnings.insert(0, TimelineRow { at_ms: report.created_ms, text: AS_ROOT.to_owned() });
    }
    Ok(report)
}

async fn events(api: &impl Api, run: &RunRef) -> fault::Result<Vec<RunEvent>> {
    let mut events: Vec<RunEvent> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.number);
        let page = api.events(ListEvents { run: run.clone(), after }).await?;
        if page.is_empty() {
            return Ok(events);
        }
        events.extend(page);
    }
}

/// The decisions of the run, oldest first.
async fn decisions(api: &impl Api, run: RunRef, id: &RunId) -> fault::Result<Vec<Decision>> {
    let hits = api.decisions(ListDecisions { run, question: None, limit: DECISIONS_MAX }).await?;
    let own = hits.into_iter().rev().map(|hit| hit.decision).filter(|decision| decision.run == id.as_str());
    Ok(own.collect())
}
