//! The kit on plugins that are there: the shipped ones, built by `cargo xtask plugins`.

use longhaul_core::grant::{Access, DirectoryGrant};
use longhaul_core::model::ModelError;
use longhaul_core::tool::ToolCall;
use longhaul_core::{Digest, Limits};
use longhaul_testkit::{Call, JournalCut, Kit, Scene, Script, run_scenarios, scenario_folders};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the top of the repository").to_owned()
}

async fn shipped(name: &str) -> Scene {
    let kit = Kit::new().unwrap_or_else(|error| panic!("{error}"));
    let path = repository().join("target/plugins").join(format!("{name}.wasm"));
    kit.load(path).await.unwrap_or_else(|error| panic!("{error}; build it with `cargo xtask plugins`"))
}

/// An agent that is told what to do by its model, which reads a file and says what is in it.
#[tokio::test]
async fn an_agent_is_played_through_with_a_scripted_model_and_tool() {
    let script = Script::new()
        .model(json!({ "action": "files.read", "args": { "path": "a.txt" } }))
        .model(json!({ "action": "finish", "answer": "hello" }))
        .tool("files", "read", json!({ "content": "hello" }));
    let scene = shipped("react").await.script(script);
    let done = scene.call(Call::run("What does a.txt say?")).await.unwrap();
    assert_eq!(done.value()["output"]["answer"], "hello");
    let names: Vec<&str> = done.calls.iter().map(|made| made.name.as_str()).collect();
    assert_eq!(names.iter().filter(|name| **name == "conversation.complete").count(), 2, "{done}");
    assert!(names.contains(&"tools.call"), "{done}");
    assert_eq!(scene.model_requests().len(), 2);
    done.assert_fuel_max(10_000_000);
}

/// The answers of the script are given once each, so a resume that used one up again would end otherwise.
#[tokio::test]
async fn a_call_that_is_cut_at_any_entry_and_resumed_ends_as_if_it_was_not() {
    let script = Script::new()
        .model(json!({ "action": "files.read", "args": { "path": "a.txt" } }))
        .model(json!({ "action": "finish", "answer": "hello" }))
        .tool("files", "read", json!({ "content": "hello" }));
    let scene = shipped("react").await.script(script);
    let call = || Call::run("What does a.txt say?");
    let whole = scene.clone().fresh().call(call()).await.unwrap();
    let mut cuts = 0;
    for (entry, made) in (1..).zip(&whole.calls) {
        for answered in [false, true] {
            let cut = JournalCut { entry, answered };
            let resumed = scene.clone().fresh().call_cut(call(), cut).await.unwrap();
            let resumed = resumed.unwrap_or_else(|| panic!("{made} is a call by itself"));
            assert_eq!(resumed.repeated, [0; 0], "{cut:?}");
            assert_eq!(resumed.done.ending_json(), whole.ending_json(), "{cut:?}");
            assert_eq!(resumed.done.used.fuel, whole.used.fuel, "{cut:?}");
            assert_eq!(resumed.done.calls.len(), whole.calls.len(), "{cut:?}");
            cuts += 1;
        }
    }
    assert!(cuts >= 6, "two replies of the model and a call of a tool: {whole}");
    let beyond = JournalCut { entry: 1_000, answered: false };
    assert!(scene.fresh().call_cut(call(), beyond).await.unwrap().is_none(), "it ends before that");
}

#[tokio::test]
async fn the_same_call_in_the_same_scene_is_the_same_to_the_last_instruction() {
    let script = Script::new().model_when("", "nonsense");
    let scene = shipped("react").await.script(script);
    let first = scene.clone().fresh().call(Call::run("go")).await.unwrap();
    let second = scene.fresh().call(Call::run("go")).await.unwrap();
    assert_eq!((first.used.fuel, &first.calls), (second.used.fuel, &second.calls));
}

#[tokio::test]
async fn what_is_not_scripted_is_refused_with_what_the_script_lacks() {
    let scene = shipped("initializer").await;
    let done = scene.call(Call::plan("Make a thing.")).await.unwrap();
    done.assert_refused("denied", "no model is scripted");
    let scene = scene.script(Script::new().model_error(ModelError::Refused("no".into())));
    let done = scene.call(Call::plan("Make a thing.")).await.unwrap();
    assert!(done.refusal().text.contains("no"), "{done}");
}

