//! The store's public type: its row is claimed when it is opened, and given back when it is dropped.

use crate::append::Appender;
use crate::background::Background;
use crate::blob;
use crate::commits::CommitCount;
use crate::config::{PostgresConfig, refused};
use crate::connect::Server;
use crate::content::{Contents, Encoded};
use crate::fold::Folded;
use crate::lease::{Holder, Lease, LeaseLost, Waiting};
use crate::maintain;
use crate::opening::{Opened, Opening};
use crate::read::{Reader, Start};
use crate::writer::{Job, WriteGuard, Writer};
use longhaul_core::Digest;
use longhaul_core::crash::CrashHook;
use longhaul_core::store::{
    Batch, CollectedContent, Key, Names, ReadTotals, Row, Seat, Seats, Store, StoreError, StoreMetrics, Table,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{RwLock, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// Batches that wait for the writer; a further one waits for its place.
const QUEUE_BATCHES_MAX: usize = 1_024;

/// The options of a store.
#[derive(Clone)]
pub struct PostgresOptions {
    /// This process, as others that want the store are told.
    pub holder: Holder,
    /// Called as `store.before-commit` and `store.after-commit` around every statement that changes the store. Crash
    /// tests kill the process in it.
    pub crash_hook: Option<CrashHook>,
    /// Called once when the store is lost, on a thread of the store. Every call of the store is refused from then on.
    pub on_lost: Arc<dyn Fn(&LeaseLost) + Send + Sync>,
}

/// The promotion of a standby since the store was claimed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promotion {
    /// The timeline of the server then.
    pub from: i32,
    /// Its timeline now. Commits of the last moments of the former server may be missing.
    pub to: i32,
}

/// The store in a database, which this process owns, or has a worker's seat in. Dropping it finishes the queue and
/// gives the row back.
pub struct PostgresStore {
    pub(crate) server: Arc<Server>,
    lease: Arc<Lease>,
    reader: Arc<Reader>,
    pub(crate) contents: Arc<Contents>,
    places: Arc<Semaphore>,
    /// Held by every writer, and exclusively while content is removed.
    writing: Arc<RwLock<()>>,
    /// The queue of the writer; none only while this is dropped.
    queue: Option<mpsc::UnboundedSender<Job>>,
    writer: Option<JoinHandle<()>>,
    keeper: Option<JoinHandle<()>>,
    commits: CommitCount,
    timeline: i32,
    promotion: Option<Promotion>,
    is_untouched: bool,
    /// The number of claims, that of this process included.
    epoch: u64,
    is_worker: bool,
    /// Dropped last: all of the above lives on it.
    background: Background,
}

impl PostgresStore {
    /// Claims the store, and makes its tables if there are none. A password is read from the environment by `variable`.
    ///
    /// # Errors
    /// [`StoreError::Held`] while another process has it; [`StoreError::Refused`] for settings, rights and servers that
    /// are unfit; [`StoreError::Format`] when a newer longhaul made the tables; [`StoreError::Unreachable`],
    /// [`StoreError::Failed`].
    pub fn open(
        config: &PostgresConfig,
        variable: &dyn Fn(&str) -> Option<String>,
        options: PostgresOptions,
    ) -> Result<Self, StoreError> {
        Self::wait_and_open(config, variable, options, &mut |_| ControlFlow::Break(()))
    }

    /// Claims the store as soon as nobody has it. Before each pause `waiting` is called with its reason, and may end
    /// the wait. Blocks its thread.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`StoreError::Held`] and [`StoreError::Unreachable`] where `waiting` ended the wait. A
    /// server that refuses after the first wait is waited for, too.
    pub fn wait_and_open(
        config: &PostgresConfig,
        variable: &dyn Fn(&str) -> Option<String>,
        options: PostgresOptions,
        waiting: &mut dyn FnMut(&Waiting) -> ControlFlow<()>,
    ) -> Result<Self, StoreError> {
        let opening = Opening::of_owner(config, variable, (&options.holder, &options.on_lost))?;
        Ok(Self::of(opening.wait(waiting)?, options.crash_hook))
    }

    /// Opens the store on the seat of the worker `name`, the id of its data directory, beside the owner of the store
    /// and other workers. Makes and changes no tables: while there are none, or older ones, it waits for their owner,
    /// and before each pause `waiting` is called and may end the wait. Blocks its thread.
    ///
    /// A seat is taken over at once, also from a process whose lease has not run out. Whoever joins has the lock of the
    /// data directory of that name, so the process before has ended, and a wait would only leave its work lying. If two
    /// directories have one id, as those of a machine that was copied, each new process fences the one before it.
    ///
    /// # Errors
    /// As [`wait_and_open`](Self::wait_and_open), but for [`StoreError::Held`]; [`StoreError::Refused`] also for a name
    /// that is not 1 to 64 letters of ASCII, digits, `_` and `-`.
    pub fn join(
        config: &PostgresConfig,
        variable: &dyn Fn(&str) -> Option<String>,
        options: PostgresOptions,
        name: &str,
        waiting: &mut dyn FnMut(&Waiting) -> ControlFlow<()>,
    ) -> Result<Self, StoreError> {
        let opening = Opening::of_worker(config, variable, (&options.holder, &options.on_lost), name)?;
        Ok(Self::of(opening.wait(waiting)?, options.crash_hook))
    }

    fn of(opened: Opened, crash_hook: Option<CrashHook>) -> Self {
        let Opened { server, names, seat, lease, claim, connection, connections_max, objects, background } = opened;
        let promotion = claim.promoted_from.map(|from| Promotion { from, to: claim.proof.timeline });
        if let Some(Promotion { from, to }) = promotion {
            tracing::warn!(from, to, "the server was promoted since the last claim, and may lack the last commits");
        }
        let commits = CommitCount::of(claim.head);
        let statements = Appender::of(&names, &seat);
        let writer = Writer::new(&server, &lease, statements, (connection, commits.clone()), crash_hook);
        let (queue, jobs) = mpsc::unbounded_channel();
        let writer = background.spawn(writer.serve(jobs));
        let keeper = background.spawn(Arc::clone(&lease).keep(None));
        let reader = Arc::new(Reader::new(&server, &lease, &names, connections_max));
        let (of_contents, to_read) = (Arc::clone(&server), Arc::clone(&reader));
        let contents = Arc::new(Contents { server: of_contents, reader: to_read, objects });
        Self {
            server,
            lease,
            reader,
            contents,
            places: Arc::new(Semaphore::new(QUEUE_BATCHES_MAX)),
            writing: Arc::default(),
            queue: Some(queue),
            writer: Some(writer),
            keeper: Some(keeper),
            commits,
            timeline: claim.proof.timeline,
            promotion,
            is_untouched: claim.head == 0,
            epoch: u64::try_from(claim.proof.epoch).unwrap_or(0),
            is_worker: seat.worker.is_some(),
            background,
        }
    }

    /// True while nobody else may have claimed the store, or evicted this worker. An effect outside of it begins only
    /// then, and where it lasts longer than [`held_ms`](Self::held_ms) it may end as another process repeats it.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held_ms() > 0
    }

    /// The time for which nobody else may claim the store, in milliseconds, counted from before the server was asked.
    /// It runs on while the machine sleeps.
    #[must_use]
    pub fn held_ms(&self) -> u64 {
        self.lease.left_ms()
    }

    /// The promotion of a standby since the store was claimed before, by this process or another. A process that claims
    /// it afterwards is not told: compare [`timeline`](Self::timeline) with one that the store itself keeps.
    #[must_use]
    pub fn promotion(&self) -> Option<Promotion> {
        self.promotion
    }

    /// The timeline of the server that the store was claimed on.
    #[must_use]
    pub fn timeline(&self) -> i32 {
        self.timeline
    }

    /// The number of the claim of this process: it tells it from those before it and after it.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// True when nothing had been committed to the store, by this seat if it is one of a worker, when it was claimed.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.is_untouched
    }

    /// The number of commits that are known to be durable: those before the claim, and those of this process. A seat of
    /// a worker counts its own.
    #[must_use]
    pub fn commits(&self) -> CommitCount {
        self.commits.clone()
    }

    /// Hands a batch to the writer and waits for its verdict.
    pub(crate) async fn send(&self, folded: Folded, writing: WriteGuard) -> Result<(), StoreError> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| self.ended())?;
        let (done, outcome) = oneshot::channel();
        let job = Job { folded, since: Instant::now(), done, place, writing };
        self.queue.as_ref().and_then(|queue| queue.send(job).ok()).ok_or_else(|| self.ended())?;
        outcome.await.map_err(|_| self.ended())?
    }

    /// Waits for a read on the caller's thread.
    fn read<T, F>(&self, what: impl FnOnce(Arc<Reader>) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        self.background.wait(what(Arc::clone(&self.reader))).unwrap_or_else(|| Err(self.ended()))
    }

    /// Waits for a read on the caller's task.
    pub(crate) async fn ask<T, F>(&self, what: impl FnOnce(Arc<Reader>) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let asked = self.background.spawn(what(Arc::clone(&self.reader))).await;
        asked.map_err(|_| self.ended())?
    }

    fn ended(&self) -> StoreError {
        self.lease.check().err().unwrap_or_else(|| self.server.place.failed("its writer ended"))
    }
}

