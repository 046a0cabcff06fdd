//! The READMEs of the SDKs, taken at their word: the way from `plugin new` to `conform` runs as it is written, in an
//! empty folder with nothing but the program, each plugin that a README shows builds and answers, and the examples
//! that it links pass their scenarios.
//!
//! Tools come from the cache of this machine; where that is empty, the first run fetches them.

use crate::common::author::{Author, said};
use crate::common::readme::{self, block_with, blocks};
use crate::common::repository;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The commands of an author, in order; a README's first block of commands has all of them.
const WAY: [&str; 6] = ["plugin new", "plugin build", "plugin check", "plugin run", "plugin test", "conform"];

/// The form in which the README of an SDK shows plugins.
struct Sdk {
    /// Below `sdk`, and after `--lang`.
    name: &'static str,
    /// The language of its fenced source.
    fence: &'static str,
    /// Where a project has the source.
    source: &'static str,
}

const RUST: Sdk = Sdk { name: "rust", fence: "rust", source: "src/lib.rs" };
const PYTHON: Sdk = Sdk { name: "python", fence: "python", source: "app.py" };
const JAVASCRIPT: Sdk = Sdk { name: "js", fence: "js", source: "app.js" };
const C: Sdk = Sdk { name: "c", fence: "c", source: "app.c" };

/// A command of the shell in an author's folder, which reads comments, quotes and `cd` as an author's does, and ends
/// at the first one that fails.
fn shell(author: &Author, block: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-e", "-x", "-c", block]).current_dir(author.place.path());
    shell.env("PATH", path_with_program()).env("LONGHAUL_HOME", author.path("home")).output().expect("sh starts")
}

