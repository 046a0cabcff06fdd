//! Versions of the contract: a plugin that was built for 0.1 runs unchanged in a host that speaks a newer
//! version too, and one that was built for a version that is not spoken is told so, with what to do.
//!
//! The newer version is made up; `upgrade` has its contract, its edition and a component of it. Needs the
//! plugins of `cargo xtask plugins`.

mod v0_2;

use crate::common::guests::lab::{engine_with, private_directory};
use crate::common::guests::{component, guest_of_text};
use crate::common::{of_this_user, repository};
use longhaul_capabilities::LogLine;
use longhaul_core::Digest;
use longhaul_core::grant::{Access, DirectoryGrant};
use longhaul_engine::{CompileLimits, Editions, Engine};
use longhaul_testkit::{Call, Kit, Made, Scene, Script};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use v0_2::V0_2;
use wit_parser::Resolve;

/// A host of today, and one that speaks the made-up version too.
fn hosts() -> [Engine; 2] {
    let cache = of_this_user("compiled");
    let today = engine_with(cache, CompileLimits::default()).unwrap_or_else(|error| panic!("{error}"));
    let next = today.clone().with_editions(Editions::default().and(V0_2));
    [today, next]
}

async fn scene(host: &Engine, name: &str, bytes: &[u8]) -> Scene {
    Kit::with_engine(host.clone()).load_bytes(name, bytes).await.unwrap_or_else(|error| panic!("{error}"))
}

/// The description and the behaviour of a plugin in a host, to the last instruction.
#[derive(Debug, PartialEq)]
struct Told {
    contract: String,
    digest: Digest,
    ending: Value,
    fuel: u64,
    memory_bytes_peak: u64,
    calls: Vec<Made>,
    log: Vec<LogLine>,
}

async fn told(scene: &Scene, call: &Call) -> Told {
    let done = scene.call(call.clone()).await.unwrap_or_else(|error| panic!("{error}"));
    Told {
        contract: scene.inspection().contract.clone(),
        digest: scene.inspection().digest,
        ending: done.ending_json(),
        fuel: done.used.fuel,
        memory_bytes_peak: done.used.memory_bytes_peak,
        calls: done.calls,
        log: done.log,
    }
}

/// Calls a plugin in both hosts, each time in a scene of its own, and finds no difference.
async fn check_unchanged(name: &str, bytes: &[u8], set: impl Fn(Scene) -> Scene, calls: &[Call]) {
    let [today, next] = hosts();
    for call in calls {
        let before = told(&set(scene(&today, name, bytes).await), call).await;
        let after = told(&set(scene(&next, name, bytes).await), call).await;
        assert_eq!(before, after, "{name}");
        assert_eq!((before.contract.as_str(), before.digest), ("0.1.0", Digest::of(bytes)), "{name}");
        assert!(before.ending.get("result").is_some() && before.fuel > 0, "{name}: {before:?}");
    }
}

