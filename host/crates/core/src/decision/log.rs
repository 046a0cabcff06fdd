//! The storage of decisions, and the orders in which they are found.
//!
//! All is in [`Table::Decisions`], three rows a decision:
//!
//! | key | value |
//! |---|---|
//! | project, id | the decision, JSON |
//! | `@newest`, project, 2^64-1 - time in ms, id | the id |
//! | `@feature`, project, run, feature, 2^64-1 - time in ms, id | the id |
//!
//! No project is called `@newest`: a name has letters, digits, `-` and `_`. So the newest decisions and those of a
//! feature can be read without the others, however many there are.

use super::Decision;
use crate::store::{Batch, Key, Op, Row, Store, StoreError, Table};

/// The first parts of the keys of the two orders.
const NEWEST: &str = "@newest";
const FEATURE: &str = "@feature";

/// Decisions of one project from a version without orders that get one later.
const OLDER_MAX: usize = 10_000;

/// The reason why decisions cannot be read or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored decision is invalid.
    #[error("decision `{id}` is damaged: {detail}; restore the data directory from a backup")]
    Damaged {
        /// The id of the decision.
        id: String,
        /// The fault, for people.
        detail: String,
    },
}

/// Adds a decision to a batch, in place of one of the same id. Only its author records it.
///
/// # Errors
/// [`LogError`], when the one before it cannot be read.
pub fn put(store: &dyn Store, batch: Batch, project: &str, decision: &Decision) -> Result<Batch, LogError> {
    let before = get(store, project, &decision.id)?;
    let batch = put_orders(store, batch, project, before.as_ref(), decision)?;
    Ok(batch.put(Table::Decisions, Key::of(project).and(&decision.id), encoded(decision)))
}

/// Adds a changed decision to a batch, in place of `before`, as it was read. Its run fills in the outcome and people
/// judge it, so the batch fails with [`StoreError::Conflict`] in [`Table::Decisions`] if it is another one by then.
///
/// # Errors
/// [`LogError`], when the stored one cannot be read.
pub fn replace(
    store: &dyn Store,
    batch: Batch,
    project: &str,
    before: &Decision,
    decision: &Decision,
) -> Result<Batch, LogError> {
    let key = Key::of(project).and(&decision.id);
    let stored = store.get(Table::Decisions, &key)?;
    let is_same = |row: &Vec<u8>| decoded(&decision.id, row).is_ok_and(|stored| stored == *before);
    // A row of an earlier version has other bytes than its decision would get now. No row has those of a decision that
    // was changed since, so the condition fails.
    let row = stored.filter(is_same).unwrap_or_else(|| encoded(before));
    let batch = put_orders(store, batch, project, Some(before), decision)?;
    Ok(batch.replace(Table::Decisions, key, Some(&row), encoded(decision)))
}

/// The decision of that id.
///
/// # Errors
/// [`LogError`].
pub fn get(store: &dyn Store, project: &str, id: &str) -> Result<Option<Decision>, LogError> {
    let bytes = store.get(Table::Decisions, &Key::of(project).and(id))?;
    bytes.map(|bytes| decoded(id, &bytes)).transpose()
}

/// Decisions of a project, the newest first, at most `limit`.
///
/// # Errors
/// [`LogError`].
pub fn newest(store: &dyn Store, project: &str, limit: usize) -> Result<Vec<Decision>, LogError> {
    let found = store.scan(Table::Decisions, &Key::of(NEWEST).and(project), None, limit)?;
    if !found.is_empty() {
        return listed(store, project, found);
    }
    let mut unordered = without_order(store, project)?;
    unordered.sort_by(|a, b| b.at_ms.cmp(&a.at_ms).then_with(|| a.id.cmp(&b.id)));
    unordered.truncate(limit);
    Ok(unordered)
}

/// Decisions that a run took for a feature, the newest first, at most `limit`.
///
/// # Errors
/// [`LogError`].
pub fn of_feature(
    store: &dyn Store,
    project: &str,
    run: &str,
    feature: &str,
    limit: usize,
) -> Result<Vec<Decision>, LogError> {
    let found = store.scan(Table::Decisions, &by_feature(project, run, feature), None, limit)?;
    listed(store, project, found)
}

/// Adds the index rows of a decision, in place of those of the one before it.
fn put_orders(
    store: &dyn Store,
    batch: Batch,
    project: &str,
    before: Option<&Decision>,
    decision: &Decision,
) -> Result<Batch, LogError> {
    let mut batch = put_older(store, batch, project)?;
    for key in before.into_iter().flat_map(|before| orders(project, before)) {
        batch.push(Op::Delete(Table::Decisions, key));
    }
    for key in orders(project, decision) {
        batch = batch.put(Table::Decisions, key, decision.id.as_str());
    }
    Ok(batch)
}

/// The index rows of a decision beside its id.
fn orders(project: &str, decision: &Decision) -> Vec<Key> {
    let Decision { at_ms, id, run, feature, .. } = decision;
    let newest_first = |key: Key| key.number(u64::MAX - at_ms).and(id);
    let of_feature = feature.as_ref().map(|feature| by_feature(project, run, feature));
    [Key::of(NEWEST).and(project)].into_iter().chain(of_feature).map(newest_first).collect()
}

fn by_feature(project: &str, run: &str, feature: &str) -> Key {
    Key::of(FEATURE).and(project).and(run).and(feature)
}

fn listed(store: &dyn Store, project: &str, found: Vec<Row>) -> Result<Vec<Decision>, LogError> {
    let ids = found.into_iter().map(|(_, id)| String::from_utf8_lossy(&id).into_owned());
    let missing = |id: String| LogError::Damaged { id, detail: "it is listed and not there".to_owned() };
    ids.map(|id| get(store, project, &id)?.ok_or_else(|| missing(id))).collect()
}

/// Adds the orders for decisions of a version without them.
fn put_older(store: &dyn Store, mut batch: Batch, project: &str) -> Result<Batch, LogError> {
    if !store.scan(Table::Decisions, &Key::of(NEWEST).and(project), None, 1)?.is_empty() {
        return Ok(batch);
    }
    for decision in without_order(store, project)? {
        for key in orders(project, &decision) {
            batch = batch.put(Table::Decisions, key, decision.id.as_str());
        }
    }
    Ok(batch)
}

fn without_order(store: &dyn Store, project: &str) -> Result<Vec<Decision>, LogError> {
    let found = store.scan(Table::Decisions, &Key::of(project), None, OLDER_MAX)?;
    found.iter().map(|(key, bytes)| decoded(&String::from_utf8_lossy(key), bytes)).collect()
}

fn decoded(id: &str, bytes: &[u8]) -> Result<Decision, LogError> {
    serde_json::from_slice(bytes).map_err(|why| LogError::Damaged { id: id.to_owned(), detail: why.to_string() })
}

fn encoded(decision: &Decision) -> Vec<u8> {
    serde_json::to_vec(decision).expect("a decision is made of text and numbers, which JSON always holds")
}
