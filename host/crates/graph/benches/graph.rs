//! The graph beside its stand-in: what a Python program does with `ast` and networkx.
//!
//! ```text
//! cargo bench -p longhaul-graph --bench graph
//! ```
//!
//! About 40 s after the build. For a chain and a fan-out of 1,000 and 5,000 steps, the time to infer all edges, to find
//! what a change of the first step makes stale, and to put that in replay order; both find the same, which is checked.
//! Then the cost of one changed step in graphs of 100 and of 10,000. The stand-in needs `python3` and networkx, which
//! is installed once into a virtual environment in the user's cache; `LONGHAUL_BENCH_PYTHON` names an interpreter that
//! has it. Goals: at least 50 times faster, and one changed step in 10,000 at most 3 times what it costs in 100.

use longhaul_graph::{Graph, Python, StepId};
use serde_json::{Value, json};
use std::hint::black_box;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
type Steps = Vec<(String, String)>;

/// Rounds of each row; the medians are compared.
const ROUNDS: usize = 7;

/// Changes that are timed in each graph.
const CHANGES: usize = 2_000;

/// Steps that depend on each other in the graphs that are changed.
const GROUP: usize = 10;

fn main() -> Outcome<()> {
    let python = interpreter()?;
    println!("{:<10} {:>6} {:>14} {:>14} {:>9}", "shape", "steps", "stand-in", "ours", "ratio");
    for (shape, steps) in [("chain", chain as fn(usize) -> Steps), ("fan-out", fan_out)] {
        for count in [1_000, 5_000] {
            row(&python, shape, &steps(count))?;
        }
    }
    let (few, many) = (change(100)?, change(10_000)?);
    let ratio = many.as_secs_f64() / few.as_secs_f64();
    println!("one changed step: {few:?} in 100 steps, {many:?} in 10,000: {ratio:.2} times (goal: at most 3)");
    Ok(())
}

fn row(python: &Path, shape: &str, steps: &Steps) -> Outcome<()> {
    let theirs = stand_in(python, steps)?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let steps = steps.clone();
        let began = Instant::now();
        let (graph, edges, order) = ours(steps)?;
        times.push(began.elapsed());
        drop(graph);
        if json!([edges, order.len(), order.last()]) != theirs["found"] {
            return Err(format!("{shape}: the stand-in found {}", theirs["found"]).into());
        }
    }
    let (ours, theirs) = (median(&mut times), Duration::from_secs_f64(theirs["seconds"].as_f64().ok_or("no time")?));
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    println!("{shape:<10} {:>6} {theirs:>14.3?} {ours:>14.3?} {ratio:>8.1}x (goal: at least 50)", steps.len());
    Ok(())
}

/// Infers, marks stale and orders; how many edges there are, and the order.
fn ours(steps: Steps) -> Outcome<(Graph, usize, Vec<StepId>)> {
    let mut graph = Graph::new(Arc::new(Python::default()));
    for (id, source) in steps {
        graph.add_step(StepId::new(id), source)?;
    }
    let edges = graph.links().count();
    black_box(graph.mark_stale(&"s0".into())?);
    let order = graph.replay_from(&"s0".into())?;
    Ok((graph, edges, order))
}

/// What the stand-in found, and the median of its times.
fn stand_in(python: &Path, steps: &Steps) -> Outcome<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/graph_baseline.py");
    let mut child = Command::new(python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().ok_or("no stdin")?;
    input.write_all(json!({ "rounds": ROUNDS, "steps": steps }).to_string().as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err("the stand-in failed".into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The median cost of one changed step in a graph of so many, of which a few depend on it.
fn change(count: usize) -> Outcome<Duration> {
    let mut graph = Graph::new(Arc::new(Python::default()));
    for number in 0..count {
        let source = if number % GROUP == 0 { "1".to_owned() } else { format!("v{} + 1", number - 1) };
        graph.add_step(StepId::new(format!("s{number}")), format!("v{number} = {source}"))?;
    }
    let mut times = Vec::new();
    for round in 0..CHANGES {
        // The fifth of a group, all over the graph.
        let at = (round * 7_919) % (count / GROUP) * GROUP + 5;
        let (id, source) = (StepId::new(format!("s{at}")), format!("v{at} = v{} + {}", at - 1, round + 2));
        let began = Instant::now();
        let stale = graph.change_step(&id, source)?;
        times.push(began.elapsed());
        if stale.len() != GROUP - 5 {
            return Err(format!("{} steps became stale", stale.len()).into());
        }
    }
    Ok(median(&mut times))
}

fn chain(count: usize) -> Steps {
    let source = |number: usize| if number == 0 { "v0 = 1".into() } else { format!("v{number} = v{} + 1", number - 1) };
    (0..count).map(|number| (format!("s{number}"), source(number))).collect()
}

fn fan_out(count: usize) -> Steps {
    let source = |number: usize| if number == 0 { "a = 1".into() } else { format!("b{number} = a * {number}") };
    (0..count).map(|number| (format!("s{number}"), source(number))).collect()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A Python that has networkx.
fn interpreter() -> Outcome<PathBuf> {
    if let Some(named) = std::env::var_os("LONGHAUL_BENCH_PYTHON") {
        return Ok(named.into());
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let place = cache.or_else(home).ok_or("neither XDG_CACHE_HOME nor HOME is set")?.join("longhaul/bench-networkx");
    let python = place.join("bin/python");
    let has_it = || Command::new(&python).args(["-c", "import networkx"]).stderr(Stdio::null()).status();
    if !has_it().is_ok_and(|status| status.success()) {
        checked(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
        checked(Command::new(&python).args(["-m", "pip", "install", "--quiet", "networkx"]))?;
    }
    Ok(python)
}

fn checked(command: &mut Command) -> Outcome<()> {
    if command.status()?.success() { Ok(()) } else { Err(format!("{command:?} failed").into()) }
}
