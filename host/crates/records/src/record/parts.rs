//! The layout of a run's state in the store: parts, of which a step writes those that changed.
//!
//! A state holds every feature with its instruction, its criteria and its checks, and a step changes one or two of
//! them. Written whole, the bytes of a run would grow with the square of its features. So:
//!
//! | row | holds |
//! |---|---|
//! | run | the short fields, and digests of the long fields and of the pages |
//! | run, `field`, name | a long field |
//! | run, `page`, number | digests of 16 features |
//! | run, `feature`, number | a feature; what it asks for is content by its digest |
//!
//! A text above 1 KiB within a row is content by its digest too, so that a goal that every task contains is stored
//! once. This module knows only that the state is an object with a list `features`, whose items have a `spec`.

use super::run::RunRecord;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::{Batch, Key, Store, Table};
use longhaul_core::{Digest, RunId};
use longhaul_harness::RunState;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Fields up to this size, in bytes of JSON, are stored in the row of the run. Their digest would not be much shorter.
const INLINE_BYTES_MAX: usize = 256;

/// Texts up to this size, in bytes, stay in their row.
const TEXT_BYTES_MAX: usize = 1_024;

/// Features of a page. With 200 features, the most by default, a step writes the digests of 13 pages and of 16
/// features.
const PAGE_FEATURES: usize = 16;

/// Digits of a digest that detects a changed part: 128 bits.
const DIGITS: usize = 32;

/// The first character of a text that stands for content by its digest. A text that starts with the same character for
/// reasons of its own has it twice.
const MARK: char = '\0';
const CONTENT: &str = "\0content:";

/// The field that holds the features, and the field of a feature that holds its spec.
const FEATURES: &str = "features";
const SPEC: &str = "spec";

/// The row of a run.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct RunRow {
    /// The number of this form. A state that is stored whole has no such field.
    in_parts: u32,
    /// Short fields.
    fields: Map<String, Value>,
    /// Digests of the long fields.
    rows: Map<String, Value>,
    /// Digests of the pages of features, in their order.
    pages: Vec<String>,
}

/// The only form of [`RunRow`].
const FORM: u32 = 1;

/// Adds the changed parts of a state to a batch.
pub fn put(store: &dyn Store, batch: Batch, run: &RunId, state: &RunState) -> fault::Result<Batch> {
    let before = store.get(Table::States, &RunRecord::key(run))?;
    let known = before.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
    let Value::Object(state) = serde_json::to_value(state)? else { bail!(Fault::internal("a state is an object")) };
    let mut writer = Writer { store, run, batch, known };
    let mut now = RunRow { in_parts: FORM, ..RunRow::default() };
    for (name, value) in state {
        match value {
            Value::Array(features) if name == FEATURES => now.pages = writer.put_features(features)?,
            value => writer.put_field(name, value, &mut now),
        }
    }
    let text = serde_json::to_vec(&now)?;
    if before.as_deref() == Some(&text[..]) {
        return Ok(writer.batch);
    }
    Ok(writer.batch.put(Table::States, RunRecord::key(run), text))
}

struct Writer<'a> {
    store: &'a dyn Store,
    run: &'a RunId,
    batch: Batch,
    known: RunRow,
}

