//! The store's public type: short reads on the caller's thread, writes through the queue.

use crate::blob;
use crate::disk::Home;
use crate::read::Snapshot;
use crate::tables::{BLOBS, definition};
use crate::writer::{CrashHook, Job, Shared};
use longhaul_core::Digest;
use longhaul_core::store::{Batch, CollectedContent, Key, Names, Op, ReadTotals, Row, Store, StoreError, Table};
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use tokio::sync::{Semaphore, oneshot};

/// Batches that wait for the writer; a further one waits for its place. Ten times the callers that one fsync serves in
/// the benchmark with 64 runs.
const QUEUE_BATCHES_MAX: usize = 1_024;

/// Content from this length, in bytes, is compressed on a thread for blocking work: 64 KiB take zstd about 0.2 ms,
/// which other tasks on the same thread do not notice.
const ENCODE_INLINE_BYTES_MAX: usize = 64 << 10;

/// The default of [`StoreOptions::quick_repair_bytes_min`]: 512 MiB, which take 0.3 to 0.6 s to read as a whole. So an
/// opening after a kill takes no longer than that, however large the file grows.
const QUICK_REPAIR_BYTES_MIN: u64 = 512 << 20;

/// The options of a store.
#[derive(Clone, Default)]
pub struct StoreOptions {
    /// Called as `store.before-commit` and `store.after-commit` around every durable commit, on the
    /// writer's thread. Crash tests kill the process in it.
    pub crash_hook: Option<CrashHook>,
    /// The length of the file, in bytes, from which every commit leaves it quick to open after a kill. Default 512 MiB.
    ///
    /// Below it, a file that was killed while it was written is read as a whole when it is opened, about 1 s a GiB.
    /// Above it, a commit alone takes about twice as long. 0 stands for every file.
    pub quick_repair_bytes_min: Option<u64>,
}

/// The store in a data directory. Dropping it finishes the queue and closes the file.
pub struct RedbStore {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    /// Held by every writer, and exclusively while content is removed.
    writing: Arc<tokio::sync::RwLock<()>>,
    /// None only while this is dropped.
    queue: Option<mpsc::Sender<Job>>,
    writer: Option<JoinHandle<()>>,
}

impl RedbStore {
    /// Opens the store in `dir`, and makes both if they do not exist.
    ///
    /// # Errors
    /// [`StoreError::Held`] when another process, or this one, has it open; [`StoreError::Format`] when
    /// a newer longhaul wrote it; [`StoreError::Damaged`], [`StoreError::Full`], [`StoreError::Failed`].
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let quick_min = options.quick_repair_bytes_min.unwrap_or(QUICK_REPAIR_BYTES_MIN);
        let shared = Arc::new(Shared::open(Home::claim(dir)?, options.crash_hook, quick_min)?);
        let (queue, jobs) = mpsc::channel();
        let serving = Arc::clone(&shared);
        let writer = std::thread::Builder::new().name("longhaul-store".to_owned()).spawn(move || serving.serve(&jobs));
        let writer = writer.map_err(|why| shared.home().failed(why.to_string()))?;
        let places = Arc::new(Semaphore::new(QUEUE_BATCHES_MAX));
        Ok(Self { shared, places, writing: Arc::default(), queue: Some(queue), writer: Some(writer) })
    }

    /// Leaves out existing content, and encodes the rest.
    async fn encode(&self, batch: Batch) -> Result<Batch, StoreError> {
        let mut encoded = Batch::new();
        for op in batch.ops {
            match op {
                Op::Blob(digest, _) if self.has_blob(&digest)? => {}
                Op::Blob(digest, content) => encoded.push(Op::Blob(digest, self.encode_blob(digest, content).await?)),
                op => encoded.push(op),
            }
        }
        Ok(encoded)
    }

    async fn encode_blob(&self, digest: Digest, content: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        debug_assert_eq!(Digest::of(&content), digest, "content is kept under its own digest");
        let value = match tokio::runtime::Handle::try_current() {
            Ok(runtime) if content.len() > ENCODE_INLINE_BYTES_MAX => {
                let encoded = runtime.spawn_blocking(move || blob::encode(&content)).await;
                encoded.map_err(|stopped| self.shared.home().failed(stopped.to_string()))?
            }
            _ => blob::encode(&content),
        };
        value.map_err(|why| self.shared.home().failed(why))
    }

    fn has_blob(&self, digest: &Digest) -> Result<bool, StoreError> {
        self.shared.with(|db| Snapshot::of(db, BLOBS)?.has(&digest.as_bytes()[..]))
    }
}

#[async_trait::async_trait]
impl Store for RedbStore {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.shared.with(|db| Snapshot::of(db, definition(table))?.get(key.as_bytes()))?;
        told_read(table, 1, found.as_ref().map_or(0, Vec::len));
        Ok(found)
    }

    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError> {
        let prefix = prefix.as_bytes();
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let found = self.shared.with(|db| Snapshot::of(db, definition(table))?.forward(start, prefix, limit))?;
        told_read(table, found.len(), found.iter().map(|(_, value)| value.len()).sum());
        Ok(found)
    }

    fn last(&self, table: Table, prefix: &Key, limit: usize) -> Result<Vec<Row>, StoreError> {
        let end = prefix.end();
        let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let start = Bound::Included(prefix.as_bytes());
        let found = self.shared.with(|db| Snapshot::of(db, definition(table))?.backward(start, end, limit))?;
        told_read(table, found.len(), found.iter().map(|(_, value)| value.len()).sum());
        Ok(found)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let stored = self.shared.with(|db| Snapshot::of(db, BLOBS)?.get(&digest.as_bytes()[..]))?;
        let content = stored.map(|stored| blob::decode(digest, &stored)).transpose();
        content.map_err(|detail| self.shared.home().damaged(detail))
    }

    fn copy_to(&self, file: &Path) -> Result<ReadTotals, StoreError> {
        self.shared.copy_to(file)
    }

    fn read_all(&self) -> Result<ReadTotals, StoreError> {
        self.shared.read_all()
    }

    async fn collect(&self, names: &Names, dry_run: bool) -> Result<CollectedContent, StoreError> {
        let _alone = self.writing.write().await;
        self.shared.collect(names, dry_run)
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        // Held from before the check for existing content until the batch is written, by the writer where the caller is
        // cancelled meanwhile.
        let writing = Arc::clone(&self.writing).read_owned().await;
        let batch = self.encode(batch).await?;
        if batch.is_empty() {
            return Ok(());
        }
        let closed = || self.shared.home().failed("its writer ended");
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| closed())?;
        let (done, outcome) = oneshot::channel();
        let job = Job { bytes: bytes(&batch), batch, done, place, writing };
        tracing::trace!(ops = job.batch.ops.len(), bytes = job.bytes, "store.commit");
        self.queue.as_ref().and_then(|queue| queue.send(job).ok()).ok_or_else(closed)?;
        outcome.await.map_err(|_| closed())?
    }
}

impl Drop for RedbStore {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            // It ends with the queue. The waiting callers received its panic.
            let _ = writer.join();
        }
        self.shared.close();
    }
}

/// Logs the cost of a read, to find growing ones.
fn told_read(table: Table, rows: usize, bytes: usize) {
    tracing::trace!(?table, rows, bytes, "store.read");
}

fn bytes(batch: &Batch) -> usize {
    let sizes = batch.ops.iter().map(|op| match op {
        Op::Put(_, _, value) | Op::Insert(_, _, value) | Op::Swap(_, _, _, value) | Op::Blob(_, value) => value.len(),
        Op::Delete(..) => 0,
    });
    sizes.sum()
}
