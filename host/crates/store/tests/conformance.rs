//! The rules of every store, held by redb: with logs of the usual length, which the rules hardly fill, and with the
//! shortest ones, whose rows move into the database all the time.

#[path = "support/files.rs"]
mod files;

use files::{BLOBS, copy_files, overwrite};
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Store};
use longhaul_store::{CrashHook, RedbStore, STATE_FILE, StoreOptions};
use longhaul_store_tests::{Backend, CrashMoment};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

mod usual_logs {
    longhaul_store_tests::conformance!(super::Redb::new(None));
}

mod short_logs {
    longhaul_store_tests::conformance!(super::Redb::new(Some(64 << 10)));
}

/// Stores in folders of a temporary directory.
struct Redb {
    home: TempDir,
    log_bytes_max: Option<u64>,
    /// The number of folders so far.
    count: AtomicUsize,
    /// The folder of each open store, by its address.
    folders: Mutex<HashMap<usize, PathBuf>>,
}

impl Redb {
    fn new(log_bytes_max: Option<u64>) -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { home, log_bytes_max, count: AtomicUsize::new(0), folders: Mutex::default() }
    }

    fn new_folder(&self) -> PathBuf {
        self.home.path().join(self.count.fetch_add(1, Ordering::SeqCst).to_string())
    }

    fn open_in(&self, folder: PathBuf, crash_hook: Option<CrashHook>) -> Arc<dyn Store> {
        let options = StoreOptions { crash_hook, log_bytes_max: self.log_bytes_max };
        let store: Arc<dyn Store> = Arc::new(RedbStore::open(&folder, options).unwrap());
        self.folders.lock().unwrap().insert(address(&store), folder);
        store
    }

    /// Closes a store, and returns its folder.
    fn close(&self, store: Arc<dyn Store>) -> PathBuf {
        assert_eq!(Arc::strong_count(&store), 1, "a store that somebody else still uses");
        self.folders.lock().unwrap().remove(&address(&store)).expect("a store of this backend")
    }
}

#[async_trait::async_trait]
impl Backend for Redb {
    async fn open(&self) -> Arc<dyn Store> {
        self.open_in(self.new_folder(), None)
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let folder = self.close(store);
        self.open_in(folder, None)
    }

    /// The files are copied in the middle of the last commit, while the writer waits. So the copy has what a kill would
    /// leave.
    async fn crash(&self, batches: Vec<Batch>, moment: CrashMoment) -> Option<Arc<dyn Store>> {
        let (folder, left) = (self.new_folder(), self.new_folder());
        let point = match moment {
            CrashMoment::BeforeCommit => "store.before-commit",
            CrashMoment::AfterCommit => "store.after-commit",
        };
        let (from, to, count, reached) = (folder.clone(), left.clone(), batches.len(), AtomicUsize::new(0));
        let hook = move |name: &'static str| {
            if name == point && reached.fetch_add(1, Ordering::SeqCst) + 1 == count {
                copy_files(&from, &to);
            }
        };
        let store = self.open_in(folder, Some(Arc::new(hook)));
        for batch in batches {
            store.commit(batch).await.unwrap();
        }
        self.close(store);
        Some(self.open_in(left, None))
    }

    async fn damage(&self, store: Arc<dyn Store>, digest: &Digest, content: &[u8]) -> Option<Arc<dyn Store>> {
        let folder = self.close(store);
        // Uncompressed: 0, the length, and the content, as `blob.rs` has it.
        let length = (content.len() as u64).to_le_bytes();
        overwrite(&folder, BLOBS, &digest.as_bytes()[..], &[&[0][..], &length[..], content].concat());
        Some(self.open_in(folder, None))
    }

    async fn open_copy(&self, store: &dyn Store) -> Option<Arc<dyn Store>> {
        let folder = self.new_folder();
        std::fs::create_dir(&folder).unwrap();
        store.copy_to(&folder.join(STATE_FILE)).unwrap();
        Some(self.open_in(folder, None))
    }
}

fn address(store: &Arc<dyn Store>) -> usize {
    Arc::as_ptr(store).cast::<()>().addr()
}
