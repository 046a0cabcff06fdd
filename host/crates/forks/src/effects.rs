//! The effects that a run had after a point: of the work that was under way there, and of all that began later.
//!
//! A fork does not undo them. They are counted by class and call, and those that act are named by digest, so that the
//! fork asks a person before it repeats one. An effect in flight at the point counts as a later one, since the fork does
//! not share it. This module reads journals and events, and undoes nothing.

use crate::answers::TOOL_CALL;
use crate::cuts::JournalCut;
use crate::points::PointInRun;
use longhaul_api::forks::LaterEffects;
use longhaul_core::event::Event;
use longhaul_core::fault;
use longhaul_core::journal::{EffectClass, ImportCall, JournalEntry};
use longhaul_core::store::Store;
use longhaul_core::text::printable;
use longhaul_core::{InvocationId, RunId};
use longhaul_records::record;
use longhaul_records::repeats::{self, RepeatedEffects};
use std::collections::{BTreeMap, BTreeSet};

/// Kinds of effects that a plan lists.
const KINDS_MAX: usize = 50;

/// Entries or events that are read at once.
const PAGE: usize = 1_000;

/// Longest name of a call, in bytes.
const CALL_BYTES_MAX: usize = 80;

/// Calls that stay within the invocation: of models, of other invocations, and of its own steps.
const INNER: [&str; 3] = ["conversation.", "delegate.", "graph."];

/// The call of the host that makes a commit, which is counted by its event.
const COMMIT: &str = "git.commit";

/// The effects of a run after a point.
#[derive(Default)]
pub(crate) struct EffectsAfter {
    counts: BTreeMap<(Rank, String), u64>,
    left_out: u64,
    /// Those that act, and those that the run itself was to ask about.
    pub(crate) repeats: RepeatedEffects,
}

/// The order in which effects are listed: what cannot be undone stands first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Acts,
    Verifiable,
    Idempotent,
}

impl Rank {
    fn of(class: EffectClass) -> Option<Self> {
        match class {
            EffectClass::Acts => Some(Self::Acts),
            EffectClass::Verifiable => Some(Self::Verifiable),
            EffectClass::Idempotent => Some(Self::Idempotent),
            EffectClass::ReadOnly => None,
        }
    }

    fn class(self) -> EffectClass {
        match self {
            Self::Acts => EffectClass::Acts,
            Self::Verifiable => EffectClass::Verifiable,
            Self::Idempotent => EffectClass::Idempotent,
        }
    }
}

impl EffectsAfter {
    /// Reads them. `cuts` are those of the work at the point, and `under_way` its keys.
    pub(crate) fn read(
        store: &dyn Store,
        run: &RunId,
        at: &PointInRun,
        under_way: &[String],
        cuts: &[JournalCut],
    ) -> fault::Result<Self> {
        let mut effects = Self::default();
        // A call that the run itself, as a fork, may not repeat, its fork may not repeat either.
        effects.repeats.add_all(repeats::of_run(store, run)?);
        let mut known = BTreeSet::new();
        let mut shared = BTreeMap::new();
        for cut in cuts.iter().filter(|cut| under_way.contains(&cut.key)) {
            shared.append(&mut cut.shared(store)?);
        }
        for key in under_way {
            let own = InvocationId::of_action(run, key);
            effects.add_all(store, own.clone(), &shared)?;
            known.insert(own);
        }
        let mut after = at.event;
        loop {
            let page = record::events_after(store, run, after, PAGE)?;
            // An import may bring events with other numbers than their keys have. Each page has to lead on.
            let Some(last) = page.last().map(|event| event.number).filter(|last| *last > after) else {
                return Ok(effects);
            };
            after = last;
            for event in page {
                match event.event {
                    Event::InvocationStarted { invocation, .. } if known.insert(invocation.clone()) => {
                        effects.add_all(store, invocation, &shared)?;
                    }
                    Event::Committed { .. } => effects.count(Rank::Verifiable, COMMIT.to_owned()),
                    _ => {}
                }
            }
        }
    }

    /// The list, and the number of effects that it leaves out.
    pub(crate) fn list(&self) -> (Vec<LaterEffects>, u64) {
        let listed = self.counts.iter().map(|((rank, call), count)| LaterEffects {
            effect: rank.class(),
            call: call.clone(),
            count: *count,
        });
        (listed.collect(), self.left_out)
    }

    /// Adds the effects of an invocation and of its delegations that the fork does not share.
    fn add_all(
        &mut self,
        store: &dyn Store,
        of: InvocationId,
        shared: &BTreeMap<InvocationId, u32>,
    ) -> fault::Result<()> {
        let below = longhaul_journal::delegations(store, &of)?;
        for of in std::iter::once(of).chain(below) {
            let mut after = shared.get(&of).copied().unwrap_or(0);
            loop {
                let page = longhaul_journal::entries(store, &of, after, PAGE)?;
                let Some((last, _)) = page.last() else { break };
                after = *last;
                page.iter().for_each(|(_, JournalEntry { asked, .. })| self.add(asked));
            }
        }
        Ok(())
    }

