//! Faults of the server and of the network: every batch that was acknowledged is there, whole and once.

#[path = "support/load.rs"]
mod load;
#[path = "support/proxy.rs"]
mod proxy;
#[path = "support/server.rs"]
mod server;
#[path = "support/stores.rs"]
mod stores;

use load::{CALLERS, Load};
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Store, StoreError, Table};
use longhaul_postgres::{PostgresConfig, PostgresStore};
use proxy::{Cut, Proxy};
use server::sql::Session;
use server::{PostgresServer, wait};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use stores::{Losses, SHORT_MS, batch, check, events_of};
use tokio::runtime::Runtime;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// `LONGHAUL_KILLS` sets the number of kills; a search takes some hundred.
#[test]
fn every_acknowledged_batch_survives_kills_of_the_server_whole_and_once() {
    let kills = std::env::var("LONGHAUL_KILLS").ok().map_or(3, |text| text.parse::<u32>().unwrap());
    let (runtime, losses, mut server) = (runtime(), Losses::default(), PostgresServer::start(&[]));
    let config = stores::config(&server.url());
    let store = Arc::new(PostgresStore::open(&config, &|_| None, losses.options("writer")).unwrap());
    let load = Load::start(&runtime, &store);
    for _ in 0..kills {
        load.wait_for_more();
        server.kill();
        server.begin();
    }
    load.wait_for_more();
    let total = load.total();
    let ended = load.stop(&runtime);
    drop(store);
    let store = stores::open(&config, "reader");
    for (caller, (acknowledged, refused)) in CALLERS.into_iter().zip(ended) {
        assert_eq!(refused, None, "{caller}");
        assert_eq!(check(&*store, caller), acknowledged, "batches of {caller}");
    }
    assert_eq!(losses.told(), [""; 0]);
    eprintln!("{total} batches over {kills} kills of the server, all there and none twice");
}

#[test]
fn a_server_that_is_shut_down_is_told_and_is_used_again_once_it_is_back() {
    let (losses, mut server) = (Losses::default(), PostgresServer::start(&[]));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let config = PostgresConfig { connect_ms_max: 1_000, statement_ms_max: 2_000, ..stores::config(&server.url()) };
    let store = Arc::new(PostgresStore::open(&config, &|_| None, losses.options("writer")).unwrap());
    runtime.block_on(store.commit(batch("a", 0))).unwrap();
    server.stop();
    let (begins, began) = channel();
    let first = runtime.spawn({
        let store = Arc::clone(&store);
        async move {
            begins.send(()).unwrap();
            store.get(Table::Runs, &Key::of("k"))
        }
    });
    began.recv().unwrap();
    runtime.block_on(runtime.spawn(async {})).unwrap();
    assert!(!first.is_finished(), "what needs no store is answered while a read waits on the only thread");
    let first = runtime.block_on(first).unwrap().unwrap_err();
    let asked = Instant::now();
    let second = store.get(Table::Runs, &Key::of("k")).unwrap_err();
    assert!(asked.elapsed() < Duration::from_secs(2), "nothing waits again for a server that is away");
    let written = runtime.block_on(store.commit(batch("a", 1))).unwrap_err();
    for refused in [first, second, written] {
        let told = refused.to_string();
        assert!(matches!(&refused, StoreError::Unreachable { path, .. } if *path == config.address()), "{refused:?}");
        assert!(told.contains("it is used again once the server is back") && !told.contains('\n'), "{told}");
    }
    server.begin();
    runtime.block_on(store.commit(batch("a", 1))).unwrap();
    assert_eq!(check(&*store, "a"), 2);
    assert_eq!(losses.told(), [""; 0]);
}

#[test]
fn a_process_that_is_cut_off_in_any_direction_is_replaced_and_writes_nothing_late() {
    let server = PostgresServer::shared();
    std::thread::scope(|scope| {
        for cut in [Cut::ToServer, Cut::ToClient, Cut::Both] {
            let server = &server;
            scope.spawn(move || cut_off(server, cut));
        }
    });
}

