//! The spine beside its floors: cold and warm start of a plugin, and one journaled call.
//!
//! `cargo xtask plugins && cargo bench -p longhaul --bench spine` (about 30 s after the build). Each row
//! prints the median of its own runs, the median of its floor in the same run, and the ratio. Machines
//! differ and are noisy: the ratio is the figure. Rows and goals are those of the design:
//!
//! - cold start: a compiled plugin's file to its first result, against deserialising the file alone. Once with a file
//!   that the process has checked before, of which the goal is, and once with bytes whose digest and parts are checked;
//!   with the steps of each;
//! - warm start: a new store with every limit on, instantiate, a call with 100 bytes in and about as many out, drop,
//!   against bare wasmtime doing the same with the same component and the limits that it has itself (fuel with its
//!   yields, memory and tables, bytes between host and guest), once with its default allocator and once with its pool;
//! - the same on two threads against one: they share the pool of instances and the kernel's lock on the
//!   process's memory, and must still get more done together;
//! - a journaled call that must be durable, against fdatasync of the same bytes, and against writing JSON
//!   to a temporary file, fsync and rename.

#[path = "../tests/common/built_plugins.rs"]
mod built_plugins;

use longhaul_bindings::exports::tool::{self, GuestIndices};
use longhaul_capabilities::{InvocationScope, InvocationSetup, Services, null};
use longhaul_core::grant::Grants;
use longhaul_core::journal::{Began, CallVerdict, EffectClass, Journal, NewCall};
use longhaul_core::store::Store;
use longhaul_core::tool::ToolCall;
use longhaul_core::{Clock, Digest, InvocationId, Limits};
use longhaul_engine::{Cancel, CompileLimits, Engine, EngineOptions, Jail, Plugin, ToolAttempt, inspect};
use longhaul_journal::{Opened, Recorder};
use longhaul_store::{RedbStore, StoreOptions};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{StoreLimits, StoreLimitsBuilder};

/// Runs of a row; the first tenth is not counted.
const RUNS: usize = 400;

/// Turns of one thread and two.
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    built_plugins::expect(&["files"]);
    let runtime = tokio::runtime::Builder::new_multi_thread().event_interval(1).enable_all().build()?;
    runtime.block_on(rows())
}

async fn rows() -> Result<(), Box<dyn std::error::Error>> {
    let place = tempfile::tempdir()?;
    let store: Arc<dyn Store> = Arc::new(RedbStore::open(&place.path().join("home"), StoreOptions::default())?);
    let bytes = std::fs::read(built_plugins::file("files"))?;
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
    let bare = wasmtime::Engine::new(&bare_config())?;
    let (file, compiled) = (built_plugins::file("files"), compiled_in(cache)?);
    let engine = Engine::new(cache.to_owned(), jail(), &EngineOptions::default())?;
    // A process checks each file once.
    engine.load_file("bench", &file).await?;
    let (mut known, mut loaded, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut unknown, mut inspected, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let start = Instant::now();
        let plugin = engine.load_file("bench", &file).await?;
        loaded.push(start.elapsed());
        let called = Instant::now();
        describe(&plugin, store).await;
        first.push(called.elapsed());
        known.push(start.elapsed());
        let called = Instant::now();
        describe(&plugin, store).await;
        second.push(called.elapsed());
        drop(plugin);
        let start = Instant::now();
        let plugin = engine.load("bench", bytes).await?;
        describe(&plugin, store).await;
        unknown.push(start.elapsed());
        drop(plugin);
        let start = Instant::now();
        drop(inspect("bench", bytes, &CompileLimits::default())?);
        inspected.push(start.elapsed());
        let start = Instant::now();
        // SAFETY: the file was written by our own compiling child a moment ago, in a directory of ours.
        let component = unsafe { Component::deserialize_file(&bare, &compiled) };
        floor.push(start.elapsed());
        drop(component);
    }
    let beside = |what: &str, ours: Vec<Duration>| row(what, ours, "deserialize_file", floor.clone());
    beside("cold start (a file that was checked before: loaded, linked, called)", known);
    beside("  loaded and linked", loaded);
    beside("  its first call", first);
    beside("  its second call, which is no part of it", second);
    beside("cold start (digest and parts of the bytes checked, too)", unknown);
    beside("  digest and parts checked", inspected);
    Ok(())
}

