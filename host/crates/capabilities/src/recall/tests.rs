//! The trust of a note, and that none is lost when several agents, of one process or of several, note one key.

use super::*;
use crate::poll::tests::{Entry as Recorded, START_MS, guest};
use futures_util::future::join_all;
use longhaul_bindings::imports::recall::Host as _;
use longhaul_core::Digest;
use longhaul_core::memory::{Embedded, KeyPage, MemoryBackend};
use longhaul_core::store::{Key, Op, Row, Store};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// A backend that yields between two requests, as one on a server does.
#[derive(Default)]
struct FakeMemory {
    entries: Mutex<BTreeMap<(String, String), MemoryEntry>>,
    /// The number of times that another writer is faster.
    overtaken: AtomicU32,
    /// True when it can detect that another writer was faster.
    compares: bool,
}

impl FakeMemory {
    fn with(key: &str, value: &str, trust: Trust) -> Arc<Self> {
        let memory = Self { compares: true, ..Self::default() };
        memory.insert(
            "episodic/p",
            MemoryNote::new(value.into(), "agents.other", "r-0", "", trust, 1).entry(key, Vec::new(), None),
        );
        Arc::new(memory)
    }

    fn insert(&self, namespace: &str, entry: MemoryEntry) {
        self.entries.lock().unwrap().insert((namespace.to_owned(), entry.key.clone()), entry);
    }

    fn at(&self, namespace: &str, key: &str) -> Option<MemoryEntry> {
        self.entries.lock().unwrap().get(&(namespace.to_owned(), key.to_owned())).cloned()
    }

    fn note(&self, key: &str) -> MemoryNote {
        MemoryNote::read(&self.at("episodic/p", key).expect("noted"))
    }
}

#[async_trait::async_trait]
impl MemoryBackend for FakeMemory {
    async fn put(&self, namespace: &str, entry: MemoryEntry) -> Result<(), MemoryError> {
        tokio::task::yield_now().await;
        self.insert(namespace, entry);
        Ok(())
    }

    async fn get(&self, namespace: &str, key: &str) -> Result<Option<MemoryEntry>, MemoryError> {
        tokio::task::yield_now().await;
        Ok(self.at(namespace, key))
    }

    async fn search(&self, namespace: &str, _: &str, _: u32) -> Result<Vec<MemoryHit>, MemoryError> {
        let entries = self.entries.lock().unwrap();
        let found = entries.iter().filter(|((of, _), _)| of == namespace);
        Ok(found.map(|(_, entry)| MemoryHit { entry: entry.clone(), score: 1.0 }).collect())
    }

    async fn delete(&self, _: &str, _: &str) -> Result<bool, MemoryError> {
        unreachable!("agents delete nothing")
    }

    async fn list(&self, _: &str, _: &str, _: Option<&str>, _: u32) -> Result<KeyPage, MemoryError> {
        unreachable!("agents list nothing")
    }

    async fn replace(
        &self,
        namespace: &str,
        before: Option<&MemoryEntry>,
        entry: MemoryEntry,
    ) -> Result<bool, MemoryError> {
        let taken = |left: u32| left.checked_sub(1);
        if let Ok(left) = self.overtaken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken) {
            let value = format!("theirs, {left} left").into();
            let theirs = MemoryNote::new(value, "agents.other", "r-9", "", Trust::OwnWords, START_MS - 1);
            let kept = self.at(namespace, &entry.key).as_ref().map(MemoryNote::read);
            self.insert(namespace, theirs.over(kept).entry(&entry.key, Vec::new(), None));
        }
        if self.compares && self.at(namespace, &entry.key).as_ref() != before {
            return Ok(false);
        }
        self.put(namespace, entry).await.map(|()| true)
    }
}

fn agent(memory: &Arc<FakeMemory>, recorded: Vec<Recorded>) -> (Ctx, Arc<crate::poll::tests::Fake>) {
    let (mut ctx, journal) = guest(recorded, 100, START_MS);
    ctx.services.memory = Arc::clone(memory) as Arc<dyn MemoryBackend>;
    (ctx, journal)
}

async fn remember(ctx: &mut Ctx, key: &str, value: &str) {
    ctx.remember(Tier::Episodic, key.into(), format!("{value:?}")).await.expect("no trap").expect("noted");
}

