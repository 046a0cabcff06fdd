//! The log of decisions of a project. The run's own decisions are added to it (its plan, retries, delegations, resets),
//! and the outcome of a decision is filled in when its feature passes, is abandoned or is reverted. Both go into the
//! transaction of the step that reports them, on the condition that no person judged the decision meanwhile. The
//! harness reads nothing here: a decision informs planners and people.

use crate::record::RunRecord;
use longhaul_core::decision::{self, Decision, DecisionHit, DecisionOutcome, LogError, newest, relevant};
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault;
use longhaul_core::store::{Batch, Store};
use longhaul_core::text::{count, truncate};
use longhaul_core::work::{FeatureStatus, Mark, Task};
use longhaul_core::{Clock, InvocationId};
use longhaul_harness::RunState;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Newest decisions of one project that one read returns.
pub const DECISIONS_MAX: usize = 10_000;

/// Decisions of one run for one feature whose outcome is filled in at once.
const OF_FEATURE_MAX: usize = 1_000;

/// Decisions that a planner sees.
const PLANNER_MAX: usize = 10;

/// Longest text of a decision that a planner sees, in bytes: ten decisions stay a page of its prompt.
const PLANNER_TEXT_BYTES_MAX: usize = 300;

/// Longest text of one of the run's own decisions, in bytes.
const TEXT_BYTES_MAX: usize = 2_000;

/// Every decision of a project, the newest first.
pub fn all(store: &dyn Store, project: &str) -> Result<Vec<Decision>, LogError> {
    newest(store, project, DECISIONS_MAX)
}

/// Earlier decisions that are relevant to a planner's goal: the best first, each with its reason. None when there is
/// none.
pub fn for_planner(store: &dyn Store, clock: &dyn Clock, project: &str, goal: &str) -> Result<Option<Value>, LogError> {
    Ok(told(relevant(all(store, project)?, goal, clock.now_ms(), PLANNER_MAX)))
}

fn told(hits: Vec<DecisionHit>) -> Option<Value> {
    let cut = |text: &str| truncate(text, PLANNER_TEXT_BYTES_MAX);
    let told = hits.iter().map(|hit| {
        let Decision { context, decision, reasoning, outcome, lesson, .. } = &hit.decision;
        json!({
            "about": cut(context),
            "decision": cut(decision),
            "reasoning": cut(reasoning),
            "outcome": outcome.as_str(),
            "lesson": lesson.as_deref().map(cut),
            "chosen_because": cut(&hit.why),
        })
    });
    (!hits.is_empty()).then(|| told.collect())
}

/// The changes of the log that follow from the events of a step. Where a person judges one of its decisions before the
/// batch is committed, that fails with a conflict in the table of decisions, and these changes are made anew.
pub fn put_of_events(
    mut batch: Batch,
    store: &dyn Store,
    record: &RunRecord,
    state: &RunState,
    events: &[RunEvent],
) -> fault::Result<Batch> {
    let ended: BTreeMap<&str, DecisionOutcome> =
        events.iter().filter_map(ended).chain(events.iter().flat_map(reverted)).collect();
    let came_out = |feature: Option<&str>| feature.and_then(|feature| ended.get(feature)).copied();
    for event in events {
        for decision in taken(store, record, state, events, event)? {
            let outcome = came_out(decision.feature.as_deref()).unwrap_or_default();
            batch = decision::put(store, batch, record.scope(), &Decision { outcome, ..decision })?;
        }
    }
    for (feature, outcome) in &ended {
        let run = record.run.as_str();
        for decision in decision::of_feature(store, record.scope(), run, feature, OF_FEATURE_MAX)? {
            if may_become(decision.outcome, *outcome) {
                let filled_in = Decision { outcome: *outcome, ..decision.clone() };
                batch = decision::replace(store, batch, record.scope(), &decision, &filled_in)?;
            }
        }
    }
    Ok(batch)
}

/// A known outcome stays, except that a revert changes it. A decision that had failed before is not affected by a
/// revert.
fn may_become(known: DecisionOutcome, outcome: DecisionOutcome) -> bool {
    match known {
        DecisionOutcome::Open => true,
        DecisionOutcome::Success | DecisionOutcome::Partial => outcome == DecisionOutcome::Reverted,
        DecisionOutcome::Failure | DecisionOutcome::Reverted => false,
    }
}

/// The features whose work was reverted.
fn reverted(event: &RunEvent) -> Vec<(&str, DecisionOutcome)> {
    let Event::Reverted { features, .. } = &event.event else { return Vec::new() };
    features.iter().map(|feature| (feature.as_str(), DecisionOutcome::Reverted)).collect()
}

/// The outcome of the work on a feature.
fn ended(event: &RunEvent) -> Option<(&str, DecisionOutcome)> {
    match &event.event {
        Event::Feature { feature, status: FeatureStatus::Passing, .. } => Some((feature, DecisionOutcome::Success)),
        Event::Feature { feature, status: FeatureStatus::Failing, .. } => Some((feature, DecisionOutcome::Failure)),
        _ => None,
    }
}

/// The run's own decisions in an event.
fn taken(
    store: &dyn Store,
    record: &RunRecord,
    state: &RunState,
    step: &[RunEvent],
    event: &RunEvent,
) -> fault::Result<Vec<Decision>> {
    let own = |what: &str| own(record, event, what);
    Ok(match &event.event {
        Event::Planned { features, notes, .. } => vec![plan(own("plan"), record, features, notes)],
        Event::Judged { feature, round, judgements, .. } if goes_on(step, feature) => {
            let open = judgements.iter().filter(|judgement| judgement.mark != Mark::Pass);
            let why: Vec<String> = open.map(|open| format!("{}: {}", open.criterion, open.why)).collect();
            vec![round_again(own("retry"), feature, *round, &why.join("; "))]
        }
        Event::Feature { feature, status: FeatureStatus::InProgress, why } => {
            session_again(own("retry"), state, feature, why).into_iter().collect()
        }
        Event::InvocationEnded { invocation, outcome, ok, .. } => {
            let mut taken = delegations(store, &own("delegation"), invocation)?;
            if let (false, Some((feature, round))) = (*ok, round_of(invocation))
                && goes_on(step, feature)
            {
                taken.push(round_again(own("retry"), feature, round, outcome));
            }
            taken
        }
        other => reset(own("reset"), other).into_iter().collect(),
    })
}

