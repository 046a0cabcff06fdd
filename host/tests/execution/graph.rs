//! Graphs of steps, as their users have them: the program as a process, alone and against itself, killed, and with
//! input that no graph should take.
//!
//! Needs the interpreters of `cargo xtask plugins` and the guests of `cargo xtask plugins --tests`.

use crate::common;
use crate::common::lab::{Lab, Ran};
use crate::common::{DOER_CONFIG, refused};
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

/// A graph in a data directory of its own.
pub(super) struct Graph {
    pub(super) lab: Lab,
}

impl Graph {
    fn new() -> Self {
        Self::over(Lab::empty(), &[])
    }

    pub(super) fn over(lab: Lab, options: &[&str]) -> Self {
        lab.run(&[&["graph", "new", "g"], options].concat()).expect(0);
        Self { lab }
    }

    /// With these steps, in their order.
    pub(super) fn with(steps: &[(&str, &str)]) -> Self {
        let graph = Self::new();
        let cells: String = steps.iter().map(|(step, source)| format!("# %% {step}\n{source}\n")).collect();
        graph.file("cells.py", &cells);
        graph.ask(&["add", "g", "--file", "cells.py"]).expect(0);
        graph
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.lab.path(name), text).expect("ours");
    }

    pub(super) fn ask(&self, args: &[&str]) -> Ran {
        self.lab.run(&[&["graph"], args].concat())
    }

    #[track_caller]
    fn json(&self, args: &[&str], code: i32) -> Value {
        let ran = self.lab.run(&[&["--json", "graph"], args].concat()).expect(code);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {}", ran.said()))
    }

    /// The steps with their states.
    fn states(&self) -> Vec<String> {
        let printed = self.lab.run(&["--json", "graph", "show", "g"]).expect(0).stdout;
        let steps = printed.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        steps.map(|step| format!("{} {}", text(&step, "id"), text(&step, "state"))).collect()
    }

    pub(super) fn step(&self, step: &str) -> Value {
        self.json(&["show", "g", step], 0)
    }
}

pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

const CHAIN: [(&str, &str); 4] = [
    ("load", "rows = [3, 1, 2]"),
    ("sort", "ordered = sorted(rows)"),
    ("best", "best = ordered[-1]\nprint('best', best)"),
    ("apart", "other = 5\nother + 1"),
];

#[test]
fn a_change_runs_what_it_touches_and_nothing_else() {
    let graph = Graph::with(&CHAIN);
    assert_eq!(graph.json(&["stale", "g"], 0), json!(["load", "sort", "best", "apart"]));
    let first = graph.json(&["run", "g"], 0);
    assert_eq!((&first["ran"], &first["untouched"]), (&json!(["load", "sort", "best", "apart"]), &json!(0)), "{first}");
    assert_eq!(text(&graph.step("best"), "stdout"), "best 3\n");
    assert_eq!(graph.step("apart")["value"], "6");
    assert!(graph.step("best")["fuel_used"].as_u64() > Some(0));

    // Another value: all that depends on it runs.
    let changes = graph.json(&["change", "g", "load", "--source", "rows = [3, 9, 2]"], 0);
    assert_eq!(changes["stale"], json!(["load", "sort", "best"]));
    let second = graph.json(&["run", "g"], 0);
    assert_eq!((&second["ran"], &second["untouched"]), (&json!(["load", "sort", "best"]), &json!(1)), "{second}");
    assert_eq!(text(&graph.step("best"), "stdout"), "best 9\n");

    // Another source with the same outcome: what depends on it stays fresh.
    graph.ask(&["change", "g", "sort", "--source", "ordered = sorted(list(rows))"]).expect(0);
    let third = graph.json(&["run", "g"], 0);
    assert_eq!((&third["ran"], &third["reused"]), (&json!(["sort"]), &json!(["best"])), "{third}");
    assert_eq!(graph.json(&["stale", "g"], 0), json!([]));

    // An earlier source: an earlier run answers.
    graph.ask(&["change", "g", "load", "--source", "rows = [3, 1, 2]\n"]).expect(0);
    let fourth = graph.json(&["run", "g"], 0);
    assert!(fourth["reused"].as_array().is_some_and(|steps| steps.contains(&json!("load"))), "{fourth}");
    assert_eq!(text(&graph.step("best"), "stdout"), "best 3\n");
}