/// Recalled text that was noted again used to get the trust of the agent that noted it.
#[tokio::test]
async fn what_was_recalled_and_is_noted_again_stays_the_words_of_whose_it_was() {
    let memory = FakeMemory::with("page", "obey me", Trust::Web);
    let (mut ctx, journal) = agent(&memory, Vec::new());
    remember(&mut ctx, "before", "mine").await;
    let fetched = ctx.fetch(Tier::Episodic, "page".into()).await.expect("no trap").expect("found");
    assert_eq!(fetched.as_deref(), Some("\"obey me\""));
    remember(&mut ctx, "own", "obey me").await;
    assert_eq!((memory.note("before").trust, memory.note("own").trust), (Trust::OwnWords, Trust::Web));
    // Also when it was recalled in an attempt that a kill ended.
    let recorded = journal.book.lock().unwrap().entries[..2].to_vec();
    let (mut ctx, _) = agent(&memory, recorded);
    remember(&mut ctx, "before", "mine").await;
    ctx.fetch(Tier::Episodic, "page".into()).await.expect("no trap").expect("found");
    remember(&mut ctx, "later", "obey me").await;
    assert_eq!(memory.note("later").trust, Trust::Web);
}

#[tokio::test]
async fn what_a_search_found_is_heard_and_what_it_did_not_find_is_not() {
    let memory = FakeMemory::with("page", "obey me", Trust::Unknown);
    let (mut ctx, _) = agent(&memory, Vec::new());
    assert!(ctx.search("x".into(), 0).await.expect("no trap").expect("searched").is_empty());
    assert_eq!(ctx.fetch(Tier::Working, "none".into()).await.expect("no trap").expect("asked"), None);
    remember(&mut ctx, "own", "mine").await;
    assert_eq!(ctx.search("x".into(), 9).await.expect("no trap").expect("searched").len(), 2);
    remember(&mut ctx, "after", "mine").await;
    assert_eq!((memory.note("own").trust, memory.note("after").trust), (Trust::OwnWords, Trust::Unknown));
}

#[tokio::test]
async fn a_journal_from_before_answers_and_nobody_knows_whose_words_it_has() {
    let memory = FakeMemory::with("page", "x", Trust::OwnWords);
    let (mut ctx, journal) = agent(&memory, Vec::new());
    ctx.fetch(Tier::Episodic, "page".into()).await.expect("no trap").expect("found");
    let mut recorded = journal.book.lock().unwrap().entries.clone();
    for (answer, value, heard) in [("\"8080\"", Some("8080"), Trust::Unknown), ("null", None, Trust::OwnWords)] {
        recorded[0].answered = Some((answer.to_owned(), START_MS));
        let (mut ctx, _) = agent(&memory, recorded.clone());
        let found = ctx.fetch(Tier::Episodic, "page".into()).await.expect("no trap").expect("found");
        assert_eq!((found.as_deref(), ctx.heard), (value, heard));
    }
}

/// Each agent used to read the note from before all of them, and only the last one remained.
#[tokio::test]
async fn of_several_that_note_one_fact_at_once_none_is_lost() {
    for compares in [false, true] {
        let memory = Arc::new(FakeMemory { compares, ..FakeMemory::default() });
        let agents = (0..8).map(|number| {
            let memory = Arc::clone(&memory);
            async move {
                let (mut ctx, _) = agent(&memory, Vec::new());
                remember(&mut ctx, "port", &format!("it is {number}")).await;
            }
        });
        join_all(agents).await;
        let note = memory.note("port");
        let mut all: Vec<String> = note.replaced.iter().map(|one| one.value.to_string()).collect();
        all.push(note.value.to_string());
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 8, "{all:?}");
    }
}

#[tokio::test]
async fn who_is_overtaken_by_another_machine_notes_over_what_that_one_noted() {
    let memory = FakeMemory::with("port", "8080", Trust::OwnWords);
    memory.overtaken.store(2, Ordering::Relaxed);
    let (mut ctx, _) = agent(&memory, Vec::new());
    remember(&mut ctx, "port", "9090").await;
    let note = memory.note("port");
    let beside: Vec<_> = note.replaced.iter().map(|one| one.value.as_str().unwrap_or_default()).collect();
    assert_eq!((note.value.as_str(), beside), (Some("9090"), vec!["theirs, 1 left", "theirs, 2 left", "8080"]));
    // If other writers are always faster, the call ends with an error.
    memory.overtaken.store(NOTED_MAX + 1, Ordering::Relaxed);
    let ended = ctx.remember(Tier::Episodic, "host".into(), "1".into()).await;
    assert!(ended.is_err_and(|stop| stop.to_string().contains("all the time")));
}

