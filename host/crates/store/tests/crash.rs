//! The state after `kill -9`, and after a full disk.
//!
//! The test runs itself as a child process in the role that `LONGHAUL_TEST_ROLE` names. The child prints the
//! acknowledged batches; its parent kills it and reads the store.

use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Store, StoreError, Table};
use longhaul_store::{RedbStore, STATE_FILE, StoreOptions};
use rustix::process::{Resource, Rlimit, Signal};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ROLE: &str = "LONGHAUL_TEST_ROLE";
const DIR: &str = "LONGHAUL_TEST_DIR";
const FROM: &str = "LONGHAUL_TEST_FROM";
const KILL_AT: &str = "LONGHAUL_TEST_KILL_AT";
/// The length of a log, in bytes, so that logs take turns all the time.
const LOG: &str = "LONGHAUL_TEST_LOG";
/// The length of content with which a limit is reached, in bytes.
const PIECE: &str = "LONGHAUL_TEST_PIECE";

/// Not a test but the child's main function: it does nothing unless a parent gave it a role.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let dir = PathBuf::from(std::env::var(DIR).unwrap());
    match role.as_str() {
        "commit-until-killed" => commit_until_killed(&dir),
        "fill-the-limit" => fill(&dir, Wall::of_limit()),
        "fill-the-disk" => fill(&dir, Wall::of_disk(&dir)),
        other => panic!("no role `{other}`"),
    }
}

#[test]
fn every_acknowledged_batch_survives_a_kill_at_any_moment_in_whole() {
    kill_at_any_moment(&[]);
}

#[test]
fn every_acknowledged_batch_survives_a_kill_while_logs_take_turns() {
    kill_at_any_moment(&[(LOG, "65536".to_owned())]);
}

fn kill_at_any_moment(settings: &[(&str, String)]) {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeSet::new();
    for round in 0_u64..8 {
        let settings = [settings, &[(FROM, (round * 1_000_000).to_string())]].concat();
        let mut child = start("commit-until-killed", dir.path(), &settings);
        // The time decides where it is killed; nothing is awaited.
        std::thread::sleep(Duration::from_millis(60 + 37 * round));
        child.kill().unwrap();
        acknowledged.extend(acknowledgements(child));
        check(dir.path(), &acknowledged);
    }
    assert!(acknowledged.len() > 100, "only {} batches were tried", acknowledged.len());
}

/// The fifth commit goes into the database, the twentieth to a log.
#[test]
fn a_kill_just_before_a_commit_loses_it_and_just_after_keeps_it() {
    for number in [5, 20] {
        for (point, kept) in [("store.before-commit", number - 1), ("store.after-commit", number)] {
            let dir = tempfile::tempdir().unwrap();
            let kill_at = format!("{point}:{number}");
            let child = start("commit-until-killed", dir.path(), &[(FROM, "0".to_owned()), (KILL_AT, kill_at)]);
            let acknowledged = acknowledgements(child);
            assert_eq!(acknowledged.len(), number - 1, "{point}");
            assert_eq!(check(dir.path(), &acknowledged), kept, "{point}");
        }
    }
}

#[test]
fn a_kill_around_the_writing_of_a_log_into_the_database_loses_nothing() {
    for point in ["store.before-fold:1", "store.after-fold:1", "store.before-fold:4", "store.after-fold:4"] {
        let dir = tempfile::tempdir().unwrap();
        let settings = [(FROM, "0".to_owned()), (KILL_AT, point.to_owned()), (LOG, "65536".to_owned())];
        let acknowledged = acknowledgements(start("commit-until-killed", dir.path(), &settings));
        assert!(acknowledged.len() > 8, "{point}: {}", acknowledged.len());
        check(dir.path(), &acknowledged);
        // Closed in order, the database has it all.
        assert!(!dir.path().join("state.log.0").exists() && !dir.path().join("state.log.1").exists());
        check(dir.path(), &acknowledged);
    }
}

#[test]
fn a_file_that_was_killed_at_any_point_opens_without_being_read() {
    for point in ["store.before-commit:1", "store.after-commit:5", "store.before-commit:20", "store.before-fold:2"] {
        let dir = tempfile::tempdir().unwrap();
        let settings = [(FROM, "0".to_owned()), (KILL_AT, point.to_owned()), (LOG, "65536".to_owned())];
        let acknowledged = acknowledgements(start("commit-until-killed", dir.path(), &settings));
        // A copy, so that the store finds the file as the kill left it.
        let copy = dir.path().join("copy.redb");
        std::fs::copy(dir.path().join(STATE_FILE), &copy).unwrap();
        let opened = redb::Database::builder().set_repair_callback(redb::RepairSession::abort).open(&copy);
        assert!(opened.is_ok(), "{point}: {:?}", opened.err());
        check(dir.path(), &acknowledged);
    }
}

