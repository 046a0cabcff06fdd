//! The store under load: readers, group commits, backups, readings of everything and dry collections together.
//!
//! redb's own checks are on in the dev profile, where this fails on any panic, also on one that the store caught, on
//! any wrong value, and on any lost commit. `LONGHAUL_STRESS_S` sets the seconds; the default is 5, a search takes 60.

use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Store as _, Table};
use longhaul_store::{RedbStore, STATE_FILE, StoreOptions};
use std::path::Path;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

const READERS: u64 = 16;
const WRITERS: u64 = 8;

/// Panics of all threads, also those that the store turns into errors.
static PANICS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn readers_writers_backups_and_collections_disturb_each_other_in_nothing() {
    count_panics();
    let seconds = std::env::var("LONGHAUL_STRESS_S").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let dir = tempfile::tempdir().unwrap();
    // Short logs, which take turns all the time.
    let options = StoreOptions { log_bytes_max: Some(256 << 10), ..StoreOptions::default() };
    let load = Load {
        store: RedbStore::open(&dir.path().join("store"), options).unwrap(),
        until: Instant::now() + Duration::from_secs(seconds),
        next: AtomicU64::new(0),
        acknowledged: RwLock::default(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let (shared, handle, copies) = (&load, runtime.handle(), dir.path().join("copies"));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || shared.write(handle, writer));
        }
        for reader in 0..READERS {
            scope.spawn(move || shared.read(reader));
        }
        scope.spawn(|| shared.back_up(&copies));
        scope.spawn(|| shared.collect(handle));
    });
    let Load { store, acknowledged, .. } = load;
    drop(store);
    let acknowledged = acknowledged.into_inner().unwrap();
    let store = RedbStore::open(&dir.path().join("store"), StoreOptions::default()).unwrap();
    acknowledged.iter().for_each(|number| check(&store, *number));
    assert!(acknowledged.len() > 100, "only {} batches were committed", acknowledged.len());
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "something panicked; its text is above");
}

fn count_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        usual(panic);
    }));
}

struct Load {
    store: RedbStore,
    until: Instant,
    next: AtomicU64,
    acknowledged: RwLock<Vec<u64>>,
}

impl Load {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until || PANICS.load(Ordering::SeqCst) > 0
    }

    fn write(&self, handle: &Handle, writer: u64) {
        while !self.is_over() {
            let number = self.next.fetch_add(1, Ordering::SeqCst);
            handle.block_on(self.store.commit(batch(writer, number))).unwrap();
            self.acknowledged.write().unwrap().push(number);
        }
    }

    fn read(&self, reader: u64) {
        let mut random = reader;
        while !self.is_over() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let Some(number) = self.one_of(random >> 33) else {
                std::thread::yield_now();
                continue;
            };
            check(&self.store, number);
            let newest = self.store.last(Table::Events, &Key::of("event"), 4).unwrap();
            assert!(newest.is_sorted_by(|one, next| one.0 > next.0));
            let states = self.store.scan(Table::States, &Key::of("writer"), None, usize::MAX).unwrap();
            assert!(states.len() as u64 <= WRITERS);
        }
    }

    fn one_of(&self, random: u64) -> Option<u64> {
        let acknowledged = self.acknowledged.read().unwrap();
        let length = acknowledged.len() as u64;
        let index = random.checked_rem(length)?;
        acknowledged.get(usize::try_from(index).ok()?).copied()
    }

    fn back_up(&self, copies: &Path) {
        while !self.is_over() {
            let before = self.acknowledged.read().unwrap().clone();
            std::fs::create_dir_all(copies).unwrap();
            self.store.copy_to(&copies.join(STATE_FILE)).unwrap();
            let copy = RedbStore::open(copies, StoreOptions::default()).unwrap();
            before.iter().rev().take(50).for_each(|number| check(&copy, *number));
            assert!(copy.read_all().unwrap().rows >= before.len() as u64);
            drop(copy);
            std::fs::remove_dir_all(copies).unwrap();
            self.store.read_all().unwrap();
        }
    }

    fn collect(&self, handle: &Handle) {
        let names = |text: &[u8]| -> Vec<Digest> {
            let text = std::str::from_utf8(text).unwrap_or_default();
            text.split(' ').filter_map(|word| word.parse().ok()).collect()
        };
        while !self.is_over() {
            let collected = handle.block_on(self.store.collect(&names, true)).unwrap();
            assert_eq!(collected.removed, 0, "all content is named by the batch that brings it");
        }
    }
}

/// An event that names two contents, of which the second is often there already, and a state that is overwritten.
fn batch(writer: u64, number: u64) -> Batch {
    let mut batch = Batch::new();
    let (own, earlier) = (batch.blob(content(number)), batch.blob(content(number / 2)));
    batch.insert(Table::Events, Key::of("event").number(number), format!("{own} {earlier}")).put(
        Table::States,
        Key::of("writer").number(writer),
        content(number),
    )
}

#[track_caller]
fn check(store: &RedbStore, number: u64) {
    let (own, earlier) = (Digest::of(&content(number)), Digest::of(&content(number / 2)));
    let event = store.get(Table::Events, &Key::of("event").number(number)).unwrap();
    assert_eq!(event, Some(format!("{own} {earlier}").into_bytes()), "event {number}");
    assert_eq!(store.blob(&own).unwrap(), Some(content(number)), "content {number}");
    assert_eq!(store.blob(&earlier).unwrap(), Some(content(number / 2)), "content {}", number / 2);
}

/// Content of very different lengths, so that pages of all sizes are freed and used again.
fn content(number: u64) -> Vec<u8> {
    let length = usize::try_from(number % 17).unwrap() * 500 + 10;
    number.to_le_bytes().into_iter().cycle().take(length).collect()
}
