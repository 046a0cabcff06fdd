//! The row of the owner, or of a worker's seat: claim, renewal, return and loss of the store.
//!
//! The nonce of a claim is drawn before the claim is sent and is the same in every attempt of a process, so an attempt
//! that lands late is no other claim. It fences: whoever claims next puts another one in its place. The epoch tells a
//! late attempt that lands after another process came and went. The lease is what others wait for, by the clock of the
//! database. The timeline tells a promoted standby, which may lack the last commits.
//!
//! A lease that ran out while nobody took it is renewed: no other process wrote by this row since, and the head of the
//! next commit proves it. A worker's seat has the name of its data directory, of which no other process has the lock
//! while this one lives. So a claim of it waits for no lease: the process that has it is dead, or will be told. What an
//! answer means is decided in `protocol.rs`; here are the statements and the telling of a loss.

use crate::clock::{jitter, uptime_ms};
use crate::connect::{Connection, Server};
use crate::error::Trouble;
use crate::protocol::{Input, Loss, Outcome, Owner, OwnerRow, Proof};
use crate::schema::{HELD_URL, IS_DURABLE, SeatRow, TIMELINE};
use longhaul_core::store::StoreError;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

/// The pause between two attempts to renew a lease, as a part of it, and its bounds.
const RETRY_PART: u32 = 40;
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// A process that owns a store, as other processes show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The name of its machine.
    pub host: String,
    /// Its number there.
    pub pid: u32,
    /// Its data directory.
    pub directory: PathBuf,
    /// The address by which other servers reach it; none where it serves none of them. It is not shown.
    pub url: Option<String>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {} with {}", self.pid, self.host, self.directory.display())
    }
}

/// The reason why a standby waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Another process owns the store.
    Holder {
        /// That process, as its [`Holder`] reads.
        holder: String,
        /// Its address for other servers, as the database has it: not checked.
        url: Option<String>,
        /// The time until its lease ends unless it is renewed, in milliseconds.
        left_ms: u64,
        /// The number of commits so far.
        commits: u64,
    },
    /// The server does not answer.
    Server {
        /// The error, for people.
        detail: String,
    },
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holder { holder, left_ms, .. } => {
                write!(f, "{holder} has the store; its lease ends in {left_ms} ms unless it is renewed")
            }
            Self::Server { detail } => f.write_str(detail),
        }
    }
}

/// The loss of a store: nothing is written by this process any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseLost {
    /// The address of the database, without a password.
    pub path: String,
    /// The successor, or the change of the server, for people.
    pub detail: String,
}

impl LeaseLost {
    fn to_error(&self) -> StoreError {
        StoreError::Fenced { path: self.path.clone(), detail: self.detail.clone() }
    }
}

impl fmt::Display for LeaseLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_error(), f)
    }
}

/// Called once, when the store is lost.
pub(crate) type OnLost = Arc<dyn Fn(&LeaseLost) + Send + Sync>;

/// A claim that succeeded.
pub(crate) struct Claim {
    /// The number of commits so far.
    pub(crate) head: i64,
    /// The timeline of the claim before, where the server has another one since.
    pub(crate) promoted_from: Option<i32>,
    pub(crate) proof: Proof,
}

/// The row as a statement without effect found it.
#[derive(Default)]
pub(crate) struct Status {
    /// None where somebody removed it.
    pub(crate) row: Option<OwnerRow>,
    /// The process of the claim, for people; empty where there is none.
    pub(crate) holder: String,
}

/// The result of an attempt to claim.
pub(crate) enum Claimed<T> {
    Ours(T),
    Others(Waiting),
}

/// The lease of this process on its row, and so on a store.
pub(crate) struct Lease {
    server: Arc<Server>,
    statements: Statements,
    nonce: String,
    /// Its times are those of [`uptime_ms`].
    owner: Mutex<Owner>,
    lost: OnceLock<LeaseLost>,
    on_lost: OnLost,
}

/// Statements about the row. `$1` is the nonce.
struct Statements {
    /// Makes the row, where it is that of a worker: its first claim makes it.
    make: Option<String>,
    claim: String,
    announce: String,
    held: String,
    renew: String,
    status: String,
    give_back: String,
}

