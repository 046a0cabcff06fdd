//! Running generated code beside its floors: a fresh interpreter against a new process, one that waited,
//! the command line from end to end, and how fast a runaway is stopped while others go on.
//!
//! `cargo xtask plugins && cargo bench -p longhaul --bench exec` (about 60 s after the build). Each row
//! prints medians of interleaved runs and their ratio, and how many pages the kernel had to give or to copy
//! for the calling thread; `node` rows are left out where there is no node. Ours and the floor take turns in
//! blocks, so each runs in a host that is warm. Jobs that come back to back for longer find no warm instance after a
//! few, so there is a row of those, too.
//! Goals: Python 5 times faster than `python3 -I -S -c` as a new process, 25 times from instances made
//! ready; JavaScript 100 times faster than `node -e`; a runaway stopped with p99 of at most 1 ms.

#[path = "../tests/common/built_plugins.rs"]
mod built_plugins;

use longhaul::exec::{Code, Executor, ExecutorPaths, GraphLanguage, Job, JobLimits};
use longhaul_capabilities::{Console, InvocationScope, InvocationSetup, null};
use longhaul_core::grant::Grants;
use longhaul_core::tool::ToolCall;
use longhaul_core::{Clock, InvocationId, Limits};
use longhaul_engine::{Cancel, CompileLimits, Engine, EngineOptions, Jail, Plugin, ToolAttempt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Runs of a row against a process; the first tenth is not counted. A block is half of what waits, so that its last
/// job finds an instance too.
const BLOCKS: usize = 12;
const BLOCK: usize = WAITING / 2;

/// In which what was taken is made again.
const PAUSE: Duration = Duration::from_millis(60);

/// Jobs that come back to back.
const RUNS: usize = 60;

/// Instances that wait for jobs.
const WAITING: usize = 16;

/// Runaways that are stopped, and neighbours that answer meanwhile.
const RUNAWAYS: usize = 200;
const NEIGHBOURS: usize = 100;

const PYTHON: &str = "print(sum(range(10)))";
const JAVASCRIPT: &str = "console.log([0,1,2,3,4,5,6,7,8,9].reduce((a, b) => a + b))";

fn main() -> Outcome<()> {
    built_plugins::expect(&["files", "javascript", "python"]);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).event_interval(1).enable_all().build()?;
    runtime.block_on(rows())
}

async fn rows() -> Outcome<()> {
    let place = tempfile::tempdir()?;
    let places = ExecutorPaths {
        cache: place.path().join("compiled"),
        runtimes: vec![root().join("target/plugins")],
        compiler: longhaul(),
        compile_limits: CompileLimits::default(),
        data_directory: None,
    };
    let executor = Executor::new(places)?;
    // The interpreter itself: a version manager's shim on PATH is a shell script, and slower.
    let found = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output()?;
    let interpreter = String::from_utf8(found.stdout)?.trim().to_owned();
    let python = || Command::new(&interpreter).args(["-I", "-S", "-c", PYTHON]).output();
    let code = Code::Python(PYTHON.into());
    compare("a fresh Python", "a new python3 -I -S -c", run(&executor, code.clone()), python).await?;
    back_to_back("Python", &executor, &code).await?;
    wait_for(&executor, GraphLanguage::Python).await?;
    compare("a Python that waited", "the same", run(&executor, code.clone()), python).await?;
    back_to_back("Python", &executor, &code).await?;
    if Command::new("node").arg("--version").output().is_ok() {
        let node = || Command::new("node").args(["-e", JAVASCRIPT]).output();
        let code = Code::JavaScript(JAVASCRIPT.into());
        compare("a fresh JavaScript", "a new node -e", run(&executor, code.clone()), node).await?;
        wait_for(&executor, GraphLanguage::JavaScript).await?;
        compare("a JavaScript that waited", "the same", run(&executor, code), node).await?;
    }
    let file = place.path().join("job.py");
    std::fs::write(&file, PYTHON)?;
    let plugins = root().join("target/plugins");
    let command = async || {
        let done = Command::new(longhaul()).arg("exec").arg(&file).env("LONGHAUL_PLUGINS", &plugins).output()?;
        assert!(done.status.success(), "{done:?}");
        Ok(())
    };
    compare("longhaul exec, a new process", "the same", command, python).await?;
    runaways(place.path()).await
}

fn run(executor: &Executor, code: Code) -> impl AsyncFn() -> Outcome<()> {
    let executor = executor.clone();
    async move || {
        let report = executor.run(Job::of(code.clone())).await?;
        assert_eq!(report.stdout, "45\n", "{report:?}");
        Ok(())
    }
}

/// Has instances wait, and says what each holds.
async fn wait_for(executor: &Executor, language: GraphLanguage) -> Outcome<()> {
    let before = private_kib()?;
    executor.keep_ready(language, JobLimits::default(), WAITING).await?;
    let each = private_kib()?.saturating_sub(before) as f64 / WAITING as f64;
    println!("{language:?}: each of {WAITING} instances that wait holds {:.1} MiB of its own", each / 1024.0);
    Ok(())
}

/// One job after the other, without a pause in which an instance could be made.
async fn back_to_back(what: &str, executor: &Executor, code: &Code) -> Outcome<()> {
    let start = Instant::now();
    for _ in 0..RUNS {
        run(executor, code.clone())().await?;
    }
    let each = start.elapsed() / u32::try_from(RUNS)?;
    println!("{what}, {RUNS} jobs back to back: {:.3} ms each", ms(each));
    Ok(())
}

