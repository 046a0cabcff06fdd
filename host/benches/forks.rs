//! 100 forks of a run with a past of 1,000 entries and of one with 10, beside copies of the same rows.
//!
//! ```text
//! cargo bench -p longhaul --bench forks
//! ```
//!
//! A fork is what it stores of another run's journals and of its origin, made and committed to a store on the disk; a
//! copy is each row of the journal under another name, read and committed in the same way. The record and the state of a
//! run, its branch and its trees are left out: they do not depend on the past. Forks and copies of both runs take turns,
//! so that a busy moment does not fall on one of them alone, and medians are told. `LONGHAUL_FORKS` says how many. Goals:
//! as many bytes for the long past as for the short one, and at most a tenth of the bytes of its copy.

use longhaul_core::event::WorkUsage;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::journal::{Began, CallVerdict, EffectClass, Journal as _, NewCall};
use longhaul_core::store::{Batch, Key, Op, Row, Store, Table};
use longhaul_core::{Clock, Digest, InvocationId, Limits, RunId};
use longhaul_journal::{Opened, Recorder};
use longhaul_records::record::{self, ForkedFrom, RunRecord};
use longhaul_store::{RedbStore, StoreOptions};
use std::sync::Arc;
use std::time::{Duration, Instant};

const FORKS: usize = 100;

/// Entries of the two pasts.
const PASTS: [u32; 2] = [10, 1_000];

/// Length of an answer, in bytes.
const ANSWER_BYTES: usize = 1_000;

/// Rows that are read at once.
const PAGE: usize = 1_000;

/// The piece of work whose journal is shared.
const KEY: &str = "f-a/1/generate";

fn main() -> fault::Result<()> {
    let asked = std::env::var("LONGHAUL_FORKS").ok().and_then(|text| text.parse().ok());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(rows(asked.unwrap_or(FORKS).max(3)))
}

/// The figures of one kind.
#[derive(Default)]
struct Figures {
    times: Vec<Duration>,
    bytes: Vec<usize>,
}

impl Figures {
    fn add(&mut self, since: Instant, bytes: usize) {
        self.times.push(since.elapsed());
        self.bytes.push(bytes);
    }

    fn ms(&mut self) -> f64 {
        self.times.sort_unstable();
        self.times[self.times.len() / 2].as_secs_f64() * 1e3
    }

    fn bytes(&mut self) -> usize {
        self.bytes.sort_unstable();
        self.bytes[self.bytes.len() / 2]
    }
}

