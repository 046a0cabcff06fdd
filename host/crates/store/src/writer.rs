//! The one writing thread: it takes all waiting batches as one group, and makes the group durable at once.
//!
//! While a group waits for the disk, the next batches gather; so one sync serves all callers that came meanwhile, and a
//! lone caller waits for no other. A group goes to the log, see `log.rs`. It goes into the database at once where one
//! of its batches is large, since the log would only be a second copy of it, and for the first groups of a process,
//! since most commands commit a few and end.
//!
//! After a disk error redb refuses to use the open file further. It is opened again at once, and if that fails, at each
//! further commit; acknowledged batches are in the store, the others get the error. After a panic it is checked as
//! well, see `database.rs`.

use crate::group::{Verdicts, apply, check, into_effects, landed};
use crate::log::Record;
use crate::logs::Logs;
use crate::shared::{Left, Shared};
use longhaul_core::store::{Batch, StoreError};
use redb::Database;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedRwLockReadGuard, OwnedSemaphorePermit, oneshot};

/// The time for which nothing must have been written before the writer brings all rows into the database.
///
/// `state.redb` is complete at rest, and little memory is used. A host spends most of its life at rest: waiting for
/// models and for people. A second keeps it out of any burst of calls.
const REST: Duration = Duration::from_secs(1);

/// Groups of a process that go into the database before it begins a log, which takes a commit and a few syncs at its
/// begin and at its end.
const GROUPS_BEFORE_LOG: usize = 8;

/// The default of [`StoreOptions::log_bytes_max`](crate::StoreOptions::log_bytes_max), in bytes.
pub(crate) const LOG_BYTES_MAX: u64 = 16 << 20;

/// The size of a batch from which it goes into the database at once, in bytes, where logs have their default length.
const LOGGED_BYTES_MAX: u64 = 256 << 10;

/// The longest time for which callers of the last group are awaited, and the longest without one of them. Without the
/// wait a few callers that are first would have a sync of their own, for which all others wait.
const GATHER_MAX: Duration = Duration::from_micros(300);
const GATHER_QUIET: Duration = Duration::from_micros(25);

/// A request to the writer.
pub(crate) enum Work {
    Batch(Job),
    /// Bring all rows into the database, and tell the result.
    Settle(Told),
}

type Told = SyncSender<Result<(), StoreError>>;

/// A waiting batch.
pub(crate) struct Job {
    pub(crate) batch: Batch,
    /// The batch as a log stores it; none for a large one.
    pub(crate) record: Option<Record>,
    pub(crate) bytes: u64,
    pub(crate) done: oneshot::Sender<Result<(), StoreError>>,
    /// Its place in the queue.
    pub(crate) place: OwnedSemaphorePermit,
    /// Keeps content that the batch names and leaves out from being removed, also after its caller was cancelled.
    pub(crate) writing: OwnedRwLockReadGuard<()>,
}

/// The writer of a store.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    logs: Option<Logs>,
    /// False after the log could not be begun: a half begun one is left to the next opening.
    may_log: bool,
    log_bytes_max: u64,
    /// The number of groups that went into the database before a log was begun.
    groups: usize,
    /// The number of batches of the last group.
    together: usize,
}

/// The size from which a batch goes into the database at once, in bytes.
pub(crate) fn logged_bytes_max(log_bytes_max: u64) -> u64 {
    LOGGED_BYTES_MAX.min(log_bytes_max / 8)
}

impl Writer {
    pub(crate) fn new(shared: &Arc<Shared>, left: Option<Left>, log_bytes_max: u64) -> Self {
        let logs = left.map(|left| Logs::resume(shared, left, log_bytes_max));
        Self { shared: Arc::clone(shared), logs, may_log: true, log_bytes_max, groups: 0, together: 0 }
    }

    /// Serves the queue until every sender is gone.
    pub(crate) fn serve(mut self, queue: &Receiver<Work>) {
        // A start after a kill may have had to read the whole file; the next one should not.
        let mut rested = false;
        loop {
            let first = if rested { queue.recv().map_err(Into::into) } else { queue.recv_timeout(REST) };
            match first {
                Ok(Work::Batch(first)) => {
                    let (jobs, settle) = self.gather(first, queue);
                    // The database has it already where there is no log.
                    rested = self.commit_group(jobs) && self.logs.is_none();
                    if let Some(told) = settle {
                        self.settle(&told);
                    }
                }
                Ok(Work::Settle(told)) => self.settle(&told),
                Err(RecvTimeoutError::Timeout) => {
                    self.rest();
                    rested = true;
                }
                Err(RecvTimeoutError::Disconnected) => return self.end(),
            }
        }
    }

    /// The first batch and all that wait behind it, up to a quarter of a log; and the request that came after them.
    fn gather(&mut self, first: Job, queue: &Receiver<Work>) -> (Vec<Job>, Option<Told>) {
        let mut bytes = first.bytes;
        let mut jobs = vec![first];
        let (mut began, mut last) = (None, Instant::now());
        let settle = loop {
            if bytes >= self.log_bytes_max / 4 {
                break None;
            }
            match queue.try_recv() {
                Ok(Work::Batch(next)) => {
                    bytes = bytes.saturating_add(next.bytes);
                    jobs.push(next);
                    last = Instant::now();
                }
                Ok(Work::Settle(told)) => break Some(told),
                Err(TryRecvError::Disconnected) => break None,
                Err(TryRecvError::Empty) if jobs.len() >= self.together => break None,
                Err(TryRecvError::Empty) => {
                    let now = Instant::now();
                    if now - *began.get_or_insert(now) > GATHER_MAX || now - last > GATHER_QUIET {
                        break None;
                    }
                    std::thread::yield_now();
                }
            }
        };
        self.together = jobs.len();
        (jobs, settle)
    }