/// Ours and the floor in turn, a block of each, so that both see the same machine, and each a processor that does
/// what it did before. Between the blocks there is time to make instances ready for those that were taken.
async fn compare(
    what: &str,
    beside: &str,
    ours: impl AsyncFn() -> Outcome<()>,
    floor: impl Fn() -> std::io::Result<std::process::Output>,
) -> Outcome<()> {
    let (mut ours_took, mut floor_took, mut pages) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..BLOCKS {
        tokio::time::sleep(PAUSE).await;
        for _ in 0..BLOCK {
            let before = faults()?;
            let start = Instant::now();
            ours().await?;
            ours_took.push(start.elapsed());
            pages.push(faults()? - before);
        }
        tokio::time::sleep(PAUSE).await;
        for _ in 0..BLOCK {
            let start = Instant::now();
            assert!(floor()?.status.success());
            floor_took.push(start.elapsed());
        }
    }
    let (ours, floor) = (at(&mut ours_took, 50), at(&mut floor_took, 50));
    let p99 = at(&mut ours_took, 99);
    pages.sort_unstable();
    println!(
        "{what}: {:.3} ms (p99 {:.3}, {} pages); {beside}: {:.3} ms; {:.1} times faster",
        ms(ours),
        ms(p99),
        pages[pages.len() / 2],
        ms(floor),
        floor.as_secs_f64() / ours.as_secs_f64()
    );
    Ok(())
}

/// Pages that this thread was given or had copied so far.
fn faults() -> Outcome<u64> {
    let stat = std::fs::read_to_string("/proc/thread-self/stat")?;
    // The name of the thread ends with the last bracket, and may hold spaces; `minflt` is the eighth after it.
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    Ok(fields.nth(7).ok_or("no minflt in /proc")?.parse()?)
}

/// Memory that this process shares with no other.
fn private_kib() -> Outcome<u64> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Private_Dirty:"));
    Ok(line.and_then(|rest| rest.split_whitespace().next()).ok_or("no Private_Dirty in /proc")?.parse()?)
}

/// Endless loops, each stopped a while after its start, while others call a small plugin.
async fn runaways(place: &Path) -> Outcome<()> {
    let jail = Jail { program: longhaul(), arguments: vec!["compile-child".into()], limits: CompileLimits::default() };
    let engine = Engine::new(place.join("compiled"), jail, &EngineOptions::default())?;
    let load = async |name: &str| -> Outcome<Arc<Plugin>> {
        let bytes = std::fs::read(built_plugins::file(name))?;
        Ok(Arc::new(engine.load(name, &bytes).await?))
    };
    let (python, small) = (load("python").await?, load("files").await?);
    let ends = Arc::new(AtomicBool::new(false));
    let longest_us = Arc::new(AtomicU64::new(0));
    let neighbours: Vec<_> = (0..NEIGHBOURS)
        .map(|_| tokio::spawn(neighbour(Arc::clone(&small), Arc::clone(&ends), Arc::clone(&longest_us))))
        .collect();
    let mut took = Vec::new();
    for _ in 0..RUNAWAYS {
        let cancel = Cancel::default();
        let (plugin, own) = (Arc::clone(&python), cancel.clone());
        let call = ToolCall {
            tool: "python".into(),
            function: "run".into(),
            arguments: serde_json::json!({ "source": "while True: pass" }).to_string(),
        };
        let settings = serde_json::json!({});
        let loops = tokio::spawn(async move {
            let attempt = ToolAttempt { key: "bench", number: 1, settings: &settings };
            plugin.call_tool(setup(), &own, &call, attempt).await;
            Instant::now()
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        let decided = Instant::now();
        cancel.cancel();
        took.push(loops.await?.saturating_duration_since(decided));
    }
    ends.store(true, Ordering::Relaxed);
    let mut answered = 0;
    for neighbour in neighbours {
        answered += neighbour.await?;
    }
    println!(
        "a runaway, from decision to return: p50 {:.3} ms, p99 {:.3} ms; {NEIGHBOURS} neighbours answered {answered} times meanwhile, the longest wait of one was {:.1} ms",
        ms(at(&mut took, 50)),
        ms(at(&mut took, 99)),
        ms(Duration::from_micros(longest_us.load(Ordering::Relaxed)))
    );
    Ok(())
}

async fn neighbour(small: Arc<Plugin>, ends: Arc<AtomicBool>, longest_us: Arc<AtomicU64>) -> u64 {
    let mut answered = 0;
    while !ends.load(Ordering::Relaxed) {
        let start = Instant::now();
        let called = small.describe(setup(), &Cancel::default(), &serde_json::json!({})).await;
        assert!(matches!(called.result, Ok(Ok(_))), "{:?}", called.result);
        longest_us.fetch_max(u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        answered += 1;
        // As a plugin that waits for something else most of its time.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    answered
}

fn setup() -> InvocationSetup {
    InvocationSetup {
        invocation: InvocationId::from_text("bench"),
        scope: InvocationScope { project: "bench".into(), plugin: "tools.bench".into() },
        grants: Grants::default(),
        limits: Limits::default(),
        services: null::services(Arc::new(Machine)),
        journal: None,
        context: None,
        seed: [7; 32],
        console: Some(Console::new(1_000)),
        placeholders: Arc::default(),
        told: None,
    }
}

/// The time that `percent` of the runs took at most, without the first tenth.
fn at(times: &mut [Duration], percent: usize) -> Duration {
    let warm = times.len() / 10;
    let mut counted = times[warm..].to_vec();
    counted.sort();
    counted[(counted.len() * percent / 100).min(counted.len() - 1)]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn longhaul() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_longhaul"))
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
