//! The kit on plugins that are there: the shipped ones, built by `cargo xtask plugins`.

use longhaul_core::Limits;
use longhaul_core::grant::{Access, DirectoryGrant};
use longhaul_core::model::ModelError;
use longhaul_testkit::{Call, Kit, Scene, Script, run_scenarios, run_scenarios_named};
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
    assert_eq!(run(true).await[0].difference, None);
    assert!(fs::read_to_string(folder.join("error.txt")).unwrap().starts_with("unknown-function: "));
    assert_eq!(run(false).await[0].difference, None);
    fs::write(folder.join("error.txt"), "failed: no wings\n").unwrap();
    let different = run(false).await[0].difference.clone().unwrap();
    assert!(different.contains("- failed: no wings\n+ unknown-function: "), "{different}");
    let named = async |part: &str| run_scenarios_named(&kit, &component, tests.path(), part, false).await;
    assert_eq!(named("know").await.unwrap().len(), 1);
    let none = named("zebra").await.err().unwrap().to_string();
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
    // What is replaced does not count.
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
