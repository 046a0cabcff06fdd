//! The spine beside its floors: cold and warm start of a plugin, and one journaled call.
//!
//! `cargo xtask plugins && cargo bench -p longhaul --bench spine` (about 30 s after the build). Each row
//! prints the median of its own runs, the median of its floor in the same run, and the ratio. Machines
//! differ and are noisy: the ratio is the figure. Rows and goals are those of the design:
//!
//! - cold start: a compiled plugin's file to its first result, against deserialising the file alone;
//! - warm start: a new store with every limit on, instantiate, call, drop, against bare wasmtime
//!   instantiating the same component with no limit and no capability state;
//! - the same on two threads against one: they share the pool of instances and the kernel's lock on the
//!   process's memory, and must still get more done together;
//! - a journaled call that must be durable, against fdatasync of the same bytes, and against writing JSON
//!   to a temporary file, fsync and rename.

use longhaul::nobody;
use longhaul_capabilities::{Scope, Services, Setup};
use longhaul_core::grant::Grants;
use longhaul_core::journal::{Began, EffectClass, Journal, NewCall, Next};
use longhaul_core::store::Store;
use longhaul_core::{Clock, Digest, InvocationId, Limits};
use longhaul_engine::{Cancel, CompileLimits, Engine, EngineOptions, Jail, Plugin};
use longhaul_journal::{Opened, Recorder};
use longhaul_store::{Options, RedbStore};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wasmtime::component::{Component, Linker};

/// Runs of a row; the first tenth is not counted.
const RUNS: usize = 400;

/// Turns of one thread and two.
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().event_interval(1).enable_all().build()?;
    runtime.block_on(rows())
}

async fn rows() -> Result<(), Box<dyn std::error::Error>> {
    let place = tempfile::tempdir()?;
    let store: Arc<dyn Store> = Arc::new(RedbStore::open(&place.path().join("home"), Options::default())?);
    let file = root().join("target/plugins/files.wasm");
    let bytes =
        std::fs::read(&file).map_err(|error| format!("{}: {error}; run `cargo xtask plugins`", file.display()))?;
    let cache = place.path().join("cache");
    let engine = Engine::new(cache.clone(), jail(), &EngineOptions::default())?;
    engine.load("bench", &bytes).await?;

    cold(&cache, &bytes, &store).await?;
    warm(&engine, &cache, &bytes, &store).await?;
    together(&engine, &bytes, &store).await?;
    journaled(place.path(), &store).await?;
    Ok(())
}

async fn cold(cache: &Path, bytes: &[u8], store: &Arc<dyn Store>) -> Result<(), Box<dyn std::error::Error>> {
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    let bare = wasmtime::Engine::new(&bare_config())?;
    let compiled = compiled_in(cache)?;
    let engine = Engine::new(cache.to_owned(), jail(), &EngineOptions::default())?;
    for _ in 0..RUNS {
        let start = Instant::now();
        let plugin = engine.load("bench", bytes).await?;
        describe(&plugin, store).await;
        ours.push(start.elapsed());
        let start = Instant::now();
        // SAFETY: the file was written by our own compiling child a moment ago, in a directory of ours.
        let component = unsafe { Component::deserialize_file(&bare, &compiled) };
        floor.push(start.elapsed());
        drop(component);
    }
    row("cold start (digest and parts checked, linked, called)", ours, "deserialize_file", floor);
    Ok(())
}

async fn warm(
    engine: &Engine,
    cache: &Path,
    bytes: &[u8],
    store: &Arc<dyn Store>,
) -> Result<(), Box<dyn std::error::Error>> {
    let plugin = engine.load("bench", bytes).await?;
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    let bare = wasmtime::Engine::new(&bare_config())?;
    // SAFETY: as above.
    let component = unsafe { Component::deserialize_file(&bare, compiled_in(cache)?)? };
    let mut linker: Linker<()> = Linker::new(&bare);
    linker.define_unknown_imports_as_traps(&component)?;
    let pre = linker.instantiate_pre(&component)?;
    for _ in 0..RUNS {
        let start = Instant::now();
        describe(&plugin, store).await;
        ours.push(start.elapsed());
        let start = Instant::now();
        let mut bare_store = wasmtime::Store::new(&bare, ());
        bare_store.set_fuel(u64::MAX)?;
        pre.instantiate_async(&mut bare_store).await?;
        drop(bare_store);
        floor.push(start.elapsed());
    }
    row("warm start (store, limits, instantiate, call, drop)", ours, "bare instantiate and drop", floor);
    Ok(())
}

