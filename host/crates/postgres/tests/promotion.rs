//! An asynchronous standby that lacks the last second of its primary and is promoted in its place: who owned the store
//! before owns it no more, since what it knows to be durable may be gone.

#[path = "support/proxy.rs"]
mod proxy;
#[path = "support/server.rs"]
mod server;
#[path = "support/stores.rs"]
mod stores;

use longhaul_core::store::{Key, Store as _, StoreError, Table};
use longhaul_postgres::{PostgresConfig, PostgresStore, Promotion};
use proxy::{Cut, Proxy};
use server::PostgresServer;
use std::ops::ControlFlow;
use std::sync::mpsc::channel;
use std::time::Duration;
use stores::{LONG_MS, Losses, SHORT_MS, batch, check, events_of, refusal, try_open};
use tokio::runtime::Runtime;

/// A primary and its standby, behind one address.
struct Pair {
    primary: PostgresServer,
    standby: PostgresServer,
    proxy: Proxy,
    runtime: Runtime,
    /// Through the proxy.
    config: PostgresConfig,
}

impl Pair {
    fn start() -> Self {
        let primary = PostgresServer::start(&[]);
        let (standby, proxy) = (primary.standby(), Proxy::to(primary.port));
        let url = proxy.url(&primary.url(), primary.port);
        let config = PostgresConfig { lease_ms: SHORT_MS, ..stores::config(&url) };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { primary, standby, proxy, runtime, config }
    }

    /// The settings of the store without the proxy.
    fn directly(&self, server: &PostgresServer) -> PostgresConfig {
        PostgresConfig { url: server.url(), ..self.config.clone() }
    }

    fn open(&self, losses: &Losses) -> PostgresStore {
        PostgresStore::open(&self.config, &|_| None, losses.options("first")).unwrap()
    }

    fn commit(&self, store: &PostgresStore, caller: &str, numbers: std::ops::Range<u64>) {
        for number in numbers {
            self.runtime.block_on(store.commit(batch(caller, number))).unwrap();
        }
    }

    /// Kills the primary, and promotes the standby in its place.
    fn fail_over(&mut self) {
        self.primary.kill();
        self.standby.promote();
        self.proxy.redirect(self.standby.port);
    }

    /// The next batch of a process from before is refused, since the server was promoted.
    #[track_caller]
    fn check_fenced(&self, store: &PostgresStore, late: u64, losses: &Losses) {
        let refused = self.runtime.block_on(store.commit(batch("a", late))).unwrap_err();
        let told = refused.to_string();
        assert!(matches!(refused, StoreError::Fenced { .. }), "{refused:?}");
        assert!(
            told.contains("promoted, from timeline 1 to 2") && told.contains("may lack the last commits"),
            "{told}"
        );
        assert!(!store.is_held());
        assert_eq!(losses.told(), [told]);
    }

    /// The next process is told of the promotion, and finds what the standby had.
    #[track_caller]
    fn check_next(&self, kept: u64) {
        let options = Losses::default().options("next");
        let next =
            PostgresStore::wait_and_open(&self.config, &|_| None, options, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(next.promotion(), Some(Promotion { from: 1, to: 2 }));
        assert_eq!(check(&next, "a"), kept);
        self.commit(&next, "a", kept..kept + 1);
        drop(next);
        let again = stores::open(&self.config, "again");
        assert_eq!((again.promotion(), check(&*again, "a")), (None, kept + 1));
    }
}

#[test]
fn a_process_whose_last_commits_are_lost_is_fenced_by_the_promoted_server() {
    let (losses, mut pair) = (Losses::default(), Pair::start());
    let first = pair.open(&losses);
    let replica = refusal(try_open(&pair.directly(&pair.standby), "other")).to_string();
    assert!(replica.contains("is a replica") && replica.contains("write the address of the primary"), "{replica}");
    pair.commit(&first, "a", 0..5);
    pair.primary.wait_for_standby();
    pair.primary.stop_streaming();
    pair.commit(&first, "a", 5..8);
    pair.fail_over();
    pair.check_fenced(&first, 8, &losses);
    assert_eq!(events_of(&pair.standby, &pair.config, "a"), 5);
    drop(first);
    pair.check_next(5);
}

/// The successor is lost with the last second: nonce and head of the one before it match again.
#[test]
fn a_process_that_was_replaced_in_the_lost_second_is_fenced_by_the_promoted_server() {
    let (losses, mut pair) = (Losses::default(), Pair::start());
    let first = pair.open(&losses);
    pair.commit(&first, "a", 0..5);
    pair.proxy.cut(Cut::Both);
    pair.primary.wait_for_standby();
    pair.primary.stop_streaming();
    let direct = pair.directly(&pair.primary);
    let options = Losses::default().options("second");
    let second = PostgresStore::wait_and_open(&direct, &|_| None, options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(!first.is_held());
    pair.commit(&second, "second", 0..3);
    pair.fail_over();
    drop(second);
    let owner = pair.standby.value(&format!("select holder from {}.owner", pair.config.schema));
    assert!(owner.contains("on first"), "{owner}");
    pair.proxy.cut(Cut::Nothing);
    pair.check_fenced(&first, 5, &losses);
    assert_eq!(events_of(&pair.standby, &pair.config, "second"), 0);
    drop(first);
    pair.check_next(5);
}

/// A single address leads to one server after the other, and for a while to one that takes no writes.
#[test]
fn a_process_that_stands_by_waits_while_its_server_is_a_replica() {
    let mut pair = Pair::start();
    let first = pair.open(&Losses::default());
    pair.commit(&first, "a", 0..3);
    pair.primary.wait_for_standby();
    let (config, (told, waits)) = (pair.config.clone(), channel());
    let next = std::thread::spawn(move || {
        PostgresStore::wait_and_open(&config, &|_| None, Losses::default().options("next"), &mut |waiting| {
            // The test looks at the first ones only.
            let _ = told.send(waiting.to_string());
            ControlFlow::Continue(())
        })
    });
    let wait_for = |words: &str| while !waits.recv_timeout(Duration::from_secs(60)).unwrap().contains(words) {};
    wait_for("on first with");
    pair.primary.kill();
    pair.proxy.redirect(pair.standby.port);
    wait_for("is a replica");
    pair.standby.promote();
    let next = next.join().unwrap().unwrap();
    assert_eq!((next.timeline(), next.is_untouched(), check(&next, "a")), (2, false, 3));
}

/// The address leads to the promoted server, and the connection of the writer to the former one, which still works.
#[test]
fn nothing_is_read_of_another_server_than_that_of_the_claim() {
    let (losses, pair) = (Losses::default(), Pair::start());
    let config =
        PostgresConfig { lease_ms: LONG_MS, connect_ms_max: 1_000, statement_ms_max: 1_000, ..pair.config.clone() };
    let first = PostgresStore::open(&config, &|_| None, losses.options("first")).unwrap();
    pair.commit(&first, "a", 0..3);
    pair.primary.wait_for_standby();
    pair.standby.promote();
    pair.proxy.redirect(pair.standby.port);
    let read = first.get(Table::States, &Key::of("count").and("a")).unwrap_err();
    assert!(matches!(&read, StoreError::Unreachable { detail, .. } if detail.contains("promoted")), "{read:?}");
    pair.commit(&first, "a", 3..4);
    pair.proxy.redirect(pair.primary.port);
    assert_eq!(check(&first, "a"), 4);
    assert_eq!(losses.told(), [""; 0]);
}
