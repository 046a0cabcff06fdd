//! The rules, held against a store in memory: without a fault it keeps them all, and each fault breaks the rule that is
//! there to find it.

use Fault::*;
use longhaul_core::Digest;
use longhaul_core::store::{Batch, CollectedContent, Key, Names, Op, ReadTotals, Row, Store, StoreError, Table};
use longhaul_store_tests::{Backend, batches, bounded, collection, conditions, durability, readers, rows};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

longhaul_store_tests::conformance!(Memory(Sound));

macro_rules! assert_found {
    ($($fault:ident by $file:ident::$rule:ident,)+) => {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        $(
            let backend = Memory($fault);
            let kept = catch_unwind(AssertUnwindSafe(|| runtime.block_on(bounded($file::$rule(&backend)))));
            assert!(kept.is_err(), "a store with the fault `{:?}` keeps the rule `{}`", $fault, stringify!($rule));
        )+
    };
}

#[test]
fn each_fault_breaks_the_rule_that_is_there_to_find_it() {
    assert_found! {
        StartIsIncluded by rows::a_scan_keeps_to_its_prefix_its_start_and_its_limit,
        StartIsIncluded by rows::random_rows_are_read_as_a_sorted_map_has_them,
        LimitIsIgnored by rows::a_scan_keeps_to_its_prefix_its_start_and_its_limit,
        LastIsInOrder by rows::the_last_rows_of_a_prefix_come_from_the_last_one_back,
        LastIsInOrder by rows::keys_of_any_bytes_sort_by_their_bytes,
        KeysAreSigned by rows::keys_of_any_bytes_sort_by_their_bytes,
        KeysAreSigned by rows::random_rows_are_read_as_a_sorted_map_has_them,
        EmptyIsAbsent by rows::an_empty_value_and_an_empty_key_make_a_row,
        TablesAreOne by rows::tables_keep_their_rows_apart,
        InsertOverwrites by conditions::conditions_see_the_earlier_changes_of_their_own_batch,
        InsertOverwrites by batches::of_sixty_four_callers_that_insert_one_key_one_commits,
        SwapTakesAnyValue by conditions::a_swap_compares_the_whole_value,
        ConditionsSeeTheStart by conditions::a_key_that_a_batch_changes_several_times_has_the_last_value,
        ConflictsLeaveChanges by conditions::a_conflict_leaves_nothing_of_its_batch,
        ConflictsLeaveChanges by batches::a_thousand_changes_are_one_batch,
        ConflictsLeaveChanges by batches::a_batch_that_conflicts_undoes_nothing_of_those_beside_it,
        ReadsAreLate by readers::a_batch_is_seen_when_its_commit_returned,
        ReadsAreLate by readers::readers_see_each_batch_whole_and_never_go_back,
        KeysNameNothing by collection::named_content_stays_and_the_rest_is_removed,
        DryRunRemoves by collection::named_content_stays_and_the_rest_is_removed,
        ReopenedEmpty by durability::what_was_committed_is_there_when_opened_again,
        KeysAreNotCounted by durability::a_reading_counts_each_row_and_each_content,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Sound,
    StartIsIncluded,
    LimitIsIgnored,
    LastIsInOrder,
    /// Bytes from 128 on sort before the others.
    KeysAreSigned,
    EmptyIsAbsent,
    TablesAreOne,
    InsertOverwrites,
    SwapTakesAnyValue,
    ConditionsSeeTheStart,
    ConflictsLeaveChanges,
    /// Reads see the store before its last batch.
    ReadsAreLate,
    KeysNameNothing,
    DryRunRemoves,
    ReopenedEmpty,
    KeysAreNotCounted,
}

struct Memory(Fault);

#[async_trait::async_trait]
impl Backend for Memory {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(MemoryStore { fault: self.0, data: Mutex::default() })
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        assert_eq!(Arc::strong_count(&store), 1, "a store that somebody else still uses");
        if self.0 == ReopenedEmpty { self.open().await } else { store }
    }
}

struct MemoryStore {
    fault: Fault,
    /// The data before the last batch, and after it.
    data: Mutex<(Data, Data)>,
}

#[derive(Clone, Default)]
struct Data {
    rows: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
    content: BTreeMap<Digest, Vec<u8>>,
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, (Data, Data)> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The data that a reader sees.
    fn seen(&self) -> Data {
        let data = self.lock();
        if self.fault == ReadsAreLate { data.0.clone() } else { data.1.clone() }
    }

    fn table(&self, table: Table) -> Table {
        if self.fault == TablesAreOne { Table::Runs } else { table }
    }

    /// The rows of a prefix, in order.
    fn rows(&self, table: Table, prefix: &Key) -> Vec<Row> {
        let table = self.table(table);
        let rows =
            self.seen().rows.into_iter().filter(|((of, key), _)| *of == table && key.starts_with(prefix.as_bytes()));
        let mut rows: Vec<Row> = rows.map(|((_, key), value)| (key, value)).collect();
        if self.fault == KeysAreSigned {
            rows.sort_by_key(|(key, _)| key.iter().map(|byte| byte.cast_signed()).collect::<Vec<_>>());
        }
        rows
    }

