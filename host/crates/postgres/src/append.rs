//! The fenced statement: the only one that changes the store, and every change of it proves the right to make it.
//!
//! It moves the head of its seat, the row of the owner or of a worker, where nonce, epoch, expected head, lease and
//! timeline match and all conditions hold, and makes its changes where the head moved. The row stays locked until the
//! commit, so nobody claims the seat in the middle, and a second sending of the same statement waits, fails, and then
//! finds another head.
//!
//! The values of conditions are those from before the statement, and several seats write. So it runs in REPEATABLE
//! READ, and does nothing otherwise: where another seat changed a row that it writes since, it fails with 40001, and is
//! sent again as it was. It writes every key that it has a condition on (see `fold.rs`), so a condition that held then
//! still holds at the commit; one on a key that it only reads would not be kept. A key that two seats put without a
//! condition has the value of the last one, and so has one that they put at the same time: the second is sent again.
//!
//! It also does nothing where the server would acknowledge what it may lose: a setting can be changed under an open
//! connection.

use crate::blob;
use crate::error::told;
use crate::protocol::{Proof, VOID_HEADS};
use crate::schema::{IS_DURABLE, IS_REPEATABLE, Names, SeatRow, TIMELINE};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

/// The right to commit.
pub(crate) struct Fence<'a> {
    pub(crate) nonce: &'a str,
    pub(crate) proof: Proof,
    /// The number of commits so far, as the process knows it.
    pub(crate) head: i64,
}

/// The rows and the content of one statement.
#[derive(Debug, Default)]
pub(crate) struct Work<'a> {
    condition_tables: Vec<i16>,
    condition_keys: Vec<&'a [u8]>,
    condition_digests: Vec<Option<&'a [u8]>>,
    put_tables: Vec<i16>,
    put_keys: Vec<&'a [u8]>,
    put_values: Vec<&'a [u8]>,
    delete_tables: Vec<i16>,
    delete_keys: Vec<&'a [u8]>,
    blob_digests: Vec<&'a [u8]>,
    blob_values: Vec<&'a [u8]>,
    dead_digests: Vec<&'a [u8]>,
    bytes: usize,
}

impl<'a> Work<'a> {
    /// Adds a condition: the digest of a stored value, or that there is none.
    pub(crate) fn expect(&mut self, table: i16, key: &'a [u8], digest: Option<&'a [u8]>) {
        self.bytes += key.len();
        self.condition_tables.push(table);
        self.condition_keys.push(key);
        self.condition_digests.push(digest);
    }

    pub(crate) fn put(&mut self, table: i16, key: &'a [u8], value: &'a [u8]) {
        self.bytes += key.len() + value.len();
        self.put_tables.push(table);
        self.put_keys.push(key);
        self.put_values.push(value);
    }

    pub(crate) fn delete(&mut self, table: i16, key: &'a [u8]) {
        self.bytes += key.len();
        self.delete_tables.push(table);
        self.delete_keys.push(key);
    }

    pub(crate) fn put_blob(&mut self, digest: &'a [u8], value: &'a [u8]) {
        self.bytes += value.len();
        self.blob_digests.push(digest);
        self.blob_values.push(value);
    }

    pub(crate) fn remove_blob(&mut self, digest: &'a [u8]) {
        self.bytes += digest.len();
        self.dead_digests.push(digest);
    }

    /// The length of all of it, in bytes, or a little less.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes out content until the rest has at most `bytes_max`, as work of its own. Content may be stored before what
    /// names it: at worst it is named by nothing. A marker stays, and is before all other content: it and the state of
    /// its object change together.
    pub(crate) fn split_content(&mut self, bytes_max: usize) -> Vec<Work<'a>> {
        let mut parts: Vec<Work<'a>> = Vec::new();
        while self.bytes > bytes_max {
            if self.blob_values.last().is_none_or(|value| blob::marker(value).is_some()) {
                break;
            }
            let (Some(digest), Some(value)) = (self.blob_digests.pop(), self.blob_values.pop()) else { break };
            self.bytes -= value.len();
            match parts.last_mut() {
                Some(part) if part.bytes + value.len() <= bytes_max => part.put_blob(digest, value),
                _ => {
                    let mut part = Work::default();
                    part.put_blob(digest, value);
                    parts.push(part);
                }
            }
        }
        parts
    }

    fn parts(&self) -> usize {
        let has = [
            !self.condition_tables.is_empty(),
            !self.put_tables.is_empty(),
            !self.delete_tables.is_empty(),
            !self.blob_digests.is_empty(),
            !self.dead_digests.is_empty(),
        ];
        has.iter().enumerate().map(|(at, has)| usize::from(*has) << at).sum()
    }

    /// The number of conditions.
    pub(crate) fn conditions(&self) -> usize {
        self.condition_tables.len()
    }

    #[cfg(test)]
    pub(crate) fn puts(&self) -> usize {
        self.put_tables.len()
    }

    #[cfg(test)]
    pub(crate) fn deletes(&self) -> usize {
        self.delete_tables.len()
    }
}