impl Statements {
    fn of(SeatRow { table, key, row, worker }: &SeatRow) -> Self {
        let is_free = if worker.is_none() {
            " AND (nonce IS NULL OR nonce = $1::uuid OR lease_until IS NULL OR lease_until <= clock_timestamp())"
        } else {
            ""
        };
        Self {
            make: worker
                .as_ref()
                .map(|name| format!("INSERT INTO {table} ({key}) VALUES ('{name}') ON CONFLICT DO NOTHING")),
            claim: format!(
                "WITH before AS (SELECT timeline FROM {table} WHERE {row}) \
                 UPDATE {table} SET nonce = $1::uuid, epoch = epoch + (nonce IS DISTINCT FROM $1::uuid)::int, \
                 timeline = {TIMELINE}, lease_until = clock_timestamp() + $2 * interval '1 second', holder = $3, \
                 claimed_at = clock_timestamp() WHERE {row}{is_free} \
                 RETURNING head, timeline, (SELECT timeline FROM before), epoch"
            ),
            announce: format!("UPDATE {table} SET url = $2 WHERE {row} AND nonce = $1::uuid"),
            held: format!(
                "SELECT holder, coalesce(ceil(extract(epoch FROM lease_until - clock_timestamp()) * 1000), 0)::bigint, \
                 head, {HELD_URL} FROM {table} AS held WHERE {row}"
            ),
            renew: format!(
                "UPDATE {table} SET lease_until = clock_timestamp() + $2 * interval '1 second' \
                 WHERE {row} AND nonce = $1::uuid AND epoch = $3 AND timeline = {TIMELINE} AND timeline = $4 \
                 RETURNING {key}"
            ),
            status: format!(
                "SELECT head, coalesce(nonce = $1::uuid, false), coalesce(lease_until > clock_timestamp(), false), \
                 timeline, {TIMELINE}, holder, {IS_DURABLE}, epoch FROM {table} WHERE {row}"
            ),
            give_back: format!(
                "UPDATE {table} SET nonce = NULL, lease_until = NULL, holder = '' WHERE {row} AND nonce = $1::uuid"
            ),
        }
    }
}

impl Lease {
    /// A lease that is not claimed yet.
    pub(crate) fn new(server: &Arc<Server>, seat: &SeatRow, on_lost: OnLost) -> Result<Self, StoreError> {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(|why| server.place.failed(format!("no random number: {why}")))?;
        let lasts_ms = u64::try_from(server.lease.as_millis()).unwrap_or(u64::MAX);
        Ok(Self {
            server: Arc::clone(server),
            statements: Statements::of(seat),
            nonce: format!("{:032x}", u128::from_be_bytes(nonce)),
            owner: Mutex::new(Owner::new(lasts_ms)),
            lost: OnceLock::new(),
            on_lost,
        })
    }

    /// The nonce of the claim, which a commit proves.
    pub(crate) fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Claims the row, unless another process holds it and this one has to wait for the end of its lease.
    pub(crate) async fn claim(&self, client: &Client, holder: &Holder) -> Result<Claimed<Claim>, Trouble> {
        if let Some(make) = &self.statements.make {
            self.server.bounded(self.server.append_max(), client.execute_typed(make, &[])).await?;
        }
        let sent_ms = uptime_ms();
        let claimed =
            self.server.bounded(self.server.append_max(), self.send_claim(client, &holder.to_string())).await?;
        match claimed {
            Some(claim) => {
                let input = Input::Claimed { sent_ms, proof: claim.proof, head: claim.head };
                self.step(input, "").map_err(Trouble::Final)?;
                Ok(Claimed::Ours(claim))
            }
            None => {
                let held = self.server.bounded(self.server.append_max(), self.send_held(client)).await?;
                let missing = || Trouble::Final(self.server.place.damaged("the row of its claim is gone"));
                Ok(Claimed::Others(held.ok_or_else(missing)?))
            }
        }
    }

