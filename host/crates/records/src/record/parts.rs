//! The layout of a run's state in the store: content, of which a step adds what changed.
//!
//! A state holds every feature with its instruction, its criteria and its checks, and a step changes one or two of
//! them. Written whole, the bytes of a run would grow with the square of its features. And what a run was at an earlier
//! event is looked at later, so nothing is overwritten:
//!
//! | row or content | holds |
//! |---|---|
//! | row: run | the number of the last event of the step that stored the state |
//! | row: run, `past`, that number | the short fields, and digests of the long fields and of the pages |
//! | content | a long field |
//! | content | a page: digests of 16 features |
//! | content | a feature; what it asks for is content by its digest |
//!
//! Two states share what is the same in both, and content stays as long as any row of a run names it. A text above
//! 1 KiB is content by its digest too (`contents.rs`). This module knows only that the state is an object with a list
//! `features`, whose items have a `spec`. It reads the forms of earlier releases; the first step after them stores the
//! state in this one.

use super::contents::{content, fetch, put_away};
use super::events::last_event;
use super::run::RunRecord;
use super::{earlier_parts, past};
use longhaul_core::event::RunEvent;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::{Batch, Store, Table};
use longhaul_core::{Digest, RunId};
use longhaul_harness::RunState;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Fields up to this size, in bytes of JSON, are stored in the row. Their digest would not be much shorter.
const INLINE_BYTES_MAX: usize = 256;

/// Features of a page. With 200 features, the most by default, a step writes the digests of 13 pages and of 16
/// features.
const PAGE_FEATURES: usize = 16;

/// The field that holds the features, and the field of a feature that holds its spec.
const FEATURES: &str = "features";
const SPEC: &str = "spec";

/// The number of this form.
const FORM: u32 = 2;

/// The number of the form of a row. A state that is stored whole has none.
#[derive(Deserialize)]
struct RowForm {
    #[serde(default)]
    in_parts: u32,
}

/// The row of a run.
#[derive(Serialize, Deserialize)]
struct RunRow {
    in_parts: u32,
    /// Above the version of any state that a release knows which cannot read this form: it takes the row for a state
    /// of a newer release, and says so.
    version: u32,
    /// The number of the row that has the state.
    past: u64,
}

/// The row of a state.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct StateRow {
    in_parts: u32,
    /// The number of the first event of the step that stored it.
    first: u64,
    /// Short fields.
    fields: Map<String, Value>,
    /// Long fields.
    contents: BTreeMap<String, Digest>,
    /// The pages of features, in their order.
    pages: Vec<Digest>,
}

/// Adds the changed parts of a state to a batch. `events` are those of the same step, which the batch stores too.
///
/// # Errors
/// The store cannot be read, or a newer longhaul stored the state before.
pub fn put(
    store: &dyn Store,
    mut batch: Batch,
    run: &RunId,
    state: &RunState,
    events: &[RunEvent],
) -> fault::Result<Batch> {
    let before = store.get(Table::States, &RunRecord::key(run))?;
    let known = match before.as_deref().map(|row| present(store, run, row)).transpose()? {
        Some(Stored::AsContent(number, row)) => Some((number, row)),
        Some(Stored::InEarlierParts) => {
            earlier_parts::forget(store, &mut batch, run)?;
            None
        }
        Some(Stored::Whole) | None => None,
    };
    let Value::Object(state) = serde_json::to_value(state)? else { bail!(Fault::internal("a state is an object")) };
    let unknown = StateRow::default();
    let mut writer = Writer { store, batch, known: known.as_ref().map_or(&unknown, |(_, row)| row) };
    let mut now = StateRow { in_parts: FORM, ..StateRow::default() };
    for (name, value) in state {
        match value {
            Value::Array(features) if name == FEATURES => now.pages = writer.put_features(features)?,
            value => writer.put_field(name, value, &mut now),
        }
    }
    let batch = writer.batch;
    now.first = known.as_ref().map_or(0, |(_, row)| row.first);
    if known.as_ref().is_some_and(|(_, row)| *row == now) {
        return Ok(batch);
    }
    let number = if let (Some(first), Some(last)) = (events.first(), events.last()) {
        now.first = first.number;
        last.number
    } else {
        let last = last_event(store, run)?;
        // The row of the step that stored this event is replaced, and tells of that step as before.
        if known.as_ref().is_none_or(|(number, _)| *number != last) {
            now.first = last.saturating_add(1);
        }
        last
    };
    let row = RunRow { in_parts: FORM, version: longhaul_harness::state::VERSION + 1, past: number };
    let batch = batch.put(Table::States, past::key(run, number), serde_json::to_vec(&now)?);
    Ok(batch.put(Table::States, RunRecord::key(run), serde_json::to_vec(&row)?))
}

