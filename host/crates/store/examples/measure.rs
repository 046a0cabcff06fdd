//! Measures durable commits, each figure beside its floor in the same run. Run it alone, with `--release`:
//!
//! `cargo run --release -p longhaul-store --example measure -- [MEGABYTES]`
//!
//! The floor of one commit is an `fdatasync` of the same bytes. Those of 64 callers are the same 64 batches in one
//! transaction of the bare database, and as one write with one `fdatasync`. "Sustained" is the rate over some 150 MB,
//! in which the rows of several logs are written into the database beside it; the others are taken in slices.
//!
//! With a number it also fills a store of that size and measures how long it takes to open after a kill: with a log
//! that is nearly full, with one that is nearly empty, at rest, and after it was closed. Compare ratios, not times:
//! machines differ.

use longhaul_core::store::{Batch, Key, Store, Table};
use longhaul_store::{RedbStore, STATE_FILE, StoreOptions};
use redb::{Database, TableDefinition};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const RECORD_BYTES: usize = 1_024;
/// Each figure is taken in slices, in turn with the others, so that a busy moment of the machine does
/// not fall on one of them alone.
const SLICES: u64 = 20;
const ROUNDS: u64 = 100;
const CALLERS: u64 = 64;
/// Commits of each caller in the sustained figure.
const SUSTAINED: u64 = 2_000;
const BARE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("journal");

fn main() {
    let megabytes = std::env::args().nth(1).map(|text| text.parse::<u64>().expect("a number of megabytes"));
    let dir = tempfile::tempdir_in(".").expect("a directory on the disk that is measured");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let store = Arc::new(RedbStore::open(&dir.path().join("store"), StoreOptions::default()).expect("a store"));
    let bare = Database::create(dir.path().join("bare.redb")).expect("a database");
    let (mut floors, mut jsons, mut alones, mut rates) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut bare_alones, mut bare_groups, mut writes) = (Vec::new(), Vec::new(), Vec::new());
    for slice in 0..SLICES {
        floors.extend(fdatasync(dir.path(), RECORD_BYTES));
        jsons.extend(json_rename(dir.path()));
        alones.extend(runtime.block_on(alone(&store, slice)));
        rates.push(runtime.block_on(together(&store, slice, ROUNDS)));
        bare_alones.extend(bare_transactions(&bare, 2 * slice, 1));
        bare_groups.extend(bare_transactions(&bare, 2 * slice + 1, CALLERS));
        writes.extend(fdatasync(dir.path(), RECORD_BYTES * 64));
    }
    let (floor, json, alone) = (median(floors), median(jsons), median(alones));
    rates.sort_unstable_by(f64::total_cmp);
    let rate = rates[rates.len() / 2];
    println!("fdatasync of {RECORD_BYTES} bytes, floor    {floor:>10.1?}");
    println!("JSON write, fsync, rename         {json:>10.1?}");
    println!(
        "one commit alone                  {alone:>10.1?}  {:.2} of the floor, {:.2} of JSON",
        ratio(alone, floor),
        ratio(alone, json)
    );
    println!("bare redb, one batch              {:>10.1?}", median(bare_alones));
    let each = Duration::from_secs_f64(1.0 / rate);
    println!("{CALLERS} callers                        {rate:>8.0}/s  {:.1} of the single rate", ratio(alone, each));
    let sustained = runtime.block_on(together(&store, SLICES, SUSTAINED));
    let single = alone.as_secs_f64() * sustained;
    println!("{CALLERS} callers, sustained             {sustained:>8.0}/s  {single:.1} of the single rate");
    for (name, group) in [("bare redb, 64 batches at once", bare_groups), ("fdatasync of 64 batches", writes)] {
        let floor = median(group) / 64;
        println!(
            "{name:<30} {:>10.0}/s  64 callers take {:.2} of its time",
            1.0 / floor.as_secs_f64(),
            ratio(each, floor)
        );
    }
    drop((store, bare));
    if let Some(megabytes) = megabytes {
        reopen(&runtime, dir.path(), megabytes);
    }
}

