//! The graph beside its stand-ins: what Python programs do with `ast` and networkx.
//!
//! ```text
//! cargo bench -p longhaul-graph --bench graph
//! ```
//!
//! Two minutes after the build. For each shape of graph, the time to add all steps at once and infer all edges, to
//! find what a change of the first step makes stale, and to put that in replay order. There are three stand-ins, and
//! all are shown:
//!
//! - `api`: a library as one documents it, with `get_reads`, `get_writes`, `infer_edges` and a graph, each of which
//!   does what it says by itself: so each source is parsed twice.
//! - `lean`: a floor. One function that parses once and keeps no more than it needs.
//! - `full`: what the cases `esg_*` ask for, which it has to pass before it is timed. Its edges hold their names with
//!   reasons, and so do those that the graph makes beside it, in the mode `precise`, which is that of the cases.
//!
//! `api` and `lean` know straight-line code and edges without names; the graph counts its edges beside them. Both sides
//! must find the same. The chain and the fan-out have steps of one short line; a notebook's are some ten lines each.
//! The graph analyses on all cores, of which the first line says how many there are; Python has one.
//!
//! Then the cost of one changed step in graphs of 100 and of 10,000. The stand-ins need `python3` and networkx, which
//! is installed once into a virtual environment in the user's cache; `LONGHAUL_BENCH_PYTHON` names an interpreter that
//! has it. Goals: the cells of a notebook at least 20 times faster, and one changed step in 10,000 at most 3 times what
//! it costs in 100.

use longhaul_graph::{AnalysisMode, Edge, Graph, Python, StepId};
use serde_json::{Value, json};
use std::hint::black_box;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
type Steps = Vec<(String, String)>;

/// Steps of all rounds of a row, so that small graphs have more rounds, 100 and 20. The quickest of each side are
/// compared: what else runs on the machine only adds to a round.
const ROUND_STEPS: usize = 100_000;

/// Changes that are timed in each graph.
const CHANGES: usize = 2_000;

/// Steps that depend on each other in the graphs that are changed.
const GROUP: usize = 10;

/// A stand-in, and the work that the graph does beside it.
struct Peer {
    name: &'static str,
    script: &'static str,
    /// The time, and what was found in the stand-in's words.
    ours: fn(Steps) -> Outcome<(Duration, Value)>,
}

const API: Peer = Peer { name: "api", script: "graph_api.py", ours: counted };
const LEAN: Peer = Peer { name: "lean", script: "graph_lean.py", ours: counted };
const FULL: Peer = Peer { name: "full", script: "graph_full.py", ours: named };

fn main() -> Outcome<()> {
    let python = interpreter()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{cores} cores; the full stand-in passes {} cases", cases(&python)?);
    println!("{:<9} {:>6} {:<5} {:>13} {:>13} {:>8}", "shape", "steps", "peer", "stand-in", "ours", "ratio");
    for count in [1_000, 5_000] {
        for peer in [API, LEAN, FULL] {
            row(&python, "chain", &peer, &chain(count))?;
            row(&python, "fan-out", &peer, &fan_out(count))?;
        }
        row(&python, "notebook", &FULL, &notebook(count))?;
    }
    let (few, many) = (change(100)?, change(10_000)?);
    let ratio = many.as_secs_f64() / few.as_secs_f64();
    println!("one changed step: {few:?} in 100 steps, {many:?} in 10,000: {ratio:.2} times (goal: at most 3)");
    Ok(())
}

fn row(python: &Path, shape: &str, peer: &Peer, steps: &Steps) -> Outcome<()> {
    let theirs = stand_in(python, peer, steps)?;
    let mut times = Vec::new();
    for _ in 0..ROUND_STEPS / steps.len() {
        let (time, found) = (peer.ours)(steps.clone())?;
        times.push(time);
        if found != theirs["found"] {
            return Err(format!("{shape}: the {} stand-in found otherwise", peer.name).into());
        }
    }
    let ours = times.into_iter().min().ok_or("no round")?;
    let theirs = Duration::from_secs_f64(theirs["seconds"].as_f64().ok_or("no time")?);
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    let (name, count) = (peer.name, steps.len());
    let goal = if shape == "notebook" { " (goal: at least 20)" } else { "" };
    println!("{shape:<9} {count:>6} {name:<5} {theirs:>13.3?} {ours:>13.3?} {ratio:>7.1}x{goal}");
    Ok(())
}

/// Infers, marks stale and orders: how many edges there are, how many steps are run again, and the last of them.
fn counted(steps: Steps) -> Outcome<(Duration, Value)> {
    let began = Instant::now();
    let graph = inferred(steps, AnalysisMode::default())?;
    let edges = graph.links().count();
    let (graph, order) = replayed(graph)?;
    let time = began.elapsed();
    drop(graph);
    Ok((time, json!([edges, order.len(), order.last()])))
}