/// The output of a successful program, as JSON.
#[track_caller]
fn json_of(author: &Author, arguments: &[&str]) -> Value {
    let text = author.runs(&[&["--json"], arguments].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

/// The path with the folder of the program first.
fn path_with_program() -> OsString {
    let program = Path::new(env!("CARGO_BIN_EXE_longhaul")).parent().expect("it is in a folder").to_owned();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([program].into_iter().chain(std::env::split_paths(&paths))).expect("no colon in it")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[track_caller]
fn readme(sdk: &str) -> String {
    readme::of(&format!("sdk/{sdk}"))
}

/// The steps of the way that a block of commands leaves out, or takes too early.
fn left_out(block: &str) -> Vec<&'static str> {
    let mut commands = block.lines().filter_map(|line| line.strip_prefix("longhaul "));
    let mut left_out = WAY.to_vec();
    left_out.retain(|step| {
        let mut rest = commands.clone();
        let is_there = rest.any(|command| command.starts_with(&format!("{step} ")) || command == *step);
        if is_there {
            commands = rest;
        }
        !is_there
    });
    left_out
}

#[track_caller]
fn the_way_runs_as_it_is_written(sdk: &str) {
    let blocks = blocks(&readme(sdk), "sh");
    let block = blocks.first().unwrap_or_else(|| panic!("sdk/{sdk}/README.md has no fenced `sh` block"));
    assert_eq!(left_out(block), [""; 0], "sdk/{sdk}/README.md should have these commands, in this order:\n{block}");
    let output = shell(&Author::new(), block);
    assert!(output.status.success(), "sdk/{sdk}/README.md\n{}", said(&output));
}

#[test]
fn the_commands_of_the_readme_for_rust_run_as_written() {
    the_way_runs_as_it_is_written("rust");
}

#[test]
fn the_commands_of_the_readme_for_python_run_as_written() {
    the_way_runs_as_it_is_written("python");
}

#[test]
fn the_commands_of_the_readme_for_javascript_run_as_written() {
    the_way_runs_as_it_is_written("js");
}

#[test]
fn the_commands_of_the_readme_for_c_run_as_written() {
    the_way_runs_as_it_is_written("c");
}

#[test]
fn the_commands_of_the_readme_of_the_test_kit_run_as_written() {
    the_way_runs_as_it_is_written("testkit");
}

#[test]
fn a_block_that_lacks_a_command_or_has_it_too_early_is_seen() {
    let all: String = WAY.iter().map(|step| format!("longhaul {step} a # {step}\n")).collect();
    assert_eq!(left_out(&all), [""; 0]);
    assert_eq!(left_out(&all.replace("longhaul conform", "# longhaul conform")), ["conform"]);
    assert_eq!(left_out(&all.replace("plugin check", "plugin checks")), ["plugin check"]);
    let early = format!("longhaul plugin test\n{}", all.replace("longhaul plugin test a", "cd a"));
    assert_eq!(left_out(&early), ["plugin test"]);
}

#[test]
fn a_failing_command_ends_the_block_and_cd_is_honoured() {
    let author = Author::new();
    let runs = |block: &str| shell(&author, block).status.success();
    assert!(runs("mkdir a # a folder\ncd a\ntouch b\n") && author.path("a/b").is_file());
    assert!(!runs("longhaul plugin check nothing.wasm\ntouch c\n") && !author.path("c").exists());
}

#[test]
fn blocks_are_found_by_their_kind() {
    let text = "```sh\na\n\nb\n```\nwords\n```toml\nc\n```\n```sh\nd\n```\n";
    assert_eq!(blocks(text, "sh"), ["a\n\nb\n", "d\n"]);
    assert_eq!(blocks(text, "toml"), ["c\n"]);
    assert_eq!(blocks(text, "c"), [""; 0]);
}

/// Puts the tool of a README and the `plugin.toml` beside it into a project, builds it, and calls it.
#[track_caller]
fn the_shown_tool_answers(sdk: &Sdk, marker: &str, input: &Value, output: &Value) {
    let (author, readme) = (Author::new(), readme(sdk.name));
    let manifest = block_with(&readme, "toml", "world = \"tool-plugin\"");
    let read: toml::Table = manifest.parse().unwrap_or_else(|error| panic!("sdk/{}: {error}", sdk.name));
    let name = read["name"].as_str().expect("a name");
    author.runs(&["plugin", "new", name, "--kind", "tool", "--lang", sdk.name]);
    author.write(&format!("{name}/plugin.toml"), &manifest);
    author.write(&format!("{name}/{}", sdk.source), &block_with(&readme, sdk.fence, marker));
    author.runs(&["plugin", "build", name]);
    let component = format!("{name}/target/{name}.wasm");
    let described = json_of(&author, &["plugin", "run", &component, "describe"]);
    assert_eq!(described["result"]["id"], name, "{described}");
    let done = json_of(&author, &["plugin", "run", &component, "call", "--input", &input.to_string()]);
    assert_eq!(done["result"], json!({ "output": output, "truncated": false }), "{done}");
}

#[test]
fn the_tool_of_the_readme_for_rust_builds_and_answers() {
    let input = json!({ "function": "count", "arguments": { "text": "a b" } });
    the_shown_tool_answers(&RUST, "export_functions!", &input, &json!({ "words": 2 }));
}

#[test]
fn the_tool_of_the_readme_for_python_builds_and_answers() {
    let input = json!({ "function": "count", "arguments": { "text": "a b a", "unique": true } });
    the_shown_tool_answers(&PYTHON, "(Tool)", &input, &json!({ "words": 2 }));
}

#[test]
fn the_tool_of_the_readme_for_javascript_builds_and_answers() {
    let input = json!({ "function": "add", "arguments": { "name": "a", "by": 3 } });
    the_shown_tool_answers(&JAVASCRIPT, "defineTool(", &input, &json!({ "count": 3 }));
}

#[test]
fn the_tool_of_the_readme_for_c_builds_and_answers() {
    let input = json!({ "function": "count", "arguments": { "text": "a b" } });
    the_shown_tool_answers(&C, "lh_plugin", &input, &json!({ "words": 2 }));
}

/// A new project has the dependencies that the readme for Rust names.
#[test]
fn the_lines_of_cargo_toml_in_the_readme_for_rust_are_those_of_a_new_project() {
    let author = Author::new();
    author.runs(&["plugin", "new", "notes", "--kind", "tool", "--lang", "rust"]);
    let written: toml::Table = read(&author.path("notes/Cargo.toml")).parse().expect("cargo reads it");
    let shown: toml::Table = block_with(&readme("rust"), "toml", "crate-type").parse().expect("it is TOML");
    for (name, table) in [("lib", &shown["lib"]), ("release", &shown["profile"]["release"])] {
        let there = written.get(name).unwrap_or_else(|| &written["profile"][name]);
        for (key, value) in table.as_table().expect("a table") {
            assert_eq!(there.get(key), Some(value), "`{key}` of `{name}`");
        }
    }
}

/// Puts the agent of a README into a project, with the scenario that the README of the test kit shows.
#[track_caller]
fn the_shown_agent_finishes(sdk: &Sdk, marker: &str) {
    let author = Author::new();
    author.runs(&["plugin", "new", "reporter", "--kind", "agent", "--lang", sdk.name]);
    author.write(&format!("reporter/{}", sdk.source), &block_with(&readme(sdk.name), sdk.fence, marker));
    fs::remove_dir_all(author.path("reporter/tests")).expect("it is there");
    let scenario = block_with(&readme("testkit"), "toml", "export = \"run\"");
    author.write("reporter/tests/counts-words/scenario.toml", &scenario);
    let expected = json!({ "output": 2, "summary": "counted", "confidence": null, "unknowns": [] });
    author.write("reporter/tests/counts-words/expected.json", &expected.to_string());
    author.runs(&["plugin", "build", "reporter"]);
    assert_eq!(author.runs(&["plugin", "test", "reporter"]), "PASS counts-words\n");
}

#[test]
fn the_agent_of_the_readme_for_rust_finishes_its_scenario() {
    the_shown_agent_finishes(&RUST, "React::new");
}

#[test]
fn the_agent_of_the_readme_for_python_finishes_its_scenario() {
    the_shown_agent_finishes(&PYTHON, "react(");
}

#[test]
fn the_agent_of_the_readme_for_javascript_finishes_its_scenario() {
    the_shown_agent_finishes(&JAVASCRIPT, "react(");
}

#[test]
fn the_agent_of_the_readme_for_c_finishes_its_scenario() {
    the_shown_agent_finishes(&C, "lh_react");
}

/// Runs the scenarios of every example that has some against what `cargo xtask plugins --tests` made of it.
#[track_caller]
fn the_examples_pass_their_scenarios(sdk: &str, wanted: &[&str]) {
    let examples = repository().join("sdk").join(sdk).join("examples");
    for example in wanted.iter().map(|name| examples.join(name)) {
        let manifest: toml::Table = read(&example.join("plugin.toml")).parse().expect("it is TOML");
        let name = manifest["name"].as_str().expect("a name");
        let component = repository().join("target/plugins/sdk").join(sdk).join(format!("{name}.wasm"));
        assert!(component.is_file(), "{}; run `cargo xtask plugins --tests` first", component.display());
        let (example, component) = (example.to_str().expect("text"), component.to_str().expect("text"));
        let said = Author::new().runs(&["plugin", "test", example, "--component", component]);
        assert!(said.starts_with("PASS "), "{said}");
    }
}

const EXAMPLES: [&str; 5] = ["agent", "evaluator", "memory", "planner", "tool"];

#[test]
fn the_examples_in_rust_pass_their_scenarios() {
    the_examples_pass_their_scenarios("rust", &[&EXAMPLES[..], &["tool-file"]].concat());
}

#[test]
fn the_examples_in_python_pass_their_scenarios() {
    the_examples_pass_their_scenarios("python", &EXAMPLES);
}

#[test]
fn the_examples_in_javascript_pass_their_scenarios() {
    the_examples_pass_their_scenarios("js", &[&EXAMPLES[..], &["tool-file"]].concat());
}

#[test]
fn the_examples_in_c_pass_their_scenarios() {
    the_examples_pass_their_scenarios("c", &[&EXAMPLES[..], &["agent-foreman", "tool-file"]].concat());
}
