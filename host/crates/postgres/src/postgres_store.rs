//! The store's public type: it is claimed when it is opened, and given back when it is dropped.

use crate::background::Background;
use crate::blob;
use crate::clock::jitter;
use crate::commits::CommitCount;
use crate::config::PostgresConfig;
use crate::connect::{Connection, Server};
use crate::error::Trouble;
use crate::fold::Folded;
use crate::lease::{Claim, Claimed, Holder, Lease, LeaseLost, Waiting};
use crate::maintain;
use crate::read::{Reader, Start};
use crate::schema::{FORMAT, Names, newer};
use crate::writer::{Job, WriteGuard, Writer};
use longhaul_core::Digest;
use longhaul_core::crash::CrashHook;
use longhaul_core::store::{
    Batch, CollectedContent, Key, Names as Naming, Op, ReadTotals, Row, Store, StoreError, StoreMetrics, Table,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{RwLock, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// Batches that wait for the writer; a further one waits for its place.
const QUEUE_BATCHES_MAX: usize = 1_024;

/// Content from this length, in bytes, is compressed on a thread for blocking work: 64 KiB take zstd about 0.2 ms,
/// which other tasks on the same thread do not notice.
const ENCODE_INLINE_BYTES_MAX: usize = 64 << 10;

/// Content from this length, in bytes, is looked for before it is sent: a question costs a way to the server and back.
const KNOWN_BYTES_MIN: usize = 32 << 10;

/// Contents that are removed by one statement.
const REMOVED_MAX: usize = 4_096;

/// The pause of a standby between two attempts. With what is added at random it asks about once a second.
const POLL: Duration = Duration::from_millis(500);

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

/// The store in a database, which this process owns. Dropping it finishes the queue and lets others claim it.
pub struct PostgresStore {
    server: Arc<Server>,
    lease: Arc<Lease>,
    reader: Arc<Reader>,
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
        let opening = Opening::new(config, variable, options)?;
        let of_server = |error: StoreError| (Waiting::Server { detail: error.to_string() }, error);
        let (mut has_waited, mut was_held) = (false, false);
        loop {
            let (reason, error) = match opening.attempt(was_held) {
                Ok(Claimed::Ours(owned)) => return Ok(opening.finish(owned)),
                Ok(Claimed::Others(reason)) => {
                    was_held = true;
                    (reason, opening.server.place.held())
                }
                // In the middle of a failover a server is a replica for a moment, or takes nobody: whoever stands by
                // outlives that.
                Err(Trouble::Final(error @ StoreError::Refused { .. })) if has_waited => of_server(error),
                Err(Trouble::Final(error)) => return Err(error),
                Err(Trouble::Again(error) | Trouble::Unknown(error)) => of_server(error),
            };
            has_waited = true;
            if waiting(&reason).is_break() {
                return Err(error);
            }
            std::thread::sleep(pause(&reason));
        }
    }

    /// True while nobody else may have claimed the store. An effect outside of it begins only then, and where it lasts
    /// longer than [`held_ms`](Self::held_ms) it may end as another process repeats it.
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

    /// True when nothing had been committed to the store when it was claimed.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.is_untouched
    }

    /// The number of commits that are known to be durable: those before the claim, and those of this process.
    #[must_use]
    pub fn commits(&self) -> CommitCount {
        self.commits.clone()
    }

    /// Leaves out existing content, and encodes the rest.
    async fn encode(&self, batch: Batch) -> Result<Batch, StoreError> {
        let large = batch.ops.iter().filter_map(|op| match op {
            Op::Blob(digest, content) if content.len() >= KNOWN_BYTES_MIN => Some(*digest),
            _ => None,
        });
        let large: Vec<Digest> = large.collect();
        let known = if large.is_empty() { Vec::new() } else { self.known(large).await? };
        let mut encoded = Batch::new();
        for op in batch.ops {
            match op {
                Op::Blob(digest, _) if known.contains(&digest) => {}
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
                encoded.map_err(|stopped| self.server.place.failed(stopped.to_string()))?
            }
            _ => blob::encode(&content),
        };
        value.map_err(|why| self.server.place.failed(why))
    }

    async fn known(&self, digests: Vec<Digest>) -> Result<Vec<Digest>, StoreError> {
        let reader = Arc::clone(&self.reader);
        let known = self.background.spawn(async move { reader.known(digests).await }).await;
        known.map_err(|_| self.ended())?
    }

    /// Hands a batch to the writer and waits for its verdict.
    async fn send(&self, folded: Folded, writing: WriteGuard) -> Result<(), StoreError> {
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
        let asked = *digest;
        let stored = self.read(move |reader| async move { reader.blob(asked).await })?;
        let content = stored.map(|stored| blob::decode(digest, &stored)).transpose();
        content.map_err(|detail| self.server.place.damaged(detail))
    }

    fn copy_to(&self, _file: &Path) -> Result<ReadTotals, StoreError> {
        Err(self.server.place.failed("it is no file to copy; back it up with the server's own tools, as pg_dump"))
    }

    fn read_all(&self) -> Result<ReadTotals, StoreError> {
        let server = Arc::clone(&self.server);
        self.read(move |reader| async move { maintain::read_all(&reader, &server).await })
    }

    async fn collect(&self, names: &Naming, dry_run: bool) -> Result<CollectedContent, StoreError> {
        let alone: WriteGuard = Arc::new(Arc::clone(&self.writing).write_owned().await);
        let (dead, collected) = maintain::unreferenced(&self.background, &self.reader, &self.server, names).await?;
        if !dry_run {
            for some in dead.chunks(REMOVED_MAX) {
                self.send(Folded::removal(some.to_vec()), Arc::clone(&alone)).await?;
            }
        }
        Ok(collected)
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        self.lease.check()?;
        // Held from before the check for existing content until the batch is written, by the writer where the caller is
        // cancelled meanwhile.
        let writing: WriteGuard = Arc::new(Arc::clone(&self.writing).read_owned().await);
        let batch = self.encode(batch).await?;
        if batch.is_empty() {
            return Ok(());
        }
        tracing::trace!(ops = batch.ops.len(), "store.commit");
        self.send(Folded::of(batch)?, writing).await
    }

    fn lease_left_ms(&self) -> Option<u64> {
        Some(self.held_ms())
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

/// The parts that every attempt to open a store shares.
struct Opening {
    server: Arc<Server>,
    names: Names,
    lease: Arc<Lease>,
    options: PostgresOptions,
    connections_max: u32,
    background: Background,
}

/// A claim, and the connection it was made over.
struct Owned {
    claim: Claim,
    connection: Connection,
}

impl Opening {
    fn new(
        config: &PostgresConfig,
        variable: &dyn Fn(&str) -> Option<String>,
        options: PostgresOptions,
    ) -> Result<Self, StoreError> {
        let server = Arc::new(Server::of(config, variable)?);
        let names = Names::of(&config.schema);
        let lease = Arc::new(Lease::new(&server, &names, Arc::clone(&options.on_lost))?);
        let background = Background::start().map_err(|why| server.place.failed(format!("no thread: {why}")))?;
        Ok(Self { server, names, lease, options, connections_max: config.connections_max, background })
    }

    /// Tries to claim the store. `was_held`: there was one, so that none is made.
    fn attempt(&self, was_held: bool) -> Result<Claimed<Owned>, Trouble> {
        let (server, names, lease) = (Arc::clone(&self.server), self.names.clone(), Arc::clone(&self.lease));
        let holder = self.options.holder.clone();
        let claimed = self.background.wait(async move { claim(&server, &names, &lease, &holder, was_held).await });
        claimed.unwrap_or_else(|| Err(Trouble::Final(self.server.place.failed("its thread ended"))))
    }

    fn finish(self, owned: Owned) -> PostgresStore {
        let Self { server, names, lease, options, connections_max, background } = self;
        let Owned { claim, connection } = owned;
        let promotion = claim.promoted_from.map(|from| Promotion { from, to: claim.proof.timeline });
        if let Some(Promotion { from, to }) = promotion {
            tracing::warn!(from, to, "the server was promoted since its last owner, and may lack the last commits");
        }
        let commits = CommitCount::of(claim.head);
        let writer = Writer::new(&server, &lease, &names, (connection, commits.clone()), options.crash_hook);
        let (queue, jobs) = mpsc::unbounded_channel();
        let writer = background.spawn(writer.serve(jobs));
        let keeper = background.spawn(Arc::clone(&lease).keep(None));
        let reader = Arc::new(Reader::new(&server, &lease, &names, connections_max));
        PostgresStore {
            server,
            lease,
            reader,
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
            background,
        }
    }
}

/// Makes the tables if there are none, and claims the store. Steps that older tables lack are taken by their owner. Tables
/// that were there and are gone are not made: they are about to be restored.
async fn claim(
    server: &Server,
    names: &Names,
    lease: &Lease,
    holder: &Holder,
    was_held: bool,
) -> Result<Claimed<Owned>, Trouble> {
    let connection = server.connect_to_any().await.map_err(Trouble::of_connection)?;
    server.facts(&connection).await.map_err(Trouble::of_connection)?.check(&server.place).map_err(Trouble::Final)?;
    let found = server.bounded(server.statement_max, names.format(&connection.client)).await?;
    if let Some(refused) = found.and_then(|found| newer(&server.place, found)) {
        return Err(Trouble::Final(refused));
    }
    if found.is_none() {
        if was_held {
            return Err(Trouble::Again(server.place.unreachable("its tables are gone, as during a restore")));
        }
        server.bounded(server.statement_max, names.migrate(&connection.client, 0)).await?;
    }
    let claim = match lease.claim(&connection.client, holder).await? {
        Claimed::Ours(claim) => claim,
        Claimed::Others(waiting) => return Ok(Claimed::Others(waiting)),
    };
    if let Some(older) = found.filter(|found| *found < FORMAT) {
        server.bounded(server.statement_max, names.migrate(&connection.client, older)).await?;
    }
    lease.announce(&connection.client, holder).await?;
    Ok(Claimed::Ours(Owned { claim, connection }))
}

/// The time until a standby asks again.
fn pause(reason: &Waiting) -> Duration {
    let soon = match reason {
        Waiting::Holder { left_ms, .. } => POLL.min(Duration::from_millis(*left_ms)),
        Waiting::Server { .. } => POLL,
    };
    soon + jitter(POLL)
}

/// Logs the cost of a read, to find growing ones.
fn told_read(table: Table, rows: usize, bytes: usize) {
    tracing::trace!(?table, rows, bytes, "store.read");
}