    /// Tells others the address of the holder, in place of that of the one before. Tables of the first format have no
    /// place for it, so it comes after the steps that they lack.
    pub(crate) async fn announce(&self, client: &Client, holder: &Holder) -> Result<(), Trouble> {
        self.server.bounded(self.server.append_max(), self.send_url(client, holder.url.as_deref())).await?;
        Ok(())
    }

    /// Renews the lease once. After a loss it is renewed no more.
    pub(crate) async fn renew(&self, client: &Client) -> Result<(), Trouble> {
        let (proof, _) = self.held().map_err(Trouble::Final)?;
        let sent_ms = uptime_ms();
        let limit = self.server.lease / 4;
        if self.server.bounded(limit, self.send_renewal(client, proof)).await? {
            self.step(Input::Renewed { sent_ms }, "").map_err(Trouble::Final)?;
            self.server.counts.lease_renewals.add();
            return Ok(());
        }
        let status = self.status(client).await?;
        self.step(Input::NotRenewed(status.row), &status.holder).map_err(Trouble::Final)?;
        Err(Trouble::Again(self.server.place.failed("its lease was not renewed")))
    }

    /// Reads the row.
    pub(crate) async fn status(&self, client: &Client) -> Result<Status, Trouble> {
        let status = self.server.bounded(self.server.append_max(), self.send_status(client)).await?;
        Ok(status.unwrap_or_default())
    }

    /// Expects that a new connection leads to the server of the claim: another one of the same address may be one that
    /// a promotion left behind, and tell what is no longer so.
    pub(crate) async fn expect_server(&self, client: &Client) -> Result<(), Trouble> {
        let status = self.status(client).await?;
        let loss = self.owner().loss(status.row);
        match loss {
            None => Ok(()),
            Some(loss) => Err(Trouble::Again(self.server.place.unreachable(told(loss, &status.holder)))),
        }
    }

    /// Renews the lease at the end of its first half, until the store is lost.
    pub(crate) async fn keep(self: Arc<Self>, mut connection: Option<Connection>) {
        let pause = (self.server.lease / RETRY_PART).clamp(RETRY_MIN, RETRY_MAX);
        let mut wait = self.renew_in();
        while self.lost.get().is_none() {
            tokio::time::sleep(wait + jitter(pause / 2)).await;
            wait = match self.renew_on(&mut connection).await {
                Ok(()) => self.renew_in(),
                Err(trouble) => {
                    self.server.counts.lease_renewals_failed.add();
                    let why = trouble.into_error();
                    tracing::warn!(error = %why, left_ms = self.left_ms(), "the lease on the store was not renewed");
                    connection = None;
                    pause
                }
            };
        }
    }

    /// Lets the next process claim the store at once.
    pub(crate) async fn give_back(&self) {
        // No effect begins from now on.
        if self.step(Input::GivenBack, "").is_err() {
            return;
        }
        let given = match self.server.connect().await {
            Ok(connection) => self.server.bounded(self.server.append_max(), self.send_return(&connection.client)).await,
            Err(why) => Err(Trouble::Final(why)),
        };
        if let Err(trouble) = given {
            tracing::warn!(error = %trouble.into_error(), "others take the store for held until the lease ends");
        }
    }

    /// Takes what happened to a statement or to this process. A loss is told once, and is the error of every call from
    /// then on. `detail` is for people: the process that the row names, or the last error.
    pub(crate) fn step(&self, input: Input, detail: &str) -> Result<Outcome, StoreError> {
        let mut is_first = false;
        let stepped = {
            let mut owner = self.owner();
            // The reason is kept before anybody else can ask for it.
            owner.step(input).map_err(|loss| {
                self.lost.get_or_init(|| {
                    is_first = true;
                    LeaseLost { path: self.server.place.0.clone(), detail: told(loss, detail) }
                })
            })
        };
        stepped.map_err(|lost| {
            if is_first {
                // Before anything that may wait, as a log does for its reader.
                (self.on_lost)(lost);
            }
            lost.to_error()
        })
    }

    /// The claim that a statement proves, and the head that a commit expects.
    pub(crate) fn held(&self) -> Result<(Proof, i64), StoreError> {
        let held = self.owner().held();
        held.map_err(|loss| self.check().err().unwrap_or_else(|| self.server.place.failed(told(loss, ""))))
    }

