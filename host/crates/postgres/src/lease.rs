//! The owner's row: claim, renewal, return and loss of the store.
//!
//! The nonce of a claim is drawn before the claim is sent and is the same in every attempt of a process, so an attempt
//! that lands late is no other claim. It fences: whoever claims next puts another one in its place. The lease is what
//! others wait for, by the clock of the database. The timeline tells a promoted standby, which may lack the last
//! commits.
//!
//! A lease that ran out while nobody took it is renewed: no other process wrote since, and the head of the next commit
//! proves it.

use crate::clock::{jitter, uptime_ms};
use crate::connect::{Connection, Server};
use crate::error::Trouble;
use crate::schema::{HELD_URL, IS_DURABLE, Names, TIMELINE};
use longhaul_core::store::StoreError;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
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
    pub(crate) timeline: i32,
    /// The number of claims, this one included.
    pub(crate) epoch: i64,
}

/// The owner's row as a statement without effect found it.
pub(crate) struct Status {
    pub(crate) head: i64,
    /// False once the lease ran out.
    pub(crate) is_in_time: bool,
    /// False where the server acknowledges what it may lose.
    pub(crate) is_durable: bool,
    /// The successor, or the change of the server; none while the claim stands.
    pub(crate) lost: Option<String>,
}

impl Status {
    /// A claim on tables that somebody removed stands no more.
    fn of_no_row() -> Self {
        Self { head: 0, is_in_time: false, is_durable: true, lost: Some("the row of its owner is gone".to_owned()) }
    }
}

/// The result of an attempt to claim.
pub(crate) enum Claimed<T> {
    Ours(T),
    Others(Waiting),
}

/// The lease of this process on a store.
pub(crate) struct Lease {
    server: Arc<Server>,
    statements: Statements,
    nonce: String,
    /// The end of the lease by the clock of [`uptime_ms`], counted from before the statement was sent.
    held_until_ms: AtomicU64,
    lost: OnceLock<LeaseLost>,
    on_lost: OnLost,
}

/// Statements about the owner's row. `$1` is the nonce.
struct Statements {
    claim: String,
    announce: String,
    held: String,
    renew: String,
    status: String,
    give_back: String,
}

impl Statements {
    fn of(names: &Names) -> Self {
        let owner = &names.owner;
        Self {
            claim: format!(
                "WITH before AS (SELECT timeline FROM {owner} WHERE id = 1) \
                 UPDATE {owner} SET nonce = $1::uuid, epoch = epoch + (nonce IS DISTINCT FROM $1::uuid)::int, \
                 timeline = {TIMELINE}, lease_until = clock_timestamp() + $2 * interval '1 second', holder = $3, \
                 claimed_at = clock_timestamp() WHERE id = 1 \
                 AND (nonce IS NULL OR nonce = $1::uuid OR lease_until IS NULL OR lease_until <= clock_timestamp()) \
                 RETURNING head, timeline, (SELECT timeline FROM before), epoch"
            ),
            announce: format!("UPDATE {owner} SET url = $2 WHERE id = 1 AND nonce = $1::uuid"),
            held: format!(
                "SELECT holder, coalesce(ceil(extract(epoch FROM lease_until - clock_timestamp()) * 1000), 0)::bigint, \
                 head, {HELD_URL} FROM {owner} AS held WHERE id = 1"
            ),
            renew: format!(
                "UPDATE {owner} SET lease_until = clock_timestamp() + $2 * interval '1 second' \
                 WHERE id = 1 AND nonce = $1::uuid AND timeline = {TIMELINE} RETURNING id"
            ),
            status: format!(
                "SELECT head, coalesce(nonce = $1::uuid, false), coalesce(lease_until > clock_timestamp(), false), \
                 timeline, {TIMELINE}, holder, {IS_DURABLE} FROM {owner} WHERE id = 1"
            ),
            give_back: format!(
                "UPDATE {owner} SET nonce = NULL, lease_until = NULL, holder = '' WHERE id = 1 AND nonce = $1::uuid"
            ),
        }
    }
}

