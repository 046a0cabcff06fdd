//! Measures a durable commit, beside its floor. Run it alone, with `--release`:
//!
//! `cargo run --release -p longhaul-store --example measure -- [MEGABYTES]`
//!
//! With a number it also fills a store of that size and measures how long it takes to open after a
//! kill, with plain commits, with one at rest, and with quick-repair commits alone, and what each kind of commit takes.
//! Compare ratios, not times: machines differ.

use longhaul_core::store::{Batch, Key, Store, Table};
use longhaul_store::{RedbStore, STATE_FILE, StoreOptions};
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

fn main() {
    let megabytes = std::env::args().nth(1).map(|text| text.parse::<u64>().expect("a number of megabytes"));
    let dir = tempfile::tempdir_in(".").expect("a directory on the disk that is measured");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let store = Arc::new(RedbStore::open(&dir.path().join("store"), StoreOptions::default()).expect("a store"));
    let (mut floors, mut jsons, mut alones, mut rates) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for slice in 0..SLICES {
        floors.extend(fdatasync(dir.path()));
        jsons.extend(json_rename(dir.path()));
        alones.extend(runtime.block_on(alone(&store, slice)));
        rates.push(runtime.block_on(together(&store, slice)));
    }
    let (floor, json, alone) = (median(floors), median(jsons), median(alones));
    rates.sort_unstable_by(f64::total_cmp);
    let together = rates[rates.len() / 2];
    let single_rate = 1.0 / alone.as_secs_f64();
    println!("fdatasync of {RECORD_BYTES} bytes, floor    {floor:>10.1?}");
    println!("JSON write, fsync, rename         {json:>10.1?}");
    println!(
        "one commit alone                  {alone:>10.1?}  {:.2} of the floor, {:.2} of JSON",
        alone.as_secs_f64() / floor.as_secs_f64(),
        alone.as_secs_f64() / json.as_secs_f64(),
    );
    println!(
        "{CALLERS} callers                        {together:>8.0}/s  {:.1} of the single rate",
        together / single_rate
    );
    drop(store);
    if let Some(megabytes) = megabytes {
        reopen(&runtime, dir.path(), megabytes);
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Overwrites an existing file of fixed size: no metadata has to be written.
fn fdatasync(dir: &Path) -> Vec<Duration> {
    let file = File::create(dir.join("floor")).expect("a file");
    file.write_all_at(&vec![1; RECORD_BYTES * 1_000], 0).expect("room");
    file.sync_all().expect("a disk");
    let times = (0..ROUNDS).map(|round| {
        let record = vec![round.to_le_bytes()[0]; RECORD_BYTES];
        let start = Instant::now();
        file.write_all_at(&record, round % 1_000 * RECORD_BYTES as u64).expect("room");
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

fn record(owner: u64, number: u64) -> Batch {
    let key = Key::of("r-3f9c02d1a4be/f1/1/generate").number(owner).number(number);
    Batch::new().insert(Table::Journal, key.and("answered"), vec![b'x'; RECORD_BYTES])
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
async fn together(store: &Arc<RedbStore>, slice: u64) -> f64 {
    let start = Instant::now();
    let callers: Vec<_> = (1..=CALLERS)
        .map(|caller| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                for number in 0..ROUNDS {
                    store.commit(record(1_000 * caller + slice, number)).await.expect("a commit");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("a caller");
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let commits = (CALLERS * ROUNDS) as f64;
    commits / start.elapsed().as_secs_f64()
}

fn reopen(runtime: &tokio::runtime::Runtime, dir: &Path, megabytes: u64) {
    let (full, killed) = (dir.join("full"), dir.join("killed"));
    let store = RedbStore::open(&full, with_quick_repair_from(u64::MAX)).expect("a store");
    runtime.block_on(fill(&store, megabytes));
    let size = std::fs::metadata(full.join(STATE_FILE)).expect("a file").len() >> 20;
    open_copy(&full, &killed, size, "while it made plain commits");
    std::thread::sleep(Duration::from_secs(3));
    open_copy(&full, &killed, size, "at rest");
    let plain = median(runtime.block_on(alone(&store, SLICES)));
    drop(store);
    let store = RedbStore::open(&full, with_quick_repair_from(0)).expect("a store");
    let quick = median(runtime.block_on(alone(&store, SLICES + 1)));
    open_copy(&full, &killed, size, "while it made quick-repair commits");
    drop(store);
    println!("one commit alone in {size} MB, plain        {plain:>10.1?}");
    println!("one commit alone in {size} MB, quick-repair {quick:>10.1?}");
    commits_of(&full, size);
}

fn with_quick_repair_from(bytes: u64) -> StoreOptions {
    StoreOptions { quick_repair_bytes_min: Some(bytes), ..StoreOptions::default() }
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

/// Opens a copy of the file, which stands for the file after a kill. Nobody commits meanwhile.
fn open_copy(full: &Path, killed: &Path, size: u64, state: &str) {
    let _ = std::fs::remove_dir_all(killed);
    std::fs::create_dir(killed).expect("room");
    std::fs::copy(full.join(STATE_FILE), killed.join(STATE_FILE)).expect("room");
    // Otherwise the copy would reach the disk during the timed open.
    File::open(killed.join(STATE_FILE)).and_then(|copy| copy.sync_all()).expect("a disk");
    let start = Instant::now();
    let copy = RedbStore::open(killed, StoreOptions::default()).expect("a store");
    println!("open {size} MB killed {state:<36} {:>10.1?}", start.elapsed());
    drop(copy);
}

/// The writer's commits in a full file, plain and at rest, on the bare database.
fn commits_of(dir: &Path, size: u64) {
    let db = redb::Database::open(dir.join(STATE_FILE)).expect("a database");
    let (mut plain, mut quick) = (Vec::new(), Vec::new());
    for round in 0..600_u64 {
        let start = Instant::now();
        let mut transaction = db.begin_write().expect("a transaction");
        let at_rest = round % 2 == 1;
        transaction.set_quick_repair(at_rest);
        let table: redb::TableDefinition<u64, &[u8]> = redb::TableDefinition::new("measure");
        transaction.open_table(table).expect("a table").insert(round, &[1; RECORD_BYTES][..]).expect("room");
        transaction.commit().expect("a commit");
        if at_rest { quick.push(start.elapsed()) } else { plain.push(start.elapsed()) }
    }
    println!("bare redb, {size} MB, plain commit       {:>10.1?}", median(plain));
    println!("bare redb, {size} MB, quick-repair commit{:>10.1?}", median(quick));
}
