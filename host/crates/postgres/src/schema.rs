//! The tables. This module is their documentation, also for other readers of the database.
//!
//! They are in one schema, `longhaul` by default. Keys and values are bytes: `text` refuses a 0, and bytes sort as keys
//! do. The meaning of a key and of a value is that of the same table in `state.redb`, which `tables.rs` of
//! `longhaul-store` documents.
//!
//! | table | column | holds |
//! |---|---|---|
//! | `meta` | `format` | the number of the format, which is that of the last step below; one row |
//! | | `written_by`, `made_at` | the version that made the tables, and when |
//! | `owner` | `nonce` | a random number of the present claim; none: nobody owns the store; one row |
//! | | `epoch` | the number of claims so far |
//! | | `head` | the number of commits so far; each commit expects the one before |
//! | | `timeline` | the timeline of the server at the claim: a promoted standby has another one |
//! | | `lease_until` | the time until which nobody else may claim it, by the clock of the database |
//! | | `holder`, `claimed_at` | the process, for people |
//! | | `url` | the address by which other servers reach that process; none where it serves none of them |
//! | `worker` | `name` | the id of a worker's data directory; one row for each worker that ever joined |
//! | | the other columns | those of `owner`, for the seat of that worker: its claim, and the commits by this seat |
//! | `kv` | `table_no`, `key`, `value` | the rows of all tables of a store; see [`table_no`] for their numbers. Those about objects have one of their own, see `outside.rs` |
//! | `blob` | `digest`, `bytes` | content under its SHA-256, or a marker for an object outside of the database; see `blob.rs` |
//!
//! A row of an index ends at 2,704 bytes, so a key ends at [`KEY_BYTES_MAX`]. Values are not compressed by the server:
//! content is compressed already, and a value that is compared would be decompressed for it.
//!
//! The format number changes when a reader of the old number could misread the tables, or write what breaks them. A
//! schema with a higher number is refused, not guessed at. One with a lower number gets the steps that it lacks from
//! the next process that claims it as its owner; workers wait for that.

use crate::config::refused;
use crate::error::Place;
use longhaul_core::store::{StoreError, Table};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 2_600;

/// The newest format that this crate reads: the number of steps.
pub const FORMAT: u64 = MIGRATIONS.len() as u64;