#[tokio::test]
async fn a_tool_sees_the_directory_that_it_was_given_and_a_limit_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "hello").unwrap();
    let grant = DirectoryGrant { guest: "/work".into(), host: folder.path().to_owned(), access: Access::Read };
    let scene = shipped("files").await.directory(grant);
    let read = Call::tool("read", &json!({ "path": "a.txt" }));
    assert_eq!(scene.call(read.clone()).await.unwrap().value()["output"]["content"], "hello");
    let wrong = scene.call(Call::tool("read", &json!({ "path": 7 }))).await.unwrap();
    wrong.assert_refused("invalid-arguments", "expected a string");
    let short = scene.limits(Limits { fuel_max: 1_000, ..Limits::default() }).call(read).await.unwrap();
    short.assert_limit("fuel_max");
    assert!(short.to_string().contains("limit fuel_max 1000 of 1000"), "{short}");
}

/// A task on a repository, whose agent has its provider call tools.
fn on_code() -> Call {
    let input = json!({
        "instruction": "Write sum.",
        "context": { "goal": "# All\n\nWrite sum and more.", "repository": { "files": 1, "map": "1 files:\n./ sum.py\n", "guides": [] } },
        "criteria": [{ "id": "c", "text": "it adds", "check": "unit" }],
    });
    Call::from_json("run", input).expect("a task")
}

#[tokio::test]
async fn words_without_a_call_end_the_turn_of_native_calls_once_the_checks_pass() {
    let settings = json!({ "calls": "native" });
    let script = || Script::new().tool("files", "read", json!({}));
    let scene = shipped("react").await.settings(settings);
    let words = "I wrote `sum` in sum.py.";
    let passing = scene.clone().script(script().model(words).check("unit", true));
    let done = passing.call(on_code()).await.unwrap();
    assert_eq!((&done.value()["summary"], &done.value()["output"]["answer"]), (&json!(words), &json!(words)), "{done}");
    let names: Vec<&str> = done.calls.iter().map(|made| made.name.as_str()).collect();
    assert_eq!(names.iter().filter(|name| **name == "checks.run").count(), 1, "{done}");

    let failing =
        scene.script(script().model(words).model("It is there.").model("I cannot do more.").check("unit", false));
    let done = failing.call(on_code()).await.unwrap();
    assert_eq!(done.value()["confidence"], 0.0, "{done}");
    assert_eq!(done.value()["unknowns"][0], "the check `unit` fails: it ended with 1", "{done}");
    let told = failing.model_requests().last().map(|request| format!("{:?}", request.messages)).unwrap_or_default();
    assert!(told.contains("You are not done") && told.contains("`unit` fails"), "{told}");
}

#[tokio::test]
async fn the_planner_is_shown_the_repository() {
    let plan = json!({ "features": [{
        "id": "sum", "title": "sum", "instruction": "Write sum.", "category": "functional", "priority": 5,
        "depends_on": [], "criteria": ["it adds"],
    }], "question": "" });
    let scene = shipped("initializer").await.script(Script::new().model_when("", plan));
    let input = json!({ "text": "Mend the sums.", "context": { "features_max": 3, "repository": {
        "map": "1 files:\n./ sum.py\n", "guides": [{ "file": "AGENTS.md", "text": "Use tabs.", "whole": true }],
    } } });
    scene.call(Call::from_json("plan", input).expect("a goal")).await.unwrap();
    let asked = scene.model_requests().first().map(|request| format!("{:?}", request.messages)).unwrap_or_default();
    assert!(asked.contains("The repository as it is now:") && asked.contains("./ sum.py"), "{asked}");
    assert!(asked.contains("Use tabs.") && asked.contains("features_max"), "{asked}");
}

