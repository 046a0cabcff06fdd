//! Rules of redb and its files, beside those of every store, which `conformance.rs` holds: groups, the data directory,
//! damage, and panics.

#[path = "support/files.rs"]
mod files;

use files::{BLOBS, overwrite};
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Store, StoreError, Table};
use longhaul_store::{FORMAT, RedbStore, STATE_FILE, StoreOptions};
use redb::{Database, ReadableDatabase as _, ReadableTableMetadata as _, TableDefinition};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use tempfile::TempDir;

const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");

fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[track_caller]
fn open(dir: &Path) -> RedbStore {
    RedbStore::open(dir, StoreOptions::default()).unwrap()
}

fn hooked(hook: impl Fn(&'static str) + Send + Sync + 'static) -> StoreOptions {
    StoreOptions { crash_hook: Some(Arc::new(hook)), ..StoreOptions::default() }
}

fn refusal(dir: &Path) -> StoreError {
    RedbStore::open(dir, StoreOptions::default()).err().expect("the store should be refused")
}

/// A store whose commits are counted, and whose first one waits until it is released.
struct Gate {
    store: Arc<RedbStore>,
    commits: Arc<AtomicUsize>,
    let_go: mpsc::Sender<()>,
}

impl Gate {
    fn open(dir: &Path) -> Self {
        let commits = Arc::new(AtomicUsize::new(0));
        let (let_go, waiting) = mpsc::channel();
        let (counter, waiting) = (Arc::clone(&commits), Mutex::new(waiting));
        let hook = move |point: &'static str| {
            if point == "store.before-commit" && counter.fetch_add(1, Ordering::SeqCst) == 0 {
                waiting.lock().unwrap().recv().unwrap();
            }
        };
        let store = Arc::new(RedbStore::open(dir, hooked(hook)).unwrap());
        Self { store, commits, let_go }
    }

    /// Commits `batches` so that all but the first are in one group.
    async fn commit_together(&self, batches: Vec<Batch>) -> Vec<Result<(), StoreError>> {
        let mut waiting = Vec::new();
        for batch in batches {
            let store = Arc::clone(&self.store);
            waiting.push(tokio::spawn(async move { store.commit(batch).await }));
            // The task runs on this one thread until its batch is queued.
            tokio::task::yield_now().await;
            while self.commits.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
        }
        self.let_go.send(()).unwrap();
        let mut verdicts = Vec::new();
        for one in waiting {
            verdicts.push(one.await.unwrap());
        }
        verdicts
    }
}

fn key(number: u64) -> Key {
    Key::of("k").number(number)
}

fn put(number: u64, value: &str) -> Batch {
    Batch::new().put(Table::States, key(number), value)
}

fn insert(number: u64, value: &str) -> Batch {
    Batch::new().insert(Table::States, key(number), value)
}

fn value(store: &RedbStore, number: u64) -> Option<String> {
    let stored = store.get(Table::States, &key(number)).unwrap();
    stored.map(|value| String::from_utf8(value).unwrap())
}

#[tokio::test]
async fn a_batch_that_conflicts_is_left_out_whole_and_undoes_nothing_of_its_group() {
    let dir = home();
    let gate = Gate::open(dir.path());
    let loser = put(3, "loser").insert(Table::States, key(1), "loser");
    let verdicts = gate.commit_together(vec![put(0, "first"), insert(1, "winner"), loser, put(2, "neighbour")]).await;
    assert!(matches!(&verdicts[..], [Ok(()), Ok(()), Err(StoreError::Conflict { .. }), Ok(())]), "{verdicts:?}");
    assert_eq!(gate.commits.load(Ordering::SeqCst), 2);
    let values: Vec<_> = (0..4).map(|number| value(&gate.store, number)).collect();
    assert_eq!(values, [Some("first".into()), Some("winner".into()), Some("neighbour".into()), None]);
}

#[tokio::test]
async fn sixty_four_waiting_callers_share_one_commit() {
    let dir = home();
    let gate = Gate::open(dir.path());
    let verdicts = gate.commit_together((0..65).map(|number| put(number, "x")).collect()).await;
    assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
    assert_eq!(gate.commits.load(Ordering::SeqCst), 2);
    assert!((0..65).all(|number| value(&gate.store, number).is_some()));
}

#[tokio::test]
async fn content_is_stored_once_and_costs_no_second_commit() {
    let dir = home();
    let gate = Gate::open(dir.path());
    gate.let_go.send(()).unwrap();
    let content = b"the same again ".repeat(1_000);
    let mut digests = Vec::new();
    for _ in 0..3 {
        let mut batch = Batch::new();
        digests.push(batch.blob(content.clone()));
        gate.store.commit(batch).await.unwrap();
    }
    assert_eq!(gate.commits.load(Ordering::SeqCst), 1);
    assert_eq!(gate.store.blob(&digests[0]).unwrap().as_deref(), Some(&content[..]));
    assert_eq!(gate.store.blob(&Digest::of(b"other")).unwrap(), None);
    drop(gate);
    let db = Database::open(dir.path().join(STATE_FILE)).unwrap();
    assert_eq!(db.begin_read().unwrap().open_table(BLOBS).unwrap().len().unwrap(), 1);
}

