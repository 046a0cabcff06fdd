//! The origin of a fork, the forks of a run, and the runs whose journals others share.
//!
//! | row | holds |
//! |---|---|
//! | fork, `forked` | where it comes from |
//! | parent, `fork`, fork | null: it is one of its forks |
//! | run, `lent` | how often the next rows changed |
//! | run, `lent`, other | null: a journal of the other run may begin with entries that this run holds |
//!
//! One process begins a fork and another one deletes a run at the same time, on any servers. A fork is stored on the
//! condition that each run which lends it entries is still there, and a run is deleted on the condition that its `lent`
//! is as it was after all was handed over. So no journal refers to rows that are gone. Refuses to delete anything else
//! of a run, and to read a journal, which `longhaul-journal` does.

use super::RunRecord;
use crate::contended::change;
use longhaul_core::RunId;
use longhaul_core::event::WorkUsage;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The version of the row of an origin. It grows when an earlier reader could misread one.
const VERSION: u32 = 1;

/// Rows that one read returns. All of them are read, page by page.
const PAGE_ROWS: usize = 1_000;

/// Batches by which one run hands its journals over: each is of one journal at least.
const HAND_OVERS_MAX: usize = 100_000;

/// The origin of a fork.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForkedFrom {
    /// The run that it was forked from. It may be deleted since.
    pub parent: RunId,
    /// The number of the last event before the point.
    pub event: u64,
    /// The time of the point, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The point, as it was named.
    pub point: String,
    /// The entry whose answer a person replaced, as `KEY:ENTRY`; none if it is as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<String>,
    /// The usage of the parent up to the point, that of its own parents included. None of it counts for the fork.
    pub inherited: WorkUsage,
}

#[derive(Serialize, Deserialize)]
struct StoredOrigin {
    version: u32,
    #[serde(flatten)]
    from: ForkedFrom,
}

/// The origin of a run; none if it is no fork.
pub fn forked(store: &dyn Store, run: &RunId) -> fault::Result<Option<ForkedFrom>> {
    let Some(bytes) = store.get(Table::States, &forked_key(run))? else { return Ok(None) };
    let stored: StoredOrigin =
        serde_json::from_slice(&bytes).or_internal(|| format!("the origin of run {run} is damaged"))?;
    if stored.version > VERSION {
        bail!("the origin of run {run} is of a newer longhaul; use that one");
    }
    Ok(Some(stored.from))
}

/// The forks of a run that are still there.
pub fn forks(store: &dyn Store, run: &RunId) -> fault::Result<Vec<RunId>> {
    let mut found = Vec::new();
    for fork in listed(store, &forks_key(run))? {
        if store.get(Table::Runs, &RunRecord::key(&fork))?.is_some() {
            found.push(fork);
        }
    }
    Ok(found)
}

/// Adds the origin of a fork to the batch that begins it, which has the beginnings of its journals already.
///
/// The commit fails with a conflict where another fork of the run, or its deletion, was faster: all of the batch is made
/// anew then, as [`change`] does.
///
/// # Errors
/// The parent is gone, or a run that holds a part of its journals.
pub fn put_fork(store: &dyn Store, batch: Batch, from: &ForkedFrom, fork: &RunId) -> fault::Result<Batch> {
    let stored = StoredOrigin { version: VERSION, from: from.clone() };
    let batch = put_loans(store, batch, BTreeSet::from([&from.parent]))?;
    let batch = batch.put(Table::States, forks_key(&from.parent).and(fork.as_str()), "null");
    Ok(batch.insert(Table::States, forked_key(fork), serde_json::to_vec(&stored)?))
}

/// Hands the journals of a run over to the forks that share them, so that it can be deleted. Nobody may work on the run.
///
/// A kill in the middle leaves all journals whole, and the next call goes on.
///
/// # Errors
/// The store refuses, or a journal cannot be read whole: the run must then stay.
pub async fn hand_over(store: &dyn Store, run: &RunId) -> fault::Result<()> {
    for _ in 0..HAND_OVERS_MAX {
        if change(store, || handed_over(store, run)).await? {
            return Ok(());
        }
    }
    bail!("the journals of run {run} are shared by more forks than can be handed over; delete those first")
}

