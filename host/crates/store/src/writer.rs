//! The one writing thread: it takes all waiting batches into one transaction and commits it once.
//!
//! While a commit waits for the disk, the next batches gather; so one fsync serves all callers that came meanwhile, and
//! a lone caller waits for no other.
//!
//! After a disk error redb refuses to use the open file further. It is opened again at once, and if that fails, at each
//! further commit; acknowledged batches are in the store, the others get the error. After a panic it is checked as
//! well, see `database.rs`.

use crate::database::OpenDatabase;
use crate::disk::Home;
use crate::group::{Verdicts, apply, landed};
use longhaul_core::store::{Batch, StoreError};
use redb::Database;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, OwnedSemaphorePermit, oneshot};

pub use longhaul_core::crash::CrashHook;

/// The time for which nothing must have been written before the writer makes the file quick to open.
///
/// redb opens a file that was killed by reading all of it, unless its last commit was a quick-repair one. Measured with
/// `examples/measure.rs` on a file of 1 GB: opened in 0.6 to 1.2 s, or in 1 ms; and a quick-repair commit takes 0.42 ms
/// instead of 0.19 for a plain one. In a small file every commit would pay double to save a fraction of a second after
/// a kill; in a large one every commit does pay, see [`Shared::is_large`]. At rest no caller waits for it, and a host
/// spends most of its life at rest: waiting for models and for people. A second keeps it out of any burst of calls.
const REST: Duration = Duration::from_secs(1);

/// Content of one transaction above which no further batch joins it, in bytes. redb holds it in memory.
const GROUP_BYTES_MAX: usize = 32 << 20;

/// A waiting batch.
pub(crate) struct Job {
    pub(crate) batch: Batch,
    pub(crate) bytes: usize,
    pub(crate) done: oneshot::Sender<Result<(), StoreError>>,
    /// Its place in the queue.
    pub(crate) place: OwnedSemaphorePermit,
    /// Keeps content that the batch names and leaves out from being removed, also after its caller was cancelled.
    pub(crate) writing: OwnedRwLockReadGuard<()>,
}

/// The state that the writer and the readers share.
pub(crate) struct Shared {
    database: OpenDatabase,
    crash_hook: Option<CrashHook>,
    quick_repair_bytes_min: u64,
}

impl Shared {
    pub(crate) fn open(
        home: Home,
        crash_hook: Option<CrashHook>,
        quick_repair_bytes_min: u64,
    ) -> Result<Self, StoreError> {
        Ok(Self { database: OpenDatabase::open(home)?, crash_hook, quick_repair_bytes_min })
    }

    pub(crate) fn home(&self) -> &Home {
        &self.database.home
    }

    /// Runs `what` with the open database. Nothing of it may be kept: an open read pins pages.
    pub(crate) fn with<T>(&self, what: impl FnOnce(&Database) -> Result<T, redb::Error>) -> Result<T, StoreError> {
        self.database.with(what)
    }

    /// True when each commit has to be a quick-repair one, since reading the whole file after a kill would take long.
    pub(crate) fn is_large(&self) -> bool {
        self.home().state_bytes() >= self.quick_repair_bytes_min
    }

    /// Opens the database again after an error of a commit by another thread than the writer's.
    pub(crate) fn recover(&self, opening: u64) {
        // A failure is kept and returned to the next commit, which tries again.
        let _ = self.database.reopen(opening);
    }

    /// The number of the present opening of the database, for [`Shared::recover`].
    pub(crate) fn ready(&self) -> Result<u64, StoreError> {
        self.database.ready()
    }

    /// Serves the queue until every sender is gone.
    pub(crate) fn serve(&self, queue: &Receiver<Job>) {
        // A start after a kill may have had to read the whole file; the next one should not.
        let mut rested = false;
        loop {
            let first = if rested { queue.recv().map_err(Into::into) } else { queue.recv_timeout(REST) };
            match first {
                Ok(first) => {
                    let is_quick = self.is_large();
                    rested = self.commit_group(gather(first, queue), is_quick) && is_quick;
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.rest();
                    rested = true;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Closes the database, which makes it quick to open.
    pub(crate) fn close(&self) {
        self.database.close();
    }

    /// Commits a group and answers its callers; true when something was committed.
    fn commit_group(&self, jobs: Vec<Job>, is_quick: bool) -> bool {
        let batches: Vec<&Batch> = jobs.iter().map(|job| &job.batch).collect();
        let verdicts = self.commit(&batches, is_quick).unwrap_or_else(|why| vec![Err(why); batches.len()]);
        let committed = verdicts.iter().any(Result::is_ok);
        for (job, verdict) in jobs.into_iter().zip(verdicts) {
            drop(job.place);
            drop(job.writing);
            // A cancelled caller no longer listens; its batch is written all the same.
            let _ = job.done.send(verdict);
        }
        committed
    }

    fn commit(&self, batches: &[&Batch], is_quick: bool) -> Result<Verdicts, StoreError> {
        let opening = self.database.ready()?;
        let mut passed = None;
        let outcome = self.with(|db| self.transact(db, batches, is_quick, &mut passed));
        let Err(why) = outcome else {
            return outcome;
        };
        tracing::warn!(error = %why, "a commit failed; opening the store again");
        self.database.reopen(opening)?;
        // Only a transaction that reached its commit can have landed.
        let Some(verdicts) = passed else {
            return Err(why);
        };
        let written: Vec<&Batch> =
            batches.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok()).map(|(batch, _)| *batch).collect();
        if self.with(|db| landed(db, &written))? { Ok(verdicts) } else { Err(why) }
    }

    fn transact(
        &self,
        db: &Database,
        batches: &[&Batch],
        is_quick: bool,
        passed: &mut Option<Verdicts>,
    ) -> Result<Verdicts, redb::Error> {
        let mut transaction = db.begin_write()?;
        transaction.set_quick_repair(is_quick);
        let verdicts = apply(&transaction, batches)?;
        if verdicts.iter().all(Result::is_err) {
            transaction.abort()?;
            return Ok(verdicts);
        }
        *passed = Some(verdicts.clone());
        self.durably(|| Ok(transaction.commit()?))?;
        Ok(verdicts)
    }

    /// An empty commit that stores the data that redb would otherwise find by reading the whole file.
    fn rest(&self) {
        // A failure is kept and returned to the next commit, which tries again.
        let Ok(opening) = self.database.ready() else {
            return;
        };
        let made = self.with(|db| {
            let mut transaction = db.begin_write()?;
            transaction.set_quick_repair(true);
            self.durably(|| Ok(transaction.commit()?))
        });
        if let Err(why) = made {
            tracing::warn!(error = %why, "the store could not be made quick to open; opening it again");
            self.recover(opening);
        }
    }

    fn durably(&self, commit: impl FnOnce() -> Result<(), redb::Error>) -> Result<(), redb::Error> {
        self.crash_point("store.before-commit");
        commit()?;
        self.crash_point("store.after-commit");
        Ok(())
    }

    fn crash_point(&self, name: &'static str) {
        if let Some(hook) = &self.crash_hook {
            hook(name);
        }
    }
}

/// The first batch and all that wait behind it, up to [`GROUP_BYTES_MAX`].
///
/// It does not wait for further callers: as measured, that gained nothing.
fn gather(first: Job, queue: &Receiver<Job>) -> Vec<Job> {
    let mut bytes = first.bytes;
    let mut jobs = vec![first];
    while bytes < GROUP_BYTES_MAX {
        let Ok(next) = queue.try_recv() else {
            break;
        };
        bytes = bytes.saturating_add(next.bytes);
        jobs.push(next);
    }
    jobs
}