#[test]
fn a_store_is_held_until_it_is_dropped() {
    let dir = home();
    let store = open(dir.path());
    assert!(matches!(refusal(dir.path()), StoreError::Held { .. }));
    drop(store);
    drop(open(dir.path()));
}

#[test]
fn nobody_else_may_read_the_directory_or_the_file() {
    let dir = home();
    let data = dir.path().join("made/by/us");
    drop(open(&data));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join(STATE_FILE)), 0o600);
    std::fs::set_permissions(data.join(STATE_FILE), std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(&data));
    assert_eq!(mode(&data.join(STATE_FILE)), 0o600);
}

#[test]
fn a_newer_format_is_refused_with_what_to_do() {
    let dir = home();
    drop(open(dir.path()));
    overwrite(dir.path(), META, "format", (FORMAT + 1).to_string().as_bytes());
    let refused = refusal(dir.path());
    assert!(matches!(refused, StoreError::Format { found: 3, expected: 2, .. }));
    assert!(refused.to_string().ends_with("use the longhaul that wrote it, or a newer one"), "{refused}");
}

#[test]
fn a_database_of_somebody_else_is_refused() {
    let dir = home();
    let db = Database::create(dir.path().join(STATE_FILE)).unwrap();
    drop(db);
    let refused = refusal(dir.path());
    assert!(refused.to_string().contains("was not written by longhaul"), "{refused}");
}

#[test]
fn a_half_made_store_is_made_again() {
    let dir = home();
    std::fs::write(dir.path().join("state.redb.new"), b"killed in the middle").unwrap();
    drop(open(dir.path()));
    assert!(!dir.path().join("state.redb.new").exists());
}

#[tokio::test]
async fn a_file_that_is_no_store_is_damaged_and_kept_as_it_is() {
    for garbage in [Vec::new(), vec![0; 5_000], b"not a store".repeat(10_000), vec![255; 1 << 20]] {
        let dir = home();
        let path = dir.path().join(STATE_FILE);
        std::fs::write(&path, &garbage).unwrap();
        let refused = refusal(dir.path());
        assert!(matches!(refused, StoreError::Damaged { .. }), "{} bytes: {refused}", garbage.len());
        assert_eq!(std::fs::read(&path).unwrap(), garbage);
    }
}

/// Every truncated or overwritten file ends in a typed error or in a working store.
#[tokio::test]
async fn a_damaged_file_never_stops_the_process() {
    let dir = home();
    let store = open(dir.path());
    for number in 0..200 {
        let mut batch = put(number, &"value ".repeat(50));
        batch.blob(number.to_le_bytes().repeat(100));
        store.commit(batch).await.unwrap();
    }
    drop(store);
    let whole = std::fs::read(dir.path().join(STATE_FILE)).unwrap();
    let cuts = (0..40).map(|part| whole[..whole.len() * part / 40].to_vec());
    let scribbles = (0..80).map(|part| {
        let mut bytes = whole.clone();
        // The first 40 are dense in the header, the others are spread over the file.
        let start = if part < 40 { part * 8 } else { (part - 40) * whole.len() / 40 };
        let end = (start + if part < 40 { 8 } else { 4_096 }).min(whole.len());
        bytes[start..end].iter_mut().for_each(|byte| *byte ^= 0x5a);
        bytes
    });
    for (case, bytes) in cuts.chain(scribbles).enumerate() {
        try_damaged(case, &bytes).await;
    }
}

/// A store with one row, whose writer panics once at `point` after it is armed.
async fn trapped(dir: &Path, point: &'static str) -> (RedbStore, Arc<AtomicBool>) {
    let armed = Arc::new(AtomicBool::new(false));
    let trap = Arc::clone(&armed);
    let hook = move |reached: &'static str| {
        assert!(reached != point || !trap.swap(false, Ordering::SeqCst), "a trap of this test");
    };
    let store = RedbStore::open(dir, hooked(hook)).unwrap();
    store.commit(put(0, "kept")).await.unwrap();
    (store, armed)
}

#[track_caller]
fn check_stopped(refused: &StoreError) {
    assert!(matches!(refused, StoreError::Failed { .. }), "{refused}");
    let said = refused.to_string();
    assert!(said.contains("it stopped (a trap of this test)") && said.contains("is whole"), "{said}");
}

