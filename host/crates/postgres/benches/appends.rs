//! Compares durable appends of 1, 16 and 64 callers, each of which makes one after the other, with bare inserts of the
//! same bytes on the same server, with the embedded store on the same disk, and with the steps of DBOS:
//!
//! `cargo bench -p longhaul-postgres --bench appends` (about three minutes after the build)
//!
//! - bare inserts: the floor, each caller over a connection of its own; and all callers over one connection, on which
//!   their statements follow each other without a wait;
//! - longhaul: the seat of the owner, over whose one connection the writer folds what waits; and three seats at once,
//!   that of the owner and those of two workers, among which the callers are divided;
//! - longhaul, a call: two appends, one after the other, as a call makes them that is announced before it begins;
//! - redb: the store of one machine;
//! - DBOS: a step of a workflow, in one process. It stores a result and no announcement. Its row has some more bytes,
//!   since it encodes the result, and it looks first whether the step was made before.
//!
//! `TMPDIR` names a directory of the disk that is measured. The figures are taken in slices, in turn, so that a busy
//! moment of the machine does not fall on one of them alone, and the middle slice of each is told. Compare ratios, not
//! rates: machines differ. Goal: at most twice the time of the floor.

#[path = "appends/dbos.rs"]
mod dbos;
#[path = "../tests/support/server.rs"]
mod server;

use dbos::Dbos;
use longhaul_core::store::{Batch, Key, Store, Table};
use longhaul_postgres::{Holder, LeaseLost, PostgresConfig, PostgresOptions, PostgresStore};
use longhaul_store::{RedbStore, StoreOptions};
use server::PostgresServer;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, Statement};

/// The length of a small journal entry, in bytes.
const RECORD_BYTES: usize = 300;

const CALLERS: [usize; 3] = [1, 16, 64];

const SLICES: usize = 7;
const SLICE: Duration = Duration::from_millis(700);

/// Seats that append at once.
const SEATS: usize = 3;

/// A connection for each caller, those of three stores, and those of DBOS.
const SETTINGS: [&str; 1] = ["max_connections=300"];

/// Rows have a number each, whoever appends them.
static NEXT: AtomicU64 = AtomicU64::new(0);

type Appending = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One durable append of a caller, by its number.
type Append = Arc<dyn Fn(usize) -> Appending + Send + Sync>;

/// The way to the figures of one slice, with so many callers.
type Slicing<'a> = Box<dyn FnMut(usize) -> Figures + 'a>;

/// What is measured, and how.
type Column<'a> = (&'static str, Slicing<'a>);

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let server = PostgresServer::start(&SETTINGS);
    let directory = tempfile::tempdir().expect("a directory");
    let redb: Arc<dyn Store> =
        Arc::new(RedbStore::open(&directory.path().join("store"), StoreOptions::default()).expect("a store"));
    let owner: Arc<dyn Store> = Arc::new(owner(&server));
    let mut seats = vec![Arc::clone(&owner)];
    seats.extend((1..SEATS).map(|number| -> Arc<dyn Store> { Arc::new(worker(&server, &format!("w-{number}"))) }));
    let (many, one) = runtime.block_on(bare(&server));
    let here = |append| here(&runtime, append);
    // The first one is the floor.
    let mut columns: Vec<Column<'_>> = vec![
        ("bare inserts, a connection each", here(of_inserts(many))),
        ("bare inserts, one connection", here(of_inserts(vec![one]))),
        ("longhaul, the owner's seat", here(of_stores(vec![Arc::clone(&owner)]))),
        ("longhaul, three seats at once", here(of_stores(seats))),
        ("longhaul, a call: two appends", here(of_calls(owner))),
        ("redb", here(of_stores(vec![redb]))),
    ];
    match Dbos::start(&server) {
        Ok(mut process) => columns.push(("DBOS 3.4.0, a step", Box::new(move |callers| process.slice(callers)))),
        Err(why) => println!("DBOS is not measured: {why}"),
    }
    println!("{RECORD_BYTES} bytes an append; {}", server.value("select version()"));
    println!("callers  what                                 a second        p50   times the floor");
    for callers in CALLERS {
        rows(callers, &mut columns);
    }
}

/// Slices of an append that this process makes.
fn here(runtime: &Runtime, append: Append) -> Slicing<'_> {
    Box::new(move |callers| slice(runtime, callers, &append))
}

