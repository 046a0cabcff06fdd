//! Scenario folders: a call, its surroundings and what must come of it, as files. Adding a case adds no code.
//!
//! `scenario.toml` says what is called; `expected.json` what it returns, or `error.txt` how it ends
//! otherwise; `calls.txt`, where there is one, which imports it called. With `UPDATE_EXPECT=1` the
//! expectations are written instead of compared.

use crate::call::Call;
use crate::done::{Done, Ending};
use crate::error::KitError;
use crate::kit::Kit;
use crate::scene::Scene;
use crate::script::Script;
use longhaul_core::Limits;
use longhaul_core::grant::{Access, DirectoryGrant};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The file that makes a folder a scenario.
const FILE: &str = "scenario.toml";
const EXPECTED: &str = "expected.json";
const ERROR: &str = "error.txt";
const CALLS: &str = "calls.txt";

/// Most levels of a scenario's directory, when it is copied for a plugin that writes.
const DEPTH_MAX: usize = 20;

/// Lines of a difference that are shown.
const DIFFERENCE_LINES_MAX: usize = 60;

/// The content of a `scenario.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// The one export that is called. For several calls see `calls`.
    pub export: Option<String>,
    /// Input of the call. Default: the file `input.json`, or an empty object.
    pub input: Option<Value>,
    /// Calls one after the other, each in a fresh instance, over the same store and clock.
    pub calls: Vec<ScenarioCall>,
    /// The plugin's settings. Default: none.
    pub settings: Option<Value>,
    /// Limits of each call.
    pub limits: Limits,
    /// Directories of the scenario that the plugin may use; where it may write, it gets a copy.
    pub directories: Vec<ScenarioDirectory>,
    /// Models, tools, checks, sub-agents, clock and seed.
    pub script: Script,
}

/// A call of several.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScenarioCall {
    /// The name of the export.
    pub export: String,
    /// Input of the call.
    pub input: Value,
    /// Moves the clock before the call, in milliseconds.
    pub advance_ms: u64,
}

/// A directory of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioDirectory {
    /// Below the scenario's folder.
    pub host: PathBuf,
    /// Path under which the plugin sees the directory.
    pub guest: String,
    /// The allowed use: `read` or `write`.
    pub access: Access,
}

/// The outcome of one scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioOutcome {
    /// Name of its folder.
    pub name: String,
    /// Difference from the expectation; none: it passes.
    pub difference: Option<String>,
}

/// Runs every scenario of the folder `tests` against a component, in the order of their names.
///
/// # Errors
/// [`KitError::Load`], or [`KitError::File`] when there is no scenario. What is wrong with one scenario
/// is its outcome.
pub async fn run_scenarios(
    kit: &Kit,
    component: &Path,
    tests: &Path,
    update: bool,
) -> Result<Vec<ScenarioOutcome>, KitError> {
    run_scenarios_named(kit, component, tests, "", update).await
}

/// The same for those whose names have `part` in them.
///
/// # Errors
/// As [`run_scenarios`], and [`KitError::File`] when no name has it.
pub async fn run_scenarios_named(
    kit: &Kit,
    component: &Path,
    tests: &Path,
    part: &str,
    update: bool,
) -> Result<Vec<ScenarioOutcome>, KitError> {
    let mut folders = folders(tests)?;
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let names: Vec<String> = folders.iter().map(name).collect();
    folders.retain(|path| name(path).contains(part));
    if folders.is_empty() {
        let there = longhaul_core::text::truncate(&names.join(", "), 500);
        return Err(file(tests, format!("no scenario has `{part}` in its name; there are: {there}")));
    }
    let scene = kit.load(component).await?;
    let mut outcomes = Vec::new();
    for folder in folders {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let difference = match run(&scene, &folder, update).await {
            Ok(difference) => difference,
            Err(error) => Some(error.to_string()),
        };
        outcomes.push(ScenarioOutcome { name, difference });
    }
    Ok(outcomes)
}

fn folders(tests: &Path) -> Result<Vec<PathBuf>, KitError> {
    let entries = fs::read_dir(tests).map_err(|error| file(tests, error))?;
    // One that expects something and calls nothing would never fail, so it is run to say so.
    let is_scenario = |path: &PathBuf| [FILE, EXPECTED, ERROR].iter().any(|name| path.join(name).is_file());
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_scenario).collect();
    if !folders.iter().any(|path| path.join(FILE).is_file()) {
        return Err(file(tests, format!("there is no folder with a {FILE} in it")));
    }
    folders.sort();
    Ok(folders)
}

