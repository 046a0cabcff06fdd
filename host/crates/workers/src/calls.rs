//! The calls of the leader to workers, and their replies.
//!
//! A call is an operation of the API. The worker carries it out by its own service and replies, also where it has the
//! run no more: so each call is replied to, or its worker was evicted. The leader removes both rows. A call of an
//! earlier claim on the seat is not carried out.

use longhaul_api::operations::OperationCall;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context as _, FaultWire};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A call to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerCall {
    /// The number of the worker's claim on its seat.
    pub epoch: u64,
    /// The run that the operation is about.
    pub run: RunId,
    /// The operation.
    pub operation: OperationCall,
}

/// The reply to a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The response of the operation.
    Done(Value),
    /// The operation failed.
    Failed(FaultWire),
    /// The worker does not have the run, and did nothing.
    NotHere,
}

/// Rows of one page.
const PAGE: usize = 4_096;

fn key(of: &str, worker: &str, number: u64) -> Key {
    Key::of(of).and(worker).number(number)
}

/// The number of the next call: above the one before, and above those of earlier leaders as far as their clocks agree.
#[must_use]
pub fn next_number(before: u64, now_ms: u64) -> u64 {
    // Numbers of one millisecond have room for a million calls, and the year 2527 for the last of them.
    before.saturating_add(1).max(now_ms << 20)
}

impl WorkerCall {
    /// Adds a call to a worker.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn put(&self, batch: Batch, worker: &str, number: u64) -> fault::Result<Batch> {
        Ok(batch.insert(Table::States, key("call", worker, number), serde_json::to_vec(self)?))
    }

    /// The calls to a worker, the oldest first.
    ///
    /// # Errors
    /// When the store, or a row, cannot be read.
    pub fn of_worker(store: &dyn Store, worker: &str) -> fault::Result<Vec<(u64, Self)>> {
        numbered(store, "call", worker)
    }
}

impl Reply {
    /// Adds a reply.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn put(&self, batch: Batch, worker: &str, number: u64) -> fault::Result<Batch> {
        let mut batch = batch.put(Table::States, key("reply", worker, number), serde_json::to_vec(self)?);
        batch.push(Op::Delete(Table::States, key("call", worker, number)));
        Ok(batch)
    }

    /// The replies of a worker, the oldest first.
    ///
    /// # Errors
    /// When the store, or a row, cannot be read.
    pub fn of_worker(store: &dyn Store, worker: &str) -> fault::Result<Vec<(u64, Self)>> {
        numbered(store, "reply", worker)
    }
}

/// Removes a call and its reply.
pub fn forget(batch: &mut Batch, worker: &str, number: u64) {
    for of in ["call", "reply"] {
        batch.push(Op::Delete(Table::States, key(of, worker, number)));
    }
}

fn numbered<T: for<'a> Deserialize<'a>>(store: &dyn Store, of: &str, worker: &str) -> fault::Result<Vec<(u64, T)>> {
    let mut found = Vec::new();
    for (key, value) in store.scan(Table::States, &Key::of(of).and(worker), None, PAGE)? {
        let number = Key::last_number(&key).context("a call has no number")?;
        found.push((number, serde_json::from_slice(&value).with_context(|| format!("read a {of} of `{worker}`"))?));
    }
    Ok(found)
}
