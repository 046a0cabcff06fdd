//! The state of a server for the doctor: what it is, how it is set, who owns the store, what it takes.
//!
//! Refuses nothing: what makes a server unfit is in the report as well. Changes nothing.

use crate::background::Background;
use crate::config::PostgresConfig;
use crate::connect::{Connection, Facts, Server};
use crate::error::Trouble;
use crate::schema::{FORMAT, HELD_URL, Names, TIMELINE};
use longhaul_core::store::StoreError;
use longhaul_objects::ObjectClient;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

/// The bound of each statement of a report.
const STATEMENT_MAX: Duration = Duration::from_secs(10);

/// The state of the server of a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// The address, without a password.
    pub path: String,
    /// Its version, as it tells it.
    pub version: String,
    /// True for a replica, which takes no writes.
    pub is_replica: bool,
    /// `synchronous_commit`; a store refuses `off`.
    pub synchronous_commit: String,
    /// `fsync`; `off` loses everything with the machine.
    pub fsync: String,
    /// `default_transaction_isolation`.
    pub isolation: String,
    /// True when the connection is encrypted.
    pub is_encrypted: bool,
    /// True where a pooler is between: it does not hand on the settings of a session. Commits, reads and the lease work
    /// over it in session and in transaction mode; statements are then ended by this side alone.
    pub is_pooled: bool,
    /// The open connections, of all users.
    pub connections_used: u64,
    /// The most connections that the server takes.
    pub connections_max: u64,
    /// The clock of the server minus that of this machine, in milliseconds, as far as the time of the answer tells.
    pub clock_skew_ms: i64,
    /// The timeline of the server, which a promotion changes; none for a replica.
    pub timeline: Option<i32>,
    /// The format of the tables; none where there are none yet.
    pub format_found: Option<u64>,
    /// The format that this program reads.
    pub format_expected: u64,
    /// The owner of the store; none where nobody owns it.
    pub holder: Option<String>,
    /// The address of the owner for other servers, as the database has it: not checked.
    #[serde(default)]
    pub holder_url: Option<String>,
    /// The time until its lease ends, in milliseconds; negative for one that ran out.
    pub lease_left_ms: Option<i64>,
    /// The number of commits so far.
    pub commits: Option<u64>,
    /// The number of claims so far.
    pub epoch: Option<u64>,
    /// The size of the tables with their indexes, in bytes.
    pub size_bytes: u64,
    /// Rows that vacuum has not removed yet.
    pub dead_rows: u64,
    /// The age of the oldest snapshot that this user may see, in seconds. Vacuum keeps all rows that died since.
    pub oldest_snapshot_s: Option<u64>,
}

/// Asks a server for its state.
///
/// # Errors
/// [`StoreError::Refused`] for invalid settings and missing rights, [`StoreError::Unreachable`], and
/// [`StoreError::Failed`] for any other error of the server.
pub fn inspect(config: &PostgresConfig, variable: &dyn Fn(&str) -> Option<String>) -> Result<ServerReport, StoreError> {
    let server = Arc::new(Server::of(config, variable)?);
    let names = Names::of(&config.schema);
    let ended = server.place.failed("its thread ended");
    let background = Background::start().map_err(|why| server.place.failed(format!("no thread: {why}")))?;
    background.wait(async move { ask(&server, &names).await }).unwrap_or(Err(ended))
}