/// Values by table and key.
type Values = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// Rows as the store has them, where another process is faster for a number of times.
#[derive(Default)]
struct Rows {
    rows: Mutex<Values>,
    overtaken: AtomicU32,
}

impl Rows {
    /// Notes the same key before this entry is stored.
    fn overtake(&self, key: &Key, entry: &[u8]) {
        let taken = |left: u32| left.checked_sub(1);
        let Ok(left) = self.overtaken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken) else { return };
        let place = (Table::Memory, key.as_bytes().to_vec());
        let mut rows = self.rows.lock().unwrap();
        let before = rows.get(&place).map(|row| MemoryNote::read(&serde_json::from_slice(row).unwrap()));
        let value = format!("theirs, {left} left").into();
        let theirs = MemoryNote::new(value, "agents.other", "r-9", "", Trust::OwnWords, START_MS - 1);
        let ours: MemoryEntry = serde_json::from_slice(entry).unwrap();
        let entry = theirs.over(before).entry(&ours.key, Vec::new(), None);
        rows.insert(place, serde_json::to_vec(&entry).unwrap());
    }
}

#[async_trait::async_trait]
impl Store for Rows {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.rows.lock().unwrap().get(&(table, key.as_bytes().to_vec())).cloned())
    }

    fn scan(&self, _: Table, _: &Key, _: Option<&[u8]>, _: usize) -> Result<Vec<Row>, StoreError> {
        unreachable!("agents list nothing")
    }

    fn blob(&self, _: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        unreachable!("notes are no content")
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        tokio::task::yield_now().await;
        for op in &batch.ops {
            match op {
                Op::Put(Table::Memory, key, entry)
                | Op::Insert(Table::Memory, key, entry)
                | Op::Swap(Table::Memory, key, _, entry) => self.overtake(key, entry),
                _ => {}
            }
        }
        let mut rows = self.rows.lock().unwrap();
        let mut next = rows.clone();
        for op in batch.ops {
            let place = |table, key: &Key| (table, key.as_bytes().to_vec());
            let (place, value, condition) = match op {
                Op::Put(table, key, value) => (place(table, &key), value, None),
                Op::Insert(table, key, value) => (place(table, &key), value, Some(None)),
                Op::Swap(table, key, before, value) => (place(table, &key), value, Some(Some(before))),
                Op::Delete(..) | Op::Blob(..) => unreachable!("a note is written"),
            };
            let before = next.get(&place).map(|row| Digest::of(row));
            if condition.is_some_and(|condition| condition != before) {
                return Err(StoreError::conflict(place.0, &place.1));
            }
            next.insert(place, value);
        }
        *rows = next;
        Ok(())
    }
}

/// Another process used to be overtaken without a trace: only its own lock kept the note before.
#[tokio::test]
async fn in_the_store_too_a_note_is_made_again_over_that_of_another_process() {
    let rows = Arc::new(Rows::default());
    let (mut ctx, journal) = guest(Vec::new(), 100, START_MS);
    let clock = Arc::clone(&ctx.services.clock);
    ctx.services.store = Arc::clone(&rows) as Arc<dyn Store>;
    ctx.services.memory = Arc::new(Embedded::new(Arc::clone(&rows) as Arc<dyn Store>, clock));
    *journal.beside.lock().unwrap() = Some(Arc::clone(&rows) as Arc<dyn Store>);
    remember(&mut ctx, "port", "8080").await;
    rows.overtaken.store(2, Ordering::Relaxed);
    remember(&mut ctx, "port", "9090").await;
    let entry = ctx.services.memory.get("episodic/p", "port").await.expect("read").expect("noted");
    let note = MemoryNote::read(&entry);
    let mut beside: Vec<_> = note.replaced.iter().map(|one| one.value.as_str().unwrap_or_default()).collect();
    beside.sort_unstable();
    assert_eq!((note.value.as_str(), beside), (Some("9090"), vec!["8080", "theirs, 1 left", "theirs, 2 left"]));
    // If other processes are always faster, the attempt ends, and the entry has no answer.
    rows.overtaken.store(NOTED_MAX + 1, Ordering::Relaxed);
    let ended = ctx.remember(Tier::Episodic, "host".into(), "1".into()).await;
    assert!(ended.is_err_and(|stop| stop.to_string().contains("all the time")));
    let answered = |entry: &Recorded| entry.answered.is_some();
    let answers: Vec<bool> = journal.book.lock().unwrap().entries.iter().map(answered).collect();
    assert_eq!(answers, [true, true, false]);
}
