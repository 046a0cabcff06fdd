//! The web page: what it computes, what it reads of the answers that the OpenAPI document describes, and a person at it
//! in a real browser, against the real server.
//!
//! Chromium has to be there, which `cargo xtask test` sees to; Node.js is fetched where it is missing.
//! `playwright-core` and `axe-core` are installed by npm into the cache of the tests, in the versions of
//! `page/package-lock.json`. Pictures of all views are kept as `NAME-THEME-WIDTH.png` in the directory that
//! `LONGHAUL_PAGE_SCREENSHOTS` names, or in `target/tmp/page-screenshots`; the test prints which.

use crate::common::lab::Lab;
use crate::common::node::{modules, node};
use crate::common::web::Web;
use crate::common::{DOER_CONFIG, THREE_FEATURES, of_this_user, repository};
use serde_json::{Map, Value, json};
use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = "host/crates/server/src/page";
const TESTS: &str = "host/tests/surfaces/page";

/// The title of a feature with characters that a page must not take for markup.
const TITLE: &str = "the first <img src=x onerror=window.owned=4>";

/// Runs a file, or the files of a folder, with the test runner of Node.js, which says what it does as it does it.
#[track_caller]
fn pass(files: &[PathBuf], environment: &[(&str, String)]) {
    let mut command = Command::new(node());
    command.args(["--test", "--test-reporter=spec", "--test-concurrency=1"]).args(files);
    command.envs(environment.iter().map(|(name, value)| (*name, value.as_str())));
    let ended = command.status().expect("Node.js runs");
    assert!(ended.success(), "the tests in JavaScript say what is wrong");
}

/// The page's modules beside a note that says that they are modules, which a browser needs no note for.
fn as_modules(place: &Path) -> String {
    for entry in fs::read_dir(repository().join(PAGE)).expect("the page is there") {
        let from = entry.expect("readable").path();
        fs::copy(&from, place.join(from.file_name().expect("a file"))).expect("a copy");
    }
    fs::write(place.join("package.json"), r#"{"type":"module"}"#).expect("ours");
    format!("file://{}/", place.display())
}

fn files_in(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join(folder)).expect("there").map(|entry| entry.expect("readable").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.to_string_lossy().ends_with(".test.mjs")).collect();
    files.sort();
    files
}

/// The OpenAPI document, as a server of the program answers it.
fn openapi() -> String {
    let lab = Lab::empty();
    Web::start(&lab).get("/api/v1/openapi.json").expect(200).body
}

#[test]
fn what_the_page_computes_is_right_and_its_files_keep_their_rules() {
    let place = tempfile::tempdir().expect("a directory");
    let url = as_modules(place.path());
    let files = files_in(&format!("{TESTS}/unit"));
    assert!(files.len() >= 6, "{files:?}");
    let described = place.path().join("openapi.json");
    fs::write(&described, openapi()).expect("ours");
    let path = |path: &Path| path.display().to_string();
    let events = path(&repository().join("tests/events.schema.json"));
    pass(&files, &[("PAGE_MODULES", url), ("PAGE_OPENAPI", path(&described)), ("PAGE_EVENTS", events)]);
}

#[test]
fn a_person_starts_watches_answers_edits_and_reads_on_the_page_and_it_outlives_its_server() {
    let lab = Lab::empty();
    let model_port = free_port();
    lab.make_project("project", &config(model_port), &goal());
    let given = json!({
        "command": started_as(&lab.command(&[])),
        "modules": modules(TESTS),
        "chromium": chromium(),
        "artifacts": pictures(),
        "model_port": model_port,
        "project": "kept",
    });
    let file = repository().join(TESTS).join("flows.test.mjs");
    pass(&[file], &[("PAGE_GIVEN", given.to_string())]);
}

/// The directory of the pictures.
fn pictures() -> PathBuf {
    std::env::var_os("LONGHAUL_PAGE_SCREENSHOTS").map_or_else(|| of_this_user("page-screenshots"), PathBuf::from)
}

/// The agent asks a slow model, and is asked about before it tells the world anything.
fn config(model_port: u16) -> String {
    let slow = DOER_CONFIG.replace("http://{server}/v1", &format!("http://127.0.0.1:{model_port}/v1"));
    let heard = "approval = { when_heard = \"allow\"";
    assert!(slow.contains(heard), "{slow}");
    slow.replace(heard, &format!("{heard}, functions = {{ post = \"ask\" }}"))
}

/// Two features, the second after the first.
fn goal() -> String {
    let two = &THREE_FEATURES[..THREE_FEATURES.find("## Feature: the one without").expect("there")];
    two.replace("## Feature: the first", &format!("## Feature: {TITLE}"))
}

/// The command that starts the program, as JSON for a script.
fn started_as(command: &Command) -> Value {
    let text = |text: &OsStr| text.to_str().expect("UTF-8").to_owned();
    let env: Map<String, Value> = command
        .get_envs()
        .map(|(name, value)| (text(name), value.map(text).map_or(Value::Null, Value::from)))
        .collect();
    json!({
        "program": text(command.get_program()),
        "args": command.get_args().map(text).collect::<Vec<_>>(),
        "env": env,
        "cwd": command.get_current_dir().expect("set"),
    })
}

/// A port without a listener, at which the model listens later.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port is free").local_addr().expect("bound").port()
}

/// The browser of the machine.
fn chromium() -> PathBuf {
    let names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found =
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|one| one.is_file());
    found.expect("there is no Chromium in PATH; run: cargo xtask test")
}