#[test]
fn a_file_that_may_not_grow_is_full_and_takes_more_when_it_may() {
    // The first go into the database at once, the second through logs.
    for piece in ["524288", "131072"] {
        fill_to_the_limit(piece);
    }
}

fn fill_to_the_limit(piece: &str) {
    // An ignored signal stays ignored in a started program: the error comes instead.
    let exe = std::env::current_exe().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(exe);
    let dir = tempfile::tempdir().unwrap();
    let output = role(&mut shell, "fill-the-limit", dir.path()).env(PIECE, piece).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// `mount -t tmpfs -o size=32m none DIR && LONGHAUL_TEST_SMALL_DISK=DIR cargo test -- --ignored small_disk`
#[test]
#[ignore = "needs a small file system, whose directory LONGHAUL_TEST_SMALL_DISK names"]
fn a_small_disk_is_full_and_takes_more_when_space_is_back() {
    let disk = PathBuf::from(std::env::var("LONGHAUL_TEST_SMALL_DISK").unwrap());
    let dir = tempfile::tempdir_in(disk).unwrap();
    let output =
        role(&mut Command::new(std::env::current_exe().unwrap()), "fill-the-disk", dir.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn role<'a>(command: &'a mut Command, role: &str, dir: &Path) -> &'a mut Command {
    command.args(["--exact", "child", "--nocapture"]).env(ROLE, role).env(DIR, dir)
}

fn start(name: &str, dir: &Path, settings: &[(&str, String)]) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let command = role(&mut command, name, dir).envs(settings.iter().map(|(key, value)| (*key, value)));
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// The child's output before it ended.
fn acknowledgements(mut child: Child) -> BTreeSet<u64> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let numbers = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("ack ")?.parse().ok()).collect();
    child.wait().unwrap();
    numbers
}

/// A store that this process may just have closed. A child that another test starts at that moment has the lock until
/// its program begins, where tests are threads of one process.
#[track_caller]
fn opened(dir: &Path) -> RedbStore {
    for _ in 0..100 {
        match RedbStore::open(dir, StoreOptions::default()) {
            Err(StoreError::Held { .. }) => std::thread::sleep(Duration::from_millis(20)),
            store => return store.unwrap(),
        }
    }
    panic!("the store stays held");
}

/// Every acknowledged batch is there, and every batch that is there is complete; returns how many.
#[track_caller]
fn check(dir: &Path, acknowledged: &BTreeSet<u64>) -> usize {
    let store = opened(dir);
    let rows = store.scan(Table::Events, &Key::of("batch"), None, usize::MAX).unwrap();
    let there: BTreeSet<u64> = rows.iter().filter_map(|(key, _)| Key::last_number(key)).collect();
    assert!(there.is_superset(acknowledged), "lost {:?}", acknowledged.difference(&there));
    for number in &there {
        assert_eq!(store.get(Table::States, &Key::of("batch").number(*number)).unwrap(), Some(content(*number)));
        assert_eq!(store.blob(&Digest::of(&content(*number))).unwrap(), Some(content(*number)));
    }
    let states = store.scan(Table::States, &Key::of("batch"), None, usize::MAX).unwrap();
    assert_eq!(states.len(), there.len(), "a batch is there in part");
    there.len()
}

fn content(number: u64) -> Vec<u8> {
    // Very different lengths, so that commits are cut at different places.
    let length = usize::try_from(number % 17).unwrap() * 500 + 10;
    number.to_le_bytes().into_iter().cycle().take(length).collect()
}

fn batch(number: u64) -> Batch {
    let key = Key::of("batch").number(number);
    let mut batch = Batch::new().insert(Table::Events, key.clone(), "x").put(Table::States, key, content(number));
    batch.blob(content(number));
    batch
}