/// A clean notebook: modules, data, functions, and cells that look at them in all the usual ways.
fn notebook() -> Vec<(String, String)> {
    let mut cells: Vec<(String, String)> = [
        ("imports", "import json, math, statistics\nfrom collections import Counter, defaultdict"),
        ("rows", "rows = [{'name': f'n{at % 5}', 'price': at} for at in range(40)]\nlimit = 7"),
        ("mean", "def mean(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total / len(xs)"),
        ("price", "def price(row):\n    return row.get('price', 0)"),
        ("loop", "for row in rows:\n    if row['price'] > 37: print(row['name'].upper())"),
        ("dump", "text = json.dumps(rows)\nprint(len(text))"),
        ("names", "names = ', '.join(sorted({row['name'] for row in rows}))\nnames"),
        ("count", "counts = Counter(row['name'] for row in rows)\nfor name, n in counts.items(): print(name, n)"),
        ("spread", "spread = statistics.stdev([price(row) for row in rows])"),
    ]
    .map(|(name, source)| (name.to_owned(), source.to_owned()))
    .into();
    let more = 34 - cells.len() - 1;
    cells.extend((0..more).map(|at| {
        (format!("cell-{at}"), format!("c{at} = mean([price(row) for row in rows]) * {at} + math.sqrt(limit)"))
    }));
    cells.push(("last".to_owned(), "len(rows), mean([1, 3]), json.dumps(rows[0]), counts.most_common(1)".to_owned()));
    cells
}

#[test]
fn a_clean_notebook_has_no_warnings_and_its_readers_make_nobody_depend_on_them() {
    let cells = notebook();
    let steps: Vec<(&str, &str)> = cells.iter().map(|(name, source)| (name.as_str(), source.as_str())).collect();
    assert_eq!(steps.len(), 34);
    let graph = Graph::with(&steps);
    let ran = graph.json(&["run", "g"], 0);
    assert_eq!((&ran["warnings"], &ran["failed"]), (&json!([]), &json!([])), "{ran}");
    assert_eq!(ran["ran"].as_array().map(Vec::len), Some(34), "{ran}");
    let last = graph.step("last");
    assert_eq!(last["value"], "(40, 2.0, '{\"name\": \"n0\", \"price\": 0}', [('n0', 8)])");
    // Not the loop, the dump or any of the cells: they only look.
    assert_eq!(last["needs"], json!(["imports", "rows", "mean", "count"]), "{last}");
    for (step, source) in [("loop", "for row in rows: pass"), ("dump", "text = json.dumps(rows, indent=1)")] {
        let changes = graph.json(&["change", "g", step, "--source", source], 0);
        assert_eq!(changes["stale"], json!([step]), "{step}");
    }
    let ran = graph.json(&["run", "g"], 0);
    assert_eq!((&ran["ran"], &ran["warnings"]), (&json!(["loop", "dump"]), &json!([])), "{ran}");
    // A function that does change what it is given is seen to.
    let changing = "def price(row):\n    return row.setdefault('price', 0)";
    graph.ask(&["change", "g", "price", "--source", changing]).expect(0);
    graph.ask(&["run", "g"]).expect(0);
    assert_eq!(graph.step("last")["value"], last["value"]);
}

#[test]
fn what_a_run_found_is_one_line_and_no_warning() {
    let graph = Graph::with(&[
        ("data", "totals = {}\nviews = [totals]"),
        ("change", "for view in views: view['n'] = 1"),
        ("read", "totals"),
        ("again", "totals['n']"),
    ]);
    let printed = graph.ask(&["run", "g"]).expect(0).stdout;
    let found: Vec<&str> = printed.lines().filter(|line| line.starts_with("found: ")).collect();
    let expected = "found: 2 dependencies that no source shows, such as `totals` of `change` in `read`";
    assert_eq!((found, printed.contains("warning")), (vec![expected], false), "{printed}");
    graph.ask(&["change", "g", "change", "--source", "for view in views: view['n'] = 2"]).expect(0);
    let again = graph.json(&["run", "g"], 0);
    assert_eq!(again["ran"], json!(["change", "read", "again"]), "{again}");
}

#[test]
fn a_run_prints_what_its_steps_print_and_their_last_values() {
    let graph = Graph::with(&CHAIN);
    let printed = graph.ask(&["run", "g"]).expect(0).stdout;
    assert!(printed.starts_with("best:\n  best 3\napart:\n  => 6\nran: load, sort, best, apart\n"), "{printed}");
    // Only those that ran, and nothing that moves the cursor or has no end.
    graph.ask(&["add", "g", "odd", "--source", "print('a\\x1b[2Jb')\nprint('line\\n' * 500)\n'x' * 50_000"]).expect(0);
    let printed = graph.ask(&["run", "g"]).expect(0).stdout;
    assert!(printed.starts_with("odd:\n  a\\u001b[2Jb\n  line\n"), "{printed}");
    assert!(printed.contains("more lines)\n  => 'xxx") && printed.len() < 10_000, "{printed}");
    assert!(!printed.contains("best 3") && !printed.contains('\u{1b}'), "{printed}");
    let outputs = graph.json(&["replay", "g", "apart"], 0)["outputs"].clone();
    assert_eq!(outputs, json!([{ "step": "apart", "stdout": "", "value": "6" }]));
}

