//! The log of decisions of a project: what the run itself decides is added to it, and what came of decisions is
//! filled in when their feature passes or is given up. Both go into the transaction of the step that says so.

use super::RunRecord;
use anyhow::Context as _;
use longhaul_core::decision::{Decision, Outcome};
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::store::{Batch, Key, Store, Table};
use longhaul_core::work::FeatureStatus;
use std::collections::BTreeMap;

/// Decisions of one project that are read at once.
pub const DECISIONS_MAX: usize = 10_000;

/// Longest text of one of ours, in bytes.
const TEXT_BYTES_MAX: usize = 2_000;

/// Every decision of a project, the newest first.
pub fn all(store: &dyn Store, project: &str) -> anyhow::Result<Vec<Decision>> {
    let found = store.scan(Table::Decisions, &Key::of(project), None, DECISIONS_MAX)?;
    let read = |(_, bytes): &(Vec<u8>, Vec<u8>)| serde_json::from_slice(bytes).context("a decision is damaged");
    let mut decisions = found.iter().map(read).collect::<anyhow::Result<Vec<Decision>>>()?;
    decisions.sort_by(|a, b| b.at_ms.cmp(&a.at_ms).then_with(|| a.id.cmp(&b.id)));
    Ok(decisions)
}

/// Adds a decision to a batch, in place of one of the same id.
pub fn put(batch: Batch, project: &str, decision: &Decision) -> anyhow::Result<Batch> {
    Ok(batch.put(Table::Decisions, Key::of(project).and(&decision.id), serde_json::to_vec(decision)?))
}

/// What the events of a step mean for the log.
pub(super) fn put_of_events(
    mut batch: Batch,
    store: &dyn Store,
    record: &RunRecord,
    events: &[RunEvent],
) -> anyhow::Result<Batch> {
    for decision in events.iter().filter_map(|event| decided(record, event)) {
        batch = put(batch, &record.project, &decision)?;
    }
    let ended: BTreeMap<&str, Outcome> = events.iter().filter_map(ended).collect();
    if ended.is_empty() {
        return Ok(batch);
    }
    for decision in all(store, &record.project)? {
        let outcome = decision.feature.as_deref().and_then(|feature| ended.get(feature));
        if let Some(outcome) =
            outcome.filter(|_| decision.run == record.run.as_str() && decision.outcome == Outcome::Open)
        {
            batch = put(batch, &record.project, &Decision { outcome: *outcome, ..decision })?;
        }
    }
    Ok(batch)
}

/// What came of the work on a feature.
fn ended(event: &RunEvent) -> Option<(&str, Outcome)> {
    match &event.event {
        Event::Feature { feature, status: FeatureStatus::Passing, .. } => Some((feature, Outcome::Success)),
        Event::Feature { feature, status: FeatureStatus::Failing, .. } => Some((feature, Outcome::Failure)),
        _ => None,
    }
}

/// The decision of the run itself that an event tells of, if it does.
fn decided(record: &RunRecord, event: &RunEvent) -> Option<Decision> {
    let Event::Planned { features, notes } = &event.event else { return None };
    let titles: Vec<&str> = features.iter().map(|(_, title)| title.as_str()).collect();
    let goal = record.goal.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let cut = |text: &str| longhaul_core::text::truncate(text, TEXT_BYTES_MAX);
    Some(Decision {
        id: format!("{}/plan/{}", record.run, event.number),
        at_ms: event.at_ms,
        run: record.run.to_string(),
        by: "longhaul".to_owned(),
        context: cut(goal),
        decision: cut(&format!("build {} features: {}", features.len(), titles.join("; "))),
        reasoning: cut(notes.trim()),
        tags: vec!["plan".to_owned()],
        ..Decision::default()
    })
}
