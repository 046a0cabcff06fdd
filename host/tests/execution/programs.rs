//! Programs as people and models write them, in the sandbox and with the real interpreters.
//!
//! `tests/programs` has them, with what `record.py` there saw of node and python3. Standard output and exit code must
//! be equal, but for the programs of `differences.txt`, each with its reason; one of those that is equal is a fault,
//! too. Needs the interpreters of `cargo xtask plugins`.

use super::exec::EXECUTOR;
use crate::common::repository;
use longhaul::exec::{Code, Job, JobLimits};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Longer than any of them takes on a busy machine.
const TIMEOUT_MS: u64 = 120_000;

/// Files beside the programs.
const OTHERS: [&str; 2] = ["differences.txt", "expected.json"];

/// The results of the real interpreter for the programs of a language.
#[derive(Deserialize)]
struct Recorded {
    recorded_from: String,
    programs: BTreeMap<String, Outcome>,
}

/// The compared results of a program.
#[derive(Debug, Deserialize, PartialEq)]
struct Outcome {
    stdout: String,
    exit_code: i32,
}

#[tokio::test]
async fn programs_of_javascript_end_as_with_node() {
    compare("javascript", Code::JavaScript).await;
}

#[tokio::test]
async fn programs_of_python_end_as_with_python3() {
    compare("python", Code::Python).await;
}

async fn compare(language: &str, code: fn(String) -> Code) {
    let folder = repository().join("tests/programs").join(language);
    let recorded: Recorded =
        serde_json::from_slice(&fs::read(folder.join("expected.json")).expect("recorded")).expect("JSON");
    let reasons = reasons(&folder);
    assert_eq!(files(&folder), recorded.programs.keys().cloned().collect(), "run tests/programs/record.py {language}");
    let unknown: Vec<_> = reasons.keys().filter(|name| !recorded.programs.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "differences.txt names programs that are not there: {unknown:?}");
    let mut faults = Vec::new();
    for (name, expected) in &recorded.programs {
        let source = fs::read_to_string(folder.join(name)).expect("a program");
        let found = outcome(code(source)).await;
        let agrees = found.as_ref() == Ok(expected);
        match reasons.get(name) {
            Some(reason) if agrees => faults.push(format!("{name} agrees, though listed: {reason}")),
            None if !agrees => faults.push(format!("{name}: expected {expected:?}, found {found:?}")),
            _ => {}
        }
    }
    assert!(faults.is_empty(), "beside {}:\n{}", recorded.recorded_from, faults.join("\n"));
}

/// Its end in the sandbox; an error is what stopped it, with what it told.
async fn outcome(code: Code) -> Result<Outcome, String> {
    let limits = JobLimits { timeout_ms: TIMEOUT_MS, ..JobLimits::default() };
    let report = EXECUTOR.run(Job { limits, ..Job::of(code) }).await.map_err(|error| error.to_string())?;
    match report.exit_code {
        Some(exit_code) => Ok(Outcome { stdout: report.stdout, exit_code }),
        None => Err(format!("{:?} after {:?} and {:?}", report.error_message, report.stdout, report.stderr)),
    }
}

/// The programs that may differ, with the reason of each: lines of `NAME: REASON`, and comments after `#`.
fn reasons(folder: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder.join("differences.txt")).expect("a list");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let split = |line: &str| {
        let (name, reason) = line.split_once(": ").unwrap_or_else(|| panic!("`{line}` is no `NAME: REASON`"));
        (name.to_owned(), reason.to_owned())
    };
    lines.map(split).collect()
}

fn files(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("the programs").map(|entry| entry.expect("a file").file_name());
    let names = entries.map(|name| name.into_string().expect("plain"));
    names.filter(|name| !OTHERS.contains(&name.as_str())).collect()
}