/// Starts a second on one thread and on two, in turns.
async fn together(engine: &Engine, bytes: &[u8], store: &Arc<dyn Store>) -> Result<(), Box<dyn std::error::Error>> {
    let plugin = Arc::new(engine.load("bench", bytes).await?);
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (threads, rates) in (1_u32..).zip(&mut rates) {
            let start = Instant::now();
            let one = || tokio::spawn(starts(Arc::clone(&plugin), Arc::clone(store)));
            let started: Vec<_> = (0..threads).map(|_| one()).collect();
            for task in started {
                task.await?;
            }
            rates.push(f64::from(threads) * RUNS as f64 / start.elapsed().as_secs_f64());
        }
    }
    let [one, two] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[ROUNDS / 2]
    });
    println!("warm starts a second on two threads: {two:.0}; on one: {one:.0}; ratio {:.2}", two / one);
    Ok(())
}

async fn starts(plugin: Arc<Plugin>, store: Arc<dyn Store>) {
    for _ in 0..RUNS {
        describe(&plugin, &store).await;
    }
}

async fn journaled(place: &Path, store: &Arc<dyn Store>) -> Result<(), Box<dyn std::error::Error>> {
    let answer = "x".repeat(1_000);
    let (mut ours, mut sync, mut json) = (Vec::new(), Vec::new(), Vec::new());
    let limits = Limits { journal_entries_max: 1_000_000, ..Limits::default() };
    let opened =
        Recorder::open(Arc::clone(store), Arc::new(Machine), InvocationId::from_text("r-bench/1"), began(), &limits)?;
    let Opened::Running(recorder) = opened else { return Err("the journal is finished".into()) };
    let mut log = std::fs::File::create(place.join("floor"))?;
    for number in 0..RUNS {
        let start = Instant::now();
        let call = NewCall {
            name: "bench.call",
            summary: String::new(),
            arguments: Digest::of(&number.to_le_bytes()),
            class: EffectClass::ReadOnly,
            fuel_used: 0,
        };
        if let Next::Go(ticket) = recorder.ask(call).await? {
            recorder.answer(ticket, format!("\"{answer}\"")).await?;
        }
        ours.push(start.elapsed());
        let start = Instant::now();
        log.write_all(answer.as_bytes())?;
        log.sync_data()?;
        sync.push(start.elapsed());
        let start = Instant::now();
        let temporary = place.join("json.tmp");
        let mut file = std::fs::File::create(&temporary)?;
        file.write_all(answer.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, place.join("json"))?;
        json.push(start.elapsed());
    }
    row("a journaled call of 1 KB, durable", ours.clone(), "fdatasync of the same bytes", sync);
    row("the same", ours, "JSON write, fsync, rename", json);
    Ok(())
}

/// The one compiled plugin in the cache.
fn compiled_in(cache: &Path) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let mut entries = std::fs::read_dir(cache)?.filter_map(Result::ok).map(|entry| entry.path());
    let compiled = entries.find(|path| path.extension().is_some_and(|extension| extension == "cwasm"));
    Ok(compiled.ok_or("no compiled plugin in the cache")?)
}

fn row(what: &str, ours: Vec<Duration>, beside: &str, floor: Vec<Duration>) {
    let (ours, floor) = (median(ours), median(floor));
    let ratio = ours.as_secs_f64() / floor.as_secs_f64();
    println!("{what}: {:.1} us; {beside}: {:.1} us; ratio {ratio:.2}", micros(ours), micros(floor));
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.drain(..times.len() / 10);
    times.sort();
    times[times.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// A tool that says what it can do: a call without an effect, about 2 KB back.
async fn describe(plugin: &Plugin, store: &Arc<dyn Store>) {
    let called = plugin.describe(setup(store), &Cancel::default()).await;
    assert!(called.result.is_ok(), "{:?}", called.result);
}

fn setup(store: &Arc<dyn Store>) -> Setup {
    Setup {
        invocation: InvocationId::from_text("r-bench/x"),
        scope: Scope { project: "bench".into(), plugin: "evaluator".into() },
        grants: Grants::default(),
        limits: Limits::default(),
        services: Services { store: Arc::clone(store), ..nobody::services(Arc::new(Machine)) },
        journal: None,
        context: None,
        seed: [7; 32],
        console: None,
        keyring: Arc::default(),
        told: None,
    }
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
        at_ms: Machine.now_ms(),
    }
}

fn jail() -> Jail {
    Jail {
        program: PathBuf::from(env!("CARGO_BIN_EXE_longhaul")),
        arguments: vec!["compile-child".into()],
        limits: CompileLimits::default(),
    }
}

/// What the engine sets, as far as compiled code depends on it, and no pool.
fn bare_config() -> wasmtime::Config {
    longhaul_engine::compile_config()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

struct Machine;

impl Clock for Machine {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}
