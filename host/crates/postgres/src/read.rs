//! Reads: over connections of their own, which are made when they are needed and kept.
//!
//! A read changes nothing, and an eviction of a worker does the same however often it is carried out. So each is
//! repeated after an error that may pass, until the server is back or the caller has waited long enough. Once one has
//! waited in vain for a connection, the server is away: all others are refused at once, but for one at a time that
//! finds out whether it is back. Otherwise the callers of a long outage would pile up. A scan is one statement, so its
//! rows are those of one moment.
//!
//! An eviction is no commit of the store, and proves no claim: a lease that ran out is one for everybody. It proves the
//! server, since a pooler may lead an old connection to a promoted one. On the former server it would take away nothing
//! that is in use, and an eviction that a promotion loses takes nothing back: a claim from before the promotion proves
//! a timeline that is no longer the server's.

use crate::blob::{self, MARKER_BYTES};
use crate::clock::jitter;
use crate::connect::{Connection, Server};
use crate::error::Trouble;
use crate::lease::Lease;
use crate::outside::{Generation, OBJECTS_NO};
use crate::schema::{Names, TIMELINE, table_no};
use longhaul_core::Digest;
use longhaul_core::store::{Row, Seat, StoreError, Table};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::types::{ToSql, Type};

/// The pause before a read is repeated, which doubles up to the longest.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The reading connections of a store.
pub(crate) struct Reader {
    server: Arc<Server>,
    lease: Arc<Lease>,
    statements: Statements,
    idle: Mutex<Vec<Connection>>,
    places: Semaphore,
    connections_max: u32,
    /// True from a read that waited in vain for a connection to the next connection or answer.
    is_away: AtomicBool,
    /// Held by the read that asks a server that is away.
    probe: tokio::sync::Mutex<()>,
}

struct Statements {
    get: String,
    from: String,
    after: String,
    back: String,
    blob: String,
    known: String,
    lengths: String,
    digests: String,
    contents: String,
    now: &'static str,
    seats: String,
    evict: String,
}

/// Content, and what its row tells of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredContent {
    pub(crate) digest: Digest,
    /// The length of the encoded content, wherever it is, in bytes.
    pub(crate) bytes: usize,
    /// The upload of the object that the row names; none where the row has the content.
    pub(crate) outside: Option<Generation>,
}

/// Where a scan begins.
pub(crate) enum Start {
    /// At this key.
    At(Vec<u8>),
    /// Behind this key.
    After(Vec<u8>),
}

type Param<'a> = (&'a (dyn ToSql + Sync), Type);

impl Statements {
    fn of(names: &Names) -> Self {
        let Names { kv, blob, worker, .. } = names;
        let scan = |comparison: &str, order: &str| {
            format!(
                "SELECT key, value FROM {kv} WHERE table_no = $1 AND key {comparison} $2 \
                 AND ($3::bytea IS NULL OR key < $3) ORDER BY key {order} LIMIT $4"
            )
        };
        Self {
            get: format!("SELECT value FROM {kv} WHERE table_no = $1 AND key = $2"),
            from: scan(">=", "ASC"),
            after: scan(">", "ASC"),
            back: scan(">=", "DESC"),
            blob: format!("SELECT bytes FROM {blob} WHERE digest = $1"),
            known: format!("SELECT digest FROM {blob} WHERE digest = ANY($1)"),
            lengths: format!(
                "SELECT digest, octet_length(bytes)::bigint, substr(bytes, 1, {MARKER_BYTES}) FROM {blob} \
                 WHERE digest = ANY($1) ORDER BY digest"
            ),
            digests: format!(
                "SELECT digest, octet_length(bytes)::bigint, substr(bytes, 1, {MARKER_BYTES}) FROM {blob} \
                 WHERE digest > $1 ORDER BY digest LIMIT $2"
            ),
            contents: format!("SELECT digest, bytes FROM {blob} WHERE digest = ANY($1) ORDER BY digest"),
            now: "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
            seats: format!(
                "SELECT name, epoch, holder, greatest(0, coalesce(ceil(extract(epoch FROM \
                 lease_until - clock_timestamp()) * 1000), 0))::bigint, head FROM {worker} ORDER BY name COLLATE \"C\""
            ),
            // The second part tells of the same eviction by an attempt before, whose answer was lost.
            evict: format!(
                "WITH evicted AS (UPDATE {worker} SET nonce = NULL, lease_until = NULL, holder = '', epoch = epoch + 1 \
                 WHERE name = $1 AND epoch = $2 AND (lease_until IS NULL OR lease_until <= clock_timestamp()) \
                 AND {TIMELINE} = $3 RETURNING name) \
                 SELECT EXISTS (SELECT FROM evicted) OR EXISTS (SELECT FROM {worker} \
                 WHERE name = $1 AND epoch = $2 + 1 AND nonce IS NULL AND {TIMELINE} = $3)"
            ),
        }
    }
}