fn cut_off(server: &PostgresServer, cut: Cut) {
    let (runtime, losses, proxy) = (runtime(), Losses::default(), Proxy::to(server.port));
    let direct = PostgresConfig { lease_ms: SHORT_MS, connect_ms_max: 1_000, ..stores::config(&server.url()) };
    let through = PostgresConfig { url: proxy.url(&direct.url, server.port), ..direct.clone() };
    let first = Arc::new(PostgresStore::open(&through, &|_| None, losses.options("first")).unwrap());
    let load = Load::start(&runtime, &first);
    load.wait_for_more();
    proxy.cut(cut);
    let options = Losses::default().options("second");
    let second = PostgresStore::wait_and_open(&direct, &|_| None, options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(!first.is_held(), "{cut:?}");
    let written = CALLERS.map(|caller| events_of(server, &direct, caller));
    runtime.block_on(second.commit(batch("second", 0))).unwrap();
    proxy.cut(Cut::Nothing);
    wait("the loss is told", || !losses.told().is_empty());
    runtime.block_on(second.commit(batch("second", 1))).unwrap();
    for ((caller, written), (told, refused)) in CALLERS.into_iter().zip(written).zip(load.stop(&runtime)) {
        assert!(matches!(refused, Some(StoreError::Fenced { .. })), "{cut:?} {caller}: {refused:?}");
        // A batch in flight may have come before the cut, or before the next process.
        assert!((told..=told + 1).contains(&written), "{cut:?} {caller}: {told} acknowledged, {written} there");
        assert_eq!(check(&second, caller), written, "{cut:?} {caller}: a late write is there");
    }
    assert_eq!(check(&second, "second"), 2);
    assert!(matches!(&losses.told()[..], [lost] if lost.contains("on second")), "{cut:?}: {:?}", losses.told());
}

/// The first attempt arrives late, beside the second one, or has come while its answer is lost.
#[test]
fn a_commit_whose_outcome_is_unknown_is_sent_again_and_is_there_once() {
    let (runtime, server) = (runtime(), PostgresServer::shared());
    for cut in [Cut::ToServer, Cut::ToClient, Cut::Both] {
        let (proxy, config) = (Proxy::to(server.port), stores::config(&server.url()));
        let url = proxy.url(&config.url, server.port);
        let config = PostgresConfig { url, connect_ms_max: 60_000, statement_ms_max: 1_000, ..config };
        let store = stores::open(&config, "writer");
        runtime.block_on(store.commit(batch("a", 0))).unwrap();
        proxy.cut(cut);
        let committing = Arc::clone(&store);
        let commit = runtime.spawn(async move { committing.commit(batch("a", 1)).await });
        wait("a second attempt is held back", || proxy.held() >= 2);
        proxy.cut(Cut::Nothing);
        runtime.block_on(commit).unwrap().unwrap_or_else(|why| panic!("{cut:?}: {why}"));
        runtime.block_on(store.commit(batch("a", 2))).unwrap();
        assert_eq!((check(&*store, "a"), store.commits().get()), (3, 3), "{cut:?}");
    }
}

#[test]
fn a_statement_that_somebody_cancels_or_whose_connection_is_ended_is_sent_again() {
    let (runtime, server) = (runtime(), PostgresServer::shared());
    let config = stores::config(&server.url());
    let store = stores::open(&config, "writer");
    let mut other = server.session();
    other.ask(&format!("begin; lock table {}.kv in access exclusive mode", config.schema)).unwrap();
    let committing = Arc::clone(&store);
    let commit = runtime.spawn(async move { committing.commit(batch("a", 0)).await });
    let waiting = format!(
        "from pg_stat_activity where application_name = 'longhaul' and wait_event_type = 'Lock' \
         and query like '%\"{}\"%'",
        config.schema
    );
    for end in ["pg_cancel_backend", "pg_terminate_backend"] {
        wait("the commit waits", || server.value(&format!("select count(*) {waiting}")) == "1");
        server.ask(&format!("select {end}(pid) {waiting}"));
    }
    wait("the commit waits again", || server.value(&format!("select count(*) {waiting}")) == "1");
    other.ask("commit").unwrap();
    runtime.block_on(commit).unwrap().unwrap();
    assert_eq!(check(&*store, "a"), 1);
}

#[test]
fn a_server_without_a_free_connection_is_told_and_is_used_once_it_has_one() {
    let (runtime, server) = (runtime(), PostgresServer::shared());
    server.ask("create role limited login connection limit 1; grant create on database postgres to limited");
    let config = PostgresConfig {
        connect_ms_max: 1_000,
        statement_ms_max: 2_000,
        ..stores::config(&server.url_of("limited", "postgres"))
    };
    let taken = Session::open(server.port, "limited", "postgres").unwrap();
    let refused = stores::refusal(stores::try_open(&config, "writer"));
    assert!(
        matches!(&refused, StoreError::Unreachable { detail, .. } if detail.contains("too many connections")),
        "{refused}"
    );
    drop(taken);
    server.ask("alter role limited connection limit 20");
    let store = stores::open(&config, "writer");
    runtime.block_on(store.commit(batch("a", 0))).unwrap();
    server.ask(
        "alter role limited connection limit 0; \
         select pg_terminate_backend(pid, 60000) from pg_stat_activity where usename = 'limited'",
    );
    let read = store.get(Table::Runs, &Key::of("k")).unwrap_err();
    let written = runtime.block_on(store.commit(batch("a", 1))).unwrap_err();
    for refused in [read, written] {
        assert!(matches!(&refused, StoreError::Unreachable { .. }), "{refused:?}");
    }
    server.ask("alter role limited connection limit 20");
    runtime.block_on(store.commit(batch("a", 1))).unwrap();
    assert_eq!(check(&*store, "a"), 2);
}

#[test]
fn a_full_disk_of_the_server_is_told_and_commits_go_on_when_there_is_room() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("nothing was tried: only root can mount a small disk, and not in every container");
        return;
    };
    let (runtime, server) = (runtime(), PostgresServer::shared());
    server.ask(&format!("create tablespace small location '{}'", disk.path().display()));
    server.ask("create database small tablespace small strategy file_copy");
    let store = stores::open(&stores::config(&server.url_of("longhaul", "small")), "writer");
    let mut kept = 0;
    let refused = loop {
        match runtime.block_on(store.commit(large(kept))) {
            Ok(()) => kept += 1,
            Err(why) => break why,
        }
        assert!(kept < 1_000, "there is no wall");
    };
    assert!(matches!(refused, StoreError::Full { .. }), "{refused}");
    check_large(&*store, kept);
    disk.grow();
    runtime.block_on(store.commit(large(kept))).unwrap();
    check_large(&*store, kept + 1);
    drop(store);
    server.ask("drop database small");
    server.ask("drop tablespace small");
}