    /// Refuses once the store is lost.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.lost.get().map_or(Ok(()), |lost| Err(lost.to_error()))
    }

    /// The time for which nobody else may claim the store, in milliseconds.
    pub(crate) fn left_ms(&self) -> u64 {
        self.owner().left_ms(uptime_ms())
    }

    fn renew_in(&self) -> Duration {
        Duration::from_millis(self.owner().renew_in_ms(uptime_ms()))
    }

    fn owner(&self) -> MutexGuard<'_, Owner> {
        // A step changes the state at once, so a panic leaves a whole one.
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn renew_on(&self, connection: &mut Option<Connection>) -> Result<(), Trouble> {
        let open = match connection.take().filter(Connection::seems_open) {
            Some(open) => open,
            None => self.server.connect().await.map_err(Trouble::Again)?,
        };
        let renewed = self.renew(&open.client).await;
        *connection = Some(open);
        renewed
    }

    async fn send_claim(&self, client: &Client, holder: &str) -> Result<Option<Claim>, Error> {
        let lasts = self.server.lease.as_secs_f64();
        let row = client
            .query_typed_opt(
                &self.statements.claim,
                &[(&self.nonce, Type::TEXT), (&lasts, Type::FLOAT8), (&holder, Type::TEXT)],
            )
            .await?;
        let Some(row) = row else { return Ok(None) };
        let (head, timeline, before): (_, _, Option<i32>) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let promoted_from = before.filter(|before| *before != timeline);
        Ok(Some(Claim { head, promoted_from, proof: Proof { epoch: row.try_get(3)?, timeline } }))
    }

    async fn send_held(&self, client: &Client) -> Result<Option<Waiting>, Error> {
        let row = client.query_typed_opt(&self.statements.held, &[]).await?;
        let Some(row) = row else { return Ok(None) };
        let (left_ms, head): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
        let (left_ms, commits) = (u64::try_from(left_ms).unwrap_or(0), u64::try_from(head).unwrap_or(0));
        Ok(Some(Waiting::Holder { holder: row.try_get(0)?, url: row.try_get(3)?, left_ms, commits }))
    }

    async fn send_url(&self, client: &Client, url: Option<&str>) -> Result<u64, Error> {
        client.execute_typed(&self.statements.announce, &[(&self.nonce, Type::TEXT), (&url, Type::TEXT)]).await
    }

    async fn send_renewal(&self, client: &Client, proof: Proof) -> Result<bool, Error> {
        let lasts = self.server.lease.as_secs_f64();
        let row = client
            .query_typed_opt(
                &self.statements.renew,
                &[
                    (&self.nonce, Type::TEXT),
                    (&lasts, Type::FLOAT8),
                    (&proof.epoch, Type::INT8),
                    (&proof.timeline, Type::INT4),
                ],
            )
            .await?;
        Ok(row.is_some())
    }

    async fn send_status(&self, client: &Client) -> Result<Option<Status>, Error> {
        let row = client.query_typed_opt(&self.statements.status, &[(&self.nonce, Type::TEXT)]).await?;
        let Some(row) = row else { return Ok(None) };
        let found = OwnerRow {
            head: row.try_get(0)?,
            is_ours: row.try_get(1)?,
            is_in_time: row.try_get(2)?,
            claimed_on: row.try_get(3)?,
            timeline: row.try_get(4)?,
            is_durable: row.try_get(6)?,
            epoch: row.try_get(7)?,
        };
        Ok(Some(Status { row: Some(found), holder: row.try_get(5)? }))
    }

    async fn send_return(&self, client: &Client) -> Result<u64, Error> {
        client.execute_typed(&self.statements.give_back, &[(&self.nonce, Type::TEXT)]).await
    }
}

