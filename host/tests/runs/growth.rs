//! A project that goes on for long costs as much a session at its end as at its beginning.
//!
//! One run has many features, each a session of a real agent with a recorded model. What the store was asked is read
//! from its own trace: bytes and operations written, rows and bytes read. Time is printed and never asserted.
//!
//! `LONGHAUL_SESSIONS=100 cargo nextest run -p longhaul --test runs growth --no-capture` prints the table of a long
//! one.

use crate::common;
use crate::common::lab::Lab;
use serde_json::Value;
use std::fmt::Write as _;

/// The number of sessions by default, the fewest that make sense, and the number that is taken together: one may pay
/// for a page of the store that the next ones fill.
const SESSIONS: usize = 30;
const SESSIONS_MIN: usize = 20;
const TOGETHER: usize = 5;

/// The session that later ones are compared with.
const EARLY: usize = 10;

/// The most that a late session may cost, as a multiple of an early one.
const GROWTH_MAX: f64 = 1.5;

const CONFIG: &str = r#"
[project]
name = "kept"

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"

[agents.code]
plugin = "caller"
models = ["fake"]
tools = ["files", "project"]

[agents.code.settings]
ask = "Say a line."
decide = "Write {id} into a file of its own, since the others are read-only by then."
calls = [
    { tool = "files", function = "write", arguments = { path = "{id}.txt", content = "part {id}" } },
    { tool = "project", function = "log_project_progress", arguments = { action = "wrote {id}" } },
    { tool = "project", function = "get_project_progress_log", arguments = {} },
]

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]
confirm_effects = true

[tools.project]
plugin = "builtin:project"

[evaluator]
plugin = "lenient"

[run.limits]
sessions_max = 10000
features_max = 10000
"#;

/// A goal of so many features.
fn goal(sessions: usize) -> String {
    let mut text = "# Many parts\n".to_owned();
    for number in 1..=sessions {
        let what = "Write what belongs into this part and into no other one, as the outline has it. ".repeat(5);
        let _ = write!(text, "\n## Feature: Part {number}\n- id: s{number:04}\n- criterion: it is fine\n\n{what}\n");
    }
    text
}

/// The requests to the store in one session.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    ops: u64,
    bytes_written: u64,
    rows_read: u64,
    bytes_read: u64,
    ms: u64,
}

impl Cost {
    fn plus(self, other: Self) -> Self {
        Self {
            ops: self.ops + other.ops,
            bytes_written: self.bytes_written + other.bytes_written,
            rows_read: self.rows_read + other.rows_read,
            bytes_read: self.bytes_read + other.bytes_read,
            ms: self.ms + other.ms,
        }
    }
}