#[async_trait::async_trait]
impl Store for PostgresStore {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        let key = key.as_bytes().to_vec();
        let found = self.read(move |reader| async move { reader.get(table, key).await })?;
        told_read(table, 1, found.as_ref().map_or(0, Vec::len));
        Ok(found)
    }

    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError> {
        let start = match after {
            Some(after) if after >= prefix.as_bytes() => Start::After(after.to_vec()),
            _ => Start::At(prefix.as_bytes().to_vec()),
        };
        let end = prefix.end();
        let found = self.read(move |reader| async move { reader.forward(table, start, end, limit).await })?;
        told_read(table, found.len(), found.iter().map(|(_, value)| value.len()).sum());
        Ok(found)
    }

    fn last(&self, table: Table, prefix: &Key, limit: usize) -> Result<Vec<Row>, StoreError> {
        let (start, end) = (prefix.as_bytes().to_vec(), prefix.end());
        let found = self.read(move |reader| async move { reader.backward(table, start, end, limit).await })?;
        told_read(table, found.len(), found.iter().map(|(_, value)| value.len()).sum());
        Ok(found)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let (asked, contents) = (*digest, Arc::clone(&self.contents));
        let stored = self.read(move |_| async move { contents.get(asked).await })?;
        let content = stored.map(|stored| blob::decode(digest, &stored)).transpose();
        content.map_err(|detail| self.server.place.damaged(detail))
    }

    fn copy_to(&self, _file: &Path) -> Result<ReadTotals, StoreError> {
        Err(self.server.place.failed("it is no file to copy; back it up with the server's own tools, as pg_dump"))
    }

    fn read_all(&self) -> Result<ReadTotals, StoreError> {
        let contents = Arc::clone(&self.contents);
        self.read(move |_| async move { maintain::read_all(&contents).await })
    }

    async fn collect(&self, names: &Names, dry_run: bool) -> Result<CollectedContent, StoreError> {
        if self.is_worker && !dry_run {
            return Err(refused(
                "a worker removes no content, which others may be about to name",
                "collect it at the server that owns the store",
            ));
        }
        let alone: WriteGuard = Arc::new(Arc::clone(&self.writing).write_owned().await);
        let (dead, collected) = maintain::unreferenced(&self.background, &self.contents, names).await?;
        if !dry_run {
            self.remove(&dead, &alone).await?;
            // What is over is named by nothing, whatever others write.
            drop(alone);
            self.delete_objects().await?;
        }
        Ok(collected)
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        self.lease.check()?;
        // Held from before the check for existing content until the batch is written, by the writer where the caller is
        // cancelled meanwhile.
        let writing: WriteGuard = Arc::new(Arc::clone(&self.writing).read_owned().await);
        let Encoded { batch, objects } = self.encode(batch, &writing).await?;
        if batch.is_empty() {
            return Ok(());
        }
        tracing::trace!(ops = batch.ops.len(), "store.commit");
        self.send(Folded::of(batch)?.with_objects(objects), writing).await
    }

    fn lease_left_ms(&self) -> Option<u64> {
        Some(self.held_ms())
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn metrics(&self) -> Option<StoreMetrics> {
        let waiting = QUEUE_BATCHES_MAX.saturating_sub(self.places.available_permits());
        Some(StoreMetrics {
            epoch: self.epoch,
            lease_left_ms: self.held_ms(),
            commits_waiting: u64::try_from(waiting).unwrap_or(u64::MAX),
            ..self.server.counts.metrics()
        })
    }
}

