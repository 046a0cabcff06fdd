//! The task that commits: it takes the batches that wait as one statement, and settles what became of each.
//!
//! While a statement is on its way the next batches gather, so one flush of the server serves all callers that came
//! meanwhile. A batch whose conditions do not hold is told so by the statement, which then did nothing, and the others
//! are sent again without it. After any other error of a statement its batches are sent one by one.
//!
//! Where the connection broke, nobody knows whether the statement was carried out. It is sent again as it was: the head
//! that it expects is there once, so it is carried out at most once, and the head tells whether it was. If the server
//! stays away for too long, the store is given up: nothing is decided on an outcome that nobody knows. `protocol.rs`
//! decides all of this; here the statement is sent, and its callers are answered.
//!
//! A statement that another seat's commit overtook is sent again at once: the other one is done, and a wait would leave
//! the row to its next one.

use crate::append::{Appended, Appender, Fence, Work};
use crate::clock::jitter;
use crate::commits::CommitCount;
use crate::connect::{Connection, Server, not_durable};
use crate::error::{Place, Trouble};
use crate::fold::{Condition, Folded, conflict, group, merge};
use crate::lease::Lease;
use crate::protocol::{CommitEvent, Failure, Input, Obstacle, Outcome};
use longhaul_core::crash::CrashHook;
use longhaul_core::store::StoreError;
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, sleep};

/// The size of a statement in bytes, above which content goes before it. The server holds a statement in memory about
/// three times, and takes none of a gigabyte.
const STATEMENT_BYTES_MAX: usize = 64 << 20;

/// The time that is allowed for each MiB of a statement on its way: a line of 32 megabits a second.
const TRANSFER_MS_PER_MIB: u64 = 250;

/// The pause before a statement is sent again, which doubles up to the longest.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The longest pause before a statement is sent again that another one overtook: so long that two writers of the same
/// rows do not go in step.
const OVERTAKEN_MAX: Duration = Duration::from_millis(2);

/// The longest time for which callers of the last group are awaited, and the longest without one of them. Without the
/// wait the first of them would have a flush of their own, for which all others wait.
const GATHER_MAX: Duration = Duration::from_micros(300);
const GATHER_QUIET: Duration = Duration::from_micros(100);

/// A waiting batch.
pub(crate) struct Job {
    pub(crate) folded: Folded,
    pub(crate) since: Instant,
    pub(crate) done: oneshot::Sender<Result<(), StoreError>>,
    /// Its place in the queue.
    pub(crate) place: OwnedSemaphorePermit,
    pub(crate) writing: WriteGuard,
}

/// A guard of the lock of all writers, kept until a batch is answered, also after its caller was cancelled: content
/// that a batch names and leaves out is not removed meanwhile, and no batch leaves out what is being removed.
pub(crate) type WriteGuard = Arc<dyn Any + Send + Sync>;

impl Job {
    fn answer(self, verdict: Result<(), StoreError>) {
        drop(self.place);
        drop(self.writing);
        // A cancelled caller no longer listens; its batch is written all the same.
        let _ = self.done.send(verdict);
    }

    /// The verdict on a batch whose statement was carried out.
    fn verdict(&self) -> Result<(), StoreError> {
        self.folded.contradiction.as_ref().map_or(Ok(()), |cell| Err(conflict(cell)))
    }
}

/// The outcome of a statement.
enum Landing {
    /// It was carried out.
    Done,
    /// Nothing was done: the conditions with these numbers do not hold.
    Broken(Vec<usize>),
    /// Nothing was done, or the store is lost.
    Failed {
        why: StoreError,
        /// True where another statement would fail, too.
        is_of_server: bool,
    },
}

/// The reason why a statement is sent again.
struct Repeat {
    why: StoreError,
    /// True where it may pass at once.
    is_overtaken: bool,
}

impl From<StoreError> for Repeat {
    fn from(why: StoreError) -> Self {
        Self { why, is_overtaken: false }
    }
}

/// The writer of a store.
pub(crate) struct Writer {
    server: Arc<Server>,
    lease: Arc<Lease>,
    appender: Appender,
    commits: CommitCount,
    connection: Option<Connection>,
    crash_hook: Option<CrashHook>,
    waiting: VecDeque<Job>,
    /// The number of batches of the last group.
    together: usize,
}

