//! The wire types: what a command prints with `--json` is what HTTP answers about the same resource.
//!
//! The list of resources is that of the OpenAPI document, so that no resource is left out unseen.

use crate::common::in_toml;
use crate::common::lab::Lab;
use crate::common::web::Web;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fs;

/// Resources that no command prints, each with the reason.
const NOT_COMPARED: &[(&str, &str)] = &[
    ("/health", "tells of the process that answers"),
    ("/ready", "tells of the process that answers"),
    ("/metrics", "is text for Prometheus"),
    ("/api/v1/whoami", "tells of the token of the request"),
    ("/api/v1/operations", "lists what `--server` calls by name"),
    ("/api/v1/costs", "sums up ledgers, which `status` prints"),
    ("/api/v1/comparison", "is of two runs, which `runs::compare` compares with what `compare` prints"),
    ("/api/v1/events/stream", "is a stream"),
    ("/api/v1/runs/{run}/events/stream", "is a stream"),
    ("/api/v1/graphs/{graph}/output", "is a stream"),
    ("/api/v1/runs/{run}/journal/recording", "is what `scenario record` makes files of"),
    ("/api/v1/runs/{run}/trajectories/export", "is lines of JSON, which `trajectories export` writes to a file"),
];

/// A project whose agent proposes a feature, writes a file, and asks before it tells the server.
const CONFIG: &str = r#"
[project]
name = "kept"

[agents.code]
plugin = "caller"
tools = ["project", "files", "poster"]
settings = {settings}

[tools.project]
plugin = "builtin:project"

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]

[tools.poster]
plugin = "poster"
hosts = ["http://{server}"]
settings = { server = "{server}" }
approval = { when_heard = "allow", functions = { post = "ask" } }

[evaluator]
plugin = "lenient"

[run.limits]
iterations_max = 1
"#;

const GOAL: &str = "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nDo it.\n";

/// The rule by which two forms of a resource are compared.
enum By {
    /// Equality.
    Value,
    /// The names and types of the fields: what is measured differs from one look to the next.
    Shape,
}

/// A resource, as HTTP and as a command shows it.
struct Row {
    /// The path in the OpenAPI document.
    path: &'static str,
    /// The path and query that are asked for.
    asked: String,
    /// The part of the response that is compared.
    at: &'static str,
    /// The command without `--json`.
    command: Vec<String>,
    /// The part of its output that is compared.
    printed_at: &'static str,
    by: By,
}

/// A row of a resource of which both forms are compared whole.
fn row(path: &'static str, asked: &str, command: &[&str]) -> Row {
    let command = command.iter().map(|&argument| argument.to_owned()).collect();
    Row { path, asked: asked.to_owned(), at: "", command, printed_at: "", by: By::Value }
}

/// A row of a list of which a command prints all, and HTTP a page.
fn list(path: &'static str, asked: &str, command: &[&str]) -> Row {
    Row { at: "/items", printed_at: "/items", ..row(path, asked, command) }
}

/// Every resource at least once.
fn lab() -> Lab {
    let calls = json!([
        { "tool": "project", "function": "add_project_feature", "arguments": {
            "id": "two", "instruction": "More.", "criteria": ["It is more."], "reason": "it is missing",
        } },
        { "tool": "files", "function": "write", "arguments": { "path": "notes.txt", "content": "found" } },
        { "tool": "poster", "function": "post", "arguments": { "text": "a" } },
    ]);
    let lab = Lab::new(&CONFIG.replace("{settings}", &in_toml(&json!({ "calls": calls }))), GOAL);
    fs::write(lab.path("hello.py"), "print('hello')\n").expect("ours");
    let source = lab.path("hello.py").display().to_string();
    lab.run(&["agent", "add", "one", "--python", &source, "--description", "says hello"]).expect(0);
    lab.run(&["exec", &source, "--session", "kept"]).expect(0);
    lab.run(&["schedule", "add", "yearly", "--agent", "one", "--cron", "0 0 1 1 *"]).expect(0);
    // No scheduler works yet, so the task waits, and is withdrawn.
    lab.run(&["schedule", "run-now", "yearly"]).expect(0);
    lab.run(&["schedule", "pause", "yearly"]).expect(0);
    lab.run(&["schedule", "resume", "yearly"]).expect(0);
    lab.run(&["graph", "new", "answer"]).expect(0);
    lab.run(&["graph", "add", "answer", "one", "--source", "x = 1"]).expect(0);
    lab
}