/// The steps from an empty schema to the newest format. A step that was released is never changed.
///
/// `owner` is one row that every commit changes, as a row of `worker` is: with room in its page, and no index on what
/// changes, no new page and no index entry comes of it.
const MIGRATIONS: [&str; 4] = [
    r"
CREATE TABLE IF NOT EXISTS {schema}.meta (
    id smallint PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    format bigint NOT NULL,
    written_by text NOT NULL,
    made_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE IF NOT EXISTS {schema}.owner (
    id smallint PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    nonce uuid,
    epoch bigint NOT NULL DEFAULT 0,
    head bigint NOT NULL DEFAULT 0,
    timeline integer,
    lease_until timestamptz,
    holder text NOT NULL DEFAULT '',
    claimed_at timestamptz) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS {schema}.kv (
    table_no smallint NOT NULL,
    key bytea NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (table_no, key)) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE {schema}.kv ALTER value SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS {schema}.blob (
    digest bytea PRIMARY KEY CHECK (length(digest) = 32),
    bytes bytea NOT NULL);
ALTER TABLE {schema}.blob ALTER bytes SET STORAGE EXTERNAL;
INSERT INTO {schema}.owner DEFAULT VALUES ON CONFLICT DO NOTHING;
",
    r"
ALTER TABLE {schema}.owner ADD COLUMN IF NOT EXISTS url text;
",
    r"
CREATE TABLE IF NOT EXISTS {schema}.worker (
    name text PRIMARY KEY,
    nonce uuid,
    epoch bigint NOT NULL DEFAULT 0,
    head bigint NOT NULL DEFAULT 0,
    timeline integer,
    lease_until timestamptz,
    holder text NOT NULL DEFAULT '',
    claimed_at timestamptz,
    url text) WITH (fillfactor = 50);
",
    // The tables are the same: a version that knows no markers would take them for damage.
    r"
COMMENT ON COLUMN {schema}.blob.bytes IS 'encoded content, or the marker of an object outside of the database';
",
];

/// The longest name of a worker's seat.
const SEAT_NAME_MAX: usize = 64;

/// The key of the lock under which the tables are made: `longhaul` in ASCII.
const LOCK: i64 = 0x6c6f_6e67_6861_756c;

/// The timeline of the server, right from the moment of a promotion on. What `pg_control_checkpoint` tells comes with
/// the next checkpoint, about a second later.
pub(crate) const TIMELINE: &str = "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int";

/// True where a commit is on the disk once it is acknowledged.
pub(crate) const IS_DURABLE: &str = "current_setting('synchronous_commit') <> 'off'";

/// True in a transaction that sees one moment, and that fails where a row that it changes was changed since.
pub(crate) const IS_REPEATABLE: &str = "current_setting('transaction_isolation') = 'repeatable read'";

/// The address of the holder, of the row `held`. Tables of the first format have no such column, and may be held by a
/// process that knows none.
pub(crate) const HELD_URL: &str = "to_jsonb(held) ->> 'url'";

/// The row by which a process works with a store: its claim, its lease, and the number of its commits.
#[derive(Clone, Debug)]
pub(crate) struct SeatRow {
    /// Its table.
    pub(crate) table: String,
    /// The column that tells it from others.
    pub(crate) key: &'static str,
    /// The condition that it alone meets.
    pub(crate) row: String,
    /// The name of the worker; none for the owner.
    pub(crate) worker: Option<String>,
}

/// The names of the tables in statements.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    schema: String,
    pub(crate) meta: String,
    pub(crate) owner: String,
    pub(crate) worker: String,
    pub(crate) kv: String,
    pub(crate) blob: String,
}

impl Names {
    /// The names in a schema, whose own name was checked to be a plain one.
    pub(crate) fn of(schema: &str) -> Self {
        let table = |name: &str| format!("\"{schema}\".{name}");
        Self {
            schema: format!("\"{schema}\""),
            meta: table("meta"),
            owner: table("owner"),
            worker: table("worker"),
            kv: table("kv"),
            blob: table("blob"),
        }
    }

    /// The seat of the owner.
    pub(crate) fn owner_seat(&self) -> SeatRow {
        SeatRow { table: self.owner.clone(), key: "id", row: "id = 1".to_owned(), worker: None }
    }

    /// The seat of a worker. Its name is a part of statements, so that their parameters keep their numbers, and is
    /// checked to end no text there.
    pub(crate) fn worker_seat(&self, name: &str) -> Result<SeatRow, StoreError> {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        if !is_plain || name.is_empty() || name.len() > SEAT_NAME_MAX {
            return Err(refused(
                format!("`{}` is no name of a worker's seat", name.escape_debug()),
                "use 1 to 64 letters of ASCII, digits, `_` and `-`",
            ));
        }
        let (row, worker) = (format!("name = '{name}'"), Some(name.to_owned()));
        Ok(SeatRow { table: self.worker.clone(), key: "name", row, worker })
    }

    /// The number of the format; none where there are no tables.
    pub(crate) async fn format(&self, client: &Client) -> Result<Option<u64>, Error> {
        let asked = "SELECT to_regclass($1) IS NOT NULL";
        let exists: bool = client.query_typed_one(asked, &[(&self.meta, Type::TEXT)]).await?.try_get(0)?;
        if !exists {
            return Ok(None);
        }
        let row = client.query_typed_opt(&format!("SELECT format FROM {}", self.meta), &[]).await?;
        let format: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
        Ok(format.and_then(|format| u64::try_from(format).ok()))
    }

    /// Takes the steps from `found` on, all or none of them.
    pub(crate) async fn migrate(&self, client: &Client, found: u64) -> Result<(), Error> {
        let asked = "SELECT to_regnamespace($1) IS NOT NULL";
        let exists: bool = client.query_typed_one(asked, &[(&self.schema, Type::TEXT)]).await?.try_get(0)?;
        client.batch_execute(&self.migration(found, exists)).await
    }