/// The state of a run, as its row and its parts hold it.
pub(super) fn load(store: &dyn Store, run: &RunId, row: &[u8]) -> fault::Result<RunState> {
    let damaged = || damage(run);
    let whole = match present(store, run, row)? {
        Stored::Whole => String::from_utf8(row.to_vec()).or_internal(damaged)?,
        Stored::InEarlierParts => earlier_parts::assembled(store, run, row).or_internal(damaged)?,
        Stored::AsContent(_, row) => assembled(store, row).or_internal(damaged)?,
    };
    Ok(RunState::from_json(&whole)?)
}

/// The newest state at or before an event, with the number of the last event of the step that stored it. None: the
/// kept history of the run begins later, as that of a run of an earlier release does.
///
/// # Errors
/// The store cannot be read, or the state is damaged or of a newer longhaul.
pub fn state_at(store: &dyn Store, run: &RunId, event: u64) -> fault::Result<Option<(u64, RunState)>> {
    let Some((number, row)) = past::newest(store, run, event)? else { return Ok(None) };
    let whole = assembled(store, state_row(run, &row)?).or_internal(|| damage(run))?;
    Ok(Some((number, RunState::from_json(&whole)?)))
}

/// The events of the step that stored an event; the event alone where it changed no state.
///
/// # Errors
/// As [`state_at`].
pub fn step_of(store: &dyn Store, run: &RunId, event: u64) -> fault::Result<RangeInclusive<u64>> {
    let alone = event..=event;
    let Some((last, row)) = past::next(store, run, event)? else { return Ok(alone) };
    let first = state_row(run, &row)?.first;
    Ok(if first <= event { first..=last } else { alone })
}

/// The number of the event at which the kept history of a run begins; none: it has none.
///
/// # Errors
/// As [`state_at`].
pub fn history_begins(store: &dyn Store, run: &RunId) -> fault::Result<Option<u64>> {
    Ok(past::next(store, run, 0)?.map(|(number, _)| number))
}

/// A stored state by its form.
enum Stored {
    /// The row is the state.
    Whole,
    /// The form of [`earlier_parts`].
    InEarlierParts,
    /// The number of its row, and the row.
    AsContent(u64, StateRow),
}

/// Reads the row of a run.
fn present(store: &dyn Store, run: &RunId, row: &[u8]) -> fault::Result<Stored> {
    let damaged = || damage(run);
    let RowForm { in_parts } = serde_json::from_slice(row).or_internal(damaged)?;
    match in_parts {
        0 => Ok(Stored::Whole),
        earlier_parts::FORM => Ok(Stored::InEarlierParts),
        FORM => {
            let RunRow { past: number, .. } = serde_json::from_slice(row).or_internal(damaged)?;
            let row = store.get(Table::States, &past::key(run, number))?.or_internal(damaged)?;
            Ok(Stored::AsContent(number, state_row(run, &row)?))
        }
        _ => Err(newer(run)),
    }
}

fn state_row(run: &RunId, row: &[u8]) -> fault::Result<StateRow> {
    let RowForm { in_parts } = serde_json::from_slice(row).or_internal(|| damage(run))?;
    if in_parts > FORM {
        return Err(newer(run));
    }
    serde_json::from_slice(row).or_internal(|| damage(run))
}

fn damage(run: &RunId) -> String {
    format!("the state of run {run} is damaged")
}