/// The run, once it has ended and is remembered, and its approval, which was answered by rule.
fn completed(lab: &Lab, web: &Web) -> (String, String) {
    let run = web.run(lab);
    let open = web.until("/api/v1/approvals?open=true", |all| all["total"] == 1);
    let approval = open["items"][0]["id"].as_str().expect("an id").to_owned();
    web.post(&format!("/api/v1/approvals/{approval}/answer"), &json!({ "text": "a" })).expect(200);
    web.until(&format!("/api/v1/runs/{run}"), |run| run["status"] == "completed" && run["active"] == false);
    // The outcome of the run is remembered last.
    web.until(&format!("/api/v1/runs/{run}/memory"), |memory| {
        memory["items"].as_array().is_some_and(|all| all.iter().any(|one| one["scope"] == "episode"))
    });
    (run, approval)
}

/// A task that has ended.
fn ended(web: &Web) -> String {
    let task = web.post("/api/v1/schedules/yearly/run-now", &json!({})).expect(200).json()["id"].clone();
    let task = task.as_str().expect("a name").to_owned();
    web.until(&format!("/api/tasks/{task}"), |task| task["status"] == "completed");
    task
}

fn rows(run: &str, approval: &str, task: &str, commit: &str) -> Vec<Row> {
    let of_run = |rest: &str| format!("/api/v1/runs/{run}{rest}");
    let invocation = "f-one/1/generate";
    vec![
        list("/api/v1/projects", "/api/v1/projects", &["projects"]),
        list("/api/v1/runs", "/api/v1/runs", &["runs"]),
        row("/api/v1/runs/{run}", &of_run(""), &["status", run]),
        row("/api/v1/runs/{run}/log", &of_run("/log"), &["log", "--run", run]),
        row(
            "/api/v1/runs/{run}/commits/{commit}",
            &of_run(&format!("/commits/{commit}")),
            &["log", commit, "--run", run],
        ),
        Row { printed_at: "/ledger", ..row("/api/v1/runs/{run}/ledger", &of_run("/ledger"), &["status", run]) },
        row("/api/v1/runs/{run}/report", &of_run("/report?format=json"), &["report", run]),
        list("/api/v1/runs/{run}/features", &of_run("/features"), &["features", run]),
        list("/api/v1/runs/{run}/journal", &of_run("/journal"), &["journal", run]),
        row("/api/v1/runs/{run}/at", &of_run("/at?point=feature:one"), &["journal", run, "--at", "feature:one"]),
        row(
            "/api/v1/runs/{run}/journal/entries",
            &of_run(&format!("/journal/entries?invocation={invocation}")),
            &["journal", run, "--invocation", invocation],
        ),
        Row { at: "/items", ..row("/api/v1/runs/{run}/events", &of_run("/events?limit=1000"), &["attach", run]) },
        Row {
            at: "/items",
            printed_at: "/approvals",
            ..row("/api/v1/approvals", "/api/v1/approvals", &["approvals", "list", "--all"])
        },
        row("/api/v1/approvals/{approval}", &format!("/api/v1/approvals/{approval}"), &["approvals", "show", approval]),
        Row { at: "/items", printed_at: "/rules", ..row("/api/v1/rules", "/api/v1/rules", &["approvals"]) },
        row("/api/v1/runs/{run}/decisions", &of_run("/decisions"), &["decisions", run, "list"]),
        row("/api/v1/runs/{run}/memory", &of_run("/memory"), &["memory", "list", run]),
        list("/api/v1/runs/{run}/proposals", &of_run("/proposals"), &["features", run, "--proposals"]),
        list("/api/v1/runs/{run}/trajectories", &of_run("/trajectories"), &["trajectories", "list", run]),
        row(
            "/api/v1/runs/{run}/trajectory",
            &of_run(&format!("/trajectory?invocation={invocation}")),
            &["trajectories", "show", invocation],
        ),
        Row {
            printed_at: "/0",
            ..row(
                "/api/v1/runs/{run}/trajectory",
                &of_run(&format!("/trajectory?invocation={invocation}")),
                &["trajectories", "export", run, "--agent", "code"],
            )
        },
        Row {
            at: "/id",
            printed_at: "/invocation",
            ..row(
                "/api/v1/runs/{run}/trajectory",
                &of_run(&format!("/trajectory?invocation={invocation}")),
                &["memory", "conversation", invocation],
            )
        },
        row("/api/v1/agents", "/api/v1/agents", &["agent", "list"]),
        row("/api/v1/agents/{agent}", "/api/v1/agents/one", &["agent", "show", "one"]),
        row("/api/v1/agents/{agent}/artifact", "/api/v1/agents/one/artifact", &["agent", "artifact", "show", "one"]),
        row(
            "/api/v1/agents/{agent}/artifact/history",
            "/api/v1/agents/one/artifact/history",
            &["agent", "artifact", "history", "one"],
        ),
        row("/api/v1/schedules", "/api/v1/schedules", &["schedule", "list"]),
        row("/api/v1/schedules/{schedule}", "/api/v1/schedules/yearly", &["schedule", "show", "yearly"]),
        row(
            "/api/v1/schedules/{schedule}/skipped",
            "/api/v1/schedules/yearly/skipped",
            &["schedule", "skipped", "yearly"],
        ),
        row("/api/v1/scheduler", "/api/v1/scheduler", &["schedule", "status"]),
        row("/api/v1/tasks", "/api/v1/tasks", &["schedule", "tasks"]),
        row("/api/tasks/agents/{agent}/tasks", "/api/tasks/agents/one/tasks", &["agent", "tasks", "one"]),
        row("/api/tasks/{task}", &format!("/api/tasks/{task}"), &["schedule", "tasks", "--task", task]),
        // Of one graph and of one step, each a line.
        Row { at: "/items/0", ..row("/api/v1/graphs", "/api/v1/graphs", &["graph", "list"]) },
        Row { at: "/steps/0", ..row("/api/v1/graphs/{graph}", "/api/v1/graphs/answer", &["graph", "show", "answer"]) },
        Row { by: By::Shape, ..row("/api/v1/resources", "/api/v1/resources", &["ps"]) },
        Row { by: By::Shape, ..row("/api/v1/workers", "/api/v1/workers", &["workers"]) },
        list("/api/v1/plugins", "/api/v1/plugins?limit=1000", &["plugin", "list"]),
        list("/api/v1/exec/sessions", "/api/v1/exec/sessions", &["exec", "--sessions"]),
    ]
}