#[async_trait::async_trait]
impl Seats for PostgresStore {
    fn seats(&self) -> Result<Vec<Seat>, StoreError> {
        self.read(|reader| async move { reader.seats().await })
    }

    async fn evict(&self, seat: &Seat) -> Result<bool, StoreError> {
        let (name, epoch, timeline) = (seat.name.clone(), seat.epoch, self.timeline);
        let evicted = self.ask(move |reader| async move { reader.evict(&name, epoch, timeline).await }).await?;
        if evicted {
            tracing::info!(seat = %seat.name, epoch, "the seat of a worker whose lease ran out was taken away");
        }
        Ok(evicted)
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        // The writer ends with its queue.
        self.queue = None;
        let (writer, keeper) = (self.writer.take(), self.keeper.take());
        let (lease, longest) = (Arc::clone(&self.lease), self.server.patience + self.server.statement_max);
        let ended = self.background.wait(async move {
            if let Some(mut writer) = writer
                && timeout(longest, &mut writer).await.is_err()
            {
                writer.abort();
            }
            if let Some(keeper) = keeper {
                // A renewal that finds the lease given back would take that for a loss.
                keeper.abort();
                let _ = keeper.await;
            }
            lease.give_back().await;
        });
        if ended.is_none() {
            tracing::warn!("the store was not closed in order; the next owner waits until the lease ends");
        }
    }
}

/// Logs the cost of a read, to find growing ones.
fn told_read(table: Table, rows: usize, bytes: usize) {
    tracing::trace!(?table, rows, bytes, "store.read");
}