    /// Commits a group and answers its callers; true when something was committed.
    fn commit_group(&mut self, mut jobs: Vec<Job>) -> bool {
        let is_logged = self.logs_for(&jobs);
        let verdicts = if is_logged { self.commit_to_log(&jobs) } else { self.commit_to_database(&jobs) };
        let verdicts = verdicts.unwrap_or_else(|why| vec![Err(why); jobs.len()]);
        if is_logged {
            let passed = jobs.iter_mut().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok());
            self.shared.recent.add(passed.flat_map(|(job, _)| into_effects(std::mem::take(&mut job.batch))));
        }
        let committed = verdicts.iter().any(Result::is_ok);
        for (job, verdict) in jobs.into_iter().zip(verdicts) {
            drop(job.place);
            drop(job.writing);
            // A cancelled caller no longer listens; its batch is written all the same.
            let _ = job.done.send(verdict);
        }
        committed
    }

    /// True when a group goes to the log, which is begun if it is time.
    fn logs_for(&mut self, jobs: &[Job]) -> bool {
        if jobs.iter().any(|job| job.record.is_none()) {
            return false;
        }
        if self.logs.is_none() && self.may_log {
            self.groups += 1;
            if self.groups > GROUPS_BEFORE_LOG {
                match Logs::begin(&self.shared, self.log_bytes_max) {
                    Ok(logs) => self.logs = Some(logs),
                    Err(why) => {
                        tracing::warn!(error = %why, "the store begins no log; commits go into the database");
                        self.may_log = false;
                    }
                }
            }
        }
        self.logs.is_some()
    }

    fn commit_to_log(&mut self, jobs: &[Job]) -> Result<Verdicts, StoreError> {
        let Some(logs) = &mut self.logs else {
            return Err(self.shared.home().failed("it has no log"));
        };
        let records: Vec<&Record> = jobs.iter().filter_map(|job| job.record.as_ref()).collect();
        logs.make_room(&records)?;
        self.shared.database.ready()?;
        let mut passed = None;
        let outcome = self.shared.with(|db| {
            let batches: Vec<&Batch> = jobs.iter().map(|job| &job.batch).collect();
            let verdicts = check(db, &self.shared.recent, &batches)?;
            let records: Vec<&Record> =
                records.iter().zip(&verdicts).filter(|(_, one)| one.is_ok()).map(|(record, _)| *record).collect();
            if records.is_empty() {
                passed = Some(verdicts);
                return Ok(());
            }
            self.shared.crash_point("store.before-commit");
            logs.append(&records).map_err(redb::Error::Io)?;
            passed = Some(verdicts);
            self.shared.crash_point("store.after-commit");
            Ok(())
        });
        match (passed, outcome) {
            // Whatever came after the group was durable.
            (Some(verdicts), _) => Ok(verdicts),
            (None, Err(why)) => Err(why),
            (None, Ok(())) => Err(self.shared.home().failed("a group was left out")),
        }
    }

    fn commit_to_database(&mut self, jobs: &[Job]) -> Result<Verdicts, StoreError> {
        if let Some(logs) = &mut self.logs {
            logs.settle()?;
        }
        let batches: Vec<&Batch> = jobs.iter().map(|job| &job.batch).collect();
        let opening = self.shared.database.ready()?;
        let mut passed = None;
        let outcome = self.shared.with(|db| self.transact(db, &batches, &mut passed));
        let Err(why) = outcome else {
            return outcome;
        };
        tracing::warn!(error = %why, "a commit failed; opening the store again");
        self.shared.database.reopen(opening)?;
        // Only a transaction that reached its commit can have landed.
        let Some(verdicts) = passed else {
            return Err(why);
        };
        let written: Vec<&Batch> =
            batches.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok()).map(|(batch, _)| *batch).collect();
        if self.shared.with(|db| landed(db, &written))? { Ok(verdicts) } else { Err(why) }
    }

    fn transact(
        &self,
        db: &Database,
        batches: &[&Batch],
        passed: &mut Option<Verdicts>,
    ) -> Result<Verdicts, redb::Error> {
        let mut transaction = db.begin_write()?;
        transaction.set_quick_repair(true);
        let verdicts = apply(&transaction, batches)?;
        if verdicts.iter().all(Result::is_err) {
            transaction.abort()?;
            return Ok(verdicts);
        }
        *passed = Some(verdicts.clone());
        self.shared.crash_point("store.before-commit");
        transaction.commit()?;
        self.shared.crash_point("store.after-commit");
        Ok(verdicts)
    }

    fn settle(&mut self, told: &Told) {
        let settled = self.logs.as_mut().map_or(Ok(false), Logs::settle);
        // The caller may be gone.
        let _ = told.send(settled.map(|_| ()));
    }

    /// Brings all rows into the database. Where there are none, an empty commit stores the data that redb would
    /// otherwise find by reading the whole file: an earlier version may have left it without them.
    fn rest(&mut self) {
        let rested = match self.logs.as_mut().map_or(Ok(false), Logs::settle) {
            Ok(true) => Ok(()),
            Ok(false) => self.shared.commit(|_| Ok(())),
            Err(why) => Err(why),
        };
        if let Err(why) = rested {
            tracing::warn!(error = %why, "the rows of the log could not be brought into the database yet");
        }
    }

    /// Closes the store in order: without logs.
    fn end(self) {
        if let Some(Err(why)) = self.logs.map(Logs::end) {
            tracing::warn!(error = %why, "the log stays, and the next opening reads it");
        }
    }
}