fn newer(run: &RunId) -> Fault {
    Fault::invalid(format_args!("the state of run {run} is of a newer longhaul; go on with that one"))
}

struct Writer<'a> {
    store: &'a dyn Store,
    batch: Batch,
    /// The row of the state before.
    known: &'a StateRow,
}

impl Writer<'_> {
    fn put_field(&mut self, name: String, mut value: Value, now: &mut StateRow) {
        if value.to_string().len() <= INLINE_BYTES_MAX {
            now.fields.insert(name, value);
            return;
        }
        let mut added = Batch::new();
        put_away(&mut value, &mut added);
        let digest = added.blob(value.to_string().into_bytes());
        if self.known.contents.get(&name) != Some(&digest) {
            self.batch.ops.append(&mut added.ops);
        }
        now.contents.insert(name, digest);
    }

    /// Stores the features and returns the digests of their pages.
    fn put_features(&mut self, features: Vec<Value>) -> fault::Result<Vec<Digest>> {
        let mut pages = Vec::with_capacity(features.len().div_ceil(PAGE_FEATURES));
        let mut features = features.into_iter();
        while features.len() > 0 {
            pages.push(self.put_page(pages.len(), features.by_ref().take(PAGE_FEATURES))?);
        }
        Ok(pages)
    }

    fn put_page(&mut self, number: usize, features: impl Iterator<Item = Value>) -> fault::Result<Digest> {
        let features: Vec<(Digest, Batch)> = features.map(as_content).collect::<fault::Result<_>>()?;
        let digests: Vec<Digest> = features.iter().map(|(digest, _)| *digest).collect();
        let page = serde_json::to_vec(&digests)?;
        let known = self.known.pages.get(number);
        let digest = Digest::of(&page);
        if known == Some(&digest) {
            return Ok(digest);
        }
        let before = known.map(|known| features_of(self.store, known)).transpose()?.unwrap_or_default();
        for (at, (digest, mut added)) in features.into_iter().enumerate() {
            if before.get(at) != Some(&digest) {
                self.batch.ops.append(&mut added.ops);
            }
        }
        Ok(self.batch.blob(page))
    }
}

/// A feature as content: its digest, and the batch that stores it.
fn as_content(mut feature: Value) -> fault::Result<(Digest, Batch)> {
    let mut added = Batch::new();
    if let Some(spec) = feature.get_mut(SPEC) {
        *spec = added.blob(serde_json::to_vec(spec)?).to_string().into();
    }
    put_away(&mut feature, &mut added);
    let digest = added.blob(feature.to_string().into_bytes());
    Ok((digest, added))
}

/// The state as JSON.
fn assembled(store: &dyn Store, row: StateRow) -> fault::Result<String> {
    let mut state = row.fields;
    for (name, digest) in row.contents {
        state.insert(name, value(store, &digest)?);
    }
    let mut features = Vec::new();
    for page in &row.pages {
        for digest in features_of(store, page)? {
            features.push(feature(store, &digest)?);
        }
    }
    state.insert(FEATURES.to_owned(), features.into());
    Ok(Value::Object(state).to_string())
}

/// The digests of the features of a page.
fn features_of(store: &dyn Store, page: &Digest) -> fault::Result<Vec<Digest>> {
    Ok(serde_json::from_slice(&bytes(store, page)?)?)
}

fn feature(store: &dyn Store, digest: &Digest) -> fault::Result<Value> {
    let mut feature = value(store, digest)?;
    if let Some(Value::String(digest)) = feature.get(SPEC) {
        feature[SPEC] = serde_json::from_slice(&content(store, digest)?)?;
    }
    Ok(feature)
}

fn value(store: &dyn Store, digest: &Digest) -> fault::Result<Value> {
    let mut value = serde_json::from_slice(&bytes(store, digest)?)?;
    fetch(&mut value, store)?;
    Ok(value)
}

fn bytes(store: &dyn Store, digest: &Digest) -> fault::Result<Vec<u8>> {
    store.blob(digest)?.context("a part of it is missing")
}

#[cfg(test)]
mod tests;