/// One of the run's own decisions, still without text.
fn own(record: &RunRecord, event: &RunEvent, what: &str) -> Decision {
    Decision {
        id: format!("{}/{what}/{}", record.run, event.number),
        at_ms: event.at_ms,
        run: record.run.to_string(),
        by: "longhaul".to_owned(),
        tags: vec![what.to_owned()],
        ..Decision::default()
    }
}

fn cut(text: &str) -> String {
    truncate(text.trim(), TEXT_BYTES_MAX)
}

fn plan(own: Decision, record: &RunRecord, features: &[(String, String)], notes: &str) -> Decision {
    let titles: Vec<&str> = features.iter().map(|(_, title)| title.as_str()).collect();
    let goal = record.goal.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Decision {
        context: cut(goal),
        decision: cut(&format!("build {}: {}", count(features.len(), "feature"), titles.join("; "))),
        reasoning: cut(notes),
        ..own
    }
}

/// True when work on a feature that did not pass continues: nothing in the step ends it, and the run continues.
fn goes_on(step: &[RunEvent], feature: &str) -> bool {
    let ends = |event: &RunEvent| match &event.event {
        Event::Feature { feature: other, .. } => other == feature,
        Event::Judged { feature: other, passed, .. } => other == feature && *passed,
        Event::RunEnded { .. } => true,
        _ => false,
    };
    !step.iter().any(ends)
}

/// The feature and the round of an agent's own invocation: `RUN/f-ID/ROUND/generate`, with the session before the
/// round where it is not the first.
fn round_of(invocation: &InvocationId) -> Option<(&str, u32)> {
    let key = invocation.as_str().strip_suffix("/generate")?;
    Some((invocation.feature()?, key.rsplit('/').next()?.parse().ok()?))
}

fn round_again(own: Decision, feature: &str, round: u32, why: &str) -> Decision {
    Decision {
        feature: Some(feature.to_owned()),
        context: format!("round {round} of {feature} did not pass"),
        decision: format!("try {feature} again, in round {}", round.saturating_add(1)),
        reasoning: cut(why),
        ..own
    }
}

/// A new session of a feature after one that ended without a commit.
fn session_again(own: Decision, state: &RunState, feature: &str, why: &str) -> Option<Decision> {
    let found = state.feature(feature).filter(|found| found.sessions > 1)?;
    if why != format!("session {}", found.sessions) {
        return None;
    }
    Some(Decision {
        feature: Some(feature.to_owned()),
        context: format!("{feature} was begun {} times before", found.sessions - 1),
        decision: format!("take {feature} up again, in {why}"),
        reasoning: cut(found.last_error.as_deref().unwrap_or_default()),
        ..own
    })
}

/// The delegations of an invocation, and those of its sub-agents. They are read from its journal, which has all of them
/// even after a kill.
fn delegations(store: &dyn Store, own: &Decision, invocation: &InvocationId) -> fault::Result<Vec<Decision>> {
    if invocation.depth() > 0 {
        // The end of its caller reports it.
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    let mut asking = vec![invocation.clone()];
    // As deep as `delegation_depth_max` allowed.
    while let Some(caller) = asking.pop() {
        for child in longhaul_journal::children(store, &caller)? {
            found.extend(delegation(store, own, &caller, &child)?);
            asking.push(child);
        }
    }
    Ok(found)
}

fn delegation(
    store: &dyn Store,
    own: &Decision,
    caller: &InvocationId,
    child: &InvocationId,
) -> fault::Result<Option<Decision>> {
    let (Some(by), Some(to)) = (longhaul_journal::began(store, caller)?, longhaul_journal::began(store, child)?) else {
        return Ok(None);
    };
    let task: Option<Task> = store.blob(&to.input)?.and_then(|input| serde_json::from_slice(&input).ok());
    let Some(task) = task else { return Ok(None) };
    Ok(Some(Decision {
        id: child.to_string(),
        by: by.table,
        feature: child.feature().map(str::to_owned),
        context: cut(&task.instruction),
        decision: cut(&format!("hand `{}` to {}", task.id, to.table)),
        ..own.clone()
    }))
}

/// A context that was restarted or trimmed, by the tag of its event, with the event's other fields.
fn reset(own: Decision, event: &Event) -> Option<Decision> {
    let told = serde_json::to_value(event).ok()?;
    let decision = match told["type"].as_str()? {
        "context_reset" => "begin the context anew",
        "context_compacted" => "make the context shorter",
        _ => return None,
    };
    let invocation = InvocationId::from_text(told["invocation"].as_str()?);
    let fields = told.as_object()?.iter();
    let said = fields.filter(|(name, value)| !["type", "invocation"].contains(&name.as_str()) && !value.is_null());
    let said: Vec<String> = said.map(|(name, value)| format!("{name} {value}")).collect();
    Some(Decision {
        feature: invocation.feature().map(str::to_owned),
        context: format!("the conversation of {invocation}"),
        decision: decision.to_owned(),
        reasoning: cut(&said.join(", ")),
        ..own
    })
}

#[cfg(test)]
mod tests;
