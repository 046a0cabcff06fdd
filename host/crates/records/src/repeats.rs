//! The effects that another run had after the point at which a run was forked from it, by the digests of their calls.
//!
//! A call of the fork that equals one of them would happen a second time, so a person is asked about it. Arguments that
//! say the same in another order, or with other spaces, are equal as far as the journal has all of them. The row is
//! written with the fork and never changed. This module neither finds these effects nor asks anybody.

use crate::record::RunRecord;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::journal::ImportCall;
use longhaul_core::store::{Batch, Key, Store, Table};
use longhaul_core::tool::ToolCall;
use longhaul_core::{Digest, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// Digests that a row holds: 140 KB. A call has up to two. Beyond that, each call that acts counts as one of them.
const CALLS_MAX: usize = 2_000;

/// The calls of effects that would happen a second time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatedEffects {
    /// The digests of their calls: as the journal has them, and in the order that does not depend on their author.
    calls: BTreeSet<Digest>,
    /// True when there are more than the row holds.
    #[serde(default)]
    is_cut: bool,
}

impl RepeatedEffects {
    /// Adds an effect by the call of a tool that a journal has.
    pub fn add(&mut self, asked: &ImportCall) {
        self.add_digest(asked.arguments);
        let in_order = called(&asked.summary).as_ref().and_then(in_order);
        in_order.into_iter().for_each(|call| self.add_digest(call));
    }

    /// Adds those of another run.
    pub fn add_all(&mut self, others: Self) {
        others.calls.into_iter().for_each(|call| self.add_digest(call));
        self.is_cut |= others.is_cut;
    }

    fn add_digest(&mut self, call: Digest) {
        if self.calls.len() < CALLS_MAX || self.calls.contains(&call) {
            self.calls.insert(call);
        } else {
            self.is_cut = true;
        }
    }

    /// True when a call would have its effect a second time.
    #[must_use]
    pub fn has(&self, call: &ToolCall) -> bool {
        let is_known = |call: Option<Digest>| call.is_some_and(|call| self.calls.contains(&call));
        self.is_cut || is_known(digest_of(call)) || is_known(in_order(call))
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

/// The digest that the journal has of a call.
fn digest_of(call: &ToolCall) -> Option<Digest> {
    serde_json::to_vec(call).ok().map(|bytes| Digest::of(&bytes))
}

/// The digest of a call with its arguments in the order of their names, and without spaces between them. None: they
/// are no object.
fn in_order(call: &ToolCall) -> Option<Digest> {
    let mut arguments = serde_json::from_str::<Value>(&call.arguments).ok().filter(Value::is_object)?;
    arguments.sort_all_objects();
    digest_of(&ToolCall { arguments: arguments.to_string(), ..call.clone() })
}

/// The call in its summary. A summary that is cut has no arguments that could be read.
fn called(summary: &str) -> Option<ToolCall> {
    let (name, arguments) = summary.split_once(' ')?;
    let (tool, function) = name.split_once('.')?;
    Some(ToolCall { tool: tool.to_owned(), function: function.to_owned(), arguments: arguments.to_owned() })
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

    fn asked(call: &ToolCall) -> ImportCall {
        ImportCall {
            name: "tools.call".into(),
            summary: call.summary(),
            arguments: digest_of(call).expect("JSON"),
            class: longhaul_core::journal::EffectClass::Acts,
            prepared: None,
            fuel_used: 0,
            at_ms: 1,
            attempt: 1,
        }
    }

    #[tokio::test]
    async fn a_call_counts_by_all_of_its_arguments() {
        let (store, run) = (MemoryStore::new(), RunId::from_text("r-2"));
        let mut effects = RepeatedEffects::default();
        assert!(put(Batch::new(), &run, &effects).expect("a batch").is_empty());
        effects.add(&asked(&call("one")));
        store.commit(put(Batch::new(), &run, &effects).expect("a batch")).await.expect("stored");
        let stored = of_run(&store, &run).expect("read");
        assert!(stored.has(&call("one")) && !stored.has(&call("two")) && !stored.is_empty());
        assert!(!of_run(&store, &RunId::from_text("r-1")).expect("none").has(&call("one")));
    }

    #[test]
    fn beyond_the_bound_every_call_counts() {
        let mut effects = RepeatedEffects::default();
        for number in 0..CALLS_MAX {
            effects.add(&asked(&call(&number.to_string())));
        }
        effects.add(&asked(&call("0")));
        assert!(!effects.has(&call("another")), "one that is known does not pass the bound");
        effects.add(&asked(&call("one more")));
        assert!(effects.has(&call("another")));
        let mut of_both = RepeatedEffects::default();
        of_both.add_all(effects);
        assert!(of_both.has(&call("another")));
    }

    #[test]
    fn arguments_that_say_the_same_are_the_same_call() {
        let with = |arguments: &str| ToolCall {
            tool: "mail".into(),
            function: "send".into(),
            arguments: arguments.to_owned(),
        };
        let mut effects = RepeatedEffects::default();
        effects.add(&asked(&with("{\"to\": \"a\", \"of\": {\"x\": 1, \"y\": [2]}}")));
        assert!(effects.has(&with("{\"of\":{\"y\":[2],\"x\":1},\"to\":\"a\"}")));
        assert!(!effects.has(&with("{\"of\":{\"y\":[2],\"x\":1},\"to\":\"b\"}")));
        assert!(
            !effects.has(&ToolCall { function: "draft".into(), ..with("{\"to\":\"a\",\"of\":{\"x\":1,\"y\":[2]}}") })
        );
        // Of a long call the journal has the digest alone.
        let long = with(&format!("{{\"to\": \"{}\"}}", "a".repeat(500)));
        effects.add(&asked(&long));
        assert!(effects.has(&long));
    }

    #[test]
    fn a_fork_of_a_fork_may_not_repeat_what_any_run_before_it_did() {
        let (mut of_parent, mut own) = (RepeatedEffects::default(), RepeatedEffects::default());
        of_parent.add(&asked(&call("one")));
        own.add(&asked(&call("two")));
        own.add_all(of_parent);
        assert!(own.has(&call("one")) && own.has(&call("two")) && !own.has(&call("three")));
    }
}
