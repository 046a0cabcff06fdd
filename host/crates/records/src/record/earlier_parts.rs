//! The first form of a state in parts: rows that each step overwrote. It is read, and never written any more.
//!
//! | row | holds |
//! |---|---|
//! | run | the short fields, and digests of the long fields and of the pages |
//! | run, `field`, name | a long field |
//! | run, `page`, number | digests of 16 features |
//! | run, `feature`, number | a feature; what it asks for is content by its digest |

use super::contents::{content, fetch};
use super::run::RunRecord;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The number of this form.
pub(super) const FORM: u32 = 1;

/// The kinds of its rows beside that of the run.
const KINDS: [&str; 3] = ["field", "page", "feature"];

/// Rows that one read returns. All of them are read, page by page.
const PAGE_ROWS: usize = 1_000;

/// The row of a run. Digests that told whether a part had changed are left out.
#[derive(Deserialize)]
struct EarlierRow {
    fields: Map<String, Value>,
    rows: Map<String, Value>,
    pages: Vec<Value>,
}

/// The state as JSON.
pub(super) fn assembled(store: &dyn Store, run: &RunId, row: &[u8]) -> fault::Result<String> {
    let EarlierRow { fields: mut state, rows, pages } = serde_json::from_slice(row)?;
    for name in rows.keys() {
        state.insert(name.clone(), part(store, &RunRecord::key(run).and("field").and(name))?);
    }
    let mut features = Vec::new();
    for number in 0..pages.len() {
        let digests: Vec<Value> =
            serde_json::from_value(part(store, &RunRecord::key(run).and("page").number(number as u64))?)?;
        for _ in digests {
            features.push(feature(store, run, features.len())?);
        }
    }
    state.insert("features".to_owned(), features.into());
    Ok(Value::Object(state).to_string())
}

/// Deletes the rows beside that of the run, which the step overwrites that stores the state in another form.
pub(super) fn forget(store: &dyn Store, batch: &mut Batch, run: &RunId) -> fault::Result<()> {
    for kind in KINDS {
        let (prefix, mut after) = (RunRecord::key(run).and(kind), None::<Vec<u8>>);
        loop {
            let page = store.scan(Table::States, &prefix, after.as_deref(), PAGE_ROWS)?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            batch.ops.extend(page.into_iter().map(|(key, _)| Op::Delete(Table::States, Key::from_bytes(key))));
        }
    }
    Ok(())
}

fn feature(store: &dyn Store, run: &RunId, at: usize) -> fault::Result<Value> {
    let mut feature = part(store, &RunRecord::key(run).and("feature").number(at as u64))?;
    if let Some(Value::String(digest)) = feature.get("spec") {
        feature["spec"] = serde_json::from_slice(&content(store, digest)?)?;
    }
    Ok(feature)
}

fn part(store: &dyn Store, key: &Key) -> fault::Result<Value> {
    let bytes = store.get(Table::States, key)?.context("a part of it is missing")?;
    let mut value = serde_json::from_slice(&bytes)?;
    fetch(&mut value, store)?;
    Ok(value)
}