/// Runs one; none when it passes.
async fn run(scene: &Scene, folder: &Path, update: bool) -> Result<Option<String>, KitError> {
    let path = folder.join(FILE);
    let scenario: Scenario = toml::from_str(&read(&path)?).map_err(|error| file(&path, error))?;
    let calls = calls(&scenario, folder)?;
    let (scene, _copies) = staged(scene.clone(), &scenario, folder)?;
    let mut dones = Vec::new();
    for (call, advance_ms) in calls {
        scene.clock().advance_ms(advance_ms);
        dones.push(scene.call(call).await?);
    }
    let expectations = expectations(&dones, !scenario.calls.is_empty());
    let difference = if update { write(folder, &expectations) } else { compare(folder, &expectations, &dones) }?;
    // No expectation makes a broken contract right.
    Ok(difference.or_else(|| breaches(&dones)))
}

/// Breaches of the contract in returned values.
fn breaches(dones: &[Done]) -> Option<String> {
    let lines: Vec<&str> = dones.iter().filter_map(Done::breach).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn calls(scenario: &Scenario, folder: &Path) -> Result<Vec<(Call, u64)>, KitError> {
    let Some(export) = &scenario.export else {
        if scenario.calls.is_empty() {
            return Err(file(&folder.join(FILE), "it calls nothing; write export = \"...\" or [[calls]]"));
        }
        let read = |one: &ScenarioCall| Ok((Call::from_json(&one.export, one.input.clone())?, one.advance_ms));
        return scenario.calls.iter().map(read).collect();
    };
    if !scenario.calls.is_empty() {
        return Err(file(&folder.join(FILE), "it has both `export` and [[calls]]; write one of them"));
    }
    let path = folder.join("input.json");
    let input = match &scenario.input {
        Some(input) => input.clone(),
        None if path.is_file() => serde_json::from_str(&read(&path)?).map_err(|error| file(&path, error))?,
        None => json!({}),
    };
    Ok(vec![(Call::from_json(export, input)?, 0)])
}

/// The scene of a scenario, with a store of its own, and the copies that live as long as it.
fn staged(scene: Scene, scenario: &Scenario, folder: &Path) -> Result<(Scene, Vec<TempDir>), KitError> {
    let settings = scenario.settings.clone().unwrap_or_else(|| json!({}));
    let mut scene = scene.fresh().script(scenario.script.clone()).limits(scenario.limits.clone()).settings(settings);
    let mut copies = Vec::new();
    for ScenarioDirectory { host, guest, access } in &scenario.directories {
        let from = folder.join(host);
        let host = match access {
            Access::Read => from,
            Access::Write => {
                let copy = tempfile::tempdir().map_err(|error| file(&from, error))?;
                copied(&from, copy.path(), DEPTH_MAX).map_err(|error| file(&from, error))?;
                let path = copy.path().to_owned();
                copies.push(copy);
                path
            }
        };
        scene = scene.directory(DirectoryGrant { guest: guest.clone(), host, access: *access });
    }
    Ok((scene, copies))
}

/// Copies files and folders; links are left out.
fn copied(from: &Path, to: &Path, depth: usize) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let (entry, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        let target = to.join(entry.file_name().unwrap_or_default());
        if kind.is_file() {
            fs::copy(&entry, target)?;
        } else if kind.is_dir() && depth > 0 {
            fs::create_dir(&target)?;
            copied(&entry, &target, depth - 1)?;
        }
    }
    Ok(())
}

/// The texts of the files that say what is expected; one of the first two.
struct Expectations {
    returned: Option<String>,
    error: Option<String>,
    calls: String,
}

fn expectations(dones: &[Done], several: bool) -> Expectations {
    let made = dones.iter().flat_map(|done| &done.calls);
    let calls = made.map(|made| format!("{made}\n")).collect();
    let pretty = |value: &Value| format!("{value:#}\n");
    match dones {
        [done] if !several => match &done.ending {
            Ending::Returned(value) => Expectations { returned: Some(pretty(value)), error: None, calls },
            _ => Expectations { returned: None, error: Some(format!("{}\n", line(done))), calls },
        },
        _ => {
            let all = dones.iter().map(|done| match &done.ending {
                Ending::Returned(value) => json!({ "result": value }),
                _ => json!({ "error": line(done) }),
            });
            Expectations { returned: Some(pretty(&all.collect())), error: None, calls }
        }
    }
}