/// The result of a statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Appended {
    /// All of it is durable, and the head is one further.
    Moved,
    /// Nothing was done. With the numbers of the conditions that do not hold, from 0; with none of them the right was
    /// not there, or the same work was done before.
    Still(Vec<usize>),
}

/// The texts of the statement: one for each set of parts that it may have, all with the same parameters.
pub(crate) struct Appender {
    texts: Vec<String>,
    /// Moves the head without any change.
    void: String,
}

/// The number of parts of the statement that may be left out.
const PARTS: usize = 5;

impl Appender {
    pub(crate) fn of(names: &Names, seat: &SeatRow) -> Self {
        let texts = (0..1 << PARTS).map(|parts| text(names, seat, parts)).collect();
        let moved = moved(seat, VOID_HEADS, "");
        Self { texts, void: format!("WITH {moved} SELECT (SELECT head FROM moved), NULL::int8[]") }
    }

    /// Sends the statement once. The inner error is the reason why the answer makes no sense: it does not tell whether
    /// anything was done.
    pub(crate) async fn append(
        &self,
        client: &Client,
        fence: &Fence<'_>,
        work: &Work<'_>,
    ) -> Result<Result<Appended, String>, Error> {
        send(&self.texts[work.parts()], client, fence, work).await
    }

    /// Moves the head without any change, once, so that no statement lands any more that expects the head of the fence.
    pub(crate) async fn void(&self, client: &Client, fence: &Fence<'_>) -> Result<Result<Appended, String>, Error> {
        send(&self.void, client, fence, &Work::default()).await
    }
}

async fn send(
    text: &str,
    client: &Client,
    fence: &Fence<'_>,
    work: &Work<'_>,
) -> Result<Result<Appended, String>, Error> {
    let row = client
        .query_typed_one(
            text,
            &[
                (&fence.nonce, Type::TEXT),
                (&fence.head, Type::INT8),
                (&work.condition_tables, Type::INT2_ARRAY),
                (&work.condition_keys, Type::BYTEA_ARRAY),
                (&work.condition_digests, Type::BYTEA_ARRAY),
                (&work.put_tables, Type::INT2_ARRAY),
                (&work.put_keys, Type::BYTEA_ARRAY),
                (&work.put_values, Type::BYTEA_ARRAY),
                (&work.delete_tables, Type::INT2_ARRAY),
                (&work.delete_keys, Type::BYTEA_ARRAY),
                (&work.blob_digests, Type::BYTEA_ARRAY),
                (&work.blob_values, Type::BYTEA_ARRAY),
                (&work.dead_digests, Type::BYTEA_ARRAY),
                (&fence.proof.epoch, Type::INT8),
                (&fence.proof.timeline, Type::INT4),
            ],
        )
        .await?;
    Ok(answer(&row, work.conditions()).map_err(|why| told(&why)))
}

fn answer(row: &Row, conditions: usize) -> Result<Appended, Error> {
    let (head, broken): (Option<i64>, Option<Vec<i64>>) = (row.try_get(0)?, row.try_get(1)?);
    Ok(match head {
        Some(_) => Appended::Moved,
        None => Appended::Still(numbers(&broken.unwrap_or_default(), conditions)),
    })
}

/// The numbers of conditions from 0, of which the server counts from 1. Others are those of no condition.
fn numbers(counted: &[i64], conditions: usize) -> Vec<usize> {
    let from_zero = |number: &i64| number.checked_sub(1).and_then(|number| usize::try_from(number).ok());
    counted.iter().filter_map(from_zero).filter(|number| *number < conditions).collect()
}