impl Writer {
    /// The writer of a store that was claimed over `connection`. It keeps `commits` up to date.
    pub(crate) fn new(
        server: &Arc<Server>,
        lease: &Arc<Lease>,
        appender: Appender,
        (connection, commits): (Connection, CommitCount),
        crash_hook: Option<CrashHook>,
    ) -> Self {
        Self {
            server: Arc::clone(server),
            lease: Arc::clone(lease),
            appender,
            commits,
            connection: Some(connection),
            crash_hook,
            waiting: VecDeque::new(),
            together: 0,
        }
    }

    /// Serves the queue until every sender is gone.
    pub(crate) async fn serve(mut self, mut queue: UnboundedReceiver<Job>) {
        while self.gather(&mut queue).await {
            let count = group(self.waiting.iter().map(|job| &job.folded));
            let jobs: Vec<Job> = self.waiting.drain(..count).collect();
            self.together = jobs.len();
            self.commit(jobs).await;
        }
    }

    /// Takes all batches that wait; false: there will be none.
    async fn gather(&mut self, queue: &mut UnboundedReceiver<Job>) -> bool {
        if self.waiting.is_empty() {
            let Some(first) = queue.recv().await else { return false };
            self.waiting.push_back(first);
        }
        let (began, mut last) = (Instant::now(), Instant::now());
        loop {
            match queue.try_recv() {
                Ok(job) => {
                    self.waiting.push_back(job);
                    last = Instant::now();
                }
                Err(TryRecvError::Disconnected) => return true,
                Err(TryRecvError::Empty) if self.waiting.len() >= self.together => return true,
                Err(TryRecvError::Empty) => {
                    if began.elapsed() > GATHER_MAX || last.elapsed() > GATHER_QUIET {
                        return true;
                    }
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Commits a group and answers its callers.
    async fn commit(&mut self, jobs: Vec<Job>) {
        let mut groups = VecDeque::from([jobs]);
        while let Some(jobs) = groups.pop_front() {
            let landed = self.land_group(&jobs).await;
            match landed {
                (Landing::Done, _) => {
                    for job in jobs {
                        let verdict = job.verdict();
                        if verdict.is_ok() {
                            self.server.counts.committed(job.since.elapsed());
                        }
                        job.answer(verdict);
                    }
                }
                (Landing::Broken(_), mut conflicts) => {
                    let mut others = Vec::new();
                    for (at, job) in jobs.into_iter().enumerate() {
                        match conflicts.remove(&at) {
                            Some(conflict) => job.answer(Err(conflict)),
                            None => others.push(job),
                        }
                    }
                    if !others.is_empty() {
                        groups.push_front(others);
                    }
                }
                (Landing::Failed { is_of_server: false, .. }, _) if jobs.len() > 1 => {
                    groups.extend(jobs.into_iter().map(|job| vec![job]));
                }
                (Landing::Failed { why, .. }, _) => {
                    for job in jobs {
                        self.server.counts.commits_failed.add();
                        job.answer(Err(why.clone()));
                    }
                }
            }
        }
    }

    /// Has a group carried out by one statement; with the conflict of each batch that has one.
    async fn land_group(&mut self, jobs: &[Job]) -> (Landing, BTreeMap<usize, StoreError>) {
        let batches: Vec<&Folded> = jobs.iter().map(|job| &job.folded).collect();
        let (mut work, conditions) = merge(&batches);
        let deadline = self.deadline(jobs, work.bytes());
        for part in work.split_content(STATEMENT_BYTES_MAX) {
            match self.land(&part, deadline).await {
                Landing::Done => {}
                other => return (other, BTreeMap::new()),
            }
        }
        let landing = self.land(&work, deadline).await;
        let conflicts = match &landing {
            Landing::Broken(broken) => conflicts(broken, &conditions, &self.server.place),
            Landing::Done | Landing::Failed { .. } => BTreeMap::new(),
        };
        (landing, conflicts)
    }

    /// The time at which the longest waiting caller is answered at last. A connection is tried at least once.
    fn deadline(&self, jobs: &[Job], bytes: usize) -> Instant {
        let now = Instant::now();
        let since = jobs.iter().map(|job| job.since).min().unwrap_or(now);
        (since + self.server.patience).max(now + self.server.connect_max) + transfer(bytes) * 2
    }

    /// Has a statement carried out, or finds that it was not.
    async fn land(&mut self, work: &Work<'_>, deadline: Instant) -> Landing {
        let (mut pause, mut doubted) = (PAUSE_MIN, None);
        self.reach("store.before-commit");
        loop {
            if let Err(why) = self.lease.check() {
                return Landing::Failed { why, is_of_server: true };
            }
            let Repeat { why, is_overtaken } = match self.attempt(work, &mut doubted).await {
                Ok(landing) => {
                    if matches!(landing, Landing::Done) {
                        self.count();
                        self.reach("store.after-commit");
                    }
                    return landing;
                }
                Err(repeat) => repeat,
            };
            if Instant::now() + pause >= deadline {
                return Landing::Failed { why: self.late(why), is_of_server: true };
            }
            if is_overtaken {
                tracing::debug!(error = %why, "a commit that another one overtook is sent again");
                sleep(jitter(OVERTAKEN_MAX)).await;
                continue;
            }
            tracing::warn!(error = %why, "a commit is sent again");
            sleep(pause + jitter(pause)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Takes over the number of commits after one that landed. Nobody counts for a store that is lost.
    fn count(&self) {
        if let Ok((_, head)) = self.lease.held() {
            self.commits.set(head);
        }
    }

    /// The error for callers that wait no longer.
    fn late(&self, why: StoreError) -> StoreError {
        self.lease.step(Input::Commit(CommitEvent::TooLate), &why.to_string()).err().unwrap_or(why)
    }

    /// Sends a statement once. The error is the reason why it is sent again. `doubted` are conditions of it that did
    /// not hold while an attempt before could still land: the head is moved without the work then.
    async fn attempt(&mut self, work: &Work<'_>, doubted: &mut Option<Vec<usize>>) -> Result<Landing, Repeat> {
        let connection = match self.connection.take().filter(Connection::seems_open) {
            Some(open) => open,
            None => match self.server.connect_checked().await {
                Ok(connection) => {
                    self.server.counts.reconnects.add();
                    connection
                }
                Err(why) => return self.failed(Trouble::Again(why)),
            },
        };
        let (proof, head) = match self.lease.held() {
            Ok(held) => held,
            Err(why) => return Ok(Landing::Failed { why, is_of_server: true }),
        };
        let fence = Fence { nonce: self.lease.nonce(), proof, head };
        let limit = self.server.append_max() + transfer(work.bytes());
        let is_void = doubted.is_some();
        let sent = async {
            if is_void {
                self.appender.void(&connection.client, &fence).await
            } else {
                self.appender.append(&connection.client, &fence, work).await
            }
        };
        let appended = self.server.bounded(limit, connection.repeatable(sent)).await;
        match appended {
            Ok(Ok(Appended::Moved)) => {
                self.connection = Some(connection);
                let (event, landing) = match doubted.take() {
                    None => (CommitEvent::Moved, Landing::Done),
                    Some(broken) => (CommitEvent::Voided, Landing::Broken(broken)),
                };
                self.lease.step(Input::Commit(event), "")?;
                Ok(landing)
            }
            Ok(Ok(Appended::Still(broken))) => self.explain(connection, broken, doubted).await,
            Ok(Err(why)) => self.failed(Trouble::Unknown(self.server.place.failed(why))),
            Err(trouble) => {
                if matches!(trouble, Trouble::Overtaken(_)) {
                    // The server answered, and is ready for the next one.
                    self.connection = Some(connection);
                }
                self.failed(trouble)
            }
        }
    }

    /// The consequence of an error of an attempt.
    fn failed(&self, trouble: Trouble) -> Result<Landing, Repeat> {
        let failure = match &trouble {
            Trouble::Again(_) | Trouble::Overtaken(_) => Failure::Again,
            Trouble::Unknown(_) => Failure::Unknown,
            Trouble::Final(_) => Failure::Final,
        };
        let is_overtaken = matches!(trouble, Trouble::Overtaken(_));
        let why = trouble.into_error();
        match self.lease.step(Input::Commit(CommitEvent::Failed(failure)), "") {
            Ok(Outcome::Failed) => Ok(Landing::Failed { why, is_of_server: false }),
            Ok(_) => Err(Repeat { why, is_overtaken }),
            Err(why) => Ok(Landing::Failed { why, is_of_server: true }),
        }
    }

    /// Finds out why a statement did nothing: it was carried out by an attempt before, its conditions do not hold, the
    /// lease ran out, or the store is lost. The connection is kept where it is of further use.
    async fn explain(
        &mut self,
        mut connection: Connection,
        broken: Vec<usize>,
        doubted: &mut Option<Vec<usize>>,
    ) -> Result<Landing, Repeat> {
        let status = match self.lease.status(&connection.client).await {
            Ok(status) => status,
            Err(trouble) => return self.failed(Trouble::Again(trouble.into_error())),
        };
        let event = CommitEvent::Still { is_broken: !broken.is_empty(), row: status.row };
        match self.lease.step(Input::Commit(event), &status.holder) {
            Ok(outcome @ (Outcome::Landed | Outcome::Conflicting)) => {
                self.connection = Some(connection);
                let broken = doubted.take().unwrap_or(broken);
                Ok(if outcome == Outcome::Landed { Landing::Done } else { Landing::Broken(broken) })
            }
            Ok(Outcome::Repeat(Obstacle::NotDurable)) => Err(not_durable(&self.server.place).into()),
            Ok(Outcome::Repeat(Obstacle::MayStillLand)) => {
                self.connection = Some(connection);
                *doubted = Some(broken);
                let why = self.server.place.failed("its conditions do not hold, and an attempt before may still land");
                Err(Repeat { why, is_overtaken: true })
            }
            Ok(Outcome::Repeat(Obstacle::RanOut { is_renewed })) => {
                self.server.counts.fenced_writes.add();
                if is_renewed {
                    // Or a pooler gave it a session of other settings.
                    connection.distrust_session();
                } else {
                    self.lease.renew(&connection.client).await.map_err(Trouble::into_error)?;
                }
                self.connection = Some(connection);
                Err(self.server.place.failed("its lease had run out, and nobody took it").into())
            }
            Ok(Outcome::Stands | Outcome::Failed | Outcome::Repeat(Obstacle::Error)) => {
                let why = self.server.place.failed("it was given back");
                Ok(Landing::Failed { why, is_of_server: true })
            }
            Err(why) => {
                self.server.counts.fenced_writes.add();
                Ok(Landing::Failed { why, is_of_server: true })
            }
        }
    }

    fn reach(&self, point: &'static str) {
        if let Some(hook) = &self.crash_hook {
            hook(point);
        }
    }
}

/// A writer that ends by a defect must not leave a lease that is renewed for a store that takes nothing.
impl Drop for Writer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The loss is told by the step.
            let _ = self.lease.step(Input::Defect, "");
        }
    }
}

/// The conflict of each batch with a condition that does not hold, by the first of them.
fn conflicts(
    broken: &[usize],
    conditions: &[(usize, Option<&Condition>)],
    place: &Place,
) -> BTreeMap<usize, StoreError> {
    let mut found = BTreeMap::new();
    for (at, condition) in broken.iter().filter_map(|number| conditions.get(*number)) {
        found.entry(*at).or_insert_with(|| match condition {
            Some(condition) => conflict(&condition.cell),
            None => place.overdue(),
        });
    }
    found
}

fn transfer(bytes: usize) -> Duration {
    let mib = u64::try_from(bytes >> 20).unwrap_or(u64::MAX);
    Duration::from_millis(mib.saturating_mul(TRANSFER_MS_PER_MIB))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::store::{Batch, Key, Table};

    #[test]
    fn each_batch_is_told_of_the_first_of_its_conditions_that_does_not_hold() {
        let key = |name: &str| Key::of(name);
        let insert = |batch: Batch, name: &str| batch.insert(Table::States, key(name), "v");
        let one = Folded::of(insert(Batch::new(), "a")).expect("short keys");
        let two = Folded::of(insert(insert(Batch::new(), "b"), "c")).expect("short keys");
        let (_, conditions) = merge(&[&one, &two]);
        let place = Place("postgres://h/db".to_owned());
        let told = |broken: &[usize]| {
            let shown =
                conflicts(broken, &conditions, &place).into_iter().map(|(at, conflict)| format!("{at} {conflict}"));
            shown.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(told(&[]), "");
        assert_eq!(told(&[1, 2]), format!("1 {}", StoreError::conflict(Table::States, key("b").as_bytes())));
        assert!(told(&[0, 2]).contains("0 `a` in States") && told(&[0, 2]).contains("1 `c` in States"));
        assert_eq!(told(&[7]), "", "a number that no condition has");
    }
}