impl Writer<'_> {
    fn put_field(&mut self, name: String, value: Value, now: &mut RunRow) {
        let text = value.to_string();
        if text.len() <= INLINE_BYTES_MAX {
            now.fields.insert(name, value);
            return;
        }
        let digest = Value::from(digest_of(&text));
        if self.known.rows.get(&name) != Some(&digest) {
            self.put_row(field_key(self.run, &name), value);
        }
        now.rows.insert(name, digest);
    }

    /// Stores the features and returns the digests of their pages.
    fn put_features(&mut self, features: Vec<Value>) -> fault::Result<Vec<String>> {
        let digests: Vec<String> = features.iter().map(|feature| digest_of(&feature.to_string())).collect();
        let mut pages = Vec::with_capacity(digests.len().div_ceil(PAGE_FEATURES));
        let mut features = features.into_iter();
        for (number, page) in digests.chunks(PAGE_FEATURES).enumerate() {
            let features: Vec<Value> = features.by_ref().take(page.len()).collect();
            let digest = digest_of(&page.concat());
            if self.known.pages.get(number) != Some(&digest) {
                self.put_page(number, page, features)?;
            }
            pages.push(digest);
        }
        Ok(pages)
    }

    fn put_page(&mut self, number: usize, page: &[String], features: Vec<Value>) -> fault::Result<()> {
        let key = page_key(self.run, number);
        // Only pages that the row of the run names count: a page beyond them belongs to an earlier, longer list.
        let before = if number < self.known.pages.len() { self.store.get(Table::States, &key)? } else { None };
        let before: Vec<String> = before.map(|bytes| serde_json::from_slice(&bytes)).transpose()?.unwrap_or_default();
        for (at, (digest, mut feature)) in page.iter().zip(features).enumerate() {
            if before.get(at) == Some(digest) {
                continue;
            }
            if let Some(spec) = feature.get_mut(SPEC) {
                *spec = self.batch.blob(serde_json::to_vec(spec)?).to_string().into();
            }
            self.put_row(feature_key(self.run, number * PAGE_FEATURES + at), feature);
        }
        self.batch = std::mem::take(&mut self.batch).put(Table::States, key, serde_json::to_vec(page)?);
        Ok(())
    }

    fn put_row(&mut self, key: Key, mut value: Value) {
        put_away(&mut value, &mut self.batch);
        self.batch = std::mem::take(&mut self.batch).put(Table::States, key, value.to_string());
    }
}

/// The state of a run, as its row and its parts hold it.
pub(super) fn load(store: &dyn Store, run: &RunId, row: &[u8]) -> fault::Result<RunState> {
    let damaged = || format!("the state of run {run} is damaged");
    let whole = match serde_json::from_slice::<RunRow>(row) {
        Ok(contents) => assembled(store, run, contents).or_internal(damaged)?,
        // Earlier versions stored the state whole, and a later version may use another form; the state tells which.
        Err(_) => String::from_utf8(row.to_vec()).or_internal(damaged)?,
    };
    Ok(RunState::from_json(&whole)?)
}

fn assembled(store: &dyn Store, run: &RunId, contents: RunRow) -> fault::Result<String> {
    let mut state = contents.fields;
    for name in contents.rows.keys() {
        state.insert(name.clone(), row(store, &field_key(run, name))?);
    }
    let mut features = Vec::new();
    for number in 0..contents.pages.len() {
        let digests: Vec<String> = serde_json::from_value(row(store, &page_key(run, number))?)?;
        for _ in digests {
            features.push(feature(store, run, features.len())?);
        }
    }
    state.insert(FEATURES.to_owned(), features.into());
    Ok(Value::Object(state).to_string())
}

fn feature(store: &dyn Store, run: &RunId, at: usize) -> fault::Result<Value> {
    let mut feature = row(store, &feature_key(run, at))?;
    if let Some(Value::String(digest)) = feature.get(SPEC) {
        feature[SPEC] = serde_json::from_slice(&content(store, digest)?)?;
    }
    Ok(feature)
}

fn row(store: &dyn Store, key: &Key) -> fault::Result<Value> {
    let bytes = store.get(Table::States, key)?.context("a part of it is missing")?;
    let mut value = serde_json::from_slice(&bytes)?;
    fetch(&mut value, store)?;
    Ok(value)
}

fn content(store: &dyn Store, digest: &str) -> fault::Result<Vec<u8>> {
    store.blob(&digest.parse()?)?.context("a text of it is missing")
}

