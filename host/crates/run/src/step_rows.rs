//! The rows of one step of a run: its state, its events, and the changes that follow for the project's progress,
//! decisions, notifications and memory.
//!
//! All rows go into one batch, so that a kill loses a step whole or not at all. This module commits nothing.

use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault;
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::work::FeatureStatus;
use longhaul_harness::RunState;
use longhaul_harness::state::Phase;
use longhaul_records::contended::ChangeAttempts;
use longhaul_records::record::{self, RunRecord};
use longhaul_records::{decisions, ledger};

/// Digits of a commit id in the progress log.
const SHORT: usize = 10;

/// Adds the state, the events, and the resulting progress entries and decisions to a batch.
pub fn put_step(
    store: &dyn Store,
    batch: &mut Batch,
    record: &RunRecord,
    state: &RunState,
    events: &[RunEvent],
) -> fault::Result<()> {
    let key = RunRecord::key(&record.run);
    for over in record::questions_over(store, &record.run, state)? {
        batch.push(Op::Delete(Table::States, over));
    }
    let mut filled = record::put_state(store, std::mem::take(batch), &record.run, state, events)?;
    for event in events {
        tracing::trace!(number = event.number, "run.event");
        filled = filled.insert(Table::Events, key.clone().number(event.number), serde_json::to_vec(event)?);
        if let Event::Steered { feature, text } = &event.event {
            filled = ledger::put_correction(filled, &record.run, feature.as_deref(), event.number, text);
        }
        if let Some(progress) = progress(event).filter(|_| record.ask.is_none()) {
            let key = Key::of(record.scope()).number(event.at_ms).and(&format!("{}/{}", record.run, event.number));
            filled = filled.put(Table::Progress, key, serde_json::to_vec(&progress)?);
        }
    }
    // At a cap a run ends with sessions that a later process goes on with; without any, nothing needs its trees.
    let is_over = matches!(state.phase, Phase::Ended { .. }) && state.lanes.iter().all(|lane| lane.session.is_none());
    if is_over && store.is_shared() {
        record::forget_carried_trees(store, &mut filled, &record.run)?;
    }
    let filled = longhaul_notify::put_notifications(filled, record, events)?;
    let filled = longhaul_memory::put_due(filled, record, events)?;
    *batch = decisions::put_of_events(filled, store, record, state, events)?;
    Ok(())
}

/// Attempts at the batch of a step: a person may judge a decision while its outcome is filled in, and the rows are made
/// anew. A conflict in any other table means that another process works on the run.
pub(crate) fn step_attempts() -> ChangeAttempts {
    ChangeAttempts::in_table(Table::Decisions)
}

/// The progress entry for an event: a commit, an abandoned feature, a revert.
fn progress(event: &RunEvent) -> Option<serde_json::Value> {
    let (action, outcome, files) = match &event.event {
        Event::Committed { feature, commit, files, .. } => {
            (format!("committed {feature}"), commit.clone(), files.clone())
        }
        Event::Feature { feature, status: FeatureStatus::Failing, why } => {
            (format!("gave up on {feature}"), why.clone(), Vec::new())
        }
        Event::Reverted { to, features, .. } => {
            let (to, back) = (&to[..to.floor_char_boundary(SHORT)], features.join(", "));
            (
                format!("reverted to {to}"),
                format!("taken back: {}", if back.is_empty() { "nothing" } else { &back }),
                Vec::new(),
            )
        }
        _ => return None,
    };
    Some(serde_json::json!({
        "at_ms": event.at_ms, "plugin": "longhaul", "action": action, "outcome": outcome, "files": files,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::RunId;

    #[test]
    fn a_revert_is_an_entry_of_the_progress_and_takes_none_away() {
        let of = |event| progress(&RunEvent { run: RunId::from_text("r-1"), number: 9, at_ms: 5, event });
        let reverted = |features: &[&str]| Event::Reverted {
            to: "0123456789abcdef".into(),
            kept_as: None,
            left: Vec::new(),
            features: features.iter().map(|id| (*id).to_owned()).collect(),
        };
        let entry = of(reverted(&["a", "b"])).expect("an entry");
        assert_eq!(
            (&entry["action"], &entry["outcome"]),
            (&"reverted to 0123456789".into(), &"taken back: a, b".into())
        );
        assert_eq!(of(reverted(&[])).expect("an entry")["outcome"], "taken back: nothing");
        assert_eq!(of(Event::Paused), None);
    }
}