fn shipped(name: &str) -> Vec<u8> {
    let path = repository().join("target/plugins").join(name).with_extension("wasm");
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask plugins` first", path.display()))
}

/// The same component as a build for another patch of 0.1 gives it, whose name is as long.
fn built_for(mut component: Vec<u8>, version: &[u8; 5]) -> Vec<u8> {
    let mut found = 0;
    for at in 0..component.len().saturating_sub(6) {
        if component[at..].starts_with(b"@0.1.0") {
            component[at + 1..at + 6].copy_from_slice(version);
            found += 1;
        }
    }
    assert!(found > 0, "a component of 0.1.0");
    component
}

/// A tool of the made-up contract.
fn tally() -> Vec<u8> {
    let folder = repository().join("host/tests/guests/upgrade");
    let mut resolve = Resolve::new();
    let (package, _) = resolve.push_dir(folder.join("v0.2")).unwrap_or_else(|error| panic!("{error:?}"));
    let world = resolve.select_world(&[package], Some("tool-plugin")).unwrap_or_else(|error| panic!("{error:?}"));
    let module = wat::parse_file(folder.join("tally.wat")).unwrap_or_else(|error| panic!("{error}"));
    component(module, &resolve, world)
}

/// A component of nothing but these instances.
fn of_names(imports: &str, exports: &[&str]) -> Vec<u8> {
    let exports: String =
        exports.iter().map(|name| format!(r#"(export "longhaul:plugin/{name}" (instance $empty))"#)).collect();
    wat::parse_str(format!("(component {imports} (instance $empty) {exports})"))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Loads a component that a host has nothing for; the text is one line.
async fn check_refused(host: &Engine, bytes: &[u8], expected: &str) {
    let error = host.load("it", bytes).await.err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some(expected));
    assert!(!expected.contains('\n'));
}

#[tokio::test]
async fn shipped_plugins_of_every_role_run_unchanged_beside_a_newer_version() {
    let folder = tempfile::tempdir().expect("a directory");
    fs::write(folder.path().join("a.txt"), "hello").expect("written");
    let grant = DirectoryGrant { guest: "/work".into(), host: folder.path().to_owned(), access: Access::Write };
    let files = [
        Call::from_json("describe", json!({})).expect("an input"),
        Call::tool("read", &json!({ "path": "a.txt" })),
        Call::from_json("prepare", json!({ "function": "write", "arguments": { "path": "b.txt", "content": "x" } }))
            .expect("an input"),
    ];
    check_unchanged("files", &shipped("files"), |scene| scene.directory(grant.clone()), &files).await;

    let goal = "Two files.\n\n## Feature: One\n- id: one\n- criterion: it is there\n\nWrite one.py.\n";
    check_unchanged("initializer", &shipped("initializer"), |scene| scene, &[Call::plan(goal)]).await;

    let script = Script::new()
        .model(json!({ "action": "files.read", "args": { "path": "a.txt" } }))
        .model(json!({ "action": "finish", "answer": "hello" }))
        .tool("files", "read", json!({ "content": "hello" }));
    let run = [Call::run("What does a.txt say?")];
    check_unchanged("react", &shipped("react"), |scene| scene.script(script.clone()), &run).await;

    let judge = json!({
        "subject": { "instruction": "write one.py", "output": "done" },
        "rubric": { "criteria": [{ "id": "one", "text": "it is there", "check": "one" }] },
    });
    let judge = [Call::from_json("judge", judge).expect("an input")];
    let checked = |scene: Scene| scene.script(Script::new().check("one", true));
    check_unchanged("check-evaluator", &shipped("check-evaluator"), checked, &judge).await;

    let forgets = guest_of_text(";; memory\n(func $got (result i32) (i32.const 512))");
    let get = [Call::from_json("get", json!({ "key": "a" })).expect("an input")];
    check_unchanged("forgets", &forgets, |scene| scene, &get).await;
}

#[tokio::test]
async fn a_plugin_of_the_newer_version_runs_where_that_is_spoken() {
    let [_, next] = hosts();
    let scene = scene(&next, "tally", &tally()).await;
    assert_eq!(scene.inspection().contract, "0.2.0");
    let described = told(&scene, &Call::Describe).await.ending;
    assert_eq!(described["result"]["description"], "Counts. Version 7.");
    assert_eq!(described["result"]["functions"][0]["description"], "Counts. At most 5 ms.");

    let answered = told(&scene, &Call::tool("count", &json!({}))).await;
    assert_eq!(answered.ending, json!({ "result": { "output": "somebody", "truncated": false } }));
    let line = |level: &str, text: &str| LogLine { level: level.into(), text: text.into() };
    assert_eq!(answered.log, [line("info", "tally: count"), line("debug", "counted 1 attempts")]);

    let busy = told(&scene, &Call::tool("busy", &json!({}))).await;
    let expected = json!({ "error": { "unavailable": { "reason": "it is busy", "retry_after_ms": 250 } } });
    assert_eq!(busy.ending, expected);
}

#[tokio::test]
async fn a_plugin_of_a_version_that_is_not_spoken_is_told_which_ones_are() {
    let [today, next] = hosts();
    check_refused(
        &today,
        &tally(),
        "plugin `it` is no plugin of Longhaul: it exports `longhaul:plugin/tool@0.2.0`, and this host speaks \
         longhaul:plugin 0.1.0; build it for that version, or update longhaul",
    )
    .await;
    let future = built_for(guest_of_text(HEALTHY), b"0.9.0");
    check_refused(
        &today,
        &future,
        "plugin `it` is no plugin of Longhaul: it exports `longhaul:plugin/tool@0.9.0`, and this host speaks \
         longhaul:plugin 0.1.0; build it for that version, or update longhaul",
    )
    .await;
    check_refused(
        &next,
        &future,
        "plugin `it` is no plugin of Longhaul: it exports `longhaul:plugin/tool@0.9.0`, and this host speaks \
         longhaul:plugin 0.1.0 and 0.2.0; build it for one of those versions, or update longhaul",
    )
    .await;
}

/// A tool of 0.1 that answers how much 6 times 7 is.
const HEALTHY: &str = ";; tool\n(func $body (param i32 i32 i32 i32) (result i32 i32) (call $say (i64.const 42)))";

#[test]
fn the_commands_say_in_one_line_what_to_do_about_another_version() {
    for (version, bytes) in [("0.2.0", tally()), ("0.9.0", built_for(guest_of_text(HEALTHY), b"0.9.0"))] {
        let expected = format!(
            "plugin `it` is no plugin of Longhaul: it exports `longhaul:plugin/tool@{version}`, and this host \
             speaks longhaul:plugin 0.1.0; build it for that version, or update longhaul"
        );
        let folder = private_directory();
        let path = folder.path().join("it.wasm");
        fs::write(&path, bytes).expect("written");

        let (code, stdout, stderr) = command(folder.path(), &["plugin", "check"], &path, &[]);
        let lines: Vec<&str> = stdout.lines().filter(|line| line.contains("longhaul:plugin")).collect();
        let [world] = lines[..] else { panic!("one line says it:\n{stdout}") };
        assert!(world.starts_with("FAIL world") && world.ends_with(&expected), "{world}");
        assert_eq!((code, stderr.as_str()), (Some(1), ""));

        let (code, stdout, stderr) = command(folder.path(), &["plugin", "run"], &path, &["describe"]);
        assert_eq!((code, stdout.as_str(), stderr), (Some(1), "", format!("longhaul: {expected}\n")));
    }
}

fn command(cache: &Path, command: &[&str], file: &PathBuf, more: &[&str]) -> (Option<i32>, String, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    let output = program.args(command).arg(file).args(more).env("LONGHAUL_CACHE", cache).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn another_patch_of_a_version_is_the_same_version() {
    for host in hosts() {
        let plain = guest_of_text(HEALTHY);
        let call = Call::tool("go", &json!({}));
        let released = told(&scene(&host, "it", &plain).await, &call).await;
        let patched = told(&scene(&host, "it", &built_for(plain, b"0.1.7")).await, &call).await;
        assert_eq!((released.contract.as_str(), patched.contract.as_str()), ("0.1.0", "0.1.7"));
        assert_eq!(released.ending, json!({ "result": { "output": 42, "truncated": false } }));
        assert_eq!((released.ending, released.fuel), (patched.ending, patched.fuel));
    }
}

#[tokio::test]
async fn a_later_patch_that_needs_more_is_told_to_update() {
    let alarm = r#"(import "longhaul:plugin/clock@0.1.7" (instance (export "alarm" (func))))"#;
    for host in hosts() {
        check_refused(
            &host,
            &of_names(alarm, &["tool@0.1.7"]),
            "plugin `it` is no plugin of Longhaul: it was built for longhaul:plugin 0.1.7 and needs what 0.1.0, \
             which this host speaks, does not have; update longhaul, or build it for 0.1.0: component imports \
             instance `longhaul:plugin/clock@0.1.7`, but a matching implementation was not found in the linker: \
             instance export `alarm` has the wrong type: function implementation is missing",
        )
        .await;
    }
}

#[tokio::test]
async fn a_plugin_imports_nothing_of_a_version_that_it_was_not_built_for() {
    let meter = r#"(import "longhaul:plugin/meter@0.2.0" (instance (export "count" (func))))"#;
    for host in hosts() {
        check_refused(
            &host,
            &of_names(meter, &["tool@0.1.0"]),
            "plugin `it` is no plugin of Longhaul: it imports what longhaul:plugin 0.1.0 does not give to the role \
             `tool`; build it again with `longhaul plugin build`, and begin a new run in place of one that began with \
             it: component imports \
             instance `longhaul:plugin/meter@0.2.0`, but a matching implementation was not found in the linker: \
             instance export `count` has the wrong type: function implementation is missing",
        )
        .await;
    }
}

#[tokio::test]
async fn a_plugin_is_built_for_one_version_whoever_looks_at_it() {
    for host in hosts() {
        for other in ["0.1.7", "0.2.0", "0.9.0"] {
            check_refused(
                &host,
                &of_names("", &["tool@0.1.0", &format!("tool@{other}")]),
                &format!(
                    "plugin `it` is no plugin of Longhaul: it exports both `longhaul:plugin/tool@0.1.0` and \
                     `longhaul:plugin/tool@{other}`; a plugin is built for one version of the contract, so make a \
                     file for each"
                ),
            )
            .await;
        }
        check_refused(
            &host,
            &of_names("", &["agent@0.9.0", "tool@0.1.0"]),
            "plugin `it` is no plugin of Longhaul: it exports both agent and tool; a plugin has one role",
        )
        .await;
    }
}