impl Reader {
    pub(crate) fn new(server: &Arc<Server>, lease: &Arc<Lease>, names: &Names, connections_max: u32) -> Self {
        Self {
            server: Arc::clone(server),
            lease: Arc::clone(lease),
            statements: Statements::of(names),
            idle: Mutex::default(),
            places: Semaphore::new(usize::try_from(connections_max).unwrap_or(1)),
            connections_max,
            is_away: AtomicBool::new(false),
            probe: tokio::sync::Mutex::default(),
        }
    }

    /// The value of a key.
    pub(crate) async fn get(&self, table: Table, key: Vec<u8>) -> Result<Option<Vec<u8>>, StoreError> {
        let params: [Param<'_>; 2] = [(&table_no(table), Type::INT2), (&key, Type::BYTEA)];
        self.value(&self.statements.get, &params).await
    }

    /// Rows from a key on, up to the first key that is not below `end`.
    pub(crate) async fn forward(
        &self,
        table: Table,
        start: Start,
        end: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        match &start {
            Start::At(key) => self.scan(&self.statements.from, table_no(table), key, end, limit).await,
            Start::After(key) => self.scan(&self.statements.after, table_no(table), key, end, limit).await,
        }
    }

    /// The last rows between two keys, the last one first.
    pub(crate) async fn backward(
        &self,
        table: Table,
        start: Vec<u8>,
        end: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        self.scan(&self.statements.back, table_no(table), &start, end, limit).await
    }

    /// Content as it is stored.
    pub(crate) async fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let digest = &digest.as_bytes()[..];
        self.value(&self.statements.blob, &[(&digest, Type::BYTEA)]).await
    }

    /// Those of the digests that there is content of.
    pub(crate) async fn known(&self, digests: Vec<Digest>) -> Result<Vec<Digest>, StoreError> {
        let asked: Vec<&[u8]> = digests.iter().map(|digest| &digest.as_bytes()[..]).collect();
        let rows = self.rows(&self.statements.known, &[(&asked, Type::BYTEA_ARRAY)]).await?;
        rows.iter().map(|row| self.digest(self.column(row, 0)?)).collect()
    }

    /// The rows about objects after a key, in order.
    pub(crate) async fn objects(&self, after: Vec<u8>, limit: usize) -> Result<Vec<Row>, StoreError> {
        self.scan(&self.statements.after, OBJECTS_NO, &after, None, limit).await
    }

    /// The time of the database, in milliseconds since 1970.
    pub(crate) async fn now_ms(&self) -> Result<u64, StoreError> {
        let rows = self.rows(self.statements.now, &[]).await?;
        let now: Option<i64> = rows.first().map(|row| self.column(row, 0)).transpose()?;
        Ok(now.and_then(|now| u64::try_from(now).ok()).unwrap_or(0))
    }

