//! The journals and events of runs: listed, and invocations run again from them; runs as they were. Changes nothing.

use super::{Service, ServiceOperations, replay};
use longhaul_api::journal::{
    InvocationEntries, InvocationList, ListCarried, ListEntries, ListEvents, ListInvocations, RecordInvocation,
    RecordedInvocation, ReplayInvocations, ReplayOutcome,
};
use longhaul_api::operations::JournalOperations;
use longhaul_api::points::{LaneAtPoint, Point, RunAtPoint, ShowPoint};
use longhaul_api::rehearsals::{RehearsalReport, RehearseRuns};
use longhaul_api::runs::CarriedInvocation;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::model::Usage;
use longhaul_core::store::Store;
use longhaul_core::{InvocationId, RunId};
use longhaul_forks::points::{self, PointInRun};
use longhaul_harness::state::BlockedBy;
use longhaul_harness::{Lane, RunState};
use longhaul_records::record::{self, RunRecord};
use longhaul_records::sums;

/// Entries and events that are read at once.
const PAGE: usize = 1_000;

#[async_trait::async_trait]
impl JournalOperations for ServiceOperations<'_> {
    async fn invocations(&self, ListInvocations { run }: ListInvocations) -> fault::Result<InvocationList> {
        let run = self.0.find(&run)?.record.run;
        Ok(InvocationList { invocations: self.0.invocations(&run, None)? })
    }

    async fn journal_entries(&self, request: ListEntries) -> fault::Result<InvocationEntries> {
        let ListEntries { run, invocation, after } = request;
        let run = self.0.find(&run)?.record.run;
        let invocation = full_name(&run, &invocation);
        let store = &*self.0.host.store;
        if longhaul_journal::began(store, &invocation)?.is_none() {
            bail!(Fault::unknown(format!(
                "there is no invocation `{invocation}`; `longhaul journal {run}` lists them"
            )));
        }
        // One more than a page, so that a surface knows whether there are more.
        let entries = longhaul_journal::entries(store, &invocation, after, PAGE + 1)?;
        let finished = longhaul_journal::finished(store, &invocation)?;
        Ok(InvocationEntries { invocation, entries, finished })
    }

    async fn record_invocation(&self, request: RecordInvocation) -> fault::Result<RecordedInvocation> {
        self.0.recorded_invocation(request).await
    }

    async fn replay(&self, request: ReplayInvocations) -> fault::Result<ReplayOutcome> {
        let ReplayInvocations { run, invocation, with } = request;
        let stored = self.0.find(&run)?;
        let wanted = self.0.invocations(&stored.record.run, invocation)?;
        let invocations = replay::replay(&self.0.host, &stored.record, wanted, with.as_deref()).await?;
        Ok(ReplayOutcome { invocations })
    }

    async fn rehearse_runs(&self, request: RehearseRuns) -> fault::Result<RehearsalReport> {
        self.0.rehearse_runs(&request).await
    }

    async fn events(&self, ListEvents { run, after }: ListEvents) -> fault::Result<Vec<RunEvent>> {
        let run = self.0.find(&run)?.record.run;
        record::events_after(&*self.0.host.store, &run, after, PAGE)
    }

    async fn run_at_point(&self, ShowPoint { run, point }: ShowPoint) -> fault::Result<RunAtPoint> {
        let record = self.0.find(&run)?.record;
        if matches!(point, Point::Time(at_ms) if at_ms > self.0.host.clock.now_ms()) {
            bail!("{point} is in the future; name a time that has passed");
        }
        let store = &*self.0.host.store;
        let found = points::resolve(store, &record.run, &point)?;
        shown_at(store, &record, point, found)
    }

    async fn carried_invocations(&self, ListCarried { run }: ListCarried) -> fault::Result<Vec<CarriedInvocation>> {
        let store = &*self.0.host.store;
        let mut carried = Vec::new();
        for invocation in self.0.invocations(&self.0.find(&run)?.record.run, None)? {
            let Some(began) = longhaul_journal::began(store, &invocation)? else { continue };
            let until_ms = longhaul_journal::finished(store, &invocation)?.map(|finished| finished.at_ms);
            carried.push(CarriedInvocation {
                invocation,
                table: began.table,
                plugin: began.plugin,
                from_ms: began.at_ms,
                until_ms,
            });
        }
        Ok(carried)
    }
}

impl Service {
    /// The invocations of a run, in the order in which they first started.
    pub(super) fn invocations(&self, run: &RunId, only: Option<String>) -> fault::Result<Vec<InvocationId>> {
        if let Some(only) = only {
            return Ok(vec![full_name(run, &only)]);
        }
        let mut found = Vec::new();
        let mut after = 0;
        loop {
            let page = record::events_after(&*self.host.store, run, after, PAGE)?;
            let Some(last) = page.last() else { return Ok(found) };
            after = last.number;
            for event in page {
                if let Event::InvocationStarted { invocation, .. } = event.event
                    && !found.contains(&invocation)
                {
                    self.with_children(invocation, &mut found)?;
                }
            }
        }
    }

    /// An invocation, then those that it started, each before its own.
    pub(super) fn with_children(&self, invocation: InvocationId, found: &mut Vec<InvocationId>) -> fault::Result<()> {
        let children = longhaul_journal::children(&*self.host.store, &invocation)?;
        found.push(invocation);
        // The depth is at most that of `delegation_depth_max`.
        children.into_iter().try_for_each(|child| self.with_children(child, found))
    }
}

/// A run at a point, for people.
fn shown_at(store: &dyn Store, record: &RunRecord, point: Point, found: PointInRun) -> fault::Result<RunAtPoint> {
    let PointInRun { event, at_ms, state, .. } = found;
    let lane = |lane: &Lane| -> fault::Result<LaneAtPoint> {
        let invocation = InvocationId::of_action(&record.run, &lane.work.key());
        Ok(LaneAtPoint {
            feature: lane.work.feature().map(str::to_owned),
            entries: points::answered_until(store, &invocation, at_ms)?,
            waiting_for: lane.wait.as_ref().map(|wait| wait.park.reason.clone()),
            invocation,
        })
    };
    let replies = sums::until(store, &record.run, event)?.spent;
    Ok(RunAtPoint {
        run: record.run.clone(),
        point,
        event,
        at_ms,
        status: state.status(),
        lanes: state.lanes.iter().map(lane).collect::<fault::Result<_>>()?,
        questions: open_questions(&state),
        usage: replies.iter().fold(Usage::default(), |sum, one| sum.plus(one.usage)),
        commit: match record.ask {
            Some(_) => None,
            None => Some(points::newest_commit(store, record, event)?),
        },
        features: state.features,
    })
}

/// The matters in which a run waited for people: lanes that they hold up, and questions of agents about their features.
fn open_questions(state: &RunState) -> Vec<String> {
    let of_lanes = state.waits().filter(|(_, wait)| wait.wait.is_for_a_person());
    let of_lanes = of_lanes.map(|(_, wait)| wait.park.reason.clone());
    let of_features = state.features.iter().filter(|feature| feature.blocked_by == Some(BlockedBy::Question));
    of_lanes.chain(of_features.map(|feature| feature.why.clone())).collect()
}

pub(super) fn full_name(run: &RunId, named: &str) -> InvocationId {
    let prefix = format!("{run}/");
    if named.starts_with(&prefix) { InvocationId::from_text(named) } else { InvocationId::of_action(run, named) }
}