/// An end without a value in one line. The words of a trap are the engine's, and not compared.
fn line(done: &Done) -> String {
    match &done.ending {
        Ending::Returned(_) => String::new(),
        Ending::Refused(refusal) => format!("{}: {}", refusal.case, refusal.text),
        Ending::Stopped(_) => match done.limit() {
            Some(hit) => format!("limit: {}", hit.name),
            None => done.ending_json()["stopped"]["by"].as_str().unwrap_or_default().to_owned(),
        },
    }
}

fn write(folder: &Path, expectations: &Expectations) -> Result<Option<String>, KitError> {
    let files = [(EXPECTED, &expectations.returned), (ERROR, &expectations.error)];
    for (name, text) in files {
        let path = folder.join(name);
        match text {
            Some(text) => fs::write(&path, text).map_err(|error| file(&path, error))?,
            None if path.exists() => fs::remove_file(&path).map_err(|error| file(&path, error))?,
            None => {}
        }
    }
    let path = folder.join(CALLS);
    if path.exists() {
        fs::write(&path, &expectations.calls).map_err(|error| file(&path, error))?;
    }
    Ok(None)
}

fn compare(folder: &Path, got: &Expectations, dones: &[Done]) -> Result<Option<String>, KitError> {
    let mut differences = Vec::new();
    let files = [(EXPECTED, &got.returned), (ERROR, &got.error)];
    if files.iter().all(|(name, _)| !folder.join(name).exists()) {
        differences.push(format!("there is neither {EXPECTED} nor {ERROR}; write it with UPDATE_EXPECT=1"));
    }
    for (name, got) in files {
        let path = folder.join(name);
        if path.exists() {
            let expected = normal(name, &read(&path)?);
            let got = got.as_deref().unwrap_or_default();
            differences.extend(difference(&expected, got).map(|lines| format!("{name} differs:\n{lines}")));
        }
    }
    let path = folder.join(CALLS);
    if path.exists() {
        let found = difference(&read(&path)?, &got.calls);
        differences.extend(found.map(|lines| format!("{CALLS} differs:\n{lines}")));
    }
    if differences.is_empty() {
        return Ok(None);
    }
    // The end of the call says more than a file that is not as expected.
    differences.extend(dones.last().map(|done| format!("it ended so:\n{done}")));
    Ok(Some(differences.join("\n")))
}

/// JSON may be laid out as its author likes.
fn normal(name: &str, text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if name == EXPECTED => format!("{value:#}\n"),
        _ => text.to_owned(),
    }
}

/// The difference as lines: `-` marks an expected line and `+` a line that came, between two lines of both. None when
/// only white space at the end differs.
fn difference(expected: &str, got: &str) -> Option<String> {
    let (expected, got): (Vec<&str>, Vec<&str>) =
        (expected.trim_end().lines().collect(), got.trim_end().lines().collect());
    if expected == got {
        return None;
    }
    let same = |(one, other): &(&&str, &&str)| one == other;
    let start = expected.iter().zip(&got).take_while(same).count();
    let rest = expected.len().min(got.len()) - start;
    let end = expected.iter().rev().zip(got.iter().rev()).take(rest).take_while(same).count();
    let mut lines = Vec::new();
    lines.extend(expected[start.saturating_sub(2)..start].iter().map(|line| format!("  {line}")));
    lines.extend(expected[start..expected.len() - end].iter().map(|line| format!("- {line}")));
    lines.extend(got[start..got.len() - end].iter().map(|line| format!("+ {line}")));
    lines.extend(got[got.len() - end..].iter().take(2).map(|line| format!("  {line}")));
    if lines.len() > DIFFERENCE_LINES_MAX {
        let more = lines.len() - DIFFERENCE_LINES_MAX;
        lines.truncate(DIFFERENCE_LINES_MAX);
        lines.push(format!("  and {more} more lines"));
    }
    Some(lines.join("\n"))
}

fn read(path: &Path) -> Result<String, KitError> {
    fs::read_to_string(path).map_err(|error| file(path, error))
}

fn file(path: &Path, reason: impl ToString) -> KitError {
    KitError::File { path: path.to_owned(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_was_expected_and_what_came() {
        assert_eq!(difference("a\nb\n", "a\nb"), None);
        let shown = difference("a\nb\nc\nd\ne\n", "a\nb\nC\nd\ne\n").unwrap();
        assert_eq!(shown, "  a\n  b\n- c\n+ C\n  d\n  e");
        assert_eq!(difference("", "a").as_deref(), Some("+ a"));
    }
}