fn text(names: &Names, seat: &SeatRow, parts: usize) -> String {
    let has = |part: usize| parts & (1 << part) != 0;
    let Names { kv, blob, .. } = names;
    let mut text = "WITH ".to_owned();
    if has(0) {
        text += &format!(
            "broken AS MATERIALIZED (SELECT c.n FROM unnest($3::int2[], $4::bytea[], $5::bytea[]) \
             WITH ORDINALITY AS c(t, k, d, n) LEFT JOIN {kv} AS old ON old.table_no = c.t AND old.key = c.k \
             WHERE CASE WHEN c.d IS NULL THEN old.key IS NOT NULL \
             ELSE old.key IS NULL OR sha256(old.value) <> c.d END), "
        );
    }
    text += &moved(seat, 1, if has(0) { " AND NOT EXISTS (SELECT FROM broken)" } else { "" });
    if has(1) {
        text += &format!(
            ", put AS (INSERT INTO {kv} (table_no, key, value) SELECT u.t, u.k, u.v \
             FROM moved, unnest($6::int2[], $7::bytea[], $8::bytea[]) AS u(t, k, v) \
             ON CONFLICT (table_no, key) DO UPDATE SET value = excluded.value)"
        );
    }
    if has(2) {
        text += &format!(
            ", removed AS (DELETE FROM {kv} AS old USING moved, unnest($9::int2[], $10::bytea[]) AS u(t, k) \
             WHERE old.table_no = u.t AND old.key = u.k)"
        );
    }
    if has(3) {
        text += &format!(
            ", content AS (INSERT INTO {blob} (digest, bytes) SELECT u.d, u.b \
             FROM moved, unnest($11::bytea[], $12::bytea[]) AS u(d, b) ON CONFLICT (digest) DO NOTHING)"
        );
    }
    if has(4) {
        text += &format!(
            ", dead AS (DELETE FROM {blob} AS old USING moved, unnest($13::bytea[]) AS u(d) WHERE old.digest = u.d)"
        );
    }
    let broken = if has(0) { "(SELECT array_agg(n ORDER BY n) FROM broken)" } else { "NULL::int8[]" };
    text + &format!(" SELECT (SELECT head FROM moved), {broken}")
}

/// The part that moves the head, and proves the right to.
fn moved(SeatRow { table, row, .. }: &SeatRow, by: i64, conditions: &str) -> String {
    format!(
        "moved AS (UPDATE {table} SET head = head + {by} WHERE {row} AND nonce = $1::uuid AND epoch = $14 \
         AND head = $2 AND lease_until > clock_timestamp() AND timeline = {TIMELINE} AND timeline = $15 \
         AND {IS_DURABLE} AND {IS_REPEATABLE}{conditions} RETURNING head)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_proves_the_right_to_commit_before_any_change() {
        let names = Names::of("longhaul");
        let worker = names.worker_seat("w-1").expect("a name");
        check_fence(&names, &names.owner_seat(), "UPDATE \"longhaul\".owner SET head = head + 1 WHERE id = 1 AND ");
        check_fence(&names, &worker, "UPDATE \"longhaul\".worker SET head = head + 1 WHERE name = 'w-1' AND ");
    }

    #[track_caller]
    fn check_fence(names: &Names, seat: &SeatRow, start: &str) {
        let fence =
            "nonce = $1::uuid AND epoch = $14 AND head = $2 AND lease_until > clock_timestamp() AND timeline = ";
        let rest = "AND timeline = $15 AND current_setting('synchronous_commit') <> 'off' \
                    AND current_setting('transaction_isolation') = 'repeatable read'";
        let Appender { texts, void } = Appender::of(names, seat);
        for text in texts {
            let at = text.find(&format!("{start}{fence}")).expect("a fence");
            assert!(text[at..].contains(rest), "{text}");
            for change in ["INSERT INTO", "DELETE FROM"] {
                assert!(text.find(change).is_none_or(|change| change > at), "{text}");
            }
            assert_eq!(text.matches("UPDATE \"").count(), 1, "{text}");
            assert_eq!(text.matches("INSERT INTO").count(), text.matches("FROM moved, unnest").count(), "{text}");
            assert_eq!(text.matches("DELETE FROM").count(), text.matches("USING moved, unnest").count(), "{text}");
        }
        let start = start.replace("head + 1", "head + 2");
        assert!(void.starts_with(&format!("WITH moved AS ({start}{fence}")) && void.contains(rest), "{void}");
        assert!(!void.contains("INSERT") && !void.contains("DELETE") && !void.contains("kv"), "{void}");
    }

    #[test]
    fn a_number_that_no_condition_has_is_none_of_them() {
        assert_eq!(numbers(&[i64::MIN, -1, 0, 1, 2, 3, i64::MAX], 2), [0, 1]);
        assert_eq!(numbers(&[1], 0), [0; 0]);
    }

    #[test]
    fn content_above_the_size_of_a_statement_goes_before_it() {
        let (digest, value) = ([1_u8; 32], [0_u8; 10]);
        let mut work = Work::default();
        work.put(1, b"key", b"value");
        for _ in 0..5 {
            work.put_blob(&digest, &value);
        }
        let parts = work.split_content(25);
        assert_eq!(parts.iter().map(|part| part.blob_values.len()).collect::<Vec<_>>(), [2, 2]);
        assert_eq!((work.blob_values.len(), work.puts(), work.bytes()), (1, 1, 18));
        assert!(work.split_content(25).is_empty());
        assert_eq!(work.split_content(1).len(), 1, "a value that is too large by itself is left");
    }
}
