//! The start of a scenario: its project, its further files, its commands, and the replies of its model.

use crate::common::fake::Fake;
use crate::common::lab::Lab;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The laboratory of a scenario, before its first step.
pub fn lab(folder: &Path) -> Lab {
    let lab = Lab::empty();
    put(&lab, &folder.join("later"), &lab.path("later"));
    put(&lab, &folder.join("directory"), &lab.project());
    put(&lab, &folder.join("project"), &lab.project());
    fs::create_dir_all(lab.project()).expect("ours");
    if folder.join("project").is_dir() {
        for args in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "start"]] {
            lab.git(args);
        }
    }
    make_programs(&lab);
    if let Ok(script) = fs::read_to_string(folder.join("model.jsonl")) {
        direct(&lab.fake, &script);
    }
    lab
}

/// The folder of the commands that steps have beside those of the system.
pub fn programs(lab: &Lab) -> PathBuf {
    lab.path("bin")
}

fn make_programs(lab: &Lab) {
    let folder = programs(lab);
    fs::create_dir(&folder).expect("ours");
    let own = std::env::current_exe().expect("this program");
    symlink(env!("CARGO_BIN_EXE_longhaul"), folder.join("longhaul")).expect("ours");
    for name in ["pick", "told"] {
        symlink(&own, folder.join(name)).expect("ours");
    }
}

/// Copies a folder, if it is there. `{server}` in a file stands for the address of the fake server.
fn put(lab: &Lab, from: &Path, to: &Path) {
    if !from.is_dir() {
        return;
    }
    fs::create_dir_all(to).expect("ours");
    for entry in fs::read_dir(from).expect("readable") {
        let path = entry.expect("readable").path();
        let to = to.join(path.file_name().expect("it has a name"));
        if path.is_symlink() {
            symlink(fs::read_link(&path).expect("a link"), &to).expect("ours");
        } else if path.is_dir() {
            put(lab, &path, &to);
        } else {
            fs::copy(&path, &to).expect("ours");
            if let Ok(text) = fs::read_to_string(&path) {
                fs::write(&to, text.replace("{server}", &lab.fake.address)).expect("ours");
            }
        }
    }
}

/// Has the model follow a script, one direction a line; see the README of the scenarios.
fn direct(fake: &Fake, script: &str) {
    let (mut rules, mut memories) = (Vec::new(), Vec::new());
    for line in script.lines().filter(|line| !line.trim().is_empty()) {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("model.jsonl: {error}: {line}"));
        if let Some(when) = line["when"].as_str() {
            let said = line.get("message").cloned().unwrap_or_else(|| text(&line["says"]).into());
            rules.push((when.to_owned(), said));
        } else if let Some(memory) = line.get("remembers") {
            memories.push(text(memory));
        } else if let Some(ms) = line["takes_ms"].as_u64() {
            fake.model_takes(Duration::from_millis(ms));
        } else {
            fake.says([line]);
        }
    }
    fake.remembers_in_turn(memories);
    fake.plays(move |body| {
        let asked = body["messages"].to_string();
        rules.iter().find(|(when, _)| asked.contains(when)).map(|(_, said)| said.clone())
    });
}

/// A text as it is, and other JSON as its text.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