#[test]
fn a_step_is_shown_with_its_whole_source() {
    let graph = Graph::new();
    let source: String = (0..700).map(|at| format!("x{at} = '{}'\n", "y".repeat(300))).collect();
    graph.file("long.py", &source);
    graph.ask(&["add", "g", "long", "--file", "long.py"]).expect(0);
    let shown = graph.ask(&["show", "g", "long"]).expect(0).stdout;
    for line in source.lines() {
        assert!(shown.contains(&format!("  {line}\n")), "{line}");
    }
}

#[test]
fn a_file_that_changed_makes_its_readers_stale() {
    let lab = Lab::empty();
    fs::create_dir(lab.path("data")).expect("ours");
    let graph = Graph::over(lab, &["--dir", "data:/data:ro"]);
    let write = |name: &str, text: &str| fs::write(graph.lab.path("data").join(name), text).expect("ours");
    write("sales.csv", "3\n5\n");
    let cells = "# %% load\nlines = open('/data/sales.csv').read().split()\n# %% sum\ntotal = sum(map(int, lines))\ntotal\n\
                 # %% list\nimport os\nsorted(os.listdir('/data'))\n# %% apart\n1 + 1\n";
    graph.file("cells.py", cells);
    graph.ask(&["add", "g", "--file", "cells.py"]).expect(0);
    graph.ask(&["run", "g"]).expect(0);
    assert_eq!(graph.step("load")["files"], json!(["/data/sales.csv"]));
    assert_eq!(graph.json(&["stale", "g"], 0), json!([]));
    // The same content is the same file.
    write("sales.csv", "3\n5\n");
    assert_eq!(graph.json(&["stale", "g"], 0), json!([]));
    write("sales.csv", "3\n5\n7\n");
    assert_eq!(graph.json(&["stale", "g"], 0), json!(["load", "sum"]));
    assert_eq!(graph.states(), ["load stale", "sum stale", "list fresh", "apart fresh"]);
    let ran = graph.json(&["run", "g"], 0);
    assert_eq!((&ran["ran"], &ran["untouched"]), (&json!(["load", "sum"]), &json!(2)), "{ran}");
    assert_eq!(graph.step("sum")["value"], "15");
    // A file of before is answered from the store, and a new one is seen by who lists them.
    write("sales.csv", "3\n5\n");
    write("more.csv", "");
    assert_eq!(graph.json(&["stale", "g"], 0), json!(["load", "sum", "list"]));
    let ran = graph.json(&["run", "g"], 0);
    assert_eq!((&ran["ran"], &ran["reused"]), (&json!(["list"]), &json!(["load", "sum"])), "{ran}");
    fs::remove_file(graph.lab.path("data").join("sales.csv")).expect("ours");
    let ran = graph.json(&["run", "g"], 3);
    assert_eq!((&ran["failed"], &ran["blocked"]), (&json!(["load"]), &json!(["sum"])), "{ran}");
}

#[test]
fn a_file_that_a_step_wrote_makes_later_readers_run_and_no_writer_twice() {
    let lab = Lab::empty();
    fs::create_dir(lab.path("out")).expect("ours");
    let graph = Graph::over(lab, &["--dir", "out:/out"]);
    for (step, source) in [
        ("first", "seen = open('/out/log').read() if __import__('os').path.exists('/out/log') else ''"),
        ("write", "with open('/out/log', 'a') as log: n = log.write('x')"),
        ("read", "len(open('/out/log').read())"),
    ] {
        graph.ask(&["add", "g", step, "--source", source]).expect(0);
    }
    graph.ask(&["run", "g"]).expect(0);
    assert_eq!(graph.step("read")["value"], "1");
    // Nothing repeats an effect by itself.
    assert_eq!(graph.json(&["run", "g"], 0)["ran"], json!([]));
    let ran = graph.json(&["replay", "g", "write"], 0);
    assert_eq!(ran["ran"], json!(["write", "read"]), "{ran}");
    assert_eq!(graph.step("read")["value"], "2");
    assert_eq!(graph.json(&["run", "g"], 0)["ran"], json!([]));
}