/// The replies of a run of one session, for any invocation of any run.
fn recording() -> String {
    let lab = Lab::new(CONFIG, &goal(1));
    let path = lab.path("recording.jsonl");
    lab.run(&["run", "--record", path.to_str().expect("text")]).expect(0);
    let recorded = std::fs::read_to_string(path).expect("it was written");
    let mut lines: Vec<Value> = recorded.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    lines.iter_mut().filter_map(Value::as_object_mut).for_each(|line| drop(line.remove("within")));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The number behind `name=` in a line of the log.
fn field(line: &str, name: &str) -> Option<u64> {
    let start = line.find(&format!(" {name}="))? + name.len() + 2;
    line[start..].split(|char: char| !char.is_ascii_digit()).next()?.parse().ok()
}

/// The events at which sessions begin, with their times, and the last event.
fn begins(events: &str) -> Vec<(u64, u64)> {
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let at = |event: &Value| (event["number"].as_u64().expect("a number"), event["at_ms"].as_u64().expect("a time"));
    let begins =
        events.iter().filter(|event| event["type"] == "feature" && event["payload"]["status"] == "in_progress");
    begins.chain(events.last()).map(at).collect()
}

/// The costs of each session, by the events that the trace names.
fn costs(trace: &str, begins: &[(u64, u64)]) -> Vec<Cost> {
    let mut costs = vec![Cost::default(); begins.len() - 1];
    for (cost, times) in costs.iter_mut().zip(begins.windows(2)) {
        cost.ms = times[1].1 - times[0].1;
    }
    let mut event = 0;
    for line in trace.lines() {
        if line.contains("run.event") {
            event = field(line, "number").expect("a number");
        }
        // The first session that begins behind this event is the next one.
        let session = begins.iter().take_while(|(begin, _)| *begin <= event).count();
        let Some(cost) = session.checked_sub(1).and_then(|session| costs.get_mut(session)) else { continue };
        let number = |name| field(line, name).unwrap_or_else(|| panic!("no `{name}` in {line}"));
        if line.contains("store.commit") {
            *cost = cost.plus(Cost { ops: number("ops"), bytes_written: number("bytes"), ..Cost::default() });
        } else if line.contains("store.read") {
            *cost = cost.plus(Cost { rows_read: number("rows"), bytes_read: number("bytes"), ..Cost::default() });
        }
    }
    costs
}

/// The mean of the sessions up to one.
fn mean(costs: &[Cost], until: usize) -> [(&'static str, f64); 5] {
    let some = &costs[until - TOGETHER..until];
    let sum = some.iter().fold(Cost::default(), |sum, cost| sum.plus(*cost));
    let each = [
        ("operations written", sum.ops),
        ("bytes written", sum.bytes_written),
        ("rows read", sum.rows_read),
        ("bytes read", sum.bytes_read),
        ("ms", sum.ms),
    ];
    #[expect(clippy::cast_precision_loss, reason = "shown with four digits")]
    each.map(|(name, value)| (name, value as f64 / TOGETHER as f64))
}

#[test]
fn a_late_session_costs_the_store_no_more_than_an_early_one() {
    let asked = std::env::var("LONGHAUL_SESSIONS").ok().and_then(|text| text.parse().ok());
    let sessions = asked.unwrap_or(SESSIONS).max(SESSIONS_MIN);
    let lab = Lab::new(CONFIG, &goal(sessions));
    let path = lab.path("recording.jsonl");
    std::fs::write(&path, recording()).expect("ours");
    let log = [("LONGHAUL_LOG", "longhaul_store=trace,longhaul_run=trace"), ("NO_COLOR", "1")];
    let ran = lab.start_with(&["--json", "run", "--recorded", path.to_str().expect("text")], &log).wait();
    let ran = ran.expect(0);
    assert!(lab.fake.asked().is_empty(), "the model is the recorded one");

    let begins = begins(&ran.stdout);
    let costs = costs(&ran.stderr, &begins);
    assert_eq!(costs.len(), sessions);
    let stored = std::fs::metadata(lab.home().join("state.redb")).expect("the store").len();
    println!("{sessions} sessions, {stored} bytes in the file at the end; the mean of {TOGETHER} sessions up to");
    println!("{:>20} {:>12} {:>12} {:>8}", "", EARLY, sessions, "growth");
    for ((name, early), (_, late)) in mean(&costs, EARLY).into_iter().zip(mean(&costs, sessions)) {
        println!("{name:>20} {early:>12.1} {late:>12.1} {:>8.2}", late / early);
        assert!(early > 0.0, "{name}: nothing was traced");
        assert!(
            name == "ms" || late <= GROWTH_MAX * early,
            "{name}: {early} a session up to {EARLY}, {late} at {sessions}"
        );
    }
}

/// The default number of steps.
const STEPS: usize = 150;

/// The most bytes that a late step may store, as a multiple of an early one: its number has more digits.
const STEP_GROWTH_MAX: f64 = 1.05;

#[test]
fn a_late_step_stores_as_many_bytes_as_an_early_one() {
    let asked = std::env::var("LONGHAUL_STEPS").ok().and_then(|text| text.parse().ok());
    let count: usize = asked.unwrap_or(STEPS).max(120);
    let steps = common::steps::run(count);
    assert_eq!((steps.bytes.len(), steps.began_ms.len()), (count, count));
    let early = common::steps::bytes_around(&steps, EARLY);
    assert!(early > 100.0, "nothing was traced");
    let (first, last) = (common::steps::rate_from(&steps, EARLY), common::steps::rate_from(&steps, count - 101));
    println!("steps a second: {first:.0} from step {EARLY}, {last:.0} up to step {count}");
    for at in [100, 1_000].into_iter().filter(|at| *at < count) {
        let late = common::steps::bytes_around(&steps, at);
        println!("step {EARLY}: {early:.0} bytes, step {at}: {late:.0} bytes");
        assert!(late <= STEP_GROWTH_MAX * early, "step {EARLY}: {early} bytes, step {at}: {late} bytes");
    }
}