async fn warm(
    engine: &Engine,
    cache: &Path,
    bytes: &[u8],
    store: &Arc<dyn Store>,
) -> Result<(), Box<dyn std::error::Error>> {
    let plugin = engine.load("bench", bytes).await?;
    let mut pooled = bare_config();
    pooled.allocation_strategy(wasmtime::InstanceAllocationStrategy::pooling());
    let compiled = compiled_in(cache)?;
    let (plain, pooled) = (Bare::new(&bare_config(), &compiled)?, Bare::new(&pooled, &compiled)?);
    let (mut ours, mut floor, mut pool) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let start = Instant::now();
        refuse(&plugin, store).await;
        ours.push(start.elapsed());
        for (bare, times) in [(&plain, &mut floor), (&pooled, &mut pool)] {
            let start = Instant::now();
            bare.refuse().await?;
            times.push(start.elapsed());
        }
    }
    row("warm start (store, limits, instantiate, call, drop)", ours.clone(), "bare wasmtime", floor);
    row("the same", ours, "bare wasmtime with its pool", pool);
    Ok(())
}

/// Wasmtime with nothing of ours around it.
struct Bare {
    engine: wasmtime::Engine,
    pre: InstancePre<StoreLimits>,
    tool: GuestIndices,
}

impl Bare {
    fn new(config: &wasmtime::Config, compiled: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let engine = wasmtime::Engine::new(config)?;
        // SAFETY: as above.
        let component = unsafe { Component::deserialize_file(&engine, compiled)? };
        let mut linker: Linker<StoreLimits> = Linker::new(&engine);
        linker.define_unknown_imports_as_traps(&component)?;
        let pre = linker.instantiate_pre(&component)?;
        let tool = GuestIndices::new(&pre)?;
        Ok(Self { engine, pre, tool })
    }

    async fn refuse(&self) -> wasmtime::Result<()> {
        let limits = Limits::default();
        let memory = usize::try_from(limits.memory_bytes_max).unwrap_or(usize::MAX);
        let capped = StoreLimitsBuilder::new().memory_size(memory).table_elements(100_000).instances(100).build();
        let mut store = wasmtime::Store::new(&self.engine, capped);
        store.limiter(|limits| limits);
        store.set_hostcall_fuel(usize::try_from(limits.host_bytes_max).unwrap_or(usize::MAX));
        store.set_fuel(limits.fuel_max)?;
        store.fuel_async_yield_interval(Some(1_000_000))?;
        let instance = self.pre.instantiate_async(&mut store).await?;
        let tool = self.tool.load(&mut store, &instance)?;
        let context = tool::CallContext {
            idempotency_key: "key".into(),
            remaining_ms: 1_000,
            attempt: 1,
            settings: Value::Null.to_string(),
        };
        let answer = tool.call_call(&mut store, FUNCTION, &arguments(), &context).await?;
        assert!(answer.is_err(), "{answer:?}");
        Ok(())
    }
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
        refuse(&plugin, &store).await;
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
        if let CallVerdict::Go(handle) = recorder.ask(call).await? {
            recorder.answer(handle, format!("\"{answer}\"")).await?;
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

/// A function that the tool refuses, before it calls anything of the host.
const FUNCTION: &str = "none";

/// 100 bytes.
fn arguments() -> String {
    json!({ "text": "x".repeat(89) }).to_string()
}

/// A call with 100 bytes in, and about as many back.
async fn refuse(plugin: &Plugin, store: &Arc<dyn Store>) {
    let call = ToolCall { tool: "bench".into(), function: FUNCTION.into(), arguments: arguments() };
    let attempt = ToolAttempt { key: "key", number: 1, settings: &Value::Null };
    let called = plugin.call_tool(setup(store), &Cancel::default(), &call, attempt).await;
    assert!(matches!(called.result, Ok(Err(_))), "{:?}", called.result);
}

/// A tool that says what it can do: a call without an effect, about 2 KB back.
async fn describe(plugin: &Plugin, store: &Arc<dyn Store>) {
    let called = plugin.describe(setup(store), &Cancel::default(), &json!({})).await;
    assert!(matches!(called.result, Ok(Ok(_))), "{:?}", called.result);
}

fn setup(store: &Arc<dyn Store>) -> InvocationSetup {
    InvocationSetup {
        invocation: InvocationId::from_text("r-bench/x"),
        scope: InvocationScope { project: "bench".into(), plugin: "evaluator".into() },
        grants: Grants::default(),
        limits: Limits::default(),
        services: Services { store: Arc::clone(store), ..null::services(Arc::new(Machine)) },
        journal: None,
        context: None,
        seed: [7; 32],
        console: None,
        placeholders: Arc::default(),
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
        told: None,
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

/// The settings of the engine on which compiled code depends, without a pool.
fn bare_config() -> wasmtime::Config {
    longhaul_engine::compile_config()
}

struct Machine;

impl Clock for Machine {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}
