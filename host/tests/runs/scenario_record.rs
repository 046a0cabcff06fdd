//! Recorded runs as tests: a run becomes scenarios without anybody's data, which show what a change asks otherwise.

use crate::common::lab::Lab;
use crate::common::{refused, repository};
use serde_json::json;
use std::fs;
use std::path::Path;

/// An agent that asks its model and hands back the reply.
const CONFIG: &str = r#"
[project]
name = "asked"

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"

[planner]
plugin = "initializer"
models = ["fake"]

[agents.one]
plugin = "caller"
models = ["fake"]
settings = { ask = "Greet ada@lovelace.org of ACME-77.", decide = "to greet" }
"#;

const SECRET: &str = "value-of-a-secret-4711";

/// All files below a directory, as one text.
fn all_of(directory: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).expect("it is there").flatten() {
        let path = entry.path();
        text += &entry.file_name().to_string_lossy();
        text += &if path.is_dir() { all_of(&path) } else { fs::read_to_string(&path).expect("text") };
    }
    text
}

#[test]
fn a_recorded_run_is_a_test_that_shows_a_change_and_takes_it_and_holds_nobodys_data() {
    let lab = Lab::empty();
    fs::create_dir_all(lab.project()).expect("ours");
    fs::write(lab.project().join("longhaul.toml"), CONFIG.replace("{server}", &lab.fake.address)).expect("ours");
    lab.set_own_secret("key", SECRET);
    lab.fake.says([json!(format!("Hello ada@lovelace.org, {SECRET} from /home/lovelace/x"))]);
    lab.run(&["ask", "--agent", "one", "greet"]).expect(0);
    let key = "f-answer/1/generate";
    let directory = lab.path("recorded");
    let at = directory.to_str().expect("text");
    let told = lab.json(&["scenario", "record", "-o", at, "--replace", "ACME-[0-9]+=ACME-1"]);
    assert_eq!(told["scenarios"][0]["invocation"].as_str().and_then(|id| id.split_once('/')).map(|it| it.1), Some(key));
    let counts = told["replaced"].as_array().expect("a list").iter();
    let kinds: Vec<&str> = counts.filter_map(|one| one["kind"].as_str()).collect();
    for kind in ["`ACME-[0-9]+`", "e-mail address", "text with a secret", "user name"] {
        assert!(kinds.contains(&kind), "{kind} is not in {told}");
    }
    let written = all_of(&directory);
    for value in [SECRET, "lovelace", "ACME-77"] {
        assert!(!written.contains(value), "{value} is in what was written");
    }
    assert!(written.contains("Greet person-1@example.com of ACME-1."), "{written}");
    // It holds for the plugin that was recorded.
    let name = told["scenarios"][0]["scenario"].as_str().expect("a name");
    assert_eq!(lab.run(&["plugin", "test", at]).expect(0).stdout, format!("PASS {name}\n"));
    // Another prompt is shown, and taken where it is right.
    let input = directory.join(name).join("input.json");
    let changed = fs::read_to_string(&input).expect("written").replace("Greet", "Thank");
    fs::write(&input, changed).expect("ours");
    let failed = lab.run(&["plugin", "test", at]).expect(1);
    for line in [
        "arguments.txt differs:",
        ", conversation.complete:",
        "user: Greet person-1@example.com of ACME-1.",
        "user: Thank person-1@example.com of ACME-1.",
    ] {
        assert!(failed.stdout.contains(line), "{}", failed.said());
    }
    let updated = lab.run(&["plugin", "test", at, "--update"]).expect(0);
    assert!(updated.stdout.starts_with(&format!("UPDATE {name}\n")), "{}", updated.said());
    assert!(updated.stdout.contains("+       user: Thank"), "{}", updated.said());
    assert_eq!(lab.run(&["plugin", "test", at]).expect(0).stdout, format!("PASS {name}\n"));
    // Another plugin is another test.
    let other = repository().join("target/plugins/tests/doer.wasm");
    let failed = lab.run(&["plugin", "test", at, "--component", other.to_str().expect("text")]).expect(1);
    assert!(failed.stdout.contains("the component is another one"), "{}", failed.said());
    // A part of it has no end.
    let part = lab.path("part");
    let part = part.to_str().expect("text");
    lab.run(&["scenario", "record", "-i", key, "--at", "1..1", "-o", part]).expect(0);
    lab.run(&["plugin", "test", part]).expect(0);
    // What cannot be recorded says so, and leaves nothing.
    let free = lab.path("free");
    let record = |arguments: &[&str]| lab.run(&[&["scenario", "record"], arguments].concat());
    refused(&record(&["-o", at]), &["has files"]);
    let none = free.to_str().expect("text");
    refused(&record(&["-i", "f-none/1/generate", "-o", none]), &["there is no invocation"]);
    refused(&record(&["-i", key, "--at", "1..99", "-o", none]), &["answered entries, and --at ends with 99"]);
    refused(&record(&["r-ffffffffffff", "-o", none]), &["r-ffffffffffff"]);
    refused(&record(&["-o", none, "--replace", "x*=y"]), &["fits the empty text"]);
    assert!(!free.exists());
}