/// The same with all that is known of each edge, and every step that is run again.
fn named(steps: Steps) -> Outcome<(Duration, Value)> {
    let began = Instant::now();
    let graph = inferred(steps, AnalysisMode::Precise)?;
    let edges: Vec<Edge> = graph.edges().collect();
    let (graph, order) = replayed(graph)?;
    let time = began.elapsed();
    drop(graph);
    let edges: Vec<Value> = edges.iter().map(told).collect();
    Ok((time, json!({ "edges": edges, "replay": order })))
}

fn inferred(steps: Steps, mode: AnalysisMode) -> Outcome<Graph> {
    let mut graph = Graph::new(Arc::new(Python { mode }));
    graph.add_steps(steps.into_iter().map(|(id, source)| (StepId::new(id), source)))?;
    Ok(graph)
}

fn replayed(mut graph: Graph) -> Outcome<(Graph, Vec<StepId>)> {
    black_box(graph.mark_stale(&"s0".into())?);
    let order = graph.replay_from(&"s0".into())?;
    Ok((graph, order))
}

fn told(edge: &Edge) -> Value {
    let reasons = edge.variables.iter().map(|(name, reason)| (name.to_string(), json!(reason)["kind"].clone()));
    json!([edge.from, edge.to, reasons.collect::<serde_json::Map<_, _>>()])
}

/// The number of cases of `esg_*` that the full stand-in passes, which has to be all.
fn cases(python: &Path) -> Outcome<String> {
    let directory = std::env::var_os("LONGHAUL_CASES").map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/cases").into());
    let output = Command::new(python).arg(script(FULL.script)).arg("--cases").arg(directory).output()?;
    if !output.status.success() {
        return Err(format!("the full stand-in fails cases: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The findings of the stand-in, and the least of its times.
fn stand_in(python: &Path, peer: &Peer, steps: &Steps) -> Outcome<Value> {
    let mut child =
        Command::new(python).arg(script(peer.script)).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().ok_or("no stdin")?;
    input.write_all(json!({ "rounds": ROUND_STEPS / steps.len(), "steps": steps }).to_string().as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("the {} stand-in failed", peer.name).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join(name)
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

/// Cells of a notebook that loads, cleans, adds up and reports, again and again, from what the first step says.
fn notebook(count: usize) -> Steps {
    let source = |number: usize| {
        if number == 0 {
            return FIRST_CELL.to_owned();
        }
        let cell = CELLS[(number - 1) % CELLS.len()];
        cell.replace("{n}", &number.to_string()).replace("{before}", &(number - 1).to_string())
    };
    (0..count).map(|number| (format!("s{number}"), source(number))).collect()
}

const FIRST_CELL: &str = "path = 'orders.csv'\nlimit = 100";

const CELLS: [&str; 5] = [
    r#"import csv
from collections import defaultdict

def load{n}(path, limit=limit):
    """Rows of a file, without those that have no price."""
    with open(path, newline='') as file:
        rows = [row for row in csv.DictReader(file) if row['price']]
    return rows[:limit]

rows{n} = load{n}(path)
"#,
    r"clean{n} = []
for row in rows{before}:
    try:
        price = float(row['price'].replace(',', '.'))
    except (KeyError, ValueError) as error:
        print(f'{row!r}: {error}')
        continue
    clean{n}.append({**row, 'price': price, 'total': price * int(row.get('count', 1))})
",
    r"totals{n} = defaultdict(float)
for row in clean{before}:
    # Cities are written in many ways.
    totals{n}[row['city'].strip().title()] += row['total']
best{n} = max(totals{n}, key=totals{n}.get) if totals{n} else None
print(len(totals{n}), 'cities,', sum(totals{n}.values()), 'in all')
",
    r"class Report{n}:
    title = 'Totals'
    def __init__(self, totals, best):
        self.totals = totals
        self.best = best
    def lines(self):
        for city, total in sorted(self.totals.items(), key=lambda item: -item[1]):
            mark = '*' if city == self.best else ' '
            yield f'{mark} {city:<20} {total:>10.2f}'

report{n} = Report{n}(totals{before}, best{before})
",
    r"if report{before}.best is not None:
    text{n} = '\n'.join(report{before}.lines())
else:
    text{n} = 'nothing sold'
report{before}.printed = True
summary{n} = {'cities': len(report{before}.totals), 'letters': sum(len(line) for line in text{n}.splitlines())}
print(text{n})
",
];

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