    /// The statements of the steps from `found` on. As one message they are one transaction.
    fn migration(&self, found: u64, schema_exists: bool) -> String {
        let mut text = format!("SELECT pg_advisory_xact_lock({LOCK});\n");
        if !schema_exists {
            text += &format!("CREATE SCHEMA IF NOT EXISTS {};\n", self.schema);
        }
        let done = usize::try_from(found).unwrap_or(usize::MAX).min(MIGRATIONS.len());
        for step in &MIGRATIONS[done..] {
            text += &step.replace("{schema}", &self.schema);
        }
        let version = env!("CARGO_PKG_VERSION");
        text + &format!(
            "INSERT INTO {meta} (format, written_by) VALUES ({FORMAT}, 'longhaul {version}') \
             ON CONFLICT (id) DO UPDATE SET format = greatest(meta.format, excluded.format);",
            meta = self.meta
        )
    }
}

/// The error for a schema of a newer version.
pub(crate) fn newer(place: &Place, found: u64) -> Option<StoreError> {
    (found > FORMAT).then(|| StoreError::Format {
        path: place.0.clone(),
        found,
        expected: FORMAT,
        remedy: "use the longhaul that wrote it, or a newer one".to_owned(),
    })
}

/// The number of a table in `kv`: those of the logs of `state.redb`.
pub(crate) fn table_no(table: Table) -> i16 {
    match table {
        Table::Runs => 1,
        Table::States => 2,
        Table::Events => 3,
        Table::Journal => 4,
        Table::KeyValue => 5,
        Table::Memory => 6,
        Table::Decisions => 7,
        Table::Progress => 8,
        Table::Artifacts => 9,
        Table::Graphs => 10,
        Table::Agents => 11,
        Table::Schedules => 12,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_table_has_a_number_of_its_own() {
        let numbers: BTreeSet<i16> = Table::ALL.into_iter().map(table_no).collect();
        assert_eq!(numbers.len(), Table::ALL.len());
    }

    #[test]
    fn a_step_that_was_taken_is_not_taken_again_and_a_newer_schema_is_refused() {
        let names = Names::of("longhaul");
        let whole = names.migration(0, false);
        assert!(whole.contains("CREATE SCHEMA IF NOT EXISTS \"longhaul\";") && !whole.contains("{schema}"), "{whole}");
        assert!(whole.contains("CREATE TABLE IF NOT EXISTS \"longhaul\".kv"), "{whole}");
        let second = names.migration(1, true);
        assert!(second.contains("\"longhaul\".owner ADD COLUMN") && !second.contains(".kv ("), "{second}");
        let third = names.migration(2, true);
        assert!(
            third.contains("CREATE TABLE IF NOT EXISTS \"longhaul\".worker") && !third.contains("ALTER"),
            "{third}"
        );
        assert!(!names.migration(FORMAT, true).contains("CREATE") && !names.migration(FORMAT, true).contains("ALTER"));
        let place = Place("postgres://h/db".to_owned());
        assert_eq!(newer(&place, FORMAT), None);
        let refused = newer(&place, FORMAT + 1).map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("use the longhaul that wrote it, or a newer one"), "{refused}");
    }

    #[test]
    fn the_name_of_a_seat_ends_no_text_of_a_statement() {
        let names = Names::of("longhaul");
        let seat = |name: &str| names.worker_seat(name).map(|seat| seat.row).map_err(|error| error.to_string());
        assert_eq!(seat("A-z_09"), Ok("name = 'A-z_09'".to_owned()));
        assert!(seat(&"a".repeat(SEAT_NAME_MAX)).is_ok());
        for name in ["", "a'b", "a b", "a\\", "a\n", "ä", &"a".repeat(SEAT_NAME_MAX + 1)] {
            let refused = seat(name).expect_err("no name");
            assert!(refused.contains("use 1 to 64 letters") && !refused.contains('\n'), "{refused}");
        }
    }
}