/// Prints a row for each column.
fn rows(callers: usize, columns: &mut [Column<'_>]) {
    let mut slices = vec![Vec::new(); columns.len()];
    for _ in 0..SLICES {
        for ((_, take), slices) in columns.iter_mut().zip(&mut slices) {
            slices.push(take(callers));
        }
    }
    let figures: Vec<Figures> = slices.into_iter().map(median).collect();
    for ((what, _), Figures { rate, p50 }) in columns.iter().zip(&figures) {
        let times = figures[0].rate / rate;
        println!("{callers:>7}  {what:<34} {rate:>10.0} {p50:>10.2?} {times:>17.2}");
    }
}

fn options(host: &str) -> PostgresOptions {
    let holder = Holder { host: host.to_owned(), pid: std::process::id(), directory: "/bench".into(), url: None };
    let on_lost = |lost: &LeaseLost| eprintln!("{lost}");
    PostgresOptions { holder, crash_hook: None, on_lost: Arc::new(on_lost) }
}

fn owner(server: &PostgresServer) -> PostgresStore {
    PostgresStore::open(&PostgresConfig::at(&server.url()), &|_| None, options("bench"))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The same store on the seat of a worker.
fn worker(server: &PostgresServer, name: &str) -> PostgresStore {
    let config = PostgresConfig::at(&server.url());
    PostgresStore::join(&config, &|_| None, options(name), name, &mut |_waiting| ControlFlow::Break(()))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A connection, and a prepared statement on it.
struct Bare {
    client: Client,
    insert: Statement,
}

/// Connections to a table whose rows have the same columns: one for each caller, and one for all of them.
async fn bare(server: &PostgresServer) -> (Vec<Arc<Bare>>, Arc<Bare>) {
    server.ask(
        "create table bare (table_no smallint not null, key bytea not null, value bytea not null, \
         primary key (table_no, key)); alter table bare alter value set storage external",
    );
    let mut connections = Vec::new();
    for _ in 0..=CALLERS[CALLERS.len() - 1] {
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.expect("a connection");
        tokio::spawn(connection);
        let insert = client.prepare("insert into bare values (4, $1, $2)").await.expect("a statement");
        connections.push(Arc::new(Bare { client, insert }));
    }
    let shared = connections.pop().expect("one more than callers");
    (connections, shared)
}

/// Inserts of callers that share these connections.
fn of_inserts(connections: Vec<Arc<Bare>>) -> Append {
    Arc::new(move |caller| -> Appending {
        let bare = Arc::clone(&connections[caller % connections.len()]);
        Box::pin(async move {
            let (key, record) = (key("answered"), record());
            bare.client.execute(&bare.insert, &[&key.as_bytes(), &record]).await.expect("an insert");
        })
    })
}

/// Appends of callers that are divided among these stores.
fn of_stores(stores: Vec<Arc<dyn Store>>) -> Append {
    Arc::new(move |caller| -> Appending {
        let store = Arc::clone(&stores[caller % stores.len()]);
        Box::pin(async move { append(&*store, key("answered")).await })
    })
}

/// Calls that are announced, and answered once that is durable.
fn of_calls(store: Arc<dyn Store>) -> Append {
    Arc::new(move |_| -> Appending {
        let store = Arc::clone(&store);
        Box::pin(async move {
            append(&*store, key("announced")).await;
            append(&*store, key("answered")).await;
        })
    })
}

async fn append(store: &dyn Store, key: Key) {
    store.commit(Batch::new().insert(Table::Journal, key, record())).await.expect("a commit");
}

fn key(kind: &str) -> Key {
    Key::of("r-3f9c02d1a4be/f1/1/generate").number(NEXT.fetch_add(1, Ordering::Relaxed)).and(kind)
}

fn record() -> Vec<u8> {
    vec![b'x'; RECORD_BYTES]
}

/// Appends a second, and half of the appends took less.
#[derive(Clone, Copy)]
struct Figures {
    rate: f64,
    p50: Duration,
}

/// Has so many callers append, each one after the other.
fn slice(runtime: &Runtime, callers: usize, append: &Append) -> Figures {
    let began = Instant::now();
    let callers = (0..callers).map(|caller| {
        let append = Arc::clone(append);
        runtime.spawn(async move {
            let mut times = Vec::new();
            while began.elapsed() < SLICE {
                let start = Instant::now();
                append(caller).await;
                times.push(start.elapsed());
            }
            times
        })
    });
    let callers: Vec<_> = callers.collect();
    let times = callers.into_iter().flat_map(|caller| runtime.block_on(caller).expect("a caller"));
    let mut times: Vec<Duration> = times.collect();
    let took = began.elapsed();
    times.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let count = times.len() as f64;
    Figures { rate: count / took.as_secs_f64(), p50: times[times.len() / 2] }
}

fn median(mut slices: Vec<Figures>) -> Figures {
    slices.sort_unstable_by(|one, other| one.rate.total_cmp(&other.rate));
    slices[slices.len() / 2]
}
