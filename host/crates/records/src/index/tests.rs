//! Tests of the index of runs.

use super::*;
use longhaul_testkit::MemoryStore;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

/// Texts by run.
#[derive(Default)]
struct Texts(BTreeMap<RunId, String>);

impl IndexedRuns for Texts {
    type Value = String;

    fn get(&self, run: &RunId) -> Option<&String> {
        self.0.get(run)
    }

    fn set(&mut self, run: &RunId, value: Option<String>) {
        match value {
            Some(value) => drop(self.0.insert(run.clone(), value)),
            None => drop(self.0.remove(run)),
        }
    }
}

/// An index of the rows of runs, with the runs that were read since the last query; a `+` before those whose known
/// value was given.
struct Lab {
    store: ChangeTrackingStore,
    index: RunIndex<Texts>,
    read: RefCell<Vec<String>>,
}

impl Lab {
    fn new(store: Arc<dyn Store>) -> Self {
        let (store, changed_runs) = ChangeTrackingStore::new(store);
        Self { store, index: RunIndex::new(changed_runs), read: RefCell::default() }
    }

    fn look(&self) -> fault::Result<Vec<String>> {
        self.read.borrow_mut().clear();
        let all = || Ok(["r-1", "r-2"].map(RunId::from_text).to_vec());
        let one = |run: &RunId, known: Option<&String>| {
            self.read.borrow_mut().push(format!("{}{run}", if known.is_some() { "+" } else { "" }));
            let value = self.store.get(Table::States, &Key::of(run.as_str()))?;
            Ok(value.map(String::from_utf8).transpose()?)
        };
        self.index.query(all, one, |texts| texts.0.values().cloned().collect())
    }

    /// The values, and the runs that were read for them.
    #[track_caller]
    fn check(&self, values: &[&str], read: &[&str]) {
        assert_eq!(self.look().unwrap(), values);
        self.read.borrow_mut().sort();
        assert_eq!(*self.read.borrow(), read);
    }

    async fn put(&self, table: Table, key: Key, value: &str) {
        self.store.commit(Batch::new().put(table, key, value)).await.unwrap();
    }
}

#[tokio::test]
async fn a_run_is_read_again_once_something_of_it_was_written_and_no_other_one() {
    let lab = Lab::new(Arc::new(MemoryStore::new()));
    lab.put(Table::States, Key::of("r-1"), "a").await;
    lab.check(&["a"], &["r-1", "r-2"]);
    lab.check(&["a"], &[]);
    lab.put(Table::States, Key::of("r-3"), "b").await;
    lab.put(Table::Memory, Key::of("r-1"), "x").await;
    lab.put(Table::States, Key::of("letters").and("r-1"), "x").await;
    lab.check(&["a", "b"], &["r-3"]);
    let mut gone = Batch::new();
    gone.push(Op::Delete(Table::States, Key::of("r-1").and("x")));
    gone.push(Op::Delete(Table::States, Key::of("r-1")));
    lab.store.commit(gone).await.unwrap();
    lab.check(&["b"], &["r-1"]);
}

#[tokio::test]
async fn the_known_value_is_given_where_only_events_and_the_ledger_were_written() {
    let lab = Lab::new(Arc::new(MemoryStore::new()));
    lab.put(Table::States, Key::of("r-1"), "a").await;
    lab.check(&["a"], &["r-1", "r-2"]);
    for (table, key) in [
        (Table::Events, Key::of("r-1").number(1)),
        (Table::States, Key::of("r-1").and("ledger").and("r-1/plan")),
        (Table::States, Key::of("r-1").and("ledger-held").and("r-1/plan")),
        (Table::States, Key::of("r-1").and("wall")),
    ] {
        lab.put(table, key, "x").await;
        lab.check(&["a"], &["+r-1"]);
    }
    lab.index.reread(&RunId::from_text("r-1"));
    lab.check(&["a"], &["+r-1"]);
    for key in [Key::of("r-1"), Key::of("r-1").and("archived"), Key::of("r-1").and("ledgers")] {
        lab.put(Table::Events, Key::of("r-1").number(2), "x").await;
        lab.put(Table::States, key, "a").await;
        lab.check(&["a"], &["r-1"]);
    }
    lab.put(Table::Runs, Key::of("r-1"), "x").await;
    lab.check(&["a"], &["r-1"]);
}