fn ratio(time: Duration, floor: Duration) -> f64 {
    time.as_secs_f64() / floor.as_secs_f64()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Overwrites an existing file of fixed size: no metadata has to be written.
fn fdatasync(dir: &Path, bytes: usize) -> Vec<Duration> {
    let file = File::create(dir.join("floor")).expect("a file");
    file.write_all_at(&vec![1; bytes * 100], 0).expect("room");
    file.sync_all().expect("a disk");
    let times = (0..ROUNDS).map(|round| {
        let record = vec![round.to_le_bytes()[0]; bytes];
        let start = Instant::now();
        file.write_all_at(&record, round % 100 * bytes as u64).expect("room");
        file.sync_data().expect("a disk");
        start.elapsed()
    });
    times.collect()
}

/// The method of many harnesses: the new state beside the old, then renamed.
fn json_rename(dir: &Path) -> Vec<Duration> {
    let times = (0..ROUNDS / 4).map(|round| {
        let start = Instant::now();
        let mut file = File::create(dir.join("state.json.new")).expect("a file");
        write!(file, "{{\"round\":{round},\"text\":\"{}\"}}", "x".repeat(RECORD_BYTES)).expect("room");
        file.sync_all().expect("a disk");
        std::fs::rename(dir.join("state.json.new"), dir.join("state.json")).expect("a rename");
        File::open(dir).and_then(|dir| dir.sync_all()).expect("a disk");
        start.elapsed()
    });
    times.collect()
}

fn key(owner: u64, number: u64) -> Key {
    Key::of("r-3f9c02d1a4be/f1/1/generate").number(owner).number(number).and("answered")
}

fn record(owner: u64, number: u64) -> Batch {
    Batch::new().insert(Table::Journal, key(owner, number), vec![b'x'; RECORD_BYTES])
}

/// The batches of so many callers, each time in one plain transaction.
fn bare_transactions(db: &Database, slice: u64, callers: u64) -> Vec<Duration> {
    let times = (0..ROUNDS).map(|number| {
        let start = Instant::now();
        let transaction = db.begin_write().expect("a transaction");
        {
            let mut table = transaction.open_table(BARE).expect("a table");
            for caller in 1..=callers {
                let key = key(1_000 * caller + slice, number);
                table.insert(key.as_bytes(), &[b'x'; RECORD_BYTES][..]).expect("room");
            }
        }
        transaction.commit().expect("a commit");
        start.elapsed()
    });
    times.collect()
}

async fn alone(store: &RedbStore, slice: u64) -> Vec<Duration> {
    let mut times = Vec::new();
    for number in 0..ROUNDS {
        let start = Instant::now();
        store.commit(record(slice, number)).await.expect("a commit");
        times.push(start.elapsed());
    }
    times
}

/// Commits a second.
async fn together(store: &Arc<RedbStore>, slice: u64, rounds: u64) -> f64 {
    let start = Instant::now();
    let callers: Vec<_> = (1..=CALLERS)
        .map(|caller| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                for number in 0..rounds {
                    store.commit(record(1_000 * caller + slice, number)).await.expect("a commit");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("a caller");
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let commits = (CALLERS * rounds) as f64;
    commits / start.elapsed().as_secs_f64()
}

fn reopen(runtime: &tokio::runtime::Runtime, dir: &Path, megabytes: u64) {
    let (full, killed) = (dir.join("full"), dir.join("killed"));
    let store = RedbStore::open(&full, StoreOptions::default()).expect("a store");
    runtime.block_on(fill(&store, megabytes));
    let size = std::fs::metadata(full.join(STATE_FILE)).expect("a file").len() >> 20;
    for (rows, state) in [(15_000, "with 15 MB in its log"), (2_000, "with little in its log")] {
        runtime.block_on(fill_log(&store, rows));
        open_copy(&full, &killed, size, state);
        store.read_all().expect("a whole store");
    }
    let alone = median(runtime.block_on(alone(&store, SLICES)));
    std::thread::sleep(Duration::from_secs(3));
    open_copy(&full, &killed, size, "at rest");
    drop(store);
    open_copy(&full, &killed, size, "after it was closed");
    println!("one commit alone in {size} MB           {alone:>10.1?}");
}

/// Rows that all stay in a log: they are written faster than the writer takes for rest.
async fn fill_log(store: &RedbStore, rows: u64) {
    for number in 0..rows / 50 {
        let batch = (0..50).fold(Batch::new(), |batch, row| {
            batch.put(Table::Events, Key::of("log").number(number).number(row), vec![b'x'; 1_000])
        });
        store.commit(batch).await.expect("room");
    }
}

async fn fill(store: &RedbStore, megabytes: u64) {
    for number in 0..megabytes {
        let rows = (0..512).fold(Batch::new(), |batch, row| {
            let key = Key::of("fill").number(number).number(row);
            batch.put(Table::Journal, key, vec![b'x'; 1_900])
        });
        store.commit(rows).await.expect("room");
    }
}

/// Opens a copy of the files, which stands for the store after a kill. Nobody commits meanwhile.
fn open_copy(full: &Path, killed: &Path, size: u64, state: &str) {
    let _ = std::fs::remove_dir_all(killed);
    std::fs::create_dir(killed).expect("room");
    for name in [STATE_FILE, "state.log.0", "state.log.1"] {
        if full.join(name).exists() {
            std::fs::copy(full.join(name), killed.join(name)).expect("room");
            // The copy would reach the disk during the timed open otherwise.
            File::open(killed.join(name)).and_then(|copy| copy.sync_all()).expect("a disk");
        }
    }
    let start = Instant::now();
    let copy = RedbStore::open(killed, StoreOptions::default()).expect("a store");
    println!("open {size} MB killed {state:<36} {:>10.1?}", start.elapsed());
    drop(copy);
}