    /// What is stored of the digests that have content, in order.
    pub(crate) async fn lengths(&self, digests: Vec<Digest>) -> Result<Vec<StoredContent>, StoreError> {
        let asked: Vec<&[u8]> = digests.iter().map(|digest| &digest.as_bytes()[..]).collect();
        let rows = self.rows(&self.statements.lengths, &[(&asked, Type::BYTEA_ARRAY)]).await?;
        rows.iter().map(|row| self.stored(row)).collect()
    }

    /// What is stored of the digests after one, in order.
    pub(crate) async fn digests(&self, after: Option<Digest>, limit: i64) -> Result<Vec<StoredContent>, StoreError> {
        let after = after.map(|digest| digest.as_bytes().to_vec()).unwrap_or_default();
        let rows = self.rows(&self.statements.digests, &[(&after, Type::BYTEA), (&limit, Type::INT8)]).await?;
        rows.iter().map(|row| self.stored(row)).collect()
    }

    /// Contents as they are stored, in the order of their digests.
    pub(crate) async fn contents(&self, digests: Vec<Digest>) -> Result<Vec<(Digest, Vec<u8>)>, StoreError> {
        let asked: Vec<&[u8]> = digests.iter().map(|digest| &digest.as_bytes()[..]).collect();
        let rows = self.rows(&self.statements.contents, &[(&asked, Type::BYTEA_ARRAY)]).await?;
        rows.iter().map(|row| Ok((self.digest(self.column(row, 0)?)?, self.column(row, 1)?))).collect()
    }

    /// The seats of workers, by name.
    pub(crate) async fn seats(&self) -> Result<Vec<Seat>, StoreError> {
        let rows = self.rows(&self.statements.seats, &[]).await?;
        rows.iter().map(|row| self.seat(row)).collect()
    }