/// Puts, gets and deletes a small object at the place of content outside of the database; returns that place and the time
/// that it took. None where settings name no place.
///
/// # Errors
/// [`StoreError::Refused`] for invalid settings and missing rights, [`StoreError::Full`], and
/// [`StoreError::Unreachable`].
pub fn probe_content(
    config: &PostgresConfig,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<(String, Duration)>, StoreError> {
    let Some(content) = &config.content else { return Ok(None) };
    let objects = ObjectClient::open(content, variable)?;
    let failed = |detail: String| StoreError::Failed { path: content.url.clone(), detail };
    let background = Background::start().map_err(|why| failed(format!("no thread: {why}")))?;
    let probed = background.wait(async move { objects.probe().await });
    let took = probed.unwrap_or_else(|| Err(failed("its thread ended".to_owned())))?;
    Ok(Some((content.url.clone(), took)))
}

async fn ask(server: &Server, names: &Names) -> Result<ServerReport, StoreError> {
    let connection = server.connect_to_any().await?;
    let facts = server.facts(&connection).await?;
    server.check_pooler(&connection, &facts).await.map_err(Trouble::into_error)?;
    let asked = server.bounded(STATEMENT_MAX, report(server, names, &facts, &connection)).await;
    asked.map_err(Trouble::into_error)
}

async fn report(server: &Server, names: &Names, facts: &Facts, connection: &Connection) -> Result<ServerReport, Error> {
    let client = &connection.client;
    let clock_skew_ms = clock_skew_ms(client).await?;
    let general = "SELECT current_setting('fsync'), (SELECT count(*) FROM pg_stat_activity), \
                   current_setting('max_connections')::bigint, (SELECT max(extract(epoch FROM \
                   clock_timestamp() - xact_start))::bigint FROM pg_stat_activity WHERE backend_xmin IS NOT NULL)";
    let row = client.query_typed_one(general, &[]).await?;
    let (connections_used, connections_max): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
    let oldest_snapshot_s: Option<i64> = row.try_get(3)?;
    let mut report = ServerReport {
        path: server.place.0.clone(),
        version: facts.version.clone(),
        is_replica: facts.is_replica,
        synchronous_commit: facts.synchronous_commit.clone(),
        fsync: row.try_get(0)?,
        isolation: facts.isolation.clone(),
        is_encrypted: facts.is_encrypted,
        is_pooled: server.has_pooler(facts),
        connections_used: natural(connections_used),
        connections_max: natural(connections_max),
        clock_skew_ms,
        timeline: None,
        format_found: names.format(client).await?,
        format_expected: FORMAT,
        holder: None,
        holder_url: None,
        lease_left_ms: None,
        commits: None,
        epoch: None,
        size_bytes: 0,
        dead_rows: 0,
        oldest_snapshot_s: oldest_snapshot_s.map(natural),
    };
    if !facts.is_replica {
        let row = client.query_typed_one(&format!("SELECT {TIMELINE}"), &[]).await?;
        report.timeline = Some(row.try_get(0)?);
    }
    if report.format_found.is_some() {
        add_owner(&mut report, client, names).await?;
        add_size(&mut report, client, names).await?;
    }
    Ok(report)
}

async fn add_owner(report: &mut ServerReport, client: &Client, names: &Names) -> Result<(), Error> {
    let asked = format!(
        "SELECT nonce IS NOT NULL, holder, \
         ceil(extract(epoch FROM lease_until - clock_timestamp()) * 1000)::bigint, head, epoch, {HELD_URL} \
         FROM {} AS held WHERE id = 1",
        names.owner
    );
    let Some(row) = client.query_typed_opt(&asked, &[]).await? else { return Ok(()) };
    if row.try_get(0)? {
        report.holder = Some(row.try_get(1)?);
        report.lease_left_ms = row.try_get(2)?;
        report.holder_url = row.try_get(5)?;
    }
    let (commits, epoch): (i64, i64) = (row.try_get(3)?, row.try_get(4)?);
    (report.commits, report.epoch) = (Some(natural(commits)), Some(natural(epoch)));
    Ok(())
}

async fn add_size(report: &mut ServerReport, client: &Client, names: &Names) -> Result<(), Error> {
    let asked = "SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint, \
                 coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables \
                 WHERE relid IN (SELECT to_regclass(name)::oid FROM unnest($1::text[]) AS name)";
    // Older tables lack some.
    let tables: &[&str] = &[&names.meta, &names.owner, &names.worker, &names.kv, &names.blob];
    let row = client.query_typed_one(asked, &[(&tables, Type::TEXT_ARRAY)]).await?;
    let (size_bytes, dead_rows): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    (report.size_bytes, report.dead_rows) = (natural(size_bytes), natural(dead_rows));
    Ok(())
}

/// The clock of the server minus that of this machine; the answer is taken to be of the middle of its way.
async fn clock_skew_ms(client: &Client) -> Result<i64, Error> {
    let before = now_ms();
    let asked = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let there: i64 = client.query_typed_one(asked, &[]).await?.try_get(0)?;
    Ok(there.saturating_sub(before.midpoint(now_ms())))
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

fn natural(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