fn commit_until_killed(dir: &Path) {
    let kill_at = std::env::var(KILL_AT).ok();
    let callers = if kill_at.is_some() { 1 } else { 4 };
    let options = StoreOptions {
        crash_hook: kill_at.map(|at| Arc::new(killer(&at)) as _),
        log_bytes_max: std::env::var(LOG).ok().map(|bytes| bytes.parse().unwrap()),
    };
    let store = Arc::new(RedbStore::open(dir, options).unwrap());
    let next = Arc::new(AtomicU64::new(std::env::var(FROM).unwrap().parse().unwrap()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let callers: Vec<_> = (0..callers)
        .map(|_| {
            let (store, next) = (Arc::clone(&store), Arc::clone(&next));
            runtime.spawn(async move {
                while next.load(Ordering::Relaxed) < u64::MAX {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    store.commit(batch(number)).await.unwrap();
                    println!("ack {number}");
                }
            })
        })
        .collect();
    for caller in callers {
        runtime.block_on(caller).unwrap();
    }
}

/// A hook that kills its own process when it reaches a point for the nth time.
fn killer(at: &str) -> impl Fn(&'static str) + Send + Sync + use<> {
    let (point, number) = at.split_once(':').unwrap();
    let (point, number) = (point.to_owned(), number.parse::<u64>().unwrap());
    let seen = AtomicU64::new(0);
    move |name| {
        if name == point && seen.fetch_add(1, Ordering::SeqCst) + 1 == number {
            rustix::process::kill_process(rustix::process::getpid(), Signal::KILL).unwrap();
            std::thread::sleep(Duration::from_secs(60));
        }
    }
}

/// A limit that stops a file from growing, and can be lifted.
struct Wall {
    raise: Box<dyn Fn()>,
    remove: Box<dyn Fn()>,
}

impl Wall {
    fn of_limit() -> Self {
        let limit = |current| rustix::process::setrlimit(Resource::Fsize, Rlimit { current, maximum: None }).unwrap();
        Self { raise: Box::new(move || limit(Some(12 << 20))), remove: Box::new(move || limit(None)) }
    }

    /// A file that leaves 6 MiB of the disk.
    fn of_disk(dir: &Path) -> Self {
        let file = dir.join("in-the-way");
        let path = file.clone();
        let raise = move || {
            let free = rustix::fs::statvfs(path.parent().unwrap()).unwrap();
            let fill = (free.f_bavail * free.f_frsize).saturating_sub(6 << 20);
            std::fs::write(&path, vec![1; usize::try_from(fill).unwrap()]).unwrap();
        };
        Self { raise: Box::new(raise), remove: Box::new(move || std::fs::remove_file(&file).unwrap()) }
    }
}

/// Commits until the limit is reached, several times, and checks that nothing was lost.
fn fill(dir: &Path, wall: Wall) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = RedbStore::open(dir, StoreOptions::default()).unwrap();
    let mut kept = 0;
    for _ in 0..3 {
        (wall.raise)();
        let refused = loop {
            match runtime.block_on(store.commit(large(kept))) {
                Ok(()) => kept += 1,
                Err(why) => break why,
            }
            assert!(kept < 10_000, "there is no wall");
        };
        assert!(matches!(refused, StoreError::Full { .. }), "{refused}");
        check_large(&store, kept);
        (wall.remove)();
        runtime.block_on(store.commit(large(kept))).unwrap();
        kept += 1;
        check_large(&store, kept);
        if kept > 200 {
            break;
        }
    }
    drop(store);
    check_large(&RedbStore::open(dir, StoreOptions::default()).unwrap(), kept);
}

/// Content that does not compress, of 512 KiB unless the test says otherwise.
fn large(number: u64) -> Batch {
    let bytes = std::env::var(PIECE).ok().map_or(524_288, |bytes| bytes.parse::<u64>().unwrap());
    let blocks =
        (0..bytes / 32).flat_map(|block| *Digest::of_parts(&[&number.to_le_bytes(), &block.to_le_bytes()]).as_bytes());
    let mut batch = Batch::new();
    let digest = batch.blob(blocks.collect());
    batch.insert(Table::Events, Key::of("large").number(number), digest.to_string())
}

#[track_caller]
fn check_large(store: &RedbStore, kept: u64) {
    let rows = store.scan(Table::Events, &Key::of("large"), None, usize::MAX).unwrap();
    assert_eq!(rows.len() as u64, kept);
    for (_, digest) in rows {
        let digest = std::str::from_utf8(&digest).unwrap().parse().unwrap();
        assert!(store.blob(&digest).unwrap().is_some());
    }
}
