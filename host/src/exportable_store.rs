//! A store on a server, which can also be copied into a file, as backups have it.
//!
//! The rows of such a copy have to be of one moment, and they are read in many pieces. A backup is refused while
//! another server has a run, so this process alone writes rows of runs: its commits wait until the copy is made.
//! Everything else goes on.

use crate::database_memory::MemoryKeeper;
use longhaul_core::Digest;
use longhaul_core::fault;
use longhaul_core::store::{
    Batch, CollectedContent, Key, Names, ReadTotals, Row, Store, StoreError, StoreMetrics, Table,
};
use longhaul_maintenance::transfer;
use longhaul_store::STATE_FILE;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::RwLock;

/// Opens the files of a store in a directory, which are made if they do not exist.
pub(crate) type OpenFiles = fn(&Path) -> Result<Box<dyn Store>, StoreError>;

/// A store on a server.
pub(crate) struct ExportableStore {
    store: Arc<dyn Store>,
    open_files: OpenFiles,
    /// Held by every commit and every removal of content, and exclusively by a copy.
    writing: Arc<RwLock<()>>,
    /// Dropped after the store.
    _memory: MemoryKeeper,
}

impl ExportableStore {
    /// Wraps a store, which is copied only while this process alone writes to it.
    pub(crate) fn new(store: Arc<dyn Store>, open_files: OpenFiles, memory: MemoryKeeper) -> Self {
        Self { store, open_files, writing: Arc::default(), _memory: memory }
    }

    async fn export(&self, folder: &Path) -> fault::Result<ReadTotals> {
        let _alone = self.writing.write().await;
        let files = (self.open_files)(folder)?;
        transfer::copy(&*self.store, &*files).await
    }
}

#[async_trait::async_trait]
impl Store for ExportableStore {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get(table, key)
    }

    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError> {
        self.store.scan(table, prefix, after, limit)
    }

    fn last(&self, table: Table, prefix: &Key, limit: usize) -> Result<Vec<Row>, StoreError> {
        self.store.last(table, prefix, limit)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.blob(digest)
    }

    /// Called on a thread of the runtime for blocking work.
    fn copy_to(&self, file: &Path) -> Result<ReadTotals, StoreError> {
        let failed = |detail: String| StoreError::Failed { path: file.display().to_string(), detail };
        let runtime = Handle::try_current().map_err(|error| failed(error.to_string()))?;
        let folder = beside(file);
        let copied = runtime.block_on(self.export(&folder)).map_err(|error| {
            error.downcast_ref::<StoreError>().cloned().unwrap_or_else(|| failed(format!("{error:#}")))
        });
        // The files were closed, so the database is whole by itself.
        let moved = std::fs::rename(folder.join(STATE_FILE), file);
        let _ = std::fs::remove_dir_all(&folder);
        let copied = copied?;
        moved.map_err(|error| failed(error.to_string()))?;
        Ok(copied)
    }

    fn read_all(&self) -> Result<ReadTotals, StoreError> {
        self.store.read_all()
    }

    async fn collect(&self, names: &Names, dry_run: bool) -> Result<CollectedContent, StoreError> {
        // The store itself keeps its commits away for as long as it must.
        let _no_copy = self.writing.read().await;
        self.store.collect(names, dry_run).await
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        let writing = Arc::clone(&self.writing).read_owned().await;
        let store = Arc::clone(&self.store);
        // A caller that is cancelled leaves its batch to the store, and no copy may begin before it is written.
        let committed = tokio::spawn(async move {
            let committed = store.commit(batch).await;
            drop(writing);
            committed
        });
        committed.await.map_err(|stopped| StoreError::Failed { path: String::new(), detail: stopped.to_string() })?
    }

    fn lease_left_ms(&self) -> Option<u64> {
        self.store.lease_left_ms()
    }

    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    fn metrics(&self) -> Option<StoreMetrics> {
        self.store.metrics()
    }
}

/// A folder for the files from which a file is made.
fn beside(file: &Path) -> PathBuf {
    file.with_extension("copy")
}
