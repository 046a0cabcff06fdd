//! The same tool in four languages: its size, and what it costs to compile, to start cold and to start warm.
//!
//! `cargo xtask plugins --tests && cargo bench -p longhaul --bench languages` (about 40 s after the build). The tool is
//! the example `notes` of each SDK. Compiled: in a child process, once for each digest. Cold: a compiled component's
//! file to its first result, in an engine that has not seen it. Warm: a new store with every limit on, instantiate,
//! `describe`, drop; medians, in turn over the languages.

#[path = "../tests/common/built_plugins.rs"]
mod built_plugins;

use longhaul_capabilities::{InvocationScope, InvocationSetup, null};
use longhaul_core::grant::Grants;
use longhaul_core::{Clock, InvocationId, Limits};
use longhaul_engine::{Cancel, CompileLimits, Engine, EngineOptions, Jail, Plugin};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const LANGUAGES: [&str; 4] = ["rust", "c", "js", "python"];

/// Starts of each kind.
const COLD: usize = 20;
const WARM: usize = 200;

/// One language's tool and what was measured of it.
struct Row {
    language: &'static str,
    bytes: Vec<u8>,
    compiled: Duration,
    cold: Vec<Duration>,
    warm: Vec<Duration>,
    fuel: u64,
    memory: u64,
}

fn main() -> Outcome<()> {
    let files = LANGUAGES.map(|language| format!("sdk/{language}/notes"));
    built_plugins::expect(&files.each_ref().map(String::as_str));
    let runtime = tokio::runtime::Builder::new_multi_thread().event_interval(1).enable_all().build()?;
    runtime.block_on(rows())
}

async fn rows() -> Outcome<()> {
    let place = tempfile::tempdir()?;
    let cache = place.path().join("compiled");
    let engine = engine(&cache)?;
    let mut rows = Vec::new();
    for language in LANGUAGES {
        let bytes = std::fs::read(built_plugins::file(&format!("sdk/{language}/notes")))?;
        let start = Instant::now();
        engine.load("notes", &bytes).await?;
        let compiled = start.elapsed();
        rows.push(Row { language, bytes, compiled, cold: Vec::new(), warm: Vec::new(), fuel: 0, memory: 0 });
    }
    for _ in 0..COLD {
        for row in &mut rows {
            let fresh = self::engine(&cache)?;
            let start = Instant::now();
            let plugin = fresh.load("notes", &row.bytes).await?;
            describe(&plugin).await?;
            row.cold.push(start.elapsed());
        }
    }
    let mut plugins = Vec::new();
    for row in &rows {
        plugins.push(engine.load("notes", &row.bytes).await?);
    }
    for _ in 0..WARM {
        for (row, plugin) in rows.iter_mut().zip(&plugins) {
            let start = Instant::now();
            (row.fuel, row.memory) = describe(plugin).await?;
            row.warm.push(start.elapsed());
        }
    }
    println!("| language | bytes | compiled | cold | warm | fuel | memory |\n|---|---|---|---|---|---|---|");
    for Row { language, bytes, compiled, cold, warm, fuel, memory } in rows {
        let (bytes, compiled) = (bytes.len(), compiled.as_secs_f64());
        let (cold, warm) = (median_ms(cold), median_ms(warm));
        println!("| {language} | {bytes} | {compiled:.2} s | {cold:.2} ms | {warm:.3} ms | {fuel} | {memory} |");
    }
    Ok(())
}

/// The usage of a call: fuel, and the highest memory in bytes.
async fn describe(plugin: &Plugin) -> Outcome<(u64, u64)> {
    let called = plugin.describe(setup(), &Cancel::default(), &serde_json::json!({})).await;
    called.result??;
    Ok((called.used.fuel, called.used.memory_bytes_peak))
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn engine(cache: &Path) -> Outcome<Engine> {
    let jail = Jail {
        program: PathBuf::from(env!("CARGO_BIN_EXE_longhaul")),
        arguments: vec!["compile-child".into()],
        limits: CompileLimits::default(),
    };
    Ok(Engine::new(cache.to_owned(), jail, &EngineOptions::default())?)
}

fn setup() -> InvocationSetup {
    InvocationSetup {
        invocation: InvocationId::from_text("r-bench/x"),
        scope: InvocationScope { project: "bench".into(), plugin: "notes".into() },
        grants: Grants::default(),
        limits: Limits::default(),
        services: null::services(Arc::new(Still)),
        journal: None,
        context: None,
        seed: [7; 32],
        console: None,
        placeholders: Arc::default(),
        told: None,
    }
}

/// A clock that stands still: `describe` asks for no time.
struct Still;

impl Clock for Still {
    fn now_ms(&self) -> u64 {
        1_700_000_000_000
    }
}
