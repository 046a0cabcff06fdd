//! The store's public type: short reads on the caller's thread, writes through the queue.

use crate::blob;
use crate::disk::Home;
use crate::group::effect;
use crate::log::Record;
use crate::read::Reader;
use crate::shared::{CrashHook, Shared};
use crate::tables::Place;
use crate::writer::{Job, LOG_BYTES_MAX, Work, Writer, logged_bytes_max};
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

/// The shortest log, in bytes.
const LOG_BYTES_MIN: u64 = 64 << 10;

/// The options of a store.
#[derive(Clone, Default)]
pub struct StoreOptions {
    /// Called as `store.before-commit` and `store.after-commit` around every group that is made durable, on the
    /// writer's thread, and as `store.before-fold` and `store.after-fold` around each writing of a log's rows into the
    /// database. Crash tests kill the process in it.
    pub crash_hook: Option<CrashHook>,
    /// The length of a log, in bytes, from which its rows are written into the database. Default 16 MiB, at least 64
    /// KiB.
    ///
    /// An opening after a kill reads up to two logs, and their rows are in memory while the store is in use. Batches of
    /// more than an eighth of it, or of 256 KiB, go into the database at once.
    pub log_bytes_max: Option<u64>,
}

/// The store in a data directory. Dropping it finishes the queue and closes the file.
pub struct RedbStore {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    /// Held by every writer, and exclusively while content is removed.
    writing: Arc<tokio::sync::RwLock<()>>,
    /// The queue of the writer; none only while this is dropped.
    queue: Option<mpsc::Sender<Work>>,
    /// The size from which a batch goes into the database at once, in bytes.
    logged_bytes_max: u64,
    writer: Option<JoinHandle<()>>,
}

impl RedbStore {
    /// Opens the store in `dir`, and makes both if they do not exist.
    ///
    /// # Errors
    /// [`StoreError::Held`] when another process, or this one, has it open; [`StoreError::Format`] when
    /// a newer longhaul wrote it; [`StoreError::Damaged`], [`StoreError::Full`], [`StoreError::Failed`].
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let log_bytes_max = options.log_bytes_max.unwrap_or(LOG_BYTES_MAX).max(LOG_BYTES_MIN);
        let (shared, left) = Shared::open(Home::claim(dir)?, options.crash_hook)?;
        let shared = Arc::new(shared);
        let (queue, work) = mpsc::channel();
        let serving = Writer::new(&shared, left, log_bytes_max);
        let writer = std::thread::Builder::new().name("longhaul-store".to_owned()).spawn(move || serving.serve(&work));
        let writer = writer.map_err(|why| shared.home().failed(why.to_string()))?;
        let places = Arc::new(Semaphore::new(QUEUE_BATCHES_MAX));
        Ok(Self {
            shared,
            places,
            writing: Arc::default(),
            queue: Some(queue),
            logged_bytes_max: logged_bytes_max(log_bytes_max),
            writer: Some(writer),
        })
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
        self.reading(Place::Blobs, |reader| reader.has(digest.as_bytes()))
    }

    fn reading<T>(
        &self,
        place: Place,
        what: impl FnOnce(Reader<'_>) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        self.shared.with(|db| what(Reader { db, recent: &self.shared.recent, place }))
    }

    /// Waits until all rows that are committed so far are in the database.
    fn settle(&self) -> Result<(), StoreError> {
        let (told, outcome) = mpsc::sync_channel(1);
        self.send(Work::Settle(told))?;
        outcome.recv().map_err(|_| self.closed())?
    }

    fn send(&self, work: Work) -> Result<(), StoreError> {
        self.queue.as_ref().and_then(|queue| queue.send(work).ok()).ok_or_else(|| self.closed())
    }

    fn closed(&self) -> StoreError {
        self.shared.home().failed("its writer ended")
    }
}

#[async_trait::async_trait]
impl Store for RedbStore {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.reading(Place::Table(table), |reader| reader.get(key.as_bytes()))?;
        told_read(table, 1, found.as_ref().map_or(0, Vec::len));
        Ok(found)
    }

    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError> {
        let prefix = prefix.as_bytes();
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let found = self.reading(Place::Table(table), |reader| reader.forward(start, prefix, limit))?;
        told_read(table, found.len(), found.iter().map(|(_, value)| value.len()).sum());
        Ok(found)
    }

    fn last(&self, table: Table, prefix: &Key, limit: usize) -> Result<Vec<Row>, StoreError> {
        let end = prefix.end();
        let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let start = Bound::Included(prefix.as_bytes());
        let found = self.reading(Place::Table(table), |reader| reader.backward(start, end, limit))?;
        told_read(table, found.len(), found.iter().map(|(_, value)| value.len()).sum());
        Ok(found)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let stored = self.reading(Place::Blobs, |reader| reader.get(digest.as_bytes()))?;
        let content = stored.map(|stored| blob::decode(digest, &stored)).transpose();
        content.map_err(|detail| self.shared.home().damaged(detail))
    }

    fn copy_to(&self, file: &Path) -> Result<ReadTotals, StoreError> {
        self.settle()?;
        self.shared.copy_to(file)
    }

    fn read_all(&self) -> Result<ReadTotals, StoreError> {
        self.settle()?;
        self.shared.read_all()
    }

    async fn collect(&self, names: &Names, dry_run: bool) -> Result<CollectedContent, StoreError> {
        let _alone = self.writing.write().await;
        self.settle()?;
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
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| self.closed())?;
        let (done, outcome) = oneshot::channel();
        let bytes = bytes(&batch);
        tracing::trace!(ops = batch.ops.len(), bytes, "store.commit");
        let record = (bytes <= self.logged_bytes_max).then(|| record(&batch));
        self.send(Work::Batch(Job { batch, record, bytes, done, place, writing }))?;
        outcome.await.map_err(|_| self.closed())?
    }
}

impl Drop for RedbStore {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            // It ends with the queue. The waiting callers received its panic.
            let _ = writer.join();
        }
        self.shared.database.close();
    }
}

/// Logs the cost of a read, to find growing ones.
fn told_read(table: Table, rows: usize, bytes: usize) {
    tracing::trace!(?table, rows, bytes, "store.read");
}

fn record(batch: &Batch) -> Record {
    Record::of(batch.ops.iter().map(|op| {
        let ((place, key), value) = effect(op);
        (place, key, value)
    }))
}

/// The bytes that a batch takes in a log, or a few more.
fn bytes(batch: &Batch) -> u64 {
    let sizes = batch.ops.iter().map(|op| {
        let ((_, key), value) = effect(op);
        16 + key.len() + value.map_or(0, <[u8]>::len)
    });
    (40 + sizes.sum::<usize>()) as u64
}