#[tokio::test]
async fn files_are_changed_at_several_places_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).ok();
    let grant = DirectoryGrant { guest: "/work".into(), host: folder.path().to_owned(), access: Access::Write };
    let scene = shipped("files").await.directory(grant);
    put("a.txt", "one\ntwo\n");
    put("b.txt", "three\n");

    let edits = |second: &str| json!({ "path": "a.txt", "edits": [{ "old": "one", "new": "1" }, { "old": second, "new": "2" }] });
    let wrong = scene.call(Call::tool("multi_edit", &edits("zwei"))).await.unwrap();
    wrong.assert_refused("invalid-arguments", "edit 2 of 2: `old` matches nothing");
    assert_eq!(text("a.txt").as_deref(), Some("one\ntwo\n"), "the first edit was not made");
    let done = scene.call(Call::tool("multi_edit", &edits("two"))).await.unwrap();
    assert_eq!(done.value()["output"]["lines_added"], 2, "{done}");
    assert_eq!(text("a.txt").as_deref(), Some("1\n2\n"));

    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n 1\n-2\n+zwei\n--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-three\n\
                 --- /dev/null\n+++ b/new/c.txt\n@@ -0,0 +1 @@\n+four\n";
    let patch = json!({ "patch": patch });
    put("b.txt", "others\n");
    let wrong = scene.call(Call::tool("patch", &patch)).await.unwrap();
    wrong.assert_refused("invalid-arguments", "the file has no line `three`; read the file");
    assert_eq!(text("a.txt").as_deref(), Some("1\n2\n"), "no file was changed");
    put("b.txt", "three\n");

    // Cut off when what is to be done was noted and one file was written.
    let call = ToolCall { tool: "files".into(), function: "patch".into(), arguments: patch.to_string() };
    let prepared = scene.call(Call::prepare(call.clone())).await.unwrap().value().clone();
    let prepared = prepared.as_str().map_or_else(|| prepared.to_string(), str::to_owned);
    let change: serde_json::Value = serde_json::from_str(&prepared).unwrap();
    let note = json!({ "change": change, "contents": ["1\nzwei\n", null, "four\n"] });
    let name = format!(".longhaul-tmp-{}", &Digest::of(call.arguments.as_bytes()).to_string()[..24]);
    put(&name, &note.to_string());
    put("a.txt", "1\nzwei\n");
    let verdict = scene.call(Call::verify(call.clone(), prepared.clone())).await.unwrap();
    assert!(verdict.to_string().contains("did"), "{verdict}");
    let again = scene.call(Call::prepare(call.clone())).await.unwrap();
    assert!(again.to_string().contains("zwei") || again.to_string().contains("a.txt"), "it can be done again: {again}");
    let done = scene.call(Call::tool("patch", &patch)).await.unwrap();
    assert_eq!(
        done.value()["output"],
        json!({ "files": ["a.txt", "b.txt", "new/c.txt"], "lines_added": 2, "lines_removed": 2 })
    );
    assert_eq!(
        (text("a.txt").as_deref(), text("b.txt"), text("new/c.txt").as_deref()),
        (Some("1\nzwei\n"), None, Some("four\n"))
    );
    assert_eq!(text(&name), None, "the note is gone");
    let verdict = scene.call(Call::verify(call, prepared)).await.unwrap();
    assert!(verdict.to_string().contains("lines_added"), "it happened: {verdict}");
}

#[tokio::test]
async fn files_are_moved_and_deleted_and_nothing_is_lost_on_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).ok();
    let grant = DirectoryGrant { guest: "/work".into(), host: folder.path().to_owned(), access: Access::Write };
    let scene = shipped("files").await.directory(grant);
    put("a.txt", "one\n");
    put("b.txt", "two\n");
    let over = scene.call(Call::tool("move", &json!({ "from": "a.txt", "to": "b.txt" }))).await.unwrap();
    over.assert_refused("invalid-arguments", "there is a file `b.txt` already; delete it first");
    let moved = scene.call(Call::tool("move", &json!({ "from": "a.txt", "to": "deep/c.txt" }))).await.unwrap();
    assert_eq!(moved.value()["output"]["path"], "deep/c.txt");
    assert_eq!((text("a.txt"), text("deep/c.txt").as_deref()), (None, Some("one\n")));
    let gone = scene.call(Call::tool("delete", &json!({ "path": "b.txt" }))).await.unwrap();
    assert_eq!(gone.value()["output"]["lines_removed"], 1);
    assert_eq!(text("b.txt"), None);
    let twice = scene.call(Call::tool("delete", &json!({ "path": "b.txt" }))).await.unwrap();
    twice.assert_refused("failed", "`b.txt` does not exist");
    for path in ["deep", "../x", ".git/config"] {
        let refused = scene.call(Call::tool("delete", &json!({ "path": path }))).await.unwrap();
        refused.assert_refused("invalid-arguments", "");
    }
}

