//! A run whose agent makes many steps in one invocation, and what each of them stored.
//!
//! A step is a call of a tool whose start, preparation and answer are durable, with a checkpoint at each. What the
//! store was asked is read from its own trace, and when from the journal.

use super::in_toml;
use super::lab::Lab;
use serde_json::{Value, json};

/// The measurements of the steps of a run.
pub struct Steps {
    /// Bytes that the store was given, by step.
    pub bytes: Vec<u64>,
    /// When each began, in milliseconds.
    pub began_ms: Vec<u64>,
    /// Length of the store's file at the end.
    pub file_bytes: u64,
    /// Checkpoints at the end.
    pub checkpoints: usize,
}

const CONFIG: &str = r#"
[project]
name = "kept"

[agents.code]
plugin = "caller"
tools = ["files"]
checkpoint_every = 1
settings = {settings}

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]
confirm_effects = true

[evaluator]
plugin = "lenient"

[limits]
journal_entries_max = 10000

[run.limits]
iterations_max = 1
"#;

/// Has an agent make so many steps.
pub fn run(steps: usize) -> Steps {
    let call = |number: usize| {
        let content = format!("step {number:06}: {}", "what was found on the way, as long as it is. ".repeat(8));
        json!({ "tool": "files", "function": "write", "arguments": { "path": "notes.txt", "content": content } })
    };
    let calls: Vec<Value> = (0..steps).map(call).collect();
    let settings = in_toml(&json!({ "calls": calls, "output": "done" }));
    let goal = "# Steps\n\n## Feature: steps\n- id: all\n- criterion: it is fine\n\nMake them.\n";
    let lab = Lab::new(&CONFIG.replace("{settings}", &settings), goal);
    let log = [("LONGHAUL_LOG", "longhaul_store=trace,longhaul_journal=trace,longhaul_run=trace"), ("NO_COLOR", "1")];
    let ran = lab.start_with(&["--json", "run"], &log).wait().expect(0);
    let began_ms = began(&lab);
    let checkpoints = lab.json(&["checkpoint", "list", "--every", "1"])["checkpoints"].as_array().map_or(0, Vec::len);
    let file_bytes = std::fs::metadata(lab.home().join("state.redb")).expect("the store").len();
    Steps { bytes: bytes_by_step(&ran.stderr, steps), began_ms, file_bytes, checkpoints }
}

/// When each call of a tool began; a journal is told page by page.
fn began(lab: &Lab) -> Vec<u64> {
    let (mut began, mut after) = (Vec::new(), 0);
    loop {
        let page = lab.json(&["journal", "--invocation", "f-all/1/generate", "--after", &after.to_string()]);
        let entries = page["entries"].as_array().expect("a list");
        let Some(last) = entries.last() else { return began };
        after = last["number"].as_u64().expect("a number");
        let calls = entries.iter().filter(|entry| entry["name"] == "tools.call");
        began.extend(calls.map(|entry| entry["at_ms"].as_u64().expect("a time")));
    }
}

/// The commits of the agent's invocation, which are as many for each step: those of the longest stretch between two
/// steps of the run.
fn bytes_by_step(trace: &str, steps: usize) -> Vec<u64> {
    let mut stretches: Vec<Vec<u64>> = vec![Vec::new()];
    for line in trace.lines() {
        if line.contains("run.event") {
            stretches.push(Vec::new());
        } else if line.contains("store.commit") {
            stretches.last_mut().expect("never empty").push(field(line, "bytes"));
        }
    }
    let longest = stretches.into_iter().max_by_key(Vec::len).expect("never empty");
    let each = longest.len() / steps;
    assert!(each > 0, "{} commits for {steps} steps", longest.len());
    // Text before the first step and after the last one belongs to these steps.
    let spare = longest.len() - each * steps;
    longest[spare..].chunks(each).map(|commits| commits.iter().sum()).collect()
}

fn field(line: &str, name: &str) -> u64 {
    let start = line.find(&format!(" {name}=")).unwrap_or_else(|| panic!("no `{name}` in {line}")) + name.len() + 2;
    let digits = line[start..].split(|char: char| !char.is_ascii_digit()).next().expect("a number");
    digits.parse().expect("a number")
}

/// The median of the steps around one, ten of them: others store something meanwhile, such as how the machine fares.
#[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
pub fn bytes_around(steps: &Steps, at: usize) -> f64 {
    let from = at.saturating_sub(5).min(steps.bytes.len().saturating_sub(10));
    let mut some = steps.bytes[from..(from + 10).min(steps.bytes.len())].to_vec();
    some.sort_unstable();
    some[some.len() / 2] as f64
}

/// Steps in a second, over the hundred steps from one on, or as many as there are.
#[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
pub fn rate_from(steps: &Steps, from: usize) -> f64 {
    let times = &steps.began_ms[from..(from + 101).min(steps.began_ms.len())];
    let ms = times.last().expect("some") - times.first().expect("some");
    (times.len() - 1) as f64 * 1_000.0 / (ms.max(1) as f64)
}