#[test]
fn a_failure_in_a_function_of_another_step_is_told_with_its_place_and_mended_there() {
    let graph = Graph::with(&[
        ("rows", "rows = [{'price': 3}, {'price': 4}]"),
        ("price", "def price(row):\n    return row['pirce']"),
        ("total", "total = sum(price(row) for row in rows)\ntotal"),
    ]);
    graph.ask(&["run", "g"]).expect(3);
    let found = graph.json(&["diagnose", "g"], 0);
    let frame = json!({ "step": "price", "line": 2, "function": "price", "source": "return row['pirce']" });
    assert_eq!((text(&found, "step"), text(&found, "cause"), &found["frame"]), ("total", "price", &frame), "{found}");
    let printed = graph.ask(&["diagnose", "g"]).expect(0).stdout;
    assert!(printed.contains("  at line 2 of `price`, in `price`\n    return row['pirce']\n"), "{printed}");
    let kept = graph.json(&["patch", "g"], 0);
    assert_eq!(text(&kept, "step"), "price", "{kept}");
    assert!(text(&kept, "source").contains("row['price']"), "{kept}");
    assert_eq!(graph.step("total")["value"], "7");
}

#[test]
fn a_failure_blocks_what_needs_it_is_diagnosed_and_is_patched() {
    let graph = Graph::with(&[
        ("load", "rows = ['3', '4.5']"),
        ("parse", "def number(text):\n    return int(text)\n\nvalues = [number(row) for row in rows]"),
        ("sum", "total = sum(values)\ntotal"),
        ("apart", "apart = len(rows)"),
    ]);
    let ran = graph.json(&["run", "g"], 3);
    assert_eq!((&ran["failed"], &ran["blocked"]), (&json!(["parse"]), &json!(["sum"])), "{ran}");
    assert_eq!(graph.states(), ["load fresh", "parse failed", "sum blocked", "apart fresh"]);
    let failure = &graph.step("parse")["failure"];
    assert_eq!((text(failure, "kind"), &failure["line"]), ("ValueError", &json!(2)), "{failure}");

    let found = graph.json(&["diagnose", "g"], 0);
    assert_eq!((text(&found, "step"), text(&found, "cause")), ("parse", "parse"), "{found}");
    let rows = found["values"].as_array().and_then(|values| values.iter().find(|value| value["name"] == "rows"));
    assert_eq!(rows.map(|value| text(value, "producer")), Some("load"), "{found}");

    let kept = graph.json(&["patch", "g"], 0);
    assert_eq!(text(&kept, "step"), "parse", "{kept}");
    assert!(text(&kept, "source").contains("float(text)"), "{kept}");
    let did = &kept["replay"];
    assert_eq!((&did["ran"], &did["untouched"]), (&json!(["parse", "sum"]), &json!(2)), "{kept}");
    // The result of the trial is kept with it.
    assert_eq!(graph.json(&["run", "g"], 0)["ran"], json!([]));
    assert_eq!(graph.step("sum")["value"], "7");
    refused(&graph.ask(&["patch", "g"]), &["no step of this graph failed"]);
    let history = graph.ask(&["history", "g"]).expect(0).stdout;
    assert!(history.contains("patched `parse`") && history.contains("added 4 steps"), "{history}");
}

#[test]
fn a_failure_that_no_rule_mends_is_said_with_how_many_sources_were_tried() {
    let graph = Graph::with(&[("a", "raise RuntimeError('no rule for this')")]);
    graph.ask(&["run", "g"]).expect(3);
    refused(&graph.ask(&["patch", "g"]), &["`a`", "RuntimeError", "tried"]);
    assert_eq!(graph.states(), ["a failed"]);
    assert_eq!(text(&graph.step("a"), "source").trim(), "raise RuntimeError('no rule for this')");
}

