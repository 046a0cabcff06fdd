//! The effects that another run had after the point at which a run was forked from it, by the digests of their calls.
//!
//! A call of the fork that equals one of them would happen a second time, so a person is asked about it. The row is
//! written with the fork and never changed. This module neither finds these effects nor asks anybody.

use crate::record::RunRecord;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::store::{Batch, Key, Store, Table};
use longhaul_core::tool::ToolCall;
use longhaul_core::{Digest, RunId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Digests that a row holds: 140 KB. Beyond that, each call that acts counts as one of them.
const CALLS_MAX: usize = 2_000;

/// The calls of effects that would happen a second time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatedEffects {
    /// The digests of their calls, as the journal has them.
    calls: BTreeSet<Digest>,
    /// True when there are more than the row holds.
    #[serde(default)]
    is_cut: bool,
}

impl RepeatedEffects {
    /// Adds an effect by the digest of its call.
    pub fn add(&mut self, call: Digest) {
        if self.calls.len() < CALLS_MAX || self.calls.contains(&call) {
            self.calls.insert(call);
        } else {
            self.is_cut = true;
        }
    }

    /// True when a call would have its effect a second time.
    #[must_use]
    pub fn has(&self, call: &ToolCall) -> bool {
        // As the journal makes it of the arguments of its entry.
        self.is_cut || serde_json::to_vec(call).is_ok_and(|bytes| self.calls.contains(&Digest::of(&bytes)))
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

/// The effects that a run would repeat; none for a run that is no fork.
pub fn of_run(store: &dyn Store, run: &RunId) -> fault::Result<RepeatedEffects> {
    let row = store.get(Table::States, &key(run))?;
    let damaged = || format!("the effects that run {run} may not repeat are damaged");
    row.map_or(Ok(RepeatedEffects::default()), |bytes| serde_json::from_slice(&bytes).or_internal(damaged))
}

/// Stores them with the fork.
pub fn put(batch: Batch, run: &RunId, effects: &RepeatedEffects) -> fault::Result<Batch> {
    if effects.is_empty() {
        return Ok(batch);
    }
    Ok(batch.put(Table::States, key(run), serde_json::to_vec(effects)?))
}

fn key(run: &RunId) -> Key {
    RunRecord::key(run).and("repeats")
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_testkit::MemoryStore;

    fn call(text: &str) -> ToolCall {
        ToolCall { tool: "poster".into(), function: "post".into(), arguments: format!("{{\"text\":\"{text}\"}}") }
    }

    fn digest(text: &str) -> Digest {
        Digest::of(&serde_json::to_vec(&call(text)).expect("JSON"))
    }

    #[tokio::test]
    async fn a_call_counts_by_all_of_its_arguments() {
        let (store, run) = (MemoryStore::new(), RunId::from_text("r-2"));
        let mut effects = RepeatedEffects::default();
        assert!(put(Batch::new(), &run, &effects).expect("a batch").is_empty());
        effects.add(digest("one"));
        store.commit(put(Batch::new(), &run, &effects).expect("a batch")).await.expect("stored");
        let stored = of_run(&store, &run).expect("read");
        assert!(stored.has(&call("one")) && !stored.has(&call("two")) && !stored.is_empty());
        assert!(!of_run(&store, &RunId::from_text("r-1")).expect("none").has(&call("one")));
    }

    #[test]
    fn beyond_the_bound_every_call_counts() {
        let mut effects = RepeatedEffects::default();
        for number in 0..CALLS_MAX {
            effects.add(digest(&number.to_string()));
        }
        effects.add(digest("0"));
        assert!(!effects.has(&call("another")), "one that is known does not pass the bound");
        effects.add(digest("one more"));
        assert!(effects.has(&call("another")));
    }
}