#[test]
fn a_command_prints_as_json_what_http_answers_about_the_same_resource() {
    let lab = lab();
    let web = Web::start(&lab);
    let (run, approval) = completed(&lab, &web);
    let task = ended(&web);
    let log = web.get(&format!("/api/v1/runs/{run}/log")).expect(200).json();
    let commit = log["commits"][0]["commit"].as_str().expect("the run committed");
    let rows = rows(&run, &approval, &task, commit);
    let named: BTreeSet<&str> =
        rows.iter().map(|row| row.path).chain(NOT_COMPARED.iter().map(|(path, _)| *path)).collect();
    assert_eq!(
        readable(&web),
        named.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(),
        "each resource is compared, or says why not"
    );
    for row in &rows {
        compare(&lab, &web, row);
    }
}

#[test]
fn a_job_is_reported_by_a_command_as_by_http() {
    let lab = Lab::empty();
    let web = Web::start(&lab);
    let source = "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)\n";
    fs::write(lab.path("job.py"), source).expect("ours");
    let file = lab.path("job.py").display().to_string();
    let answered = web.post("/api/v1/exec", &json!({ "language": "python", "source": source })).expect(200).json();
    let ran = lab.run(&["--json", "exec", &file]).expect(3);
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.said()));
    assert_eq!(shape(&printed), shape(&answered));
    for name in ["success", "stdout", "stderr", "exit_code", "error_message", "limit", "truncated"] {
        assert_eq!(printed[name], answered[name], "{name}");
    }
}

/// The paths of the OpenAPI document that can be read.
fn readable(web: &Web) -> BTreeSet<String> {
    let document = web.get("/api/v1/openapi.json").expect(200).json();
    let paths = document["paths"].as_object().expect("paths");
    paths.iter().filter(|(_, item)| item.get("get").is_some()).map(|(path, _)| path.clone()).collect()
}

#[track_caller]
fn compare(lab: &Lab, web: &Web, Row { path, asked, at, command, printed_at, by }: &Row) {
    let answered = web.get(asked).expect(200).json();
    let answered = answered.pointer(at).unwrap_or_else(|| panic!("{path}: no `{at}` in {answered:#}"));
    let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
    let printed = printed(lab, &arguments);
    let printed = printed.pointer(printed_at).unwrap_or_else(|| panic!("{path}: no `{printed_at}` in {printed:#}"));
    match by {
        By::Value => {
            let list = answered.get("items").or_else(|| answered.get("tasks")).unwrap_or(answered);
            assert!(!is_empty(list), "{path}: there is none to compare");
            assert_eq!(printed, answered, "{path}: {command:?}");
        }
        By::Shape => assert_eq!(shape(printed), shape(answered), "{path}: {command:?}"),
    }
}

/// The JSON that a command prints: one value, or the lines of an event stream or of an export as a list.
#[track_caller]
fn printed(lab: &Lab, arguments: &[&str]) -> Value {
    if !matches!(arguments, ["attach", ..] | ["trajectories", "export", ..]) {
        return lab.json(arguments);
    }
    let ran = lab.run(&[&["--json"], arguments].concat()).expect(0);
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    Value::Array(ran.stdout.lines().map(line).collect())
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_some_and(Vec::is_empty)
}

/// The names of the fields with the types of their values. The items of a list are left out, since there may
/// be none, and null counts as a value.
fn shape(value: &Value) -> Value {
    let kind = match value {
        Value::Object(fields) => {
            let fields: Map<String, Value> = fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect();
            return Value::Object(fields);
        }
        Value::Array(_) => "a list",
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => "a value",
    };
    Value::String(kind.to_owned())
}