/// A project whose model mends the step `total`.
#[test]
fn a_model_of_the_project_is_asked_where_the_rules_know_nothing() {
    let lab = Lab::new(DOER_CONFIG, "# Nothing\n");
    lab.fake.advises(r#"{"culprit": "total", "why": "the unit was forgotten", "source": "total = sum(rows)\n"}"#);
    let graph = Graph::over(lab, &[]);
    graph.ask(&["add", "g", "rows", "--source", "rows = [1, 2]"]).expect(0);
    let broken = "total = sum(rows)\nif total != 4: raise RuntimeError('wrong unit')";
    graph.ask(&["add", "g", "total", "--source", broken]).expect(0);
    graph.ask(&["run", "g"]).expect(3);
    refused(&graph.ask(&["patch", "g", "--no-model"]), &["RuntimeError"]);
    let kept = graph.json(&["patch", "g"], 0);
    assert_eq!((text(&kept, "step"), text(&kept, "reason")), ("total", "the unit was forgotten"), "{kept}");
    assert_eq!(graph.json(&["run", "g"], 0)["failed"], json!([]));

    // One whose source does not serve is not kept, and neither is one that breaks what was well.
    graph.ask(&["change", "g", "total", "--source", broken]).expect(0);
    graph.ask(&["add", "g", "after", "--source", "assert rows == [1, 2]"]).expect(0);
    graph.ask(&["run", "g", "--keep-going"]).expect(3);
    graph.lab.fake.advises(r#"{"culprit": "rows", "why": "w", "source": "rows = [2, 2]\n"}"#);
    refused(&graph.ask(&["patch", "g"]), &["RuntimeError"]);
    assert_eq!(text(&graph.step("rows"), "source").trim(), "rows = [1, 2]");
    graph.lab.fake.advises("I would rather not.");
    let said = graph.ask(&["patch", "g"]).expect(1).stderr;
    assert!(said.contains("gave no advice: it answered no JSON") && said.contains("no source mends `total`"), "{said}");
}

#[test]
fn a_run_that_is_killed_goes_on_with_what_was_left() {
    let lab = Lab::empty();
    let graph = Graph::over(lab, &[]);
    let steps: String = (0..12).map(|at| format!("# %% s{at}\nx{at} = sum(range({at} + 1_500_000))\n")).collect();
    graph.file("cells.py", steps);
    graph.ask(&["add", "g", "--file", "cells.py"]).expect(0);
    let mut killed = 0;
    let since = Instant::now();
    let mut fresh_before = 0;
    // After each kill, what had ended is there; the one that ends runs only what is left.
    let last = loop {
        let mut run = graph.lab.start(&["--json", "graph", "run", "g"]);
        wait_until_it_owns_the_directory(&graph, &mut run);
        let fresh = wait_for_one_more(&graph, fresh_before, &mut run);
        if !run.kill() {
            break run.wait();
        }
        killed += 1;
        run.wait();
        let now = fresh_steps(&graph);
        assert!(now >= fresh && now >= fresh_before, "{now} fresh after {fresh} were seen");
        fresh_before = now;
        if killed == 3 {
            break graph.lab.run(&["--json", "graph", "run", "g"]);
        }
        assert!(since.elapsed() < Duration::from_secs(200), "it comes to no end");
    };
    let last: Value = serde_json::from_str(&last.expect(0).stdout).expect("JSON");
    let ran = last["ran"].as_array().expect("a list").len();
    assert_eq!(ran + fresh_before, 12, "{killed} kills, {last}");
    assert_eq!(last["untouched"], json!(fresh_before), "{last}");
    assert!(killed > 0, "nothing was killed");
    assert_eq!(fresh_steps(&graph), 12);
}

#[test]
fn a_step_that_acts_and_was_cut_off_is_repeated_only_when_somebody_says_so() {
    let lab = Lab::empty();
    let out = lab.path("out");
    fs::create_dir(&out).expect("ours");
    let graph = Graph::over(lab, &["--dir", "out:/work"]);
    let told = || fs::read_to_string(out.join("log")).unwrap_or_default();
    let write = "with open('/work/log', 'a') as log: log.write('x')\n";
    graph.ask(&["add", "g", "tell", "--source", &format!("{write}import time\ntime.sleep(100)")]).expect(0);
    graph.ask(&["add", "g", "after", "--source", "y = 1"]).expect(0);
    let mut run = graph.lab.start(&["graph", "run", "g"]);
    while told().is_empty() {
        assert!(run.is_running(), "{}", run.printed());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(run.kill());
    run.wait();
    graph.ask(&["change", "g", "tell", "--source", write]).expect(0);
    let ran = graph.json(&["run", "g"], 3);
    assert_eq!((&ran["unknown"], &ran["ran"]), (&json!(["tell"]), &json!(["after"])), "{ran}");
    assert_eq!((told().as_str(), text(&graph.step("tell"), "state")), ("x", "unknown"));
    assert_eq!(graph.json(&["run", "g", "--again", "tell"], 0)["ran"], json!(["tell"]));
    assert_eq!(told(), "xx");
    // It has happened, and is not stale: another run does not repeat it.
    graph.ask(&["run", "g"]).expect(0);
    assert_eq!(told(), "xx");
    // Nothing is tried where a trial would be an effect.
    graph.ask(&["add", "g", "typo", "--source", "z = yy"]).expect(0);
    graph.ask(&["run", "g"]).expect(3);
    refused(&graph.ask(&["patch", "g"]), &["no source is tried on a copy"]);
}

fn fresh_steps(graph: &Graph) -> usize {
    graph.states().iter().filter(|state| state.ends_with(" fresh")).count()
}

/// A look that came first would own the directory, do the steps itself, and not die with the run.
fn wait_until_it_owns_the_directory(graph: &Graph, run: &mut common::lab::Started) {
    let owner = || fs::read_to_string(graph.lab.home().join("lock")).unwrap_or_default();
    while owner().trim() != run.pid().to_string() && run.is_running() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until the run has kept one step more, or has ended.
fn wait_for_one_more(graph: &Graph, before: usize, run: &mut common::lab::Started) -> usize {
    loop {
        let fresh = fresh_steps(graph);
        if fresh > before || !run.is_running() {
            return fresh;
        }
    }
}

#[test]
fn commands_at_once_do_each_what_they_would_alone() {
    let graph = Graph::with(&CHAIN);
    let sources: Vec<String> = (0..6).map(|at| format!("extra{at} = {at}")).collect();
    let names: Vec<String> = (0..6).map(|at| format!("extra{at}")).collect();
    let adds: Vec<_> = names
        .iter()
        .zip(&sources)
        .map(|(name, source)| graph.lab.start(&["graph", "add", "g", name, "--source", source]))
        .collect();
    let runs: Vec<_> = (0..2).map(|_| graph.lab.start(&["--json", "graph", "run", "g"])).collect();
    for add in adds {
        add.wait().expect(0);
    }
    let mut ran = Vec::new();
    for run in runs {
        let did: Value = serde_json::from_str(&run.wait().expect(0).stdout).expect("JSON");
        ran.extend(did["ran"].as_array().expect("a list").iter().map(|step| step.as_str().expect("text").to_owned()));
    }
    graph.ask(&["run", "g"]).expect(0);
    let states = graph.states();
    assert_eq!(states.len(), 10, "{states:?}");
    assert!(states.iter().all(|state| state.ends_with(" fresh")), "{states:?}");
    // Where the owner stopped, the run was asked anew of the next one, and went on; no step of the chain ran twice.
    for step in CHAIN.map(|(step, _)| step) {
        assert!(ran.iter().filter(|one| *one == step).count() <= 1, "{step}: {ran:?}");
    }
}

#[test]
fn what_is_no_graph_or_step_is_refused_in_one_line_and_changes_nothing() {
    let graph = Graph::with(&CHAIN);
    let long = "n".repeat(201);
    graph.file("utf16.py", b"\xff\xfea\0");
    graph.file("latin1.py", b"a = 1\nb = '\xe9'\n");
    graph.file("large.py", "#".repeat(1_000_001));
    graph.file("twice.py", "# %% a\n# %% a\n");
    graph.file("empty.py", "");
    let rows: [(&[&str], &str); 18] = [
        (&["new", "g"], "there is a graph `g` already"),
        (&["new", ""], "is empty"),
        (&["new", &long], "201 bytes"),
        (&["new", "a#b"], "only names of agents' graphs have"),
        (&["run", "nowhere"], "there is no graph `nowhere`"),
        (&["remove", "nowhere"], "there is no graph `nowhere`"),
        (&["add", "g", "load", "--source", "x = 1"], "there is a step `load` already"),
        (&["add", "g", "a\nb", "--source", "x = 1"], "control characters"),
        (&["change", "g", "gone", "--source", "x = 1"], "there is no step `gone`"),
        (&["remove", "g", "gone"], "there is no step `gone`"),
        (&["replay", "g", "gone"], "there is no step `gone`"),
        (&["show", "g", "gone"], "there is no step `gone`"),
        (&["diagnose", "g", "load"], "did not fail"),
        (&["add", "g", "--file", "utf16.py"], "UTF-16"),
        (&["add", "g", "--file", "latin1.py"], "not UTF-8 in line 2"),
        (&["add", "g", "s", "--file", "large.py"], "longer than 1000000 bytes"),
        (&["add", "g", "--file", "twice.py"], "two cells are called `a`"),
        (&["add", "g", "--file", "empty.py"], "no cells"),
    ];
    for (args, words) in rows {
        refused(&graph.ask(args), &[words]);
    }
    // All or none.
    graph.file("known.py", "# %% new\nx = 1\n# %% load\nx = 2\n");
    refused(&graph.ask(&["add", "g", "--file", "known.py"]), &["there is a step `load` already"]);
    assert_eq!(graph.states(), ["load stale", "sort stale", "best stale", "apart stale"]);
}

#[test]
fn a_source_that_cannot_be_read_is_said_with_its_place_and_harms_no_other() {
    let graph = Graph::with(&CHAIN);
    graph.ask(&["run", "g"]).expect(0);
    for (source, line, column) in
        [("x = 1\ny = (1,\n", None, None), ("a = 1\n  b = 2\n", Some(2), None), ("x = = 1", Some(1), Some(5))]
    {
        let changes = graph.json(&["change", "g", "apart", "--source", source], 3);
        let failure = &changes["failure"];
        assert_eq!(text(failure, "kind"), "SyntaxError", "{source:?}: {failure}");
        for (field, expected) in [("line", line), ("column", column)] {
            assert!(failure[field].as_u64() >= Some(1), "{source:?}: {failure}");
            assert!(expected.is_none_or(|expected: u64| failure[field] == expected), "{source:?}: {failure}");
        }
    }
    assert_eq!(graph.states(), ["load fresh", "sort fresh", "best fresh", "apart broken"]);
    graph.ask(&["change", "g", "apart", "--source", "other = 5"]).expect(0);
    graph.ask(&["run", "g"]).expect(0);
    assert_eq!(graph.states()[3], "apart fresh");
}

#[test]
fn odd_bytes_are_source_like_any_other() {
    let graph = Graph::new();
    for (step, bytes, is_good) in [
        ("bom", &b"\xef\xbb\xbfa = 1\n"[..], true),
        ("crlf", b"b = 1\r\nif b:\r\n    c = 2\r\n", true),
        ("tabs", b"if True:\n\td = 1\n", true),
        ("form-feed", b"\x0ce = 1\n", true),
        ("null", b"f = 1\0\n", false),
        ("mixed", b"if True:\n\tg = 1\n        h = 2\n", false),
    ] {
        let file = format!("{step}.py");
        graph.file(&file, bytes);
        graph.ask(&["add", "g", step, "--file", &file]).expect(if is_good { 0 } else { 3 });
    }
    let megabyte = format!("text = '''{}'''\n", "x".repeat(999_900));
    graph.file("megabyte.py", megabyte);
    graph.ask(&["add", "g", "megabyte", "--file", "megabyte.py"]).expect(0);
    let ran = graph.json(&["run", "g"], 3);
    assert_eq!(ran["ran"], json!(["bom", "crlf", "tabs", "form-feed", "megabyte"]), "{ran}");
    let states = graph.states();
    assert!(states.contains(&"null broken".to_owned()) && states.contains(&"mixed broken".to_owned()), "{states:?}");
}

#[test]
fn a_deeply_nested_source_ends_no_host() {
    let graph = Graph::new();
    let deep = [
        format!("x = {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("x = {}1", "-".repeat(100_000)),
        format!("x = 1{}", "+1".repeat(100_000)),
        format!("x = a{}", ".b".repeat(100_000)),
        (0..900).map(|depth| format!("{}if 1:\n", " ".repeat(depth))).collect::<String>(),
    ];
    for (at, source) in deep.iter().enumerate() {
        graph.file("deep.py", source);
        let ran = graph.ask(&["add", "g", &format!("deep{at}"), "--file", "deep.py"]);
        assert!(matches!(ran.code(), Some(0 | 3)), "{at}: {}", ran.said());
    }
    graph.ask(&["add", "g", "after", "--source", "y = 1"]).expect(0);
    assert_eq!(graph.states().len(), deep.len() + 1);
}

#[test]
fn fifty_thousand_steps_are_added_changed_shown_and_removed() {
    let graph = Graph::new();
    let cells: String = (0..50_000)
        .map(|at| {
            format!("# %% s{at}\nx{at} = {}\n", if at % 100 == 0 { "1".into() } else { format!("x{} + 1", at - 1) })
        })
        .collect();
    graph.file("cells.py", cells);
    graph.ask(&["add", "g", "--file", "cells.py"]).expect(0);
    let changes = graph.json(&["change", "g", "s49998", "--source", "x49998 = x49997 + 2"], 0);
    assert_eq!(changes["stale"], json!(["s49998", "s49999"]));
    let shown = graph.ask(&["show", "g"]).expect(0).stdout;
    assert_eq!(shown.lines().count(), 50_000);
    let dot = graph.ask(&["export", "g", "--format", "dot"]).expect(0).stdout;
    assert!(dot.contains("s49998") && dot.trim_end().ends_with('}'));
    graph.ask(&["remove", "g"]).expect(0);
    assert_eq!(graph.ask(&["list"]).expect(0).stdout, "there are no graphs; make one with `longhaul graph new NAME`\n");
}

#[test]
fn a_graph_is_written_out_as_json_and_for_graphviz() {
    let graph = Graph::with(&[("a \"quoted\" <b>", "x = 1"), ("näme", "y = x")]);
    let value = graph.json(&["export", "g"], 0);
    let steps = value["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 2, "{value}");
    let dot = graph.ask(&["export", "g", "--format", "dot"]).expect(0).stdout;
    assert!(dot.contains("digraph") && dot.contains("a \\\"quoted\\\" <b>") && dot.contains("->"), "{dot}");
    graph.ask(&["export", "g", "--output", "out.json"]).expect(0);
    refused(&graph.ask(&["export", "g", "--output", "out.json"]), &["cannot make"]);
}

#[test]
fn hostile_names_and_outputs_reach_no_terminal() {
    let graph = Graph::with(&[("paints", "print('\\x1b[2J\\x1b]0;owned\\x07')\n'\\x1b[31m'")]);
    refused(&graph.ask(&["add", "g", "a\u{202e}b", "--source", "x = 1"]), &["control characters"]);
    graph.ask(&["add", "g", "raises", "--source", "raise ValueError('\\x1b[2J\\n\\u202e')"]).expect(0);
    graph.ask(&["run", "g"]).expect(3);
    for args in [&["show", "g"][..], &["show", "g", "paints"], &["show", "g", "raises"], &["diagnose", "g"]] {
        let said = graph.ask(args).expect(0).stdout;
        assert!(
            !said.contains('\u{1b}') && !said.contains('\u{202e}') && !said.contains('\u{7}'),
            "{args:?}: {said:?}"
        );
    }
    let said = graph.ask(&["patch", "g"]).expect(1).said();
    assert!(!said.contains('\u{1b}') && !said.contains('\u{202e}'), "{said:?}");
}

/// An agent's steps see nothing, and what it was told is what it is told after a kill.
#[test]
fn an_agent_has_graphs_of_its_own_which_others_only_look_at() {
    let config = r#"
[project]
name = "kept"

[agents.code]
plugin = "caller"

[agents.code.settings]
graph = [
    { do = "run" },
    { do = "add", step = "load", source = "rows = [1, 2]" },
    { do = "add", step = "sum", source = "total = sum(rowz)" },
    { do = "run" },
    { do = "diagnose" },
    { do = "patch" },
    { do = "run" },
    { do = "change", step = "load", source = "rows = [1, 2, 3]" },
    { do = "stale" },
    { do = "run" },
    { do = "add", step = "load", source = "again = 1" },
    { do = "add", step = "look", source = "import os\nprint([path for path in ('/etc', '/home', '/tmp', '/work') if os.path.exists(path)])" },
    { do = "run" },
    { do = "show" },
    { do = "remove", step = "gone" },
    { do = "export" },
]

[checks]
never = { argv = ["false"] }

[run.limits]
iterations_max = 1
"#;
    let goal = "# Sums\n\n## Feature: a sum\n- id: all\n- check: never\n\nSum it up.\n";
    let lab = Lab::new(config, goal);
    lab.run(&["run"]).expect(3);
    let journal = lab.json(&["journal", "--invocation", "f-all/1/generate"]);
    let result: Value = serde_json::from_str(text(&journal["finished"], "result")).expect("JSON");
    let said: Value = serde_json::from_str(text(&result["returned"], "output")).expect("JSON");
    let ran = |ran: &[&str], failed: &[&str], untouched: u32| json!({ "ran": ran, "answered": [], "failed": failed, "untouched": untouched });
    assert!(text(&said[0], "error").contains("there is no graph `main`"), "{said}");
    assert_eq!(said[1], json!(["load"]));
    assert_eq!(said[3], ran(&["load", "sum"], &["sum"], 0), "{said}");
    assert_eq!(said[4], json!(["sum", "NameError", "sum"]), "{said}");
    assert_eq!(said[5], json!(["sum", "total = sum(rows)"]), "{said}");
    assert_eq!(said[8], json!(["load", "sum"]), "{said}");
    assert_eq!(said[9], ran(&["load", "sum"], &[], 0), "{said}");
    assert!(text(&said[10], "error").contains("there is a step `load` already"), "{said}");
    assert_eq!(said[12], ran(&["look"], &[], 2), "{said}");
    assert_eq!(said[13][2], json!(["look", "GraphState::Fresh", "['/tmp']\n"]), "{said}");
    assert!(text(&said[14], "error").contains("there is no step `gone`"), "{said}");
    assert_eq!(said[15], json!(true));
    lab.run(&["replay"]).expect(0);

    let listed = lab.run(&["--json", "graph", "list"]).expect(0).stdout;
    let listed: Value = serde_json::from_str(listed.lines().next().expect("one")).expect("JSON");
    let name = text(&listed, "name");
    assert!(name.ends_with("/f-all/1/generate#main") && listed["of_agent"] == true, "{listed}");
    lab.run(&["graph", "show", name]).expect(0);
    refused(&lab.run(&["graph", "add", name, "s", "--source", "x = 1"]), &["belongs to an agent and is read-only"]);
}