/// The batch that a deletion of a run begins with: its conditions, and the rows of other runs that name it.
///
/// # Errors
/// Forks share journals of the run that were not handed over.
pub fn begin_removal(store: &dyn Store, run: &RunId) -> fault::Result<Batch> {
    let count = store.get(Table::States, &lent_key(run))?;
    if !listed(store, &lent_key(run))?.is_empty() {
        bail!(Fault::conflict(format!("run {run} was forked at this moment, and stays; try again")));
    }
    let mut batch = Batch::new().replace(Table::States, lent_key(run), count.as_deref(), "0");
    batch.push(Op::Delete(Table::States, lent_key(run)));
    // One that cannot be read goes with the run.
    if let Ok(Some(from)) = forked(store, run) {
        batch.push(Op::Delete(Table::States, forks_key(&from.parent).and(run.as_str())));
    }
    Ok(batch)
}

/// True when a key of the states of a run is that of a row about its forks here, which another data directory has not.
pub fn is_of_forks(run: &RunId, key: &[u8]) -> bool {
    [forks_key(run), lent_key(run)].iter().any(|prefix| key.starts_with(prefix.as_bytes()))
}

/// The next changes of [`hand_over`]; true when they are the last ones.
fn handed_over(store: &dyn Store, run: &RunId) -> fault::Result<(Batch, bool)> {
    let count = store.get(Table::States, &lent_key(run))?;
    let forks = listed(store, &lent_key(run))?;
    if forks.is_empty() {
        return Ok((Batch::new(), true));
    }
    let ops = longhaul_journal::hand_over(store, run, &forks).with_context(|| {
        let names: Vec<&str> = forks.iter().map(RunId::as_str).take(NAMED_MAX).collect();
        format!("run {run} stays, since forks share its journals ({})", names.join(", "))
    })?;
    if !ops.is_empty() {
        return Ok((put_loans(store, Batch { ops }, BTreeSet::new())?, false));
    }
    let mut batch = put_count(Batch::new(), run, count.as_deref());
    for fork in forks {
        batch.push(Op::Delete(Table::States, lent_key(run).and(fork.as_str())));
    }
    Ok((batch, true))
}

/// Forks that a message names.
const NAMED_MAX: usize = 5;

/// Adds to the journals of a batch that share beginnings the rows about who shares them, on the condition that the runs
/// which hold those, and these others, are there.
fn put_loans(store: &dyn Store, mut batch: Batch, others: BTreeSet<&RunId>) -> fault::Result<Batch> {
    let mut loans: BTreeMap<RunId, BTreeSet<RunId>> = BTreeMap::new();
    for (holder, sharer) in longhaul_journal::holders(&batch.ops) {
        loans.entry(holder).or_default().insert(sharer);
    }
    for other in others {
        loans.entry(other.clone()).or_default();
    }
    for (holder, sharers) in loans {
        let record = store.get(Table::Runs, &RunRecord::key(&holder))?;
        let record = record.or_unknown(|| format!("run {holder}, whose past is shared, is gone"))?;
        batch = batch.replace(Table::Runs, RunRecord::key(&holder), Some(&record[..]), record.clone());
        if !sharers.is_empty() {
            let count = store.get(Table::States, &lent_key(&holder))?;
            batch = put_count(batch, &holder, count.as_deref());
        }
        for sharer in sharers {
            batch = batch.put(Table::States, lent_key(&holder).and(sharer.as_str()), "null");
        }
    }
    Ok(batch)
}

/// Counts a change of what a run lends, if nobody else counted one since.
fn put_count(batch: Batch, run: &RunId, count: Option<&[u8]>) -> Batch {
    let before: u64 = count.and_then(|count| String::from_utf8_lossy(count).parse().ok()).unwrap_or(0);
    batch.replace(Table::States, lent_key(run), count, before.wrapping_add(1).to_string())
}

/// The runs that are named by rows below a key.
fn listed(store: &dyn Store, prefix: &Key) -> fault::Result<Vec<RunId>> {
    let (mut found, mut after) = (Vec::new(), Some(prefix.as_bytes().to_vec()));
    loop {
        let page = store.scan(Table::States, prefix, after.as_deref(), PAGE_ROWS)?;
        for (key, _) in &page {
            let name = key.strip_prefix(prefix.as_bytes()).and_then(|rest| rest.strip_suffix(&[0, 0]));
            let name = name.and_then(|name| std::str::from_utf8(name).ok());
            found.push(RunId::from_text(name.or_internal(|| "the forks of a run are damaged")?));
        }
        match page.last() {
            Some((key, _)) if page.len() == PAGE_ROWS => after = Some(key.clone()),
            _ => return Ok(found),
        }
    }
}

fn forked_key(run: &RunId) -> Key {
    RunRecord::key(run).and("forked")
}

fn forks_key(run: &RunId) -> Key {
    RunRecord::key(run).and("fork")
}

fn lent_key(run: &RunId) -> Key {
    RunRecord::key(run).and("lent")
}

#[cfg(test)]
mod tests;
