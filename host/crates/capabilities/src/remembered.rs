//! Records that capabilities keep in the store; their content is not trusted.

use crate::ctx::Ctx;
use crate::stop::Stop;
use longhaul_core::journal::EntryHandle;
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

impl Ctx {
    /// Answers a call whose effect is a record, both in one transaction: a kill leaves both or neither.
    pub(crate) async fn answer_keeping(
        &mut self,
        handle: EntryHandle,
        table: Table,
        key: Key,
        record: &impl Serialize,
    ) -> Result<(), Stop> {
        let bytes = serde_json::to_vec(record).map_err(failed)?;
        self.answer_with(handle, (), Batch::new().put(table, key, bytes)).await
    }

    pub(crate) fn record<T: DeserializeOwned>(&self, table: Table, key: &Key) -> Result<Option<T>, Stop> {
        let bytes = self.services.store.get(table, key).map_err(failed)?;
        bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose().map_err(failed)
    }
}

/// Stores the content of a batch that the store lacks. Content that only a conversation names is not in a checkpoint,
/// and is restored by the replay of its journal.
pub(crate) async fn keep_missing(store: Arc<dyn Store>, batch: Batch) -> Result<(), Stop> {
    let mut missing = Batch::new();
    for op in batch.ops {
        let Op::Blob(digest, _) = &op else { continue };
        // An unreadable store reports that to the next reader.
        if matches!(store.blob(digest), Ok(None)) {
            missing.push(op);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    store.commit(missing).await.map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> Stop {
    Stop::Broken(error.to_string())
}
