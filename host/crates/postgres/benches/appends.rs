//! Compares durable appends of 1, 16 and 64 callers with bare inserts of the same bytes on the same server, each caller
//! over a connection of its own, and with the embedded store on the same disk:
//!
//! `cargo bench -p longhaul-postgres --bench appends`
//!
//! `TMPDIR` names a directory of the disk that is measured. The figures are taken in slices, in turn, so that a busy
//! moment of the machine does not fall on one of them alone. Compare ratios, not rates: machines differ.

#[path = "../tests/support/server.rs"]
mod server;

use longhaul_core::store::{Batch, Key, Store, Table};
use longhaul_postgres::{Holder, LeaseLost, PostgresConfig, PostgresOptions, PostgresStore};
use longhaul_store::{RedbStore, StoreOptions};
use server::PostgresServer;
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

/// Rows have a number each, whoever appends them.
static NEXT: AtomicU64 = AtomicU64::new(0);

type Appending = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One durable append of a caller, by its number.
type Append = Arc<dyn Fn(usize) -> Appending + Send + Sync>;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let server = PostgresServer::start(&[]);
    let directory = tempfile::tempdir().expect("a directory");
    let redb = RedbStore::open(&directory.path().join("store"), StoreOptions::default()).expect("a store");
    let (ours, redb) = (of_store(Arc::new(postgres(&server))), of_store(Arc::new(redb)));
    let bare = of_inserts(runtime.block_on(bare(&server)));
    println!("{RECORD_BYTES} bytes an append; {}", server.value("select version()"));
    println!("callers     longhaul       p50   bare inserts       p50   ratio         redb   ratio");
    for callers in CALLERS {
        let (mut stored, mut inserted, mut embedded) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..SLICES {
            stored.push(slice(&runtime, callers, &ours));
            inserted.push(slice(&runtime, callers, &bare));
            embedded.push(slice(&runtime, callers, &redb));
        }
        let (stored, inserted, embedded) = (median(stored), median(inserted), median(embedded));
        println!(
            "{callers:>7} {:>10.0}/s {:>9.2?} {:>12.0}/s {:>9.2?} {:>7.2} {:>10.0}/s {:>7.2}",
            stored.rate,
            stored.p50,
            inserted.rate,
            inserted.p50,
            stored.rate / inserted.rate,
            embedded.rate,
            stored.rate / embedded.rate
        );
    }
}

fn postgres(server: &PostgresServer) -> PostgresStore {
    let holder = Holder { host: "bench".to_owned(), pid: std::process::id(), directory: "/bench".into(), url: None };
    let on_lost = |lost: &LeaseLost| eprintln!("{lost}");
    let options = PostgresOptions { holder, crash_hook: None, on_lost: Arc::new(on_lost) };
    PostgresStore::open(&PostgresConfig::at(&server.url()), &|_| None, options)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A connection and a prepared statement of one caller.
struct Bare {
    client: Client,
    insert: Statement,
}

/// The connections of all callers to a table whose rows have the same columns.
async fn bare(server: &PostgresServer) -> Vec<Arc<Bare>> {
    server.ask(
        "create table bare (table_no smallint not null, key bytea not null, value bytea not null, \
         primary key (table_no, key)); alter table bare alter value set storage external",
    );
    let mut callers = Vec::new();
    for _ in 0..CALLERS[CALLERS.len() - 1] {
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.expect("a connection");
        tokio::spawn(connection);
        let insert = client.prepare("insert into bare values (4, $1, $2)").await.expect("a statement");
        callers.push(Arc::new(Bare { client, insert }));
    }
    callers
}

fn of_inserts(callers: Vec<Arc<Bare>>) -> Append {
    Arc::new(move |caller| -> Appending {
        let bare = Arc::clone(&callers[caller]);
        Box::pin(async move {
            let (key, record) = (key(), record());
            bare.client.execute(&bare.insert, &[&key.as_bytes(), &record]).await.expect("an insert");
        })
    })
}

fn of_store(store: Arc<dyn Store>) -> Append {
    Arc::new(move |_| -> Appending {
        let store = Arc::clone(&store);
        Box::pin(async move {
            store.commit(Batch::new().insert(Table::Journal, key(), record())).await.expect("a commit");
        })
    })
}

fn key() -> Key {
    Key::of("r-3f9c02d1a4be/f1/1/generate").number(NEXT.fetch_add(1, Ordering::Relaxed)).and("answered")
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