/// The sentence about a claim that stands no more. `detail` is the process that the row names, or the last error.
fn told(loss: Loss, detail: &str) -> String {
    match loss {
        Loss::NotOurs if detail.is_empty() => "its claim is no longer there".to_owned(),
        Loss::NotOurs => format!("{detail} took it over"),
        Loss::Reclaimed => "another process had it before a late claim of this one".to_owned(),
        Loss::Promoted { from, to } => {
            format!("the server was promoted, from timeline {from} to {to}, and may lack the last commits")
        }
        Loss::NoRow => "the row of its claim is gone".to_owned(),
        Loss::Head { expected, found } => format!("its head is {found} instead of {expected}"),
        Loss::UnknownOutcome => format!("the outcome of a commit is unknown ({detail})"),
        Loss::Defect => "its writer ended by a defect of longhaul".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PostgresConfig;
    use crate::schema::Names;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_loss_is_told_once_and_refuses_every_call_after_it() {
        let server = Server::of(&PostgresConfig::at("postgres://u@localhost/db"), &|_| None).expect("settings");
        let told = Arc::new(AtomicUsize::new(0));
        let on_lost: OnLost = {
            let told = Arc::clone(&told);
            Arc::new(move |_| {
                told.fetch_add(1, Ordering::Relaxed);
            })
        };
        let lease =
            Lease::new(&Arc::new(server), &Names::of("longhaul").owner_seat(), on_lost).expect("random numbers");
        assert_eq!(lease.nonce().len(), 32);
        assert!(lease.check().is_ok() && lease.left_ms() == 0);
        let proof = Proof { epoch: 1, timeline: 1 };
        let claimed = Input::Claimed { sent_ms: uptime_ms(), proof, head: 4 };
        assert_eq!(lease.step(claimed, ""), Ok(Outcome::Stands));
        assert!(lease.left_ms() > 9_000 && lease.held() == Ok((proof, 4)));
        let lost = lease.step(Input::NotRenewed(None), "").expect_err("a loss");
        assert_eq!(lease.step(Input::Defect, "another reason"), Err(lost.clone()));
        assert_eq!(lease.step(claimed, ""), Err(lost.clone()));
        assert_eq!((lease.held(), lease.check(), lease.left_ms()), (Err(lost.clone()), Err(lost.clone()), 0));
        assert_eq!(told.load(Ordering::Relaxed), 1);
        assert!(lost.to_string().contains("the row of its claim is gone; start it again"), "{lost}");
    }

    #[test]
    fn a_loss_names_the_successor_the_timelines_or_the_heads() {
        assert_eq!(told(Loss::NotOurs, "b"), "b took it over");
        assert_eq!(told(Loss::NotOurs, ""), "its claim is no longer there");
        assert!(told(Loss::Promoted { from: 1, to: 2 }, "a").contains("from timeline 1 to 2"));
        assert_eq!(told(Loss::Head { expected: 5, found: 6 }, "a"), "its head is 6 instead of 5");
        assert_eq!(told(Loss::UnknownOutcome, "no answer"), "the outcome of a commit is unknown (no answer)");
    }

    #[test]
    fn a_seat_of_a_worker_is_claimed_at_once_and_that_of_the_owner_once_it_is_free() {
        let names = Names::of("longhaul");
        let owner = Statements::of(&names.owner_seat());
        let claim = |start: &str, end: &str| {
            format!("claimed_at = clock_timestamp() WHERE {start}{end} RETURNING head, timeline")
        };
        let is_free =
            " AND (nonce IS NULL OR nonce = $1::uuid OR lease_until IS NULL OR lease_until <= clock_timestamp())";
        assert!(owner.claim.contains(&claim("id = 1", is_free)) && owner.make.is_none(), "{}", owner.claim);
        let worker = Statements::of(&names.worker_seat("w-1").expect("a name"));
        assert!(worker.claim.contains(&claim("name = 'w-1'", "")), "{}", worker.claim);
        let make = "INSERT INTO \"longhaul\".worker (name) VALUES ('w-1') ON CONFLICT DO NOTHING";
        assert_eq!(worker.make.as_deref(), Some(make));
        for text in [&worker.announce, &worker.held, &worker.renew, &worker.status, &worker.give_back] {
            assert!(text.contains("\"longhaul\".worker") && text.contains("WHERE name = 'w-1'"), "{text}");
        }
    }
}
