//! The suite `executor_tasks` of `$LONGHAUL_CASES`: cases are told apart by what they hold, never by their ids.

use super::repository;
use serde_json::Value;
use std::path::PathBuf;

/// An execution of an agent that a case asks for.
pub enum Wanted {
    /// It runs this Python.
    Runs(String),
    /// It was deactivated.
    Inactive,
    /// No agent of that name exists.
    Unknown,
}

/// The cases in which an agent is executed.
pub fn executions() -> Vec<Value> {
    let own = || repository().join("tests/cases");
    let directory = std::env::var_os("LONGHAUL_CASES").map_or_else(own, PathBuf::from);
    let files = std::fs::read_dir(directory).expect("the cases").map(|entry| entry.expect("a file").path());
    let read = |path| serde_json::from_slice::<Value>(&std::fs::read(path).unwrap_or_default()).ok();
    let suites = files.filter_map(read).filter(|suite| suite["suite"] == "executor_tasks");
    let cases = suites.flat_map(|suite| suite["cases"].as_array().cloned().expect("a list"));
    let found: Vec<Value> = cases.filter(|case| case["agent"].is_string()).collect();
    assert!(!found.is_empty(), "no case executes an agent");
    found
}

/// The request of a case: its agent is a source, or a description in words.
#[track_caller]
pub fn wanted(case: &Value) -> Wanted {
    let agent = case["agent"].as_str().expect("a text");
    let megabytes = || agent.split_once(" MB").and_then(|(before, _)| before.rsplit(' ').next()?.parse::<u64>().ok());
    let source = match agent {
        "inactive agent" => return Wanted::Inactive,
        "unknown agent" => return Wanted::Unknown,
        "loop forever" => "print('before', flush=True)\nwhile True: pass".to_owned(),
        said if said.starts_with("allocate ") => {
            format!("x = bytearray({} << 20)", megabytes().unwrap_or_else(|| panic!("no size in the step `{said}`")))
        }
        said if said.ends_with("reads CONTEXT") => "print(CONTEXT)".to_owned(),
        source if source.contains(['(', '=', '\n']) => source.to_owned(),
        other => panic!("{}: unknown step `{other}`; write what it runs", case["id"]),
    };
    Wanted::Runs(source)
}