/// Content of 512 KiB that does not compress.
fn large(number: u64) -> Batch {
    let mut batch = Batch::new();
    let digest = batch.blob(large_content(number));
    batch.insert(Table::Events, Key::of("large").number(number), digest.to_string())
}

fn large_content(number: u64) -> Vec<u8> {
    let block = |block: u64| *Digest::of_parts(&[&number.to_le_bytes(), &block.to_le_bytes()]).as_bytes();
    (0..16_384).flat_map(block).collect()
}

#[track_caller]
fn check_large(store: &dyn Store, kept: u64) {
    let rows = store.scan(Table::Events, &Key::of("large"), None, usize::MAX).unwrap();
    assert_eq!(rows.len() as u64, kept);
    for number in 0..kept {
        let content = large_content(number);
        assert!(store.blob(&Digest::of(&content)).unwrap() == Some(content), "content {number}");
    }
}

/// A file system of 24 MiB in memory, for the files of a database: its own 8, and some content.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts a small disk; none where this process may not mount anything.
    fn mount() -> Option<Self> {
        let directory = server::programs::place();
        let options = format!("size=24m,mode=700,uid={}", server::programs::server_user());
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "none"]).arg(directory.path());
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(Self(directory))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn grow(&self) {
        server::programs::run(Command::new("mount").args(["-o", "remount,size=128m"]).arg(self.path()));
    }
}

/// The directory is removed after this.
impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).output();
    }
}