#[tokio::test]
async fn an_export_of_another_role_is_said_with_those_that_are_there() {
    let error = shipped("files").await.call(Call::run("go")).await.unwrap_err();
    let expected = "plugin `files` has the role tool, which exports describe, call, prepare, verify; it has no `run`";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_scenario_passes_as_it_was_written_and_fails_with_what_is_different() {
    let tests = tempfile::tempdir().unwrap();
    let folder = tests.path().join("unknown");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("scenario.toml"), "export = \"call\"\ninput = { function = \"fly\" }\n").unwrap();
    let kit = Kit::new().unwrap();
    let component = repository().join("target/plugins/files.wasm");
    let run = async |update| run_scenarios(&kit, &component, tests.path(), update).await.unwrap();
    let missing = run(false).await[0].difference.clone().unwrap();
    assert!(missing.contains("neither expected.json nor error.txt"), "{missing}");
    let written = run(true).await.remove(0);
    assert_eq!((written.difference, written.accepted.is_some()), (None, true));
    assert!(fs::read_to_string(folder.join("error.txt")).unwrap().starts_with("unknown-function: "));
    assert_eq!(run(false).await[0].difference, None);
    fs::write(folder.join("error.txt"), "failed: no wings\n").unwrap();
    let different = run(false).await[0].difference.clone().unwrap();
    assert!(different.contains("- failed: no wings\n+ unknown-function: "), "{different}");
    assert_eq!(scenario_folders(tests.path(), "know").unwrap().len(), 1);
    let none = scenario_folders(tests.path(), "zebra").err().unwrap().to_string();
    assert!(none.contains("no scenario has `zebra` in its name; there are: unknown"), "{none}");
}

#[tokio::test]
async fn a_tool_keeps_no_more_than_its_space_may_hold() {
    let limits = Limits { keyvalue_bytes_max: 1_000, ..Limits::default() };
    let scene = shipped("sdk/rust/notes").await.limits(limits);
    let save = async |name: &str, length: usize| {
        let text = "x".repeat(length);
        scene.call(Call::tool("save", &json!({ "name": name, "text": text }))).await.unwrap()
    };
    assert_eq!(save("a", 600).await.value()["output"]["saved"], "a");
    save("b", 600).await.assert_refused("limit", "keyvalue_bytes_max");
    // A replaced value does not count.
    assert_eq!(save("a", 900).await.value()["output"]["saved"], "a");
    assert_eq!(save("b", 50).await.value()["output"]["saved"], "b");
}

#[tokio::test]
async fn a_graph_answers_as_it_is_scripted_and_says_what_the_script_lacks() {
    let script = Script::new().graph("run", json!({ "ran": ["load"], "untouched": 2 }));
    let steps = json!([
        { "do": "add", "step": "load", "source": "rows = [1]" },
        { "do": "run" },
        { "do": "stale" },
        { "do": "add", "step": "", "source": "" },
    ]);
    let scene = shipped("tests/caller").await.script(script).settings(json!({ "graph": steps }));
    let done = scene.call(Call::run("go")).await.unwrap();
    let said = &done.value()["output"];
    assert_eq!(said[0], json!(["load"]), "{done}");
    assert_eq!(said[1], json!({ "ran": ["load"], "answered": [], "failed": [], "untouched": 2 }));
    let lacks = said[2]["error"].as_str().unwrap_or_default();
    assert!(lacks.contains("add to the script: [[graphs]] function = \"stale\""), "{done}");
    assert!(said[3]["error"].as_str().is_some_and(|error| error.contains("is empty")), "{done}");
    done.assert_calls(&["graph.add-step", "graph.run", "graph.stale"]);
}