/// Replaces long texts by digests of content.
fn put_away(value: &mut Value, batch: &mut Batch) {
    match value {
        Value::String(text) if text.len() > TEXT_BYTES_MAX => {
            let digest = batch.blob(std::mem::take(text).into_bytes());
            *text = format!("{CONTENT}{digest}");
        }
        Value::String(text) if text.starts_with(MARK) => text.insert(0, MARK),
        Value::Array(items) => items.iter_mut().for_each(|item| put_away(item, batch)),
        Value::Object(fields) => fields.values_mut().for_each(|field| put_away(field, batch)),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Undoes [`put_away`].
fn fetch(value: &mut Value, store: &dyn Store) -> fault::Result<()> {
    match value {
        Value::String(text) => {
            if let Some(digest) = text.strip_prefix(CONTENT) {
                *text = String::from_utf8(content(store, digest)?)?;
            } else if text.starts_with(MARK) {
                text.remove(0);
            }
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| fetch(item, store)),
        Value::Object(fields) => fields.values_mut().try_for_each(|field| fetch(field, store)),
        Value::Number(_) | Value::Bool(_) | Value::Null => Ok(()),
    }
}

fn field_key(run: &RunId, name: &str) -> Key {
    RunRecord::key(run).and("field").and(name)
}

fn page_key(run: &RunId, number: usize) -> Key {
    RunRecord::key(run).and("page").number(number as u64)
}

fn feature_key(run: &RunId, at: usize) -> Key {
    RunRecord::key(run).and("feature").number(at as u64)
}

fn digest_of(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()[..DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::store::Op;
    use longhaul_core::work::{FeatureSpec, FeatureStatus};
    use longhaul_harness::Feature;
    use longhaul_testkit::MemoryStore;

    fn feature(id: usize) -> Feature {
        Feature::new(FeatureSpec {
            id: format!("f{id}"),
            title: String::new(),
            instruction: "do it ".repeat(100),
            category: "functional".into(),
            priority: 5,
            agent: None,
            criteria: Vec::new(),
            checks: Vec::new(),
            depends_on: Vec::new(),
        })
    }

    fn state(features: usize) -> RunState {
        RunState { goal: "much ".repeat(1_000), features: (0..features).map(feature).collect(), ..RunState::new() }
    }

    /// Stores the state; returns how many bytes of rows were written.
    async fn store(store: &MemoryStore, state: &RunState) -> usize {
        let run = RunId::from_text("r-1");
        let batch = put(store, Batch::new(), &run, state).unwrap();
        let bytes = batch.ops.iter().map(|op| if let Op::Put(_, _, value) = op { value.len() } else { 0 }).sum();
        store.commit(batch).await.unwrap();
        let row = store.get(Table::States, &RunRecord::key(&run)).unwrap().unwrap();
        assert_eq!(load(store, &run, &row).unwrap(), *state);
        bytes
    }

    #[tokio::test]
    async fn a_step_writes_what_changed_and_the_whole_is_read_again() {
        let memory = MemoryStore::new();
        let mut state = state(100);
        assert!(store(&memory, &state).await > 5_000);
        assert_eq!(store(&memory, &state).await, 0);
        state.features[7].become_status(FeatureStatus::InProgress, "session 1");
        let changed = store(&memory, &state).await;
        assert!(changed < 2_500, "{changed} bytes for one of 100 features");
        state.features.push(feature(100));
        state.goal.clear();
        state.paused = true;
        store(&memory, &state).await;
        state.features.truncate(3);
        store(&memory, &state).await;
        state.features.extend((3..40).map(feature));
        store(&memory, &state).await;
    }

    #[tokio::test]
    async fn a_text_is_read_as_it_was_whatever_it_starts_with() {
        let memory = MemoryStore::new();
        let mut state = state(1);
        for text in ["\0content:", "\0", "\0\0x", "\0content:00", &"\0long".repeat(1_000), ""] {
            state.features[0].why = text.to_owned();
            state.goal = text.repeat(300);
            store(&memory, &state).await;
        }
    }

    #[tokio::test]
    async fn a_state_that_was_stored_whole_is_read_and_then_stored_in_parts() {
        let (memory, run, state) = (MemoryStore::new(), RunId::from_text("r-1"), state(2));
        let whole = state.to_json().into_bytes();
        memory.commit(Batch::new().put(Table::States, RunRecord::key(&run), whole.clone())).await.unwrap();
        assert_eq!(load(&memory, &run, &whole).unwrap(), state);
        store(&memory, &state).await;
        assert!(load(&memory, &run, b"{}").is_err());
    }
}
