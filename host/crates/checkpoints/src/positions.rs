//! The checkpoints of a run, and the keys that name them.
//!
//! A key is a run, for all of it, or `RUN:PART` for the newest work of an agent, such as `r-3f9c02d1a4be:agents.code`.

use longhaul_api::checkpoints::Checkpoint;
use longhaul_core::event::{CheckpointCause as Cause, Event};
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::journal::JournalEntry;
use longhaul_core::store::Store;
use longhaul_core::{InvocationId, RunId};
use longhaul_records::invocation::{APPROVAL, STEP};
use longhaul_records::record;

/// Entries of one journal that are read.
pub(crate) const ENTRIES_MAX: usize = 100_000;

/// A parsed key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointKey {
    /// The run, as it was typed.
    pub run: String,
    /// The part of the run, such as `agents.code`; none: the whole run.
    pub part: Option<String>,
}

impl CheckpointKey {
    /// Reads a key. An agent's name alone stands for its part.
    pub fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some((run, part)) if !part.is_empty() => {
                let is_part = part.contains('.') || part == "planner" || part == "evaluator";
                let part = if is_part { part.to_owned() } else { format!("agents.{part}") };
                Self { run: run.to_owned(), part: Some(part) }
            }
            _ => Self { run: text.to_owned(), part: None },
        }
    }
}

/// The checkpoints of a run, by invocation, each `every` steps (0: none) and before each approval.
pub fn list(store: &dyn Store, run: &RunId, every: impl Fn(&str) -> u32) -> fault::Result<Vec<Checkpoint>> {
    let mut found = Vec::new();
    for invocation in invocations(store, run)? {
        let Some(began) = longhaul_journal::began(store, &invocation)? else { continue };
        let open = longhaul_journal::finished(store, &invocation)?.is_none();
        let entries = longhaul_journal::entries(store, &invocation, 0, ENTRIES_MAX)?;
        let (key, every) = (format!("{run}:{}", began.table), every(&began.table));
        found.extend(positions(&entries, every).into_iter().map(|(step, entries, cause, at_ms)| Checkpoint {
            key: key.clone(),
            invocation: invocation.clone(),
            step,
            entries,
            cause,
            at_ms,
            open,
        }));
    }
    Ok(found)
}

/// The steps before a position, the entries before it, its reason, and its time.
fn positions(entries: &[(u32, JournalEntry)], every: u32) -> Vec<(u32, u32, Cause, u64)> {
    let (mut step, mut found) = (0, Vec::new());
    for (number, entry) in entries {
        let before = number.saturating_sub(1);
        match entry.asked.name.as_str() {
            STEP => {
                if every > 0 && step % every == 0 {
                    found.push((step, before, Cause::Step, entry.asked.at_ms));
                }
                step += 1;
            }
            APPROVAL => found.push((step, before, Cause::Approval, entry.asked.at_ms)),
            _ => {}
        }
    }
    found
}

/// The invocations of a run in the order in which they began; delegations follow their callers.
fn invocations(store: &dyn Store, run: &RunId) -> fault::Result<Vec<InvocationId>> {
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let page = record::events_after(store, run, after, 1_000)?;
        let Some(last) = page.last() else { return Ok(found) };
        after = last.number;
        for event in page {
            if let Event::InvocationStarted { invocation, .. } = event.event
                && !found.contains(&invocation)
            {
                with_children(store, invocation, &mut found)?;
            }
        }
    }
}

fn with_children(store: &dyn Store, invocation: InvocationId, found: &mut Vec<InvocationId>) -> fault::Result<()> {
    let children = longhaul_journal::children(store, &invocation)?;
    found.push(invocation);
    children
        .into_iter()
        .filter(|child| !found.contains(child))
        .collect::<Vec<_>>()
        .into_iter()
        .try_for_each(|child| with_children(store, child, found))
}

/// The newest invocation of a part.
pub fn newest_of(store: &dyn Store, run: &RunId, part: &str) -> fault::Result<InvocationId> {
    for invocation in invocations(store, run)?.into_iter().rev() {
        if longhaul_journal::began(store, &invocation)?.is_some_and(|began| began.table == part) {
            return Ok(invocation);
        }
    }
    bail!(Fault::unknown(format!(
        "run {run} has no work of [{part}]; `longhaul checkpoint list {run}` shows what it has"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_run_or_a_part_of_it() {
        let parsed = |text| {
            let CheckpointKey { run, part } = CheckpointKey::parse(text);
            (run, part.unwrap_or_default())
        };
        let expect = |run: &str, part: &str| (run.to_owned(), part.to_owned());
        assert_eq!(parsed("r-1"), expect("r-1", ""));
        assert_eq!(parsed("r-1:code"), expect("r-1", "agents.code"));
        assert_eq!(parsed("r-1:agents.code"), expect("r-1", "agents.code"));
        assert_eq!(parsed("r-1:planner"), expect("r-1", "planner"));
        assert_eq!(parsed("../escaped"), expect("../escaped", ""));
    }
}