impl Lease {
    /// A lease that is not claimed yet.
    pub(crate) fn new(server: &Arc<Server>, names: &Names, on_lost: OnLost) -> Result<Self, StoreError> {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(|why| server.place.failed(format!("no random number: {why}")))?;
        Ok(Self {
            server: Arc::clone(server),
            statements: Statements::of(names),
            nonce: format!("{:032x}", u128::from_be_bytes(nonce)),
            held_until_ms: AtomicU64::new(0),
            lost: OnceLock::new(),
            on_lost,
        })
    }

    /// The nonce of the claim, which a commit proves.
    pub(crate) fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Claims the store, unless another process holds it.
    pub(crate) async fn claim(&self, client: &Client, holder: &Holder) -> Result<Claimed<Claim>, Trouble> {
        let began = uptime_ms();
        let claimed =
            self.server.bounded(self.server.append_max(), self.send_claim(client, &holder.to_string())).await?;
        match claimed {
            Some(claim) => {
                self.extend_from(began);
                Ok(Claimed::Ours(claim))
            }
            None => {
                let held = self.server.bounded(self.server.append_max(), self.send_held(client)).await?;
                let missing = || Trouble::Final(self.server.place.damaged("the row of its owner is gone"));
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
        self.check().map_err(Trouble::Final)?;
        let began = uptime_ms();
        let limit = self.server.lease / 4;
        let renewed = self.server.bounded(limit, self.send_renewal(client)).await?;
        if renewed {
            self.extend_from(began);
            self.server.counts.lease_renewals.add();
            return Ok(());
        }
        let status = self.status(client).await?;
        Err(match status.lost {
            Some(detail) => Trouble::Final(self.lose(detail)),
            None => Trouble::Again(self.server.place.failed("its lease was not renewed")),
        })
    }

    /// Reads the owner's row.
    pub(crate) async fn status(&self, client: &Client) -> Result<Status, Trouble> {
        let status = self.server.bounded(self.server.append_max(), self.send_status(client)).await?;
        Ok(status.unwrap_or_else(Status::of_no_row))
    }

    /// Expects that a new connection leads to the server of the claim: another one of the same address may be one that
    /// a promotion left behind, and tell what is no longer so.
    pub(crate) async fn expect_server(&self, client: &Client) -> Result<(), Trouble> {
        match self.status(client).await?.lost {
            None => Ok(()),
            Some(detail) => Err(Trouble::Again(self.server.place.unreachable(detail))),
        }
    }

    /// Renews the lease in half its time, until the store is lost.
    pub(crate) async fn keep(self: Arc<Self>, mut connection: Option<Connection>) {
        let pause = (self.server.lease / RETRY_PART).clamp(RETRY_MIN, RETRY_MAX);
        let mut wait = self.server.lease / 2;
        while self.lost.get().is_none() {
            tokio::time::sleep(wait + jitter(pause / 2)).await;
            wait = match self.renew_on(&mut connection).await {
                Ok(()) => self.server.lease / 2,
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
        if self.lost.get().is_some() {
            return;
        }
        let given = match self.server.connect().await {
            Ok(connection) => self.server.bounded(self.server.append_max(), self.send_return(&connection.client)).await,
            Err(why) => Err(Trouble::Final(why)),
        };
        self.held_until_ms.store(0, Ordering::Relaxed);
        if let Err(trouble) = given {
            tracing::warn!(error = %trouble.into_error(), "the next owner of the store waits until the lease ends");
        }
    }

    /// Gives the store up, and tells that once; returns the error of every call from now on.
    pub(crate) fn lose(&self, detail: String) -> StoreError {
        let mut is_first = false;
        let lost = self.lost.get_or_init(|| {
            is_first = true;
            LeaseLost { path: self.server.place.0.clone(), detail }
        });
        if is_first {
            self.held_until_ms.store(0, Ordering::Relaxed);
            // Before anything that may wait, as a log does for its reader.
            (self.on_lost)(lost);
        }
        lost.to_error()
    }

    /// Refuses once the store is lost.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.lost.get().map_or(Ok(()), |lost| Err(lost.to_error()))
    }

    /// The time for which nobody else may claim the store, in milliseconds.
    pub(crate) fn left_ms(&self) -> u64 {
        self.held_until_ms.load(Ordering::Relaxed).saturating_sub(uptime_ms())
    }

    fn extend_from(&self, began_ms: u64) {
        let lasts = u64::try_from(self.server.lease.as_millis()).unwrap_or(u64::MAX);
        self.held_until_ms.fetch_max(began_ms.saturating_add(lasts), Ordering::Relaxed);
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
        Ok(Some(Claim { head, promoted_from, timeline, epoch: row.try_get(3)? }))
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

    async fn send_renewal(&self, client: &Client) -> Result<bool, Error> {
        let lasts = self.server.lease.as_secs_f64();
        let row = client
            .query_typed_opt(&self.statements.renew, &[(&self.nonce, Type::TEXT), (&lasts, Type::FLOAT8)])
            .await?;
        Ok(row.is_some())
    }

    async fn send_status(&self, client: &Client) -> Result<Option<Status>, Error> {
        let row = client.query_typed_opt(&self.statements.status, &[(&self.nonce, Type::TEXT)]).await?;
        let Some(row) = row else { return Ok(None) };
        let (claimed, present): (Option<i32>, i32) = (row.try_get(3)?, row.try_get(4)?);
        let (is_ours, holder): (bool, String) = (row.try_get(1)?, row.try_get(5)?);
        let lost = loss(is_ours, &holder, claimed, present);
        let (head, is_in_time, is_durable) = (row.try_get(0)?, row.try_get(2)?, row.try_get(6)?);
        Ok(Some(Status { head, is_in_time, is_durable, lost }))
    }

    async fn send_return(&self, client: &Client) -> Result<u64, Error> {
        client.execute_typed(&self.statements.give_back, &[(&self.nonce, Type::TEXT)]).await
    }
}

/// The sentence about a claim that stands no more.
fn loss(is_ours: bool, holder: &str, claimed: Option<i32>, present: i32) -> Option<String> {
    match (is_ours, claimed) {
        (true, Some(claimed)) if claimed == present => None,
        (true, claimed) => Some(format!(
            "the server was promoted, from timeline {} to {present}, and may lack the last commits",
            claimed.unwrap_or_default()
        )),
        (false, _) if holder.is_empty() => Some("its claim is no longer there".to_owned()),
        (false, _) => Some(format!("{holder} took it over")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PostgresConfig;
    use std::sync::atomic::AtomicUsize;

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
        let lease = Lease::new(&Arc::new(server), &Names::of("longhaul"), on_lost).expect("random numbers");
        assert_eq!(lease.nonce().len(), 32);
        assert!(lease.check().is_ok() && lease.left_ms() == 0);
        lease.extend_from(uptime_ms());
        assert!(lease.left_ms() > 9_000);
        let lost = lease.lose("somebody took it over".to_owned());
        assert_eq!(lease.lose("another reason".to_owned()), lost);
        assert_eq!((lease.check(), lease.left_ms()), (Err(lost.clone()), 0));
        assert_eq!(told.load(Ordering::Relaxed), 1);
        assert!(lost.to_string().contains("somebody took it over; start it again"), "{lost}");
    }

    #[test]
    fn a_promoted_server_is_told_before_a_successor_where_the_claim_is_ours() {
        assert_eq!(loss(true, "a", Some(1), 1), None);
        assert!(loss(true, "a", Some(1), 2).is_some_and(|text| text.contains("from timeline 1 to 2")));
        assert!(loss(false, "b", Some(2), 2).is_some_and(|text| text == "b took it over"));
        assert!(loss(false, "", None, 1).is_some_and(|text| text == "its claim is no longer there"));
    }
}
