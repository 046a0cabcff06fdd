//! The suites `esg_reads_writes`, `esg_programs` and `esg_graph` of `$LONGHAUL_CASES`.
//!
//! They hold in the mode `precise`. Where the mode `sound`, the default, asks for more, the difference is held too.

use longhaul_graph::{Analysis, AnalysisMode, Graph, Python, StepGraphError, StepId, StepLanguage};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

type Outcome = Result<(), String>;

/// Sources of `tests/cases` whose answer in the mode `sound` is another, with what is more, or less certain.
const SOUND_DIFFERS: [(&str, &str); 8] = [
    ("for i, (a, b) in enumerate(pairs):\n    acc.append(a * w)", r#"mutates: ["acc"]"#),
    ("while n > 0:\n    n -= 1", r#"mutates: ["n"]"#),
    (
        "try:\n    import ujson as json\nexcept ImportError:\n    import json\nd = json.loads(s)",
        r#"mutates: ["json","s"]"#,
    ),
    ("with lock, open(p) as (a, b):\n    a.write(b)", r#"definite_writes: [], mutates: ["a","b","lock"]"#),
    ("if (m := pat.match(line)) is not None:\n    g = m.group(1)", r#"mutates: ["line","m","pat"]"#),
    ("async def g():\n    await h(u)", r#"mutates: ["u"]"#),
    ("raise Err(detail) from cause", r#"mutates: ["detail"]"#),
    ("try:\n    v = load()\nfinally:\n    close(h)", r#"mutates: ["h"]"#),
];

#[test]
fn every_case_of_the_suite_esg_reads_writes_holds() {
    every_case("esg_reads_writes", |case| match kind(case) {
        "reads_writes" => reads_and_writes(case, AnalysisMode::Precise),
        other => Err(format!("unknown kind `{other}`")),
    });
}

#[test]
fn every_case_of_the_suite_esg_programs_holds() {
    every_case("esg_programs", |case| match kind(case) {
        "program" => program(case, AnalysisMode::Precise),
        other => Err(format!("unknown kind `{other}`")),
    });
}

#[test]
fn every_case_of_the_suite_esg_graph_holds() {
    every_case("esg_graph", |case| match kind(case) {
        "graph" => graph(case),
        "graph_error" => graph_error(case),
        other => Err(format!("unknown kind `{other}`")),
    });
}

#[test]
fn the_cases_on_which_the_sound_mode_differs_are_these() {
    // No expectation of the mode `sound` exists for other cases.
    if std::env::var_os("LONGHAUL_CASES").is_some() {
        return;
    }
    let mut differing = Vec::new();
    for case in cases_of("esg_reads_writes") {
        let source = case["source"].as_str().expect("a source");
        let found =
            Python::default().analyse(source).map_or_else(|_| json!({ "error": "syntax" }), |found| shown(&found));
        let expected = case["expected"].as_object().expect("an object");
        let fields = expected.iter().filter(|(field, value)| found[field.as_str()] != **value);
        let fields: Vec<String> = fields.map(|(field, _)| format!("{field}: {}", found[field])).collect();
        if !fields.is_empty() {
            differing.push((source.to_owned(), fields.join(", ")));
        }
    }
    let listed = SOUND_DIFFERS.map(|(source, fields)| (source.to_owned(), fields.to_owned()));
    assert_eq!(differing, listed);
    every_case("esg_programs", |case| program(case, AnalysisMode::Sound));
}

fn kind(case: &Value) -> &str {
    case["kind"].as_str().unwrap_or_default()
}

fn reads_and_writes(case: &Value, mode: AnalysisMode) -> Outcome {
    let source = case["source"].as_str().ok_or("no source")?;
    let found = match (Python { mode }).analyse(source) {
        Ok(found) => shown(&found),
        Err(_) => json!({ "error": "syntax" }),
    };
    expect(&found, &case["expected"])
}

fn shown(found: &Analysis) -> Value {
    json!({
        "reads": found.reads().collect::<Vec<_>>(),
        "writes": found.writes().collect::<Vec<_>>(),
        "definite_writes": found.definite_writes().collect::<Vec<_>>(),
        "mutates": found.mutates().collect::<Vec<_>>(),
    })
}

fn program(case: &Value, mode: AnalysisMode) -> Outcome {
    let mut graph = Graph::new(Arc::new(Python { mode }));
    let steps = case["steps"].as_array().ok_or("no steps")?;
    for step in steps {
        let (id, source) = (text(&step[0])?, text(&step[1])?);
        graph.add_step(id.into(), source.to_owned()).map_err(|error| error.to_string())?;
    }
    let ids: Vec<StepId> = graph.steps().map(|node| node.id.clone()).collect();
    let last = ids.last().ok_or("no step")?;
    let edges: Vec<_> = graph.edges().map(|edge| json!([edge.from, edge.to])).collect();
    expect(&sorted_pairs(edges), &sorted_pairs(case["expected"]["edges"].as_array().cloned().unwrap_or_default()))
        .map_err(|error| format!("edges: {error}"))?;
    expect(&json!(graph.ancestors(last, None).map_err(told)?), &case["expected"]["ancestors_of_last"])
        .map_err(|error| format!("ancestors: {error}"))?;
    // Some cases say nothing of what a change makes stale.
    let told_of = |id: &&StepId| case["expected"]["stale_if_changed"].get(id.as_str()).is_some();
    for id in ids.iter().filter(told_of) {
        let stale = graph.clone().mark_stale(id).map_err(told)?;
        expect(&json!(stale), &case["expected"]["stale_if_changed"][id.as_str()])
            .map_err(|error| format!("stale of {id}: {error}"))?;
        expect(&json!(graph.replay_from(id).map_err(told)?), &case["expected"]["replay_from"][id.as_str()])
            .map_err(|error| format!("replay from {id}: {error}"))?;
    }
    Ok(())
}

/// The order of a list of edges means nothing.
fn sorted_pairs(mut pairs: Vec<Value>) -> Value {
    pairs.sort_by_key(ToString::to_string);
    pairs.into()
}

fn graph(case: &Value) -> Outcome {
    let mut graph = Graph::new(Arc::new(Python::default()));
    for id in case["insertion_order"].as_array().ok_or("no order")? {
        graph.add_step(text(id)?.into(), String::new()).map_err(told)?;
    }
    for edge in case["edges"].as_array().ok_or("no edges")? {
        graph.add_edge(&text(&edge[0])?.into(), &text(&edge[1])?.into(), BTreeSet::new()).map_err(told)?;
    }
    let root = text(&case["root"])?.into();
    let found = json!({
        "stale": graph.clone().mark_stale(&root).map_err(told)?,
        "replay_from": graph.replay_from(&root).map_err(told)?,
        "ancestors": graph.ancestors(&root, None).map_err(told)?,
        "subgraph_from": graph.subgraph_from(&root).map_err(told)?,
    });
    expect(&found, &case["expected"])
}

fn graph_error(case: &Value) -> Outcome {
    let mut graph = Graph::new(Arc::new(Python::default()));
    let mut last = String::new();
    for operation in case["ops"].as_array().ok_or("no operations")? {
        let before = everything(&graph);
        let done = match text(&operation[0])? {
            "add_step" => graph.add_step(text(&operation[1])?.into(), text(&operation[2])?.to_owned()),
            "add_edge" => graph.add_edge(&text(&operation[1])?.into(), &text(&operation[2])?.into(), BTreeSet::new()),
            other => return Err(format!("unknown operation `{other}`")),
        };
        last = match done {
            Ok(()) => "ok".to_owned(),
            Err(_) if everything(&graph) != before => "error, and the graph is another".to_owned(),
            Err(StepGraphError::Cycle { .. }) => "error: cycle".to_owned(),
            Err(StepGraphError::DuplicateStep { .. }) => "error: duplicate step id".to_owned(),
            Err(StepGraphError::UnknownStep { .. }) => "error: unknown step id".to_owned(),
            Err(other) => format!("error: {other}"),
        };
    }
    // Every error leaves the graph unchanged, as was checked above.
    let expected = text(&case["expected"]["last_op"])?.trim_end_matches(", graph unchanged");
    expect(&json!(last), &json!(expected))
}

fn everything(graph: &Graph) -> String {
    let edges: Vec<_> = graph.edges().collect();
    let nodes: Vec<_> = graph.steps().map(|node| (node.id.clone(), node.source.clone())).collect();
    format!("{nodes:?} {edges:?} {:?}", graph.stale())
}

fn told(error: StepGraphError) -> String {
    error.to_string()
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("{value} is no text"))
}

fn expect(found: &Value, expected: &Value) -> Outcome {
    if found == expected { Ok(()) } else { Err(format!("{found}, expected {expected}")) }
}

/// Runs every case of a suite, of which there must be one.
#[track_caller]
fn every_case(suite: &str, run: impl Fn(&Value) -> Outcome) {
    let cases = cases_of(suite);
    assert!(!cases.is_empty(), "no case of the suite `{suite}` in {}", directory().display());
    let named = |case: &Value| {
        let id = case["id"].as_str().ok_or_else(|| format!("a case without an id: {case}"))?;
        run(case).map_err(|error| format!("{id}: {error}"))
    };
    let wrong: Vec<_> = cases.iter().filter_map(|case| named(case).err()).collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn directory() -> PathBuf {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/cases"));
    std::env::var_os("LONGHAUL_CASES").map_or_else(default, PathBuf::from)
}

/// Files are picked by their field `suite`, never by their name.
pub fn cases_of(suite: &str) -> Vec<Value> {
    let directory = directory();
    let entries = std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable directory").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: &PathBuf| -> Value {
        let text = std::fs::read_to_string(path).expect("a readable file");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let files = paths.iter().map(read).filter(|file| file["suite"] == suite);
    files.flat_map(|file| file["cases"].as_array().cloned().expect("a list of cases")).collect()
}