    /// Applies a change to `data`; false when it has a condition that does not hold for `start`, or for `data`.
    fn change(&self, start: &Data, data: &mut Data, op: Op) -> bool {
        let place = |table, key: &Key| (self.table(table), key.as_bytes().to_vec());
        let before = |data: &Data, place: &(Table, Vec<u8>)| {
            let data = if self.fault == ConditionsSeeTheStart { start } else { data };
            data.rows.get(place).map(|value| Digest::of(value))
        };
        match op {
            Op::Put(table, key, value) => drop(data.rows.insert(place(table, &key), value)),
            Op::Insert(table, key, value) => {
                let place = place(table, &key);
                if before(data, &place).is_some() && self.fault != InsertOverwrites {
                    return false;
                }
                data.rows.insert(place, value);
            }
            Op::Swap(table, key, old, value) => {
                let place = place(table, &key);
                if before(data, &place) != Some(old) && self.fault != SwapTakesAnyValue {
                    return false;
                }
                data.rows.insert(place, value);
            }
            Op::Delete(table, key) => drop(data.rows.remove(&place(table, &key))),
            Op::Blob(digest, content) => drop(data.content.insert(digest, content)),
        }
        true
    }
}

#[async_trait::async_trait]
impl Store for MemoryStore {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        let place = (self.table(table), key.as_bytes().to_vec());
        let found = self.seen().rows.remove(&place);
        Ok(found.filter(|value| self.fault != EmptyIsAbsent || !value.is_empty()))
    }

    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError> {
        let is_later =
            |key: &[u8]| after.is_none_or(|after| key > after || (self.fault == StartIsIncluded && key == after));
        let limit = if self.fault == LimitIsIgnored { usize::MAX } else { limit };
        let rows = self.rows(table, prefix).into_iter().filter(|(key, _)| is_later(key));
        Ok(rows.take(limit).collect())
    }

    fn last(&self, table: Table, prefix: &Key, limit: usize) -> Result<Vec<Row>, StoreError> {
        let mut rows = self.rows(table, prefix);
        rows.drain(..rows.len().saturating_sub(limit));
        if self.fault != LastIsInOrder {
            rows.reverse();
        }
        Ok(rows)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.lock().1.content.get(digest).cloned())
    }

    fn read_all(&self) -> Result<ReadTotals, StoreError> {
        let data = self.lock();
        let mut totals = ReadTotals::default();
        for ((_, key), value) in &data.1.rows {
            let key = if self.fault == KeysAreNotCounted { 0 } else { key.len() };
            totals.count(key + value.len());
        }
        data.1.content.values().for_each(|content| totals.count(32 + content.len()));
        Ok(totals)
    }

    async fn collect(&self, names: &Names, dry_run: bool) -> Result<CollectedContent, StoreError> {
        let data = &mut self.lock().1;
        let mut unread: Vec<Digest> = data.rows.values().flat_map(|value| names(value)).collect();
        if self.fault != KeysNameNothing {
            unread.extend(data.rows.keys().flat_map(|(_, key)| names(key)));
        }
        let mut named = BTreeSet::new();
        while let Some(digest) = unread.pop() {
            if let Some(content) = data.content.get(&digest)
                && named.insert(digest)
            {
                unread.extend(names(content));
            }
        }
        let mut collected = CollectedContent { kept: named.len() as u64, ..CollectedContent::default() };
        for (_, content) in data.content.iter().filter(|(digest, _)| !named.contains(*digest)) {
            collected.removed += 1;
            collected.bytes += content.len() as u64;
        }
        if !dry_run || self.fault == DryRunRemoves {
            data.content.retain(|digest, _| named.contains(digest));
        }
        Ok(collected)
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        let data = &mut *self.lock();
        let start = data.1.clone();
        for op in batch.ops {
            let conflict = match &op {
                Op::Insert(table, key, _) | Op::Swap(table, key, ..) => Some((*table, readable(key))),
                Op::Put(..) | Op::Delete(..) | Op::Blob(..) => None,
            };
            let holds = self.change(&start, &mut data.1, op);
            if let (false, Some((table, key))) = (holds, conflict) {
                if self.fault != ConflictsLeaveChanges {
                    data.1 = start;
                }
                return Err(StoreError::Conflict { table, key });
            }
        }
        data.0 = start;
        Ok(())
    }
}

/// The text of a key, without what is between its parts.
fn readable(key: &Key) -> String {
    let text = String::from_utf8_lossy(key.as_bytes());
    let parts = text.split(|char: char| char.is_control() || char == char::REPLACEMENT_CHARACTER);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