#[tokio::test]
async fn a_panic_in_a_commit_is_told_with_its_text_and_not_called_damage() {
    let dir = home();
    let (store, armed) = trapped(dir.path(), "store.before-commit").await;
    armed.store(true, Ordering::SeqCst);
    check_stopped(&store.commit(put(1, "lost")).await.unwrap_err());
    assert_eq!((value(&store, 0).as_deref(), value(&store, 1)), (Some("kept"), None));
    store.commit(put(1, "new")).await.unwrap();
    drop(store);
    assert_eq!(value(&open(dir.path()), 1).as_deref(), Some("new"));
}

#[tokio::test]
async fn a_panic_after_a_commit_loses_nothing_of_it() {
    let dir = home();
    let (store, armed) = trapped(dir.path(), "store.after-commit").await;
    armed.store(true, Ordering::SeqCst);
    store.commit(put(1, "landed")).await.unwrap();
    assert_eq!(value(&store, 1).as_deref(), Some("landed"));
}

#[tokio::test]
async fn a_panic_in_a_read_is_told_with_its_text_and_the_store_goes_on() {
    let dir = home();
    let store = open(dir.path());
    store.commit(put(0, "kept")).await.unwrap();
    let names = |_: &[u8]| -> Vec<Digest> { panic!("a trap of this test") };
    check_stopped(&store.collect(&names, true).await.unwrap_err());
    assert_eq!(value(&store, 0).as_deref(), Some("kept"));
    store.commit(put(0, "new")).await.unwrap();
}

/// Some pages make redb panic, others are found by its checksums; both end in the same error.
#[tokio::test]
async fn a_damaged_page_is_called_damaged() {
    let dir = home();
    let store = open(dir.path());
    let mut batch = Batch::new();
    for number in 0..200 {
        batch = batch.put(Table::States, key(number), "value ".repeat(50));
    }
    store.commit(batch).await.unwrap();
    drop(store);
    let path = dir.path().join(STATE_FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    let marker = b"value value ";
    let found: Vec<usize> = (0..bytes.len() - marker.len()).filter(|at| bytes[*at..].starts_with(marker)).collect();
    // The first byte of a page is its kind; pages have 4 KiB.
    found.iter().for_each(|at| bytes[at & !4_095] = 0x5a);
    std::fs::write(&path, &bytes).unwrap();
    let told = match RedbStore::open(dir.path(), StoreOptions::default()) {
        Ok(store) => (0..200).find_map(|number| store.get(Table::States, &key(number)).err()),
        Err(why) => Some(why),
    };
    assert!(matches!(&told, Some(StoreError::Damaged { .. })), "{told:?}");
}

#[tokio::test]
async fn content_stays_while_a_batch_that_names_it_waits_though_its_caller_is_gone() {
    let dir = home();
    let mut batch = Batch::new();
    let digest = batch.blob(b"unreferenced so far".to_vec());
    open(dir.path()).commit(batch).await.unwrap();
    let gate = Gate::open(dir.path());
    cancelled(gate.store.commit(put(1, "in its commit"))).await;
    let mut naming = put(0, &digest.to_string());
    naming.blob(b"unreferenced so far".to_vec());
    cancelled(gate.store.commit(naming)).await;
    let released = Arc::new(AtomicBool::new(false));
    let is_released = Arc::clone(&released);
    let names = move |text: &[u8]| -> Vec<Digest> {
        assert!(is_released.load(Ordering::SeqCst), "content was looked for while batches waited");
        std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).into_iter().collect()
    };
    let mut collect = gate.store.collect(&names, false);
    tokio::select! {
        biased;
        early = &mut collect => panic!("it did not wait: {early:?}"),
        () = std::future::ready(()) => {}
    }
    released.store(true, Ordering::SeqCst);
    gate.let_go.send(()).unwrap();
    let collected = collect.await.unwrap();
    assert_eq!((collected.kept, collected.removed), (1, 0));
    assert!(gate.store.blob(&digest).unwrap().is_some());
}

/// Polls a commit once, which queues its batch, and drops it.
async fn cancelled(commit: impl Future<Output = Result<(), StoreError>>) {
    tokio::select! {
        biased;
        done = commit => panic!("the writer did not wait: {done:?}"),
        () = std::future::ready(()) => {}
    }
}

async fn try_damaged(case: usize, bytes: &[u8]) {
    let dir = home();
    std::fs::write(dir.path().join(STATE_FILE), bytes).unwrap();
    let typed = |why: &StoreError| matches!(why, StoreError::Damaged { .. } | StoreError::Failed { .. });
    let store = match RedbStore::open(dir.path(), StoreOptions::default()) {
        Ok(store) => store,
        Err(StoreError::Format { .. }) => return,
        Err(why) => return assert!(typed(&why), "case {case}: {why}"),
    };
    for number in 0..200 {
        if let Err(why) = store.get(Table::States, &key(number)) {
            assert!(typed(&why), "case {case}: {why}");
        }
    }
    if let Err(why) = store.commit(put(1_000, "new")).await {
        assert!(typed(&why), "case {case}: {why}");
    }
}