    /// Takes the seat of a worker away whose lease ran out; true: it is gone, by this call or by one before. `timeline`
    /// is that of the server on which this process claimed its own row.
    pub(crate) async fn evict(&self, name: &str, epoch: u64, timeline: i32) -> Result<bool, StoreError> {
        let epoch = i64::try_from(epoch).unwrap_or(i64::MAX - 1);
        let params: [Param<'_>; 3] = [(&name, Type::TEXT), (&epoch, Type::INT8), (&timeline, Type::INT4)];
        let rows = self.rows(&self.statements.evict, &params).await?;
        rows.first().map_or(Ok(false), |row| self.column(row, 0))
    }

    async fn value(&self, text: &str, params: &[Param<'_>]) -> Result<Option<Vec<u8>>, StoreError> {
        let rows = self.rows(text, params).await?;
        rows.first().map(|row| self.column(row, 0)).transpose()
    }

    async fn scan(
        &self,
        text: &str,
        table: i16,
        start: &[u8],
        end: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let params: [Param<'_>; 4] =
            [(&table, Type::INT2), (&start, Type::BYTEA), (&end, Type::BYTEA), (&limit, Type::INT8)];
        let rows = self.rows(text, &params).await?;
        rows.iter().map(|row| Ok((self.column(row, 0)?, self.column(row, 1)?))).collect()
    }

    /// The rows of a statement.
    async fn rows(&self, text: &str, params: &[Param<'_>]) -> Result<Vec<tokio_postgres::Row>, StoreError> {
        if self.is_away() { self.probe_rows(text, params).await } else { self.await_rows(text, params).await }
    }

    /// The rows of a statement, which is repeated while its errors may pass.
    async fn await_rows(&self, text: &str, params: &[Param<'_>]) -> Result<Vec<tokio_postgres::Row>, StoreError> {
        let deadline = Instant::now() + self.server.patience;
        let busy = |_| self.server.place.unreachable(format!("all {} connections are busy", self.connections_max));
        let place = timeout_at(deadline, self.places.acquire()).await.map_err(busy)?;
        let _place = place.map_err(|_| self.server.place.failed("it was closed"))?;
        let mut pause = PAUSE_MIN;
        loop {
            self.lease.check()?;
            if self.is_away() {
                return Err(self.away());
            }
            let (why, has_connection) = match self.try_rows(text, params).await {
                Ok(rows) => return Ok(rows),
                Err(Trouble::Final(why)) => return Err(why),
                Err(Trouble::Again(why) | Trouble::Overtaken(why)) => {
                    let has_connection = !matches!(why, StoreError::Unreachable { .. });
                    (why, has_connection)
                }
                Err(Trouble::Unknown(why)) => (why, true),
            };
            if Instant::now() + pause >= deadline {
                if !has_connection {
                    self.begin_outage(&why);
                }
                return Err(why);
            }
            tracing::debug!(error = %why, "a read is repeated");
            sleep(pause + jitter(pause)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// The rows of a statement that asks a server that is away, once; refused where another one asks it just now.
    async fn probe_rows(&self, text: &str, params: &[Param<'_>]) -> Result<Vec<tokio_postgres::Row>, StoreError> {
        self.lease.check()?;
        let Ok(_probe) = self.probe.try_lock() else { return Err(self.away()) };
        let found = self.try_rows(text, params).await;
        found.map_err(Trouble::into_error)
    }

    fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }

    fn away(&self) -> StoreError {
        let ms = self.server.patience.as_millis();
        self.server
            .place
            .unreachable(format!("it did not come back within {ms} ms, and is asked by one call at a time"))
    }

    fn begin_outage(&self, why: &StoreError) {
        if !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!(error = %why, "the server of the store is away; reads wait for it no more");
        }
        // One of them may be broken without a sign, and would cost the first read after the outage.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn end_outage(&self) {
        if self.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("the server of the store is back");
        }
    }

    async fn try_rows(&self, text: &str, params: &[Param<'_>]) -> Result<Vec<tokio_postgres::Row>, Trouble> {
        let connection = match self.take() {
            Some(idle) => idle,
            None => {
                let made = self.server.connect().await.map_err(Trouble::of_connection)?;
                self.lease.expect_server(&made.client).await?;
                // However long the statement takes.
                self.end_outage();
                made
            }
        };
        let rows = self.server.bounded(self.server.statement_max, connection.client.query_typed(text, params)).await?;
        self.end_outage();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(rows)
    }

    /// An idle connection that is not known to be broken.
    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(Connection::seems_open);
        idle.pop()
    }

    fn column<'a, T: tokio_postgres::types::FromSql<'a>>(
        &self,
        row: &'a tokio_postgres::Row,
        at: usize,
    ) -> Result<T, StoreError> {
        row.try_get(at).map_err(|error| self.server.place.trouble(&error).into_error())
    }

    fn stored(&self, row: &tokio_postgres::Row) -> Result<StoredContent, StoreError> {
        let (length, start): (i64, &[u8]) = (self.column(row, 1)?, self.column(row, 2)?);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        // A longer value that begins as a marker is none.
        let marker = (length == MARKER_BYTES).then(|| blob::marker(start)).flatten();
        Ok(StoredContent {
            digest: self.digest(self.column(row, 0)?)?,
            bytes: marker.map_or(length, |marker| marker.stored),
            outside: marker.map(|marker| marker.generation),
        })
    }

    fn seat(&self, row: &tokio_postgres::Row) -> Result<Seat, StoreError> {
        let number = |at| self.column::<i64>(row, at).map(|number| u64::try_from(number).unwrap_or(0));
        Ok(Seat {
            name: self.column(row, 0)?,
            epoch: number(1)?,
            holder: self.column(row, 2)?,
            left_ms: number(3)?,
            commits: number(4)?,
        })
    }

    fn digest(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        let bytes = <[u8; 32]>::try_from(bytes);
        bytes.map(Digest::from).map_err(|_| self.server.place.damaged("content under a key that is no digest"))
    }
}