    fn add(&mut self, asked: &ImportCall) {
        let is_inner = asked.name == COMMIT || INNER.iter().any(|inner| asked.name.starts_with(inner));
        let Some(rank) = Rank::of(asked.class).filter(|_| !is_inner) else { return };
        if rank == Rank::Acts && asked.name == TOOL_CALL {
            self.repeats.add(asked);
        }
        self.count(rank, call_of(asked));
    }

    fn count(&mut self, rank: Rank, call: String) {
        let has_room = self.counts.len() < KINDS_MAX;
        match self.counts.get_mut(&(rank, call.clone())) {
            Some(count) => *count += 1,
            None if has_room => drop(self.counts.insert((rank, call), 1)),
            None => self.left_out += 1,
        }
    }
}

/// The tool and its function, or the name of another import.
pub(crate) fn call_of(asked: &ImportCall) -> String {
    let call = if asked.name == TOOL_CALL { asked.summary.split(' ').next().unwrap_or_default() } else { &asked.name };
    printable(call, CALL_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::Digest;
    use longhaul_core::store::{Batch, Key, Table};
    use longhaul_core::tool::ToolCall;
    use longhaul_testkit::MemoryStore;

    fn call(tool: &str, text: &str) -> ToolCall {
        let arguments = format!("{{\"text\":\"{text}\"}}");
        ToolCall { tool: tool.to_owned(), function: "post".to_owned(), arguments }
    }

    fn asked(class: EffectClass, name: &str, call: &ToolCall) -> ImportCall {
        ImportCall {
            name: name.to_owned(),
            summary: call.summary(),
            arguments: Digest::of(&serde_json::to_vec(call).expect("JSON")),
            class,
            prepared: None,
            fuel_used: 0,
            at_ms: 1,
            attempt: 1,
        }
    }

    fn counted(effects: &EffectsAfter) -> Vec<String> {
        let (list, _) = effects.list();
        list.into_iter().map(|one| format!("{:?} {} {}", one.effect, one.call, one.count)).collect()
    }

    #[test]
    fn effects_are_counted_by_class_and_call_and_what_acts_stands_first() {
        let mut effects = EffectsAfter::default();
        for (class, tool, text) in [
            (EffectClass::Idempotent, "files", "a"),
            (EffectClass::ReadOnly, "files", "b"),
            (EffectClass::Acts, "poster", "one"),
            (EffectClass::Verifiable, "poster", "one"),
            (EffectClass::Acts, "poster", "two"),
        ] {
            effects.add(&asked(class, TOOL_CALL, &call(tool, text)));
        }
        effects.add(&asked(EffectClass::Idempotent, "delegate.run", &call("x", "y")));
        effects.add(&asked(EffectClass::Idempotent, "artifact.save", &call("x", "y")));
        effects.add(&asked(EffectClass::Verifiable, COMMIT, &call("x", "y")));
        let expected =
            ["Acts poster.post 2", "Verifiable poster.post 1", "Idempotent artifact.save 1", "Idempotent files.post 1"];
        assert_eq!(counted(&effects), expected);
        assert!(effects.repeats.has(&call("poster", "one")) && effects.repeats.has(&call("poster", "two")));
        assert!(!effects.repeats.has(&call("files", "a")), "it does not act");
    }

    #[tokio::test]
    async fn effects_count_that_the_fork_does_not_share_also_of_a_sub_agent_whose_caller_does_not_have_it_yet() {
        let (store, own) = (MemoryStore::new(), InvocationId::from_text("r-1/f-a/1/generate"));
        let (below, beside) = (own.child(2).child(1), InvocationId::from_text("r-1/f-a/1/generate/h1"));
        let mut batch = Batch::new();
        for (of, number, text) in
            [(&own, 1, "one"), (&own, 3, "three"), (&below, 1, "below"), (&below, 2, "last"), (&beside, 1, "beside")]
        {
            // As the journal lays it out: the number of the entry, and that of the attempt.
            let key = Key::of(of.as_str()).number(number).and("asked").number(1);
            let call = asked(EffectClass::Acts, TOOL_CALL, &call("poster", text));
            batch = batch.put(Table::Journal, key, serde_json::to_vec(&call).expect("JSON"));
        }
        store.commit(batch).await.expect("stored");
        let mut effects = EffectsAfter::default();
        let shared = BTreeMap::from([(own.clone(), 2), (below, 1)]);
        effects.add_all(&store, own, &shared).expect("journals");
        let has = |text: &str| effects.repeats.has(&call("poster", text));
        assert_eq!(["one", "three", "below", "last", "beside"].map(has), [false, true, false, true, false]);
    }

    #[test]
    fn a_list_ends_and_says_how_much_it_leaves_out() {
        let mut effects = EffectsAfter::default();
        for number in 0..KINDS_MAX + 3 {
            effects.add(&asked(EffectClass::Acts, TOOL_CALL, &call(&format!("tool{number}"), "x")));
        }
        effects.add(&asked(EffectClass::Acts, TOOL_CALL, &call("tool0", "x")));
        let (list, left_out) = effects.list();
        assert_eq!((list.len(), left_out), (KINDS_MAX, 3));
        assert!(effects.repeats.has(&call(&format!("tool{}", KINDS_MAX + 2), "x")), "the fork asks all the same");
    }
}