#[tokio::test]
async fn what_cannot_be_read_is_read_by_the_next_query_and_nothing_else_is() {
    let lab = Lab::new(Arc::new(MemoryStore::new()));
    lab.put(Table::States, Key::of("r-1"), "a").await;
    lab.check(&["a"], &["r-1", "r-2"]);
    let broken = Batch::new().put(Table::States, Key::of("r-2"), vec![0xff]);
    lab.store.commit(broken).await.unwrap();
    assert!(lab.look().is_err() && lab.look().is_err(), "it is not text");
    lab.put(Table::States, Key::of("r-2"), "b").await;
    lab.check(&["a", "b"], &["r-2"]);
    lab.check(&["a", "b"], &[]);
}

/// A store with a queue: it writes the batch of a cancelled caller, too. As one in PostgreSQL it answers an empty batch
/// at once, and one whose conditions do not hold before it writes those that wait.
#[derive(Default)]
struct QueueStore {
    memory: MemoryStore,
    queue: Mutex<Vec<Batch>>,
    waits: AtomicBool,
}

impl QueueStore {
    async fn write(&self) -> Result<(), StoreError> {
        let queue = std::mem::take(&mut *lock(&self.queue));
        for batch in queue {
            self.memory.commit(batch).await?;
        }
        Ok(())
    }
}

#[async_trait::async_trait]
impl Store for QueueStore {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.memory.get(table, key)
    }

    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError> {
        self.memory.scan(table, prefix, after, limit)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.memory.blob(digest)
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        if batch.ops.iter().all(|op| matches!(op, Op::Blob(..))) {
            return Ok(());
        }
        for op in &batch.ops {
            if let Op::Insert(table, key, _) = op
                && self.memory.get(*table, key)?.is_some()
            {
                return Err(StoreError::conflict(*table, key.as_bytes()));
            }
        }
        lock(&self.queue).push(batch);
        if self.waits.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        self.write().await
    }

    fn is_shared(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_run_whose_writer_was_cancelled_is_read_until_its_batch_must_have_been_written() {
    let store = Arc::new(QueueStore::default());
    let lab = Lab::new(Arc::clone(&store) as Arc<dyn Store>);
    lab.put(Table::States, Key::of("r-1"), "a").await;
    lab.check(&["a"], &["r-1", "r-2"]);
    store.waits.store(true, Ordering::Relaxed);
    let mut cancelled = Box::pin(lab.put(Table::States, Key::of("r-1"), "b"));
    assert!(cancelled.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(cancelled);
    lab.check(&["a"], &["r-1"]);
    // A later commit that was refused, and one that needs no queue, do not tell that the batch was written.
    let refused = Batch::new().insert(Table::States, Key::of("r-1"), "x");
    assert!(lab.store.commit(refused).await.is_err());
    lab.check(&["a"], &["r-1"]);
    let mut content = Batch::new();
    content.blob(b"known".to_vec());
    lab.store.commit(content).await.unwrap();
    lab.check(&["a"], &["r-1"]);
    store.write().await.unwrap();
    lab.check(&["b"], &["r-1"]);
    store.waits.store(false, Ordering::Relaxed);
    lab.put(Table::States, Key::of("r-2"), "c").await;
    lab.check(&["b", "c"], &["r-1", "r-2"]);
    lab.check(&["b", "c"], &[]);
}

#[test]
fn a_store_that_tracks_changes_is_shared_as_the_one_below_it_is() {
    assert!(ChangeTrackingStore::new(Arc::new(QueueStore::default())).0.is_shared());
    assert!(!ChangeTrackingStore::new(Arc::new(MemoryStore::new())).0.is_shared());
}