async fn rows(count: usize) -> fault::Result<()> {
    let place = tempfile::tempdir()?;
    let store: Arc<dyn Store> = Arc::new(RedbStore::open(&place.path().join("home"), StoreOptions::default())?);
    for entries in PASTS {
        begin(&store, entries).await?;
    }
    let mut forked = PASTS.map(|_| Figures::default());
    let mut copied = PASTS.map(|_| Figures::default());
    for number in 0..count {
        for (at, entries) in PASTS.into_iter().enumerate() {
            let since = Instant::now();
            let batch = fork(&*store, entries, number)?;
            let bytes = bytes_of(&batch);
            store.commit(batch).await?;
            forked[at].add(since, bytes);
            let since = Instant::now();
            let batch = copy(&*store, entries, number)?;
            let bytes = bytes_of(&batch);
            store.commit(batch).await?;
            copied[at].add(since, bytes);
        }
    }
    println!("{count} forks of each run; a copy of its rows beside");
    for ((entries, forked), copied) in PASTS.iter().zip(&mut forked).zip(&mut copied) {
        let (ours, theirs) = ((forked.ms(), forked.bytes()), (copied.ms(), copied.bytes()));
        println!(
            "{entries:>5} entries: fork {:.3} ms, {} bytes; copy {:.3} ms, {} bytes; ratio {:.3} of the time, {:.4} of the \
             bytes",
            ours.0,
            ours.1,
            theirs.0,
            theirs.1,
            ours.0 / theirs.0,
            share(ours.1, theirs.1)
        );
    }
    let [short, long] = &mut forked;
    println!(
        "a fork of {} entries beside one of {}: {:.2} times the time, {:.2} times the bytes",
        PASTS[1],
        PASTS[0],
        long.ms() / short.ms(),
        share(long.bytes(), short.bytes())
    );
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

fn parent(entries: u32) -> RunId {
    RunId::from_text(format!("r-past{entries}"))
}

/// A run whose only work has so many answered entries.
async fn begin(store: &Arc<dyn Store>, entries: u32) -> fault::Result<()> {
    let run = parent(entries);
    store.commit(Batch::new().insert(Table::Runs, RunRecord::key(&run), "{}")).await?;
    let limits = Limits { journal_entries_max: entries, ..Limits::default() };
    let work = InvocationId::of_action(&run, KEY);
    let Opened::Running(recorder) = Recorder::open(Arc::clone(store), Arc::new(Still), work, began(), &limits)? else {
        bail!("it has finished");
    };
    for number in 0..entries {
        let call = NewCall {
            name: "tools.call",
            summary: format!("files.read {number}"),
            arguments: Digest::of(&number.to_le_bytes()),
            class: EffectClass::ReadOnly,
            fuel_used: number.into(),
        };
        if let CallVerdict::Go(handle) = recorder.ask(call).await? {
            recorder.answer(handle, format!("\"{}\"", "x".repeat(ANSWER_BYTES))).await?;
        }
    }
    Ok(())
}

/// The rows of a fork behind all entries.
fn fork(store: &dyn Store, entries: u32, number: usize) -> fault::Result<Batch> {
    let (run, fork) = (parent(entries), RunId::from_text(format!("r-fork{entries}-{number}")));
    let (of, into) = (InvocationId::of_action(&run, KEY), InvocationId::of_action(&fork, KEY));
    let ops = longhaul_journal::share_at(store, &of, &into, Still.now_ms())?;
    let batch = Batch { ops }.insert(Table::Runs, RunRecord::key(&fork), "{}");
    let from = ForkedFrom {
        parent: run,
        event: 1,
        at_ms: Still.now_ms(),
        point: "event:1".to_owned(),
        edited: None,
        inherited: WorkUsage::default(),
    };
    record::put_fork(store, batch, &from, &fork)
}

/// The rows of the journal under another name.
fn copy(store: &dyn Store, entries: u32, number: usize) -> fault::Result<Batch> {
    let (run, copy) = (parent(entries), format!("r-copy{entries}-{number}"));
    let mut batch = Batch::new().insert(Table::Runs, RunRecord::key(&RunId::from_text(copy.clone())), "{}");
    for (key, value) in journal(store, &run)? {
        let own = key.strip_prefix(run.as_str().as_bytes()).or_internal(|| "a row of another run")?;
        batch.push(Op::Insert(Table::Journal, Key::from_bytes([copy.as_bytes(), own].concat()), value));
    }
    Ok(batch)
}

fn journal(store: &dyn Store, run: &RunId) -> fault::Result<Vec<Row>> {
    let (prefix, mut rows) = (Key::from_bytes(format!("{run}/").into_bytes()), Vec::<Row>::new());
    loop {
        let after = rows.last().map(|(key, _)| key.clone());
        let page = store.scan(Table::Journal, &prefix, after.as_deref(), PAGE)?;
        let is_last = page.len() < PAGE;
        rows.extend(page);
        if is_last {
            return Ok(rows);
        }
    }
}

/// The keys and values of a batch.
fn bytes_of(batch: &Batch) -> usize {
    let bytes = batch.ops.iter().map(|op| match op {
        Op::Put(_, key, value) | Op::Insert(_, key, value) | Op::Swap(_, key, _, value) => {
            key.as_bytes().len() + value.len()
        }
        Op::Delete(_, key) => key.as_bytes().len(),
        Op::Blob(_, value) => value.len(),
    });
    bytes.sum()
}

fn began() -> Began {
    Began {
        plugin: "bench".into(),
        table: "agents.bench".into(),
        component: Digest::of(b""),
        export: "agent.run".into(),
        input: Digest::of(b""),
        seed: [7; 32],
        fingerprint: String::new(),
        context: None,
        told: None,
        at_ms: Still.now_ms(),
    }
}

/// A clock that stands: no time is a point here.
struct Still;

impl Clock for Still {
    fn now_ms(&self) -> u64 {
        1_800_000_000_000
    }
}
